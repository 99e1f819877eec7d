//! Chunks of SCTP.

use std::net::SocketAddrV4;

use testpeer::pcap::{self, ethernet};

use crate::support::{ends, frames, message, read};

const BEGINS: u8 = 2;
const ENDS: u8 = 1;
/// Types of chunks.
const INIT: u8 = 1;
const SHUTDOWN: u8 = 7;

/// A packet with a chunk of this type that has no more than its header.
fn bare(from: SocketAddrV4, to: SocketAddrV4, kind: u8) -> Vec<u8> {
    let mut packet = [from.port().to_be_bytes(), to.port().to_be_bytes()].concat();
    packet.extend_from_slice(&[0; 8]);
    packet.extend_from_slice(&[kind, 0, 0, 4]);
    pcap::ipv4(from, to, 132, &packet)
}

#[test]
fn fragments_in_any_order_are_joined_and_what_comes_again_is_dropped() {
    let (client, server) = ends();
    let (long, short) = (message(1, 3000), message(2, 10));
    let chunk = |number: u32, flags: u8, data: &[u8]| pcap::sctp(client, server, (number, flags), data);
    let first = u32::MAX;
    let mut packets = vec![
        chunk(first, BEGINS, &long[..1000]),
        chunk(first.wrapping_add(1), 0, &long[1000..2001]),
        chunk(first.wrapping_add(2), ENDS, &long[2001..]),
        chunk(first.wrapping_add(3), BEGINS | ENDS, &short),
    ];
    packets.push(packets[3].clone());
    packets.push(packets[0].clone());
    let (found, summary) = read(&frames(&packets));
    assert_eq!(found, [long.clone(), short.clone()]);
    assert_eq!(summary.gaps, 0);
    packets.truncate(4);
    packets.reverse();
    let (found, _) = read(&frames(&packets));
    assert_eq!(found, [short, long]);
}

#[test]
fn a_message_without_all_fragments_is_a_gap() {
    let (client, server) = ends();
    let (long, short) = (message(1, 300), message(2, 10));
    let packets = [
        pcap::sctp(client, server, (7, BEGINS), &long[..100]),
        pcap::sctp(client, server, (9, ENDS), &long[200..]),
        pcap::sctp(client, server, (10, BEGINS | ENDS), &short),
    ];
    let (found, summary) = read(&frames(&packets));
    assert_eq!(found, [short]);
    assert_eq!(
        (summary.gaps, summary.bytes_skipped),
        (1, long.len() as u64 - 100)
    );
}

#[test]
fn a_new_association_of_the_same_ports_begins_anew() {
    let (client, server) = ends();
    let (long, short) = (message(1, 300), message(2, 10));
    let packets = [
        pcap::sctp(client, server, (7, BEGINS), &long[..100]),
        bare(client, server, INIT),
        pcap::sctp(client, server, (7, BEGINS | ENDS), &short),
    ];
    let (found, summary) = read(&frames(&packets));
    assert_eq!(found, [short]);
    assert_eq!((summary.gaps, summary.bytes_skipped), (1, 100));
}

#[test]
fn associations_that_have_ended_do_not_keep_others_out() {
    let (_, server) = ends();
    let mut pcap = frames(&[]);
    let count = capture::MAX_STREAMS as u32 + 10;
    for number in 0..count {
        let client = SocketAddrV4::new(number.into(), 3868);
        let data = pcap::sctp(client, server, (1, BEGINS | ENDS), &message(number, 8));
        pcap.packet(&ethernet(&data));
        pcap.packet(&ethernet(&bare(client, server, SHUTDOWN)));
    }
    let (found, summary) = read(&pcap);
    assert_eq!((found.len() as u32, summary.packets_beyond_bounds), (count, 0));
}
