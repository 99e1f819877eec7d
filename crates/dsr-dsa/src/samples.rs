//! Samples of messages that were found, as pcapng, which Wireshark and `signalbox dsa replay` read.
//!
//! Keys and authentication vectors are left out. A thread of its own writes: workers wait for no disk.

use std::collections::hash_map::DefaultHasher;
use std::fs::File;
use std::hash::{Hash as _, Hasher as _};
use std::io::{self, BufWriter};
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use diameter::capture::Capture;
use dsr_app::appended::{OpenOnce, one_name};
use function::generations::Generations;
use parking_lot::Mutex;

use crate::config;

/// Bound on samples that wait for the disk, and on the octets of one.
const MAX_QUEUED: usize = 64;
const MAX_OCTETS: usize = 65_536;
/// Octets of a packet beside its message, at most: addresses, and a comment.
const OVERHEAD: u64 = 512;
/// Pause before files are opened again after an error.
const RETRY: Duration = Duration::from_secs(60);
/// Octets of the header of a message (RFC 6733 §3).
const HEADER: usize = 20;
const VENDOR_3GPP: u32 = 10_415;
/// Vectors and keys of 3GPP: Authentication-Info (TS 29.272 §7.3.17), SIP-Auth-Data-Item, Confidentiality-Key and Integrity-Key
/// (TS 29.229 §6.3).
const VECTORS: [u32; 4] = [1413, 612, 625, 626];
/// Passwords and keys: User-Password, CHAP-Password (RFC 7155 §4.3), EAP-Master-Session-Key (RFC 4072 §4.1), Key (RFC 6734 §3).
const KEYS: [u32; 4] = [2, 3, 464, 581];

/// Files by their directories: a reload takes those that are open.
static OPENED: OpenOnce<Samples> = OpenOnce::new();

/// Where samples go.
#[derive(Debug)]
pub(crate) struct Samples {
    sender: SyncSender<Sample>,
    settings: Arc<Mutex<config::Samples>>,
    /// Samples that the thread could not write, until a worker counts them.
    lost: Arc<AtomicU64>,
}

/// A message as it is written.
#[derive(Debug)]
struct Sample {
    at: SystemTime,
    peer: Box<str>,
    comment: String,
    message: Vec<u8>,
}

/// The message of a finding.
pub(crate) struct Message<'m> {
    pub(crate) at: SystemTime,
    /// The peer that has sent the request.
    pub(crate) peer: &'m str,
    pub(crate) is_request: bool,
    /// Measures, and what became of the message.
    pub(crate) why: &'m str,
    pub(crate) octets: &'m [u8],
}

impl Samples {
    /// The samples of a configuration.
    pub(crate) fn of(settings: &config::Samples) -> Result<Arc<Self>, String> {
        let samples = OPENED.get(&one_name(&settings.directory), || Self::begin(settings))?;
        settings.clone_into(&mut samples.settings.lock());
        Ok(samples)
    }

    fn begin(settings: &config::Samples) -> Result<Self, String> {
        let (sender, receiver) = sync_channel(MAX_QUEUED);
        let settings = Arc::new(Mutex::new(settings.clone()));
        let lost = Arc::<AtomicU64>::default();
        let (of_thread, unwritten) = (settings.clone(), lost.clone());
        thread::Builder::new()
            .name("dsa-samples".to_owned())
            .spawn(move || write_all(&receiver, &of_thread, &unwritten))
            .map_err(|error| error.to_string())?;
        Ok(Self {
            sender,
            settings,
            lost,
        })
    }

    /// Takes a message; returns whether it waits for the disk.
    pub(crate) fn put(&self, message: &Message<'_>) -> bool {
        if message.octets.len() > MAX_OCTETS {
            return false;
        }
        let kind = if message.is_request { "request" } else { "answer" };
        // An answer goes to the peer of its request.
        let way = if message.is_request { "in" } else { "out" };
        let (why, peer) = (message.why, message.peer);
        let sample = Sample {
            at: message.at,
            peer: peer.into(),
            comment: format!("{why}; {kind} {way} {peer}"),
            message: without_keys(message.octets),
        };
        self.sender.try_send(sample).is_ok()
    }

    /// Samples that were taken and could not be written, each counted once.
    pub(crate) fn take_lost(&self) -> u64 {
        match self.lost.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.lost.swap(0, Ordering::Relaxed),
        }
    }
}

