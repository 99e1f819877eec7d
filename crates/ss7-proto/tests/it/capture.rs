//! Captures of SCTP as tshark reads them.

use testpeer::tshark::{COMPLAINTS, tshark};

/// LINKTYPE_SCTP: frames begin with the SCTP header.
const LINKTYPE_SCTP: u32 = 248;

/// A capture with one DATA chunk for each message.
fn pcap(ppid: u32, messages: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(0xa1b2_c3d4_u32.to_le_bytes());
    file.extend([2, 0, 4, 0]);
    for word in [0, 0, 65_535, LINKTYPE_SCTP] {
        file.extend(u32::to_le_bytes(word));
    }
    for (n, message) in messages.iter().enumerate() {
        let mut frame = Vec::new();
        frame.extend(2905_u16.to_be_bytes());
        frame.extend(2906_u16.to_be_bytes());
        frame.extend([0, 0, 0, 7, 0, 0, 0, 0]);
        let length = u16::try_from(16 + message.len()).unwrap();
        // Type DATA, first and last fragment.
        frame.extend([0, 3]);
        frame.extend(length.to_be_bytes());
        frame.extend(u32::try_from(n + 1).unwrap().to_be_bytes());
        frame.extend([0, 1, 0, 0]);
        frame.extend(ppid.to_be_bytes());
        frame.extend(message);
        frame.resize(frame.len().next_multiple_of(4), 0);
        let length = u32::try_from(frame.len()).unwrap();
        file.extend(u32::try_from(n).unwrap().to_le_bytes());
        file.extend([0; 4]);
        file.extend(length.to_le_bytes());
        file.extend(length.to_le_bytes());
        file.extend(frame);
    }
    file
}

/// What tshark reads of fields in each message, one line a message; `None` where tshark is not installed. The second text
/// holds the messages that it complains of.
pub(crate) fn judge(ppid: u32, messages: &[Vec<u8>], arguments: &[&str]) -> Option<(String, String)> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("messages.pcap");
    std::fs::write(&file, pcap(ppid, messages)).unwrap();
    let read = tshark(arguments, &file)?;
    // Preferences, which come first, decide how it reads a message.
    let is_preference = |pair: &&[&str]| pair.first() == Some(&"-o");
    let preferences: Vec<&str> = arguments
        .chunks(2)
        .take_while(is_preference)
        .flatten()
        .copied()
        .collect();
    let complaints = tshark(&[&preferences[..], &["-Y", COMPLAINTS, "-V"]].concat(), &file)?;
    Some((read, complaints))
}
