//! Packets of a capture file.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pcap_parser::pcapng::OptionCode;
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Block, InterfaceDescriptionBlock, PcapBlockOwned, PcapError, PcapHeader, create_reader};

/// Link type of exported PDUs.
pub(crate) const LINK_TYPE_EXPORTED_PDU: i32 = 252;

/// Size of the buffer at first, and its bound: a block of a file is never longer.
const BUFFER: usize = 1 << 16;
const MAX_BUFFER: usize = 1 << 24;
/// Bound on the interfaces of a section.
const MAX_INTERFACES: usize = 4096;
/// Packets with a time so far ahead of the one before them wait for a later packet that takes their time back.
const JUMP: Duration = Duration::from_secs(3600);
/// Bound on packets that wait; beyond it their time is right.
const MAX_HELD: usize = 64;
/// `pcap` with nanoseconds, in either byte order.
const NANOSECONDS: [u32; 2] = [0xa1b2_3c4d, 0x4d3c_b2a1];

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// Its beginning.
    #[error("is not a capture; expected pcap or pcapng, not compressed")]
    Format,
}

/// A packet of a file.
#[derive(Debug)]
pub(crate) struct Packet<'p> {
    pub(crate) at: SystemTime,
    pub(crate) link_type: i32,
    pub(crate) data: &'p [u8],
    /// Bytes that the packet had behind these.
    pub(crate) lost: u32,
    pub(crate) comment: Option<&'p str>,
    /// Its time was far ahead of both neighbours, and is that of one of them now.
    pub(crate) is_far: bool,
}

/// A packet whose time is not confirmed yet.
#[derive(Debug)]
struct Held {
    at: SystemTime,
    link_type: i32,
    data: Vec<u8>,
    lost: u32,
    comment: Option<String>,
}

/// How an interface of pcapng counts time, and what its packets begin with.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link_type: i32,
    ticks_per_second: u64,
    offset: i64,
}

/// What a file has said of itself so far.
#[derive(Debug, Default)]
struct Context {
    interfaces: Vec<Interface>,
    /// Of pcap.
    link_type: i32,
    has_nanoseconds: bool,
    /// Time of the last packet: a Simple Packet Block has none.
    last: Option<SystemTime>,
    held: Vec<Held>,
}

/// Opens a file.
pub(crate) fn open(path: &Path) -> Result<File, Error> {
    // The opening of a FIFO would wait for its writer.
    if std::fs::metadata(path)?.is_file() {
        return Ok(File::open(path)?);
    }
    Err(std::io::Error::other("is not a regular file").into())
}

