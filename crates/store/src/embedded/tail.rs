//! The end of the log, where the writer works: flushes, the mark, beginning and ending files, and what is done when
//! the disk refuses.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};

use super::checkpoint::{self, Point};
use super::entry::{Kind, NOTE, Note};
use super::judge::Progress;
use super::mark::Mark;
use super::name::Name;
use super::probe;
use super::reserve::is_full;
use super::segment::Segment;
use super::segments::Need;
use super::writer::{Message, Writer};
use crate::config::Durability;
use crate::error::Error;

/// Why a write is refused that is not a deletion.
pub(super) const ONLY_DELETIONS: &str = "the disk is full: only deletions are taken until there is room";
/// After so long without a write the mark is flushed; as often it is tried whether writes succeed again.
const QUIET: Duration = Duration::from_secs(1);

impl Writer {
    /// The next message, or nothing after a quiet moment in which the mark was flushed, or after a look whether
    /// writes succeed again.
    pub(super) fn next(&mut self, messages: &Receiver<Message>) -> Result<Option<Message>, RecvTimeoutError> {
        let troubled = self.shared.trouble.is_there();
        if !troubled && !self.mark.is_dirty() {
            return messages
                .recv()
                .map(Some)
                .map_err(|_| RecvTimeoutError::Disconnected);
        }
        match messages.recv_timeout(QUIET) {
            Ok(message) if troubled => {
                // Callers who keep asking must not keep it from looking.
                self.recover_when_due();
                Ok(Some(message))
            }
            Ok(message) => Ok(Some(message)),
            Err(RecvTimeoutError::Timeout) => {
                match troubled {
                    true => self.recover_when_due(),
                    false => self.settle(),
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Flushes the mark.
    fn settle(&mut self) {
        if let Err(error) = self.mark.settle(self.mark.mark()) {
            self.shared
                .trouble
                .begin(&format!("the mark of the log: {error}"));
        }
    }

    /// Tries, once a [`QUIET`] time, whether writes succeed again.
    fn recover_when_due(&mut self) {
        if self.tried.elapsed() >= QUIET && self.failed.is_none() {
            self.recover();
        }
    }

    /// Whether writes that are no deletions are refused, because the disk is full and the log has the reserve. Someone may
    /// have made room just now.
    pub(super) fn takes_only_deletions(&mut self) -> bool {
        if self.reserve.is_released() && self.failed.is_none() && self.reserve.has_room() {
            self.recover();
        }
        self.reserve.is_released()
    }

    fn recover(&mut self) {
        let recovered = self
            .repair()
            .and_then(|()| self.reserve.refill())
            .and_then(|()| probe::write(&self.directory));
        match recovered {
            Ok(()) => self.shared.trouble.end(),
            Err(error) => {
                if is_full(&error) {
                    self.reserve.release();
                }
                self.blame(format!("{}: {error}", self.directory.display()));
            }
        }
        self.tried = Instant::now();
    }

    /// Cuts off what a failed write has left.
    fn repair(&mut self) -> std::io::Result<()> {
        if let Some(at) = self.cut {
            self.active.truncate(at)?;
            self.cut = None;
        }
        Ok(())
    }

    /// All that was written is on the disk, and the mark says so.
    pub(super) fn close(&mut self) {
        if self.failed.is_some() || self.cut.is_some() {
            return;
        }
        let end = Mark {
            segment: self.active.name.last,
            offset: self.active.length(),
        };
        let settled = self.mark.mark() == end && !self.mark.is_dirty();
        let synced = match settled {
            true => Ok(()),
            false => self.active.sync().and_then(|()| self.mark.settle(end)),
        };
        match synced {
            Ok(()) => self.last_checkpoint(),
            Err(error) => tracing::error!(%error, "the end of the log may not be on the disk"),
        }
    }

    /// The moment for a checkpoint.
    pub(super) fn point(&self) -> Option<Point> {
        Point::take(&self.shared, (!self.sealed).then_some(self.progress))
    }

    /// With the checkpoint of the end the next start reads nothing of the log but its last file.
    fn last_checkpoint(&self) {
        let list = self.shared.segments.list();
        let bytes: u64 = list.in_order().iter().map(|file| file.length()).sum();
        if self.fresh || bytes < self.config.checkpoint_above.bytes() {
            return;
        }
        if let Some(point) = self.point() {
            checkpoint::write(&self.shared, &self.directory, &point);
        }
    }

    /// Writes the group to the end of the log, durably.
    pub(super) fn append(&mut self) -> Result<(), Error> {
        if self.cut.is_some() {
            let reason = self.shared.trouble.reason().unwrap_or_default();
            return Err(Error::Engine(reason));
        }
        let (at, number) = (self.active.length(), self.active.name.last);
        let end = at + self.group.bytes.len() as u64;
        self.active
            .write(&self.group.bytes, at)
            .map_err(|error| self.refused(at, &error))?;
        if self.config.durability == Durability::Fsync {
            if let Err(error) = self.active.sync() {
                // After a failed flush the kernel may have dropped the pages: what is on disk is not known.
                let reason = format!(
                    "{}: flush: {error}; no write is accepted until a restart",
                    self.active.path().display()
                );
                self.shared.trouble.begin(&reason);
                let told = Error::Engine(reason);
                self.failed = Some(told.clone());
                return Err(told);
            }
            let mark = Mark {
                segment: number,
                offset: end,
            };
            // Without it the end of the log could not be judged.
            self.mark.set(mark).map_err(|error| self.refused(at, &error))?;
            self.durable = end;
        }
        let head = self.group.bytes.get(..NOTE).unwrap_or_default();
        self.progress.add(false, head);
        for (offset, size, _) in &self.group.entries {
            self.progress
                .add(true, &self.group.bytes[*offset..*offset + *size]);
        }
        self.active.publish(end);
        Ok(())
    }

    /// A write of the active segment has failed: what of it is there beyond `at` goes. A full disk may have room
    /// again later.
    fn refused(&mut self, at: u64, error: &std::io::Error) -> Error {
        self.free_for_deletions(error);
        let reason = self.blame(format!("{}: {error}", self.active.path().display()));
        self.cut = Some(at);
        if let Err(cut) = self.repair() {
            tracing::error!(error = %cut, "the log cannot be repaired; it will be tried again");
        }
        Error::Engine(reason)
    }

    /// A full disk gives the room that was kept to deletions.
    fn free_for_deletions(&mut self, error: &std::io::Error) {
        if is_full(error) && self.reserve.release() {
            tracing::warn!("the disk is full; the room that was kept takes deletions");
        }
    }

    /// Says why writes fail; what is said.
    fn blame(&self, reason: String) -> String {
        let reason = match self.reserve.is_released() {
            true => format!("{reason}; {ONLY_DELETIONS}"),
            false => reason,
        };
        self.shared.trouble.begin(&reason);
        reason
    }

    /// Starts a new segment when `bytes` do not fit the active one.
    pub(super) fn make_room(&mut self, bytes: usize, need: Need) -> Result<(), Error> {
        let fits = self.active.length() + (NOTE + bytes) as u64 <= self.config.segment.bytes();
        if fits && !self.sealed {
            return Ok(());
        }
        if self.cut.is_some() {
            let reason = self.shared.trouble.reason().unwrap_or_default();
            return Err(Error::Engine(reason));
        }
        self.seal()?;
        let name = Name::fresh(self.active.name.last + 1);
        let slot = self.shared.segments.take_slot(need)?;
        let created = Segment::create(name.path(&self.directory), name, slot, 0).and_then(|segment| {
            // Before anything is written to it: from now on the file cannot be missing.
            self.mark.settle(Mark {
                segment: name.last,
                offset: segment.length(),
            })?;
            Ok(segment)
        });
        let segment = created.map_err(|error| {
            self.shared.segments.free_slot(slot);
            self.free_for_deletions(&error);
            let reason = self.blame(format!("{}: {error}", name.path(&self.directory).display()));
            self.shared.trouble.refused(1);
            Error::Engine(reason)
        })?;
        self.durable = segment.length();
        self.active = Arc::new(segment);
        self.sealed = false;
        self.reserved = need == Need::Deletions && self.shared.segments.is_full();
        self.progress = Progress::default();
        self.shared.segments.add(&self.active);
        // A full channel means that it is awake already.
        let _ = self.wake.try_send(());
        Ok(())
    }

    /// Ends the active segment, so that entries that are missing from it are noticed.
    fn seal(&mut self) -> Result<(), Error> {
        if self.sealed {
            return Ok(());
        }
        let at = self.active.length();
        let end = Note {
            number: self.active.name.last,
            at,
            figure: self.progress.records,
            chain: self.progress.chain,
        };
        let mut bytes = Vec::with_capacity(NOTE);
        end.encode(Kind::End, &mut bytes);
        let written = self.active.write(&bytes, at).and_then(|()| self.active.sync());
        written.map_err(|error| {
            self.shared.trouble.refused(1);
            self.refused(at, &error)
        })?;
        self.active.publish(at + bytes.len() as u64);
        self.sealed = true;
        Ok(())
    }
}
