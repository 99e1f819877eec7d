//! Samples of messages that were found, as pcapng, which Wireshark and `signalbox dsa replay` read.
//!
//! Keys and authentication vectors are zero octets. A thread of its own writes: workers wait for no disk.

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
use diameter_proto::{AvpKey, AvpType, Dictionary};
use dsr_app::appended::{OpenOnce, one_name};
use function::generations::Generations;
use parking_lot::Mutex;

use crate::config;
use crate::lines::is_at;

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
/// Vectors and keys of 3GPP: of GBA (TS 29.109 §6.3), SIP-Auth-Data-Item, Confidentiality-Key, Integrity-Key and Alternate-Digest-HA1
/// (TS 29.229 §6.3), Re-Synchronization-Info, Authentication-Info, vectors and what is in them (TS 29.272 §7.3).
const VECTORS: [u32; 17] = [
    405, 406, 612, 625, 626, 663, 1411, 1413, 1414, 1415, 1416, 1447, 1448, 1449, 1450, 1453, 1454,
];
/// Passwords and keys: User-Password, CHAP-Password, Tunnel-Password, ARAP-Password, CHAP-Auth and what is in it (RFC 7155 §4.3),
/// Digest-HA1 (RFC 4740 §9.5), MIP-Session-Key (RFC 4004 §9), EAP-Master-Session-Key (RFC 4072 §4.1), Key and Keying-Material
/// (RFC 6734 §3).
const KEYS: [u32; 12] = [2, 3, 69, 70, 121, 343, 402, 404, 405, 464, 581, 583];
/// Bound on groups within groups; what is deeper counts as secret.
const MAX_DEPTH: u32 = 8;

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

/// A message whose keys are zero octets of the same length. What follows an AVP that is framed wrong is left out.
fn without_keys(octets: &[u8]) -> Vec<u8> {
    let mut copy = octets.to_vec();
    let whole = copy
        .get_mut(HEADER..)
        .map_or(0, |avps| clear_keys(avps, false, MAX_DEPTH));
    copy.truncate(HEADER + whole);
    let length = (copy.len() as u32).to_be_bytes();
    if let Some(place) = copy.get_mut(1..4) {
        place.copy_from_slice(&length[1..]);
    }
    copy
}

/// Makes the values of AVPs with keys zero, all of them where these are in such a one; returns the octets of whole AVPs.
fn clear_keys(octets: &mut [u8], are_secret: bool, depth: u32) -> usize {
    let mut at = 0;
    while let Some((key, data, length)) = octets.get(at..).and_then(avp) {
        let is_secret = are_secret
            || match key.vendor {
                0 => KEYS.contains(&key.code),
                VENDOR_3GPP => VECTORS.contains(&key.code),
                _ => false,
            };
        let known = Dictionary::standard().avp(key);
        let is_group = known.is_some_and(|known| known.kind == AvpType::Grouped);
        let end = (at + length).min(octets.len());
        if let Some(value) = octets.get_mut(at + data..end).filter(|_| is_secret || is_group) {
            let kept = match (is_group, depth.checked_sub(1)) {
                (true, Some(depth)) => clear_keys(value, is_secret, depth),
                _ => 0,
            };
            // What is not an AVP may be a part of one.
            value.iter_mut().skip(kept).for_each(|octet| *octet = 0);
        }
        at = end;
    }
    at
}

/// The AVP that begins here: where its value begins, and its octets with padding (RFC 6733 §4.1).
fn avp(octets: &[u8]) -> Option<(AvpKey, usize, usize)> {
    let word = |at: usize| {
        let word: [u8; 4] = octets.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_be_bytes(word))
    };
    let (code, head) = (word(0)?, word(4)?);
    let vendor = if head >> 31 == 1 { word(8)? } else { 0 };
    let header = if head >> 31 == 1 { 12 } else { 8 };
    let length = (head & 0x00ff_ffff) as usize;
    let is_whole = length >= header && length <= octets.len();
    is_whole.then(|| (AvpKey { vendor, code }, header, length.next_multiple_of(4)))
}