/// A message without its AVPs with keys. What follows an AVP that is framed wrong is left out.
fn without_keys(octets: &[u8]) -> Vec<u8> {
    let (header, mut rest) = octets.split_at_checked(HEADER).unwrap_or((octets, &[]));
    let mut copy = header.to_vec();
    while let Some((code, vendor, length)) = avp(rest) {
        let is_secret = match vendor {
            0 => KEYS.contains(&code),
            VENDOR_3GPP => VECTORS.contains(&code),
            _ => false,
        };
        let (own, after) = rest.split_at(length.min(rest.len()));
        if !is_secret {
            copy.extend_from_slice(own);
        }
        rest = after;
    }
    let length = (copy.len() as u32).to_be_bytes();
    if let Some(place) = copy.get_mut(1..4) {
        place.copy_from_slice(&length[1..]);
    }
    copy
}

/// Code and vendor of the AVP that begins here, and its octets with padding (RFC 6733 §4.1).
fn avp(octets: &[u8]) -> Option<(u32, u32, usize)> {
    let word = |at: usize| {
        let word: [u8; 4] = octets.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_be_bytes(word))
    };
    let (code, head) = (word(0)?, word(4)?);
    let vendor = if head >> 31 == 1 { word(8)? } else { 0 };
    let header = if head >> 31 == 1 { 12 } else { 8 };
    let length = (head & 0x00ff_ffff) as usize;
    let is_whole = length >= header && length <= octets.len();
    is_whole.then(|| (code, vendor, length.next_multiple_of(4)))
}

/// The files that are written.
struct Files {
    capture: Capture<BufWriter<File>>,
    octets: u64,
}

impl Files {
    fn begin(settings: &config::Samples) -> io::Result<Self> {
        let generations = Generations {
            directory: &settings.directory,
            name: "findings",
            endings: &["pcapng"],
            files: settings.files,
        };
        let file = generations.begin()?.pop();
        let file = file.ok_or_else(|| io::Error::other("a file is missing"))?;
        Ok(Self {
            capture: Capture::new(BufWriter::new(file))?,
            octets: 0,
        })
    }

    fn write(&mut self, sample: &Sample) -> io::Result<()> {
        self.octets += sample.message.len() as u64 + OVERHEAD;
        // The application knows peers by their names alone.
        let router = SocketAddr::from((address(0), 3868));
        let peer = SocketAddr::from((address(number_of(&sample.peer)), 3868));
        let (from, to) = match sample.comment.contains("; answer out ") {
            true => (router, peer),
            false => (peer, router),
        };
        self.capture
            .message(sample.at, from, to, &[&sample.message], &sample.comment)?;
        self.capture.flush()
    }
}

/// An address for documentation (RFC 3849).
fn address(number: u64) -> Ipv6Addr {
    Ipv6Addr::from(0x2001_0db8_u128 << 96 | u128::from(number))
}

fn number_of(peer: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    peer.to_ascii_lowercase().hash(&mut hasher);
    hasher.finish().max(1)
}

fn write_all(samples: &Receiver<Sample>, settings: &Mutex<config::Samples>, lost: &AtomicU64) {
    let (mut files, mut again): (Option<Files>, Option<Instant>) = (None, None);
    for sample in samples {
        let settings = settings.lock().clone();
        let octets = sample.message.len() as u64 + OVERHEAD;
        let is_full = |files: &Files| files.octets > 0 && files.octets + octets > settings.file_bytes.bytes();
        files = files.filter(|files| !is_full(files));
        let is_time = again.is_none_or(|again| Instant::now() >= again);
        let written = match &mut files {
            Some(files) => files.write(&sample),
            None if is_time => Files::begin(&settings).and_then(|mut begun| {
                begun.write(&sample)?;
                files = Some(begun);
                Ok(())
            }),
            None => {
                lost.fetch_add(1, Ordering::Relaxed);
                continue;
            }
        };
        again = None;
        if let Err(error) = written {
            tracing::warn!(%error, directory = %settings.directory.display(), "sample of a finding not written");
            lost.fetch_add(1, Ordering::Relaxed);
            files = None;
            again = Some(Instant::now() + RETRY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_left_out_and_the_length_fits() {
        let plain = [0, 0, 1, 8, 0x40, 0, 0, 11, b'a', b'.', b'b', 0];
        let vector = [
            0, 0, 5, 0x85, 0xc0, 0, 0, 16, 0, 0, 0x28, 0xaf, b'k', b'e', b'y', b's',
        ];
        let password = [0, 0, 0, 2, 0x40, 0, 0, 12, b'k', b'e', b'y', b's'];
        let broken = [0, 0, 0, 1, 0x40, 0, 1, 0, b'k'];
        let header = [1, 0, 0, 0, 0xc0, 0, 1, 62, 1, 0, 0, 35, 0, 0, 0, 1, 0, 0, 0, 2];
        let message = [&header[..], &vector, &plain, &password, &broken].concat();
        let copy = without_keys(&message);
        assert_eq!(copy.len(), 32);
        assert_eq!(copy[..4], [1, 0, 0, 32]);
        assert_eq!(copy[20..], plain);
        for short in 0..message.len() {
            without_keys(&message[..short]);
        }
    }
}
