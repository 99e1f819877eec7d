//! IPA, which carries SCCP without MTP (SCCPlite): frames in a stream of octets, and the exchange of identities.
//!
//! There is no standard. What is here is what Osmocom's `libosmocore` and `osmo-stp` speak: a length of 16 bits without the header, the
//! number of a stream, the octets. SCCP has stream 253, common control messages (CCM) have stream 254.

/// Where a gateway listens.
pub const PORT: u16 = 5000;
/// Octets of the header.
pub const HEADER_LEN: usize = 3;
/// The stream of SCCP.
const SCCP: u8 = 253;
/// The stream of CCM.
const CONTROL: u8 = 254;
/// The element of CCM that has the name of a unit.
const UNIT_NAME: u8 = 1;
/// That which has its identifier, as of a base station.
const UNIT: u8 = 8;

/// A common control message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Control<'a> {
    /// Asks whether the peer is alive.
    Ping,
    /// Answers it.
    Pong,
    /// Asks for the identity of the peer.
    Get,
    /// The identity: its elements.
    Response(&'a [u8]),
    /// Acknowledges the identity; the peer acknowledges that.
    Ack,
}

/// What a frame carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frame<'a> {
    /// A message of SCCP.
    Sccp(&'a [u8]),
    /// A common control message.
    Control(Control<'a>),
    /// Another stream, or another message of CCM.
    Unknown,
}

/// The length of the frame that begins here, header included; `None` while the header is not whole.
#[must_use]
pub fn length(octets: &[u8]) -> Option<usize> {
    let [high, low, _] = octets.first_chunk::<HEADER_LEN>()?;
    Some(HEADER_LEN + usize::from(u16::from_be_bytes([*high, *low])))
}

impl<'a> Frame<'a> {
    /// Reads a whole frame, as [`length`] has delimited it.
    #[must_use]
    pub fn read(octets: &'a [u8]) -> Self {
        let Some(([_, _, stream], content)) = octets.split_first_chunk::<HEADER_LEN>() else {
            return Self::Unknown;
        };
        match (*stream, content) {
            (SCCP, _) => Self::Sccp(content),
            (CONTROL, [0, ..]) => Self::Control(Control::Ping),
            (CONTROL, [1, ..]) => Self::Control(Control::Pong),
            (CONTROL, [4, ..]) => Self::Control(Control::Get),
            (CONTROL, [5, elements @ ..]) => Self::Control(Control::Response(elements)),
            (CONTROL, [6, ..]) => Self::Control(Control::Ack),
            _ => Self::Unknown,
        }
    }
}

/// Appends a message of SCCP. Returns `false`, and appends nothing, when it exceeds 65,535 octets.
pub fn write_sccp(message: &[u8], out: &mut Vec<u8>) -> bool {
    write(SCCP, message, out)
}

fn write(stream: u8, content: &[u8], out: &mut Vec<u8>) -> bool {
    let Ok(length) = u16::try_from(content.len()) else {
        return false;
    };
    let [high, low] = length.to_be_bytes();
    out.extend_from_slice(&[high, low, stream]);
    out.extend_from_slice(content);
    true
}

impl Control<'_> {
    /// Appends the message. A request for an identity asks for the name of the unit and its identifier; a response is written by [`write_identity`].
    pub fn write(self, out: &mut Vec<u8>) {
        let content: &[u8] = match self {
            Self::Ping => &[0],
            Self::Pong => &[1],
            // Elements of a request: length, tag. Behind a single one libosmocore (1.7, 2022) reads on.
            Self::Get => &[4, 1, UNIT_NAME, 1, UNIT],
            Self::Response(_) => return,
            Self::Ack => &[6],
        };
        write(CONTROL, content, out);
    }
}

/// Appends the identity of this unit: its name, which ends with an octet of 0. At most 255 octets of the name are sent.
pub fn write_identity(name: &str, out: &mut Vec<u8>) {
    let name = name.as_bytes().get(..255).unwrap_or(name.as_bytes());
    let [high, low] = (name.len() as u16 + 2).to_be_bytes();
    let mut content = vec![5, high, low, UNIT_NAME];
    content.extend_from_slice(name);
    content.push(0);
    write(CONTROL, &content, out);
}

/// The name of a unit among the elements of a response, without the 0 at its end. Each element has a length of 16 bits, which counts
/// the tag.
#[must_use]
pub fn unit_name(mut elements: &[u8]) -> Option<&[u8]> {
    while let Some(([high, low, tag], behind)) = elements.split_first_chunk::<3>() {
        let length = usize::from(u16::from_be_bytes([*high, *low])).checked_sub(1)?;
        let (value, rest) = behind.split_at_checked(length)?;
        if *tag == UNIT_NAME {
            return Some(value.strip_suffix(&[0]).unwrap_or(value));
        }
        elements = rest;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_as_they_are_written() {
        let mut out = Vec::new();
        for control in [Control::Ping, Control::Pong, Control::Get, Control::Ack] {
            out.clear();
            control.write(&mut out);
            assert_eq!(length(&out), Some(out.len()));
            assert_eq!(Frame::read(&out), Frame::Control(control));
        }
        out.clear();
        assert!(write_sccp(&[9, 0x81], &mut out));
        assert_eq!(out, [0, 2, 253, 9, 0x81]);
        assert_eq!(Frame::read(&out), Frame::Sccp(&[9, 0x81]));
        assert!(!write_sccp(&[0; 65_536], &mut out) && out.len() == 5);
        assert_eq!(length(&out[..2]), None);
        for unknown in [&[0, 1, 254, 9][..], &[0, 0, 254], &[0, 1, 238, 0], &[0]] {
            assert_eq!(Frame::read(unknown), Frame::Unknown);
        }
    }

    #[test]
    fn a_unit_name_is_found_among_other_elements() {
        let mut out = Vec::new();
        write_identity("msc-1", &mut out);
        // The serial number that libosmocore sends to a request for the unit identifier.
        let other = [0, 7, 0, b'0', b'/', b'0', b'/', b'0', 0];
        let Frame::Control(Control::Response(mine)) = Frame::read(&out) else {
            panic!("{out:?}");
        };
        assert_eq!(unit_name(mine), Some(&b"msc-1"[..]));
        assert_eq!(unit_name(&[&other, mine].concat()), Some(&b"msc-1"[..]));
        for without in [&other[..], &[], &[0, 0, 1], &[0, 9, 1, b'a'], &[0xff]] {
            assert_eq!(unit_name(without), None);
        }
        out.clear();
        write_identity(&"x".repeat(300), &mut out);
        let Frame::Control(Control::Response(long)) = Frame::read(&out) else {
            panic!("{out:?}");
        };
        assert_eq!(unit_name(long).map(<[u8]>::len), Some(255));
    }
}