/// The files that are written.
struct Files {
    capture: Capture<BufWriter<File>>,
    octets: u64,
    /// The file once more, to see whether it was moved.
    file: File,
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
            file: file.try_clone()?,
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
        let path = settings.directory.join("findings.pcapng");
        files = files.filter(|files| !is_full(files) && is_at(&files.file, &path));
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

    const SECRET: &[u8] = b"secret-key-of-16";

    fn one(vendor: u32, code: u32, data: &[u8]) -> Vec<u8> {
        let header: u32 = if vendor == 0 { 8 } else { 12 };
        let flags: u32 = if vendor == 0 { 0x40 << 24 } else { 0xc0 << 24 };
        let mut avp = code.to_be_bytes().to_vec();
        avp.extend((flags | (header + data.len() as u32)).to_be_bytes());
        if vendor != 0 {
            avp.extend(vendor.to_be_bytes());
        }
        avp.extend(data);
        avp.resize(avp.len().next_multiple_of(4), 0);
        avp
    }

    fn message(avps: &[Vec<u8>]) -> Vec<u8> {
        let avps = avps.concat();
        let header = [1, 0, 0, 0, 0xc0, 0, 1, 62, 1, 0, 0, 35, 0, 0, 0, 1, 0, 0, 0, 2];
        let mut message = [&header[..], &avps].concat();
        let length = (message.len() as u32).to_be_bytes();
        message[1..4].copy_from_slice(&length[1..]);
        message
    }

    /// Whether a copy has no secret, and is as long and framed as the message.
    fn is_clean(message: &[u8]) -> bool {
        let copy = without_keys(message);
        let has_secret = copy
            .windows(SECRET.len() / 2)
            .any(|window| window == &SECRET[..SECRET.len() / 2]);
        !has_secret && copy.len() == message.len() && copy[..HEADER] == message[..HEADER]
    }

    #[test]
    fn keys_are_zero_wherever_they_are() {
        let keys = KEYS.map(|code| (0, code));
        let all = keys.into_iter().chain(VECTORS.map(|code| (VENDOR_3GPP, code)));
        for (vendor, code) in all {
            let key = one(vendor, code, SECRET);
            let in_vector = one(VENDOR_3GPP, 1413, &one(VENDOR_3GPP, 1414, &key));
            let places = [
                key.clone(),
                one(0, 279, &key),
                one(0, 401, &key),
                one(VENDOR_3GPP, 612, &key),
                in_vector.clone(),
                one(0, 279, &in_vector),
            ];
            for place in places {
                assert!(is_clean(&message(&[place])), "{vendor} {code}");
            }
        }
        // A name within a group stays, and what is framed wrong there does not.
        let name = one(0, 264, b"host.example");
        let group = one(0, 279, &[name.clone(), SECRET.to_vec()].concat());
        let copy = without_keys(&message(&[group.clone(), name.clone()]));
        assert!(is_clean(&message(&[group])));
        assert_eq!(copy.windows(name.len()).filter(|part| *part == name).count(), 2);
        // Nor what is too deep.
        let mut deep = one(0, 1, SECRET);
        for _ in 0..1000 {
            deep = one(0, 279, &deep);
        }
        assert!(is_clean(&message(&[deep])));
    }

    #[test]
    fn what_follows_a_broken_avp_is_left_out_and_the_length_fits() {
        let plain = one(0, 264, b"a.b");
        let broken = vec![0, 0, 0, 1, 0x40, 0, 1, 0, b'k'];
        let message = message(&[plain.clone(), broken]);
        let copy = without_keys(&message);
        assert_eq!(copy.len(), 32);
        assert_eq!(copy[..4], [1, 0, 0, 32]);
        assert_eq!(copy[20..], plain);
        for short in 0..message.len() {
            without_keys(&message[..short]);
        }
    }
}