/// Shows each packet to `take`; returns whether the file ends within a packet, or is damaged from there on.
pub(crate) fn packets(input: impl Read, take: &mut dyn FnMut(&Packet<'_>)) -> Result<bool, Error> {
    let mut context = Context::default();
    let is_damaged = blocks(input, &mut |block| context.take(block, take));
    context.release(None, take);
    is_damaged
}

fn blocks(input: impl Read, take: &mut dyn FnMut(&PcapBlockOwned<'_>)) -> Result<bool, Error> {
    let mut reader = create_reader(BUFFER, input).map_err(|_| Error::Format)?;
    let mut capacity = BUFFER;
    loop {
        let is_short = match reader.next() {
            Ok((length, block)) => {
                take(&block);
                reader.consume(length);
                continue;
            }
            Err(PcapError::Eof) => return Ok(false),
            Err(PcapError::Incomplete(_)) => false,
            Err(PcapError::BufferTooSmall) => true,
            Err(_) => return Ok(true),
        };
        let before = reader.data().len();
        if !is_short {
            refill(&mut *reader)?;
        }
        if reader.data().len() == before && !reader.reader_exhausted() {
            capacity *= 2;
            if capacity > MAX_BUFFER || !reader.grow(capacity) {
                return Ok(true);
            }
            refill(&mut *reader)?;
        }
    }
}

fn refill(reader: &mut dyn PcapReaderIterator) -> Result<(), Error> {
    match reader.refill() {
        Ok(()) => Ok(()),
        Err(_) => Err(std::io::Error::other("cannot be read").into()),
    }
}

impl Context {
    fn take(&mut self, block: &PcapBlockOwned<'_>, take: &mut dyn FnMut(&Packet<'_>)) {
        match block {
            PcapBlockOwned::LegacyHeader(header) => self.begin(header),
            PcapBlockOwned::Legacy(packet) => {
                let unit = if self.has_nanoseconds { 1 } else { 1000 };
                let nanoseconds = packet.ts_usec.saturating_mul(unit);
                let since =
                    Duration::from_secs(packet.ts_sec.into()) + Duration::from_nanos(nanoseconds.into());
                let captured = (packet.caplen, packet.origlen);
                self.show((self.link_type, Some(since)), packet.data, captured, None, take);
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => self.interfaces.clear(),
            PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                if self.interfaces.len() < MAX_INTERFACES {
                    self.interfaces.push(Interface::new(interface));
                }
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let Some(interface) = self.interfaces.get(packet.if_id as usize) else {
                    return;
                };
                let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let about = (interface.link_type, interface.time(ticks));
                let mut comments = packet
                    .options
                    .iter()
                    .filter(|option| option.code == OptionCode::Comment);
                let comment = comments.next().and_then(|option| option.as_bytes());
                let comment = comment.and_then(|text| std::str::from_utf8(text).ok());
                self.show(about, packet.data, (packet.caplen, packet.origlen), comment, take);
            }
            PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
                let Some(interface) = self.interfaces.first() else {
                    return;
                };
                let captured = packet
                    .data
                    .len()
                    .try_into()
                    .unwrap_or(u32::MAX)
                    .min(packet.origlen);
                self.show(
                    (interface.link_type, None),
                    packet.data,
                    (captured, packet.origlen),
                    None,
                    take,
                );
            }
            PcapBlockOwned::NG(_) => {}
        }
    }

    fn begin(&mut self, header: &PcapHeader) {
        // The upper bits of the field say what frame check sequences there are.
        self.link_type = header.network.0 & 0xffff;
        self.has_nanoseconds = NANOSECONDS.contains(&header.magic_number);
    }

    fn show(
        &mut self,
        (link_type, since): (i32, Option<Duration>),
        data: &[u8],
        (captured, original): (u32, u32),
        comment: Option<&str>,
        take: &mut dyn FnMut(&Packet<'_>),
    ) {
        let at = since.and_then(|since| UNIX_EPOCH.checked_add(since));
        let before = self.held.last().map(|held| held.at).or(self.last);
        let at = at.or(before).unwrap_or(UNIX_EPOCH);
        let octets: usize = self.held.iter().map(|held| held.data.len()).sum();
        let is_full = self.held.len() >= MAX_HELD || octets > MAX_BUFFER;
        let is_behind = self.held.iter().any(|held| is_far(held.at, at));
        if is_full || is_behind || !self.is_ahead(at) {
            self.release(Some(at), take);
        }
        // Data of pcapng have padding.
        let data = data.get(..captured as usize).unwrap_or(data);
        let lost = original.saturating_sub(captured);
        if self.is_ahead(at) {
            self.held.push(Held {
                at,
                link_type,
                data: data.to_vec(),
                lost,
                comment: comment.map(ToOwned::to_owned),
            });
            return;
        }
        self.last = Some(at);
        take(&Packet {
            at,
            link_type,
            data,
            lost,
            comment,
            is_far: false,
        });
    }

    /// Whether a time is to be confirmed by later packets.
    fn is_ahead(&self, at: SystemTime) -> bool {
        self.last.is_none_or(|last| is_far(at, last))
    }

    /// Shows the packets that wait for one of that time.
    fn release(&mut self, next: Option<SystemTime>, take: &mut dyn FnMut(&Packet<'_>)) {
        for held in self.held.drain(..) {
            let taken_back = next.filter(|next| is_far(held.at, *next));
            let at = taken_back.map_or(held.at, |next| self.last.unwrap_or(next));
            self.last = Some(at);
            take(&Packet {
                at,
                link_type: held.link_type,
                data: &held.data,
                lost: held.lost,
                comment: held.comment.as_deref(),
                is_far: taken_back.is_some(),
            });
        }
    }
}

fn is_far(at: SystemTime, from: SystemTime) -> bool {
    at.duration_since(from).is_ok_and(|ahead| ahead > JUMP)
}

impl Interface {
    fn new(block: &InterfaceDescriptionBlock<'_>) -> Self {
        // Options if_tsresol and if_tsoffset (draft-ietf-opsawg-pcapng §4.2): a power of 2 where the first bit is set, otherwise
        // of 10.
        let exponent = u32::from(block.if_tsresol & 0x7f);
        let ticks = match block.if_tsresol & 0x80 {
            0 => 10_u64.checked_pow(exponent),
            _ => 1_u64.checked_shl(exponent),
        };
        Self {
            link_type: block.linktype.0,
            ticks_per_second: ticks.filter(|ticks| *ticks > 0).unwrap_or(1_000_000),
            offset: block.if_tsoffset,
        }
    }

    /// Time since 1970; none: before it, or too far from it.
    fn time(&self, ticks: u64) -> Option<Duration> {
        let (seconds, rest) = (ticks / self.ticks_per_second, ticks % self.ticks_per_second);
        let nanoseconds = u128::from(rest) * 1_000_000_000 / u128::from(self.ticks_per_second);
        let seconds = seconds.checked_add_signed(self.offset)?;
        Duration::from_secs(seconds).checked_add(Duration::from_nanos(nanoseconds as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcap_parser::Linktype;

    /// Shows packets of these seconds; returns their times, and whether each was far from its neighbours.
    fn shown(times: &[u32]) -> Vec<(u64, bool)> {
        let mut file = [
            &0xa1b2_c3d4_u32.to_le_bytes()[..],
            &[2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0xff, 0xff, 0, 0, 101, 0, 0, 0],
        ]
        .concat();
        for (number, time) in times.iter().enumerate() {
            for word in [*time, 0, 1, 1] {
                file.extend(word.to_le_bytes());
            }
            file.push(number as u8);
        }
        let (mut seen, mut order) = (Vec::new(), Vec::new());
        let is_damaged = packets(&file[..], &mut |packet| {
            let at = packet.at.duration_since(UNIX_EPOCH).unwrap().as_secs();
            seen.push((at, packet.is_far));
            order.push(usize::from(packet.data[0]));
        });
        assert!(!is_damaged.unwrap());
        assert_eq!(order, (0..times.len()).collect::<Vec<_>>());
        seen
    }

    #[test]
    fn a_time_that_the_next_packet_takes_back_is_that_of_a_neighbour() {
        const DAY: u32 = 86_400;
        let at = 1_700_000_000;
        let times = |times: &[u32]| -> Vec<(u64, bool)> {
            times.iter().map(|time| (u64::from(*time), false)).collect()
        };
        let (one, far) = (u64::from(at), at + 400 * DAY);
        assert_eq!(
            shown(&[at, far, at + 2]),
            [(one, false), (one, true), (one + 2, false)]
        );
        assert_eq!(
            shown(&[far, at, at + 2]),
            [(one, true), (one, false), (one + 2, false)]
        );
        assert_eq!(
            shown(&[at, far, far - 50 * DAY, at]),
            [(one, false), (one, true), (one, true), (one, false)]
        );
        assert_eq!(
            shown(&[at, far, far + 1, at + 2]),
            [(one, false), (one, true), (one, true), (one + 2, false)]
        );
        // A later time that more packets have is right.
        let mut later: Vec<u32> = (0..=MAX_HELD as u32).map(|number| far + number).collect();
        assert_eq!(shown(&later), times(&later));
        later.insert(0, at);
        later.push(at);
        assert_eq!(shown(&later), times(&later));
        // A pause is one, and so is the end of a file.
        for honest in [
            &[][..],
            &[at],
            &[at, at + DAY, at + DAY + 1],
            &[at, at + 5, at + 3],
            &[at, at + DAY],
            &[at, at + DAY, at + DAY - 10, at + DAY],
        ] {
            assert_eq!(shown(honest), times(honest));
        }
    }

    /// `findings/pcap-parser-time.sh`: the library has no resolution for powers of 2, and cuts fine ones.
    #[test]
    fn times_are_read_in_each_resolution() {
        for (octet, units) in [
            (6, 1_000_000),
            (9, 1_000_000_000),
            (12, 1_000_000_000_000),
            (0x8a, 1 << 10),
            (0x94, 1 << 20),
            (0xa0, 1 << 32),
        ] {
            let interface = Interface::new(&InterfaceDescriptionBlock {
                block_type: 1,
                block_len1: 20,
                linktype: Linktype::ETHERNET,
                reserved: 0,
                snaplen: 0,
                options: Vec::new(),
                block_len2: 20,
                if_tsresol: octet,
                if_tsoffset: 1_000_000_000,
            });
            let half = Duration::from_secs(1_000_000_000) + Duration::from_millis(500);
            assert_eq!(interface.time(units / 2), Some(half), "{octet:#x}");
        }
    }
}
