//! Whether the entries of a file are those that were written, in their order, and all of them.
//!
//! Each entry has a checksum of its own. What that cannot notice is noticed here: entries that are missing, doubled
//! or in a place that is not theirs. In files of format 1 only batches can be checked.

use super::entry::{Kind, NOTE, Note, chain};
use super::head::{FILE_HEAD, Format};
use super::mark::Mark;
use super::segment::Segment;
use super::walk::{Fault, Step};

/// Judges one file, entry by entry.
pub(super) struct Judge {
    format: Format,
    number: u32,
    compacted: bool,
    generation: u32,
    progress: Progress,
    /// Where the batch began whose end has not been seen.
    open: Option<u64>,
    ended: bool,
    version: u64,
}

/// What a writer that goes on with the file must know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// [`chain`] of all entries.
    pub(super) chain: u64,
    /// Entries of records.
    pub(super) records: u64,
}

impl Progress {
    /// Counts one more entry, given as bytes.
    pub(super) fn add(&mut self, is_of_a_record: bool, bytes: &[u8]) {
        self.chain = chain(self.chain, bytes);
        self.records += u64::from(is_of_a_record);
    }
}

impl Judge {
    /// `version` is the last one in the files before; 0: there is none that can be compared.
    pub(super) fn new(segment: &Segment, version: u64) -> Judge {
        Judge {
            format: segment.format,
            number: segment.name.last,
            compacted: segment.compacted_at != 0,
            generation: segment.name.generation,
            progress: Progress::default(),
            open: None,
            ended: false,
            version,
        }
    }

    /// Takes the next entry.
    ///
    /// # Errors
    /// Why it cannot stand where it stands. Such an entry is whole, so no crash has torn it.
    pub(super) fn see(&mut self, step: &Step<'_>) -> Result<(), String> {
        let entry = &step.entry;
        match (self.format, entry.is_of_a_record()) {
            (Format::One, true) => {}
            (Format::One, false) => return Err("an entry that files of format 1 do not have".to_owned()),
            (Format::Two, true) => self.see_record(step)?,
            (Format::Two, false) => self.see_note(step)?,
        }
        self.progress.add(entry.is_of_a_record(), step.bytes);
        if entry.is_of_a_record() {
            self.open = entry.continues.then(|| self.open.unwrap_or(step.offset));
            self.version = self.version.max(entry.version.0);
        }
        self.ended = entry.kind == Kind::End;
        Ok(())
    }

    fn see_record(&self, step: &Step<'_>) -> Result<(), String> {
        let (entry, version) = (&step.entry, step.entry.version.0);
        if self.ended {
            return Err("an entry after the end of the file".to_owned());
        }
        if entry.follows != self.open.is_some() {
            return Err("entries of a batch are missing or displaced".to_owned());
        }
        // Batches have versions that grow; their entries, and what compaction keeps of them, share one.
        let same = entry.follows || self.compacted;
        if version < self.version || version == self.version && !same {
            return Err("an earlier write follows a later one".to_owned());
        }
        Ok(())
    }

    fn see_note(&self, step: &Step<'_>) -> Result<(), String> {
        let Some(note) = Note::of(&step.entry) else {
            return Err("an entry about the log that says nothing".to_owned());
        };
        if self.ended || self.open.is_some() {
            return Err("an entry about the log inside a batch or after the end".to_owned());
        }
        if (note.number, note.at) != (self.number, step.offset) {
            return Err(format!(
                "what belongs to byte {} of file number {} stands here",
                note.at, note.number
            ));
        }
        let records = step.entry.kind == Kind::Group || note.figure == self.progress.records;
        if note.chain != self.progress.chain || !records {
            return Err("entries before this are missing, doubled or displaced".to_owned());
        }
        Ok(())
    }

    /// Takes the end of the file.
    ///
    /// # Errors
    /// What is missing.
    pub(super) fn finish(&self, newest: bool) -> Result<(), String> {
        if self.open.is_some() {
            return Err("it ends with an unfinished batch".to_owned());
        }
        let complete = !newest || self.generation > 0;
        if self.format == Format::Two && complete && !self.ended {
            return Err("its last entries are missing".to_owned());
        }
        Ok(())
    }

    /// Where the unfinished batch began, or `otherwise`.
    pub(super) fn open_since(&self, otherwise: u64) -> u64 {
        self.open.unwrap_or(otherwise)
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Nothing may be added to the file.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    pub(super) fn progress(&self) -> Progress {
        self.progress
    }

    /// The last version, for the file that follows; 0 where it cannot be compared.
    pub(super) fn version(&self) -> u64 {
        match self.format {
            Format::One => 0,
            Format::Two => self.version,
        }
    }
}

/// What may be done about the end of the newest file, which cannot be read from `place` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Nothing from there on was acknowledged.
    Torn,
    /// Everything before this byte was acknowledged, and perhaps more.
    Acknowledged(u64),
    /// A file of format 1 does not say.
    Unknown,
}

/// Whether bytes of `segment`, the newest, from `place` on may have been acknowledged.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn end_of(segment: &Segment, mark: Option<Mark>, place: u64) -> Result<End, Fault> {
    let Some(mark) = mark.filter(|_| segment.format == Format::Two) else {
        return Ok(End::Unknown);
    };
    if segment.name.generation > 0 {
        // Written by compaction, which gives a file its name when it is complete.
        return Ok(End::Acknowledged(segment.length().max(place + 1)));
    }
    let marked = if mark.segment == segment.name.last {
        mark.offset
    } else {
        FILE_HEAD
    };
    let noted = groups_after(segment, place)?.map_or(FILE_HEAD, |note| note.figure);
    let durable = marked.max(noted);
    Ok(if durable > place {
        End::Acknowledged(durable)
    } else {
        End::Torn
    })
}

/// The last head of a group after `place`, wherever entries can begin.
fn groups_after(segment: &Segment, place: u64) -> Result<Option<Note>, Fault> {
    const CHUNK: usize = 256 * 1_024;
    let (mut found, mut at) = (None, place.next_multiple_of(8));
    let mut buffer = vec![0; CHUNK + NOTE];
    while at < segment.length() {
        let got = segment.read_bytes(&mut buffer, at).map_err(Fault::Io)?;
        let places = (0..got.min(CHUNK)).step_by(8);
        for (place, note) in
            places.filter_map(|place| Some((place, Note::group_at(buffer.get(place..got)?)?)))
        {
            if (note.number, note.at) == (segment.name.last, at + place as u64) {
                found = Some(note);
            }
        }
        at += CHUNK as u64;
    }
    Ok(found)
}
