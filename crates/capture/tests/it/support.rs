//! Messages, and what is read of a capture.

use std::net::SocketAddrV4;

use capture::Summary;
use testpeer::pcap::{ETHERNET, Pcap, ethernet};

/// Flags of TCP.
pub(crate) const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
pub(crate) const RST: u8 = 4;
pub(crate) const ACK: u8 = 16;

pub(crate) fn ends() -> (SocketAddrV4, SocketAddrV4) {
    let address = |text: &str| text.parse().unwrap();
    (address("192.0.2.1:40000"), address("192.0.2.2:3868"))
}

/// A request with one AVP of this many bytes, and its number in the header.
pub(crate) fn message(number: u32, data: usize) -> Vec<u8> {
    let mut avp = vec![0, 0, 1, 8, 0x40];
    avp.extend_from_slice(&(8 + data as u32).to_be_bytes()[1..]);
    avp.resize((8 + data).next_multiple_of(4), 7);
    let mut message = vec![1];
    message.extend_from_slice(&(20 + avp.len() as u32).to_be_bytes()[1..]);
    message.extend_from_slice(&[0x80, 0, 1, 60, 1, 0, 0, 35]);
    message.extend_from_slice(&number.to_be_bytes());
    message.extend_from_slice(&number.to_be_bytes());
    message.extend_from_slice(&avp);
    message
}

/// A capture of Ethernet frames.
pub(crate) fn frames(packets: &[Vec<u8>]) -> Pcap {
    let mut pcap = Pcap::new(ETHERNET);
    for packet in packets {
        pcap.packet(&ethernet(packet));
    }
    pcap
}

/// The messages of a capture.
pub(crate) fn read(pcap: &Pcap) -> (Vec<Vec<u8>>, Summary) {
    read_bytes(pcap.bytes())
}

pub(crate) fn read_bytes(bytes: &[u8]) -> (Vec<Vec<u8>>, Summary) {
    let mut messages = Vec::new();
    let mut take = |captured: &capture::Captured<'_>| messages.push(captured.bytes.to_vec());
    let summary = capture::read_from(bytes, &mut take).unwrap();
    assert_eq!(summary.messages, messages.len() as u64);
    (messages, summary)
}
