//! Chunks of SCTP.

use testpeer::pcap;

use crate::support::{ends, frames, message, read};

const BEGINS: u8 = 2;
const ENDS: u8 = 1;

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
