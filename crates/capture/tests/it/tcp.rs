//! Segments of TCP.

use fuzz_support::Random;
use testpeer::pcap::{self, ethernet};

use crate::support::{ACK, FIN, RST, SYN, ends, frames, message, read};

/// Three messages, and all their bytes.
fn three() -> (Vec<Vec<u8>>, Vec<u8>) {
    let messages: Vec<_> = (1..=3)
        .map(|number| message(number, 5 + number as usize * 50))
        .collect();
    let bytes = messages.concat();
    (messages, bytes)
}

/// A segment of the bytes behind this number.
fn segment(start: u32, bytes: &[u8], from: usize, to: usize) -> Vec<u8> {
    let (client, server) = ends();
    pcap::tcp(
        client,
        server,
        (start.wrapping_add(from as u32), 0, 0),
        &bytes[from..to],
    )
}

#[test]
fn segments_of_any_size_give_the_same_messages_also_over_the_end_of_the_numbers() {
    let (messages, bytes) = three();
    for size in [1, 3, 19, 20, 21, 100, bytes.len()] {
        for start in [1000, u32::MAX - 40] {
            let starts = (0..bytes.len()).step_by(size);
            let packets: Vec<_> = starts
                .map(|at| segment(start, &bytes, at, (at + size).min(bytes.len())))
                .collect();
            let (found, summary) = read(&frames(&packets));
            assert_eq!(found, messages, "{size} from {start}");
            assert_eq!((summary.gaps, summary.bytes_skipped), (0, 0));
        }
    }
}

#[test]
fn segments_in_any_order_twice_and_overlapping_give_the_same_messages() {
    let (messages, bytes) = three();
    let (client, server) = ends();
    let mut random = Random::new(7);
    for round in 0..300 {
        let mut packets = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let end = (at + 1 + random.below(60)).min(bytes.len());
            packets.push(segment(1, &bytes, at.saturating_sub(random.below(30)), end));
            at = end;
        }
        for _ in 0..packets.len() {
            let (one, other) = (random.below(packets.len()), random.below(packets.len()));
            packets.swap(one, other);
            packets.push(packets[one].clone());
        }
        // The numbers are known by the SYN, whatever comes first behind it.
        packets.insert(0, pcap::tcp(client, server, (0, 0, SYN), &[]));
        let (found, summary) = read(&frames(&packets));
        assert_eq!(found, messages, "{round}");
        assert_eq!(summary.gaps, 0);
    }
}

#[test]
fn behind_a_gap_the_next_message_at_the_beginning_of_a_segment_is_read() {
    let (messages, bytes) = three();
    let (client, server) = ends();
    let (first, second) = (messages[0].len(), messages[0].len() + messages[1].len());
    let with_gap = [
        segment(1, &bytes, 0, first + 30),
        segment(1, &bytes, first + 60, second),
        segment(1, &bytes, second, bytes.len()),
    ];
    let (found, summary) = read(&frames(&with_gap));
    assert_eq!(found, [messages[0].clone(), messages[2].clone()]);
    let behind = (second - first - 60) as u64;
    assert_eq!((summary.gaps, summary.bytes_skipped), (1, 30 + behind));
    // What the receiver acknowledges will not come: the message behind the gap is read before the next packet is.
    let mut times = Vec::new();
    let mut pcap = frames(&with_gap);
    let acknowledged = 1 + bytes.len() as u32;
    pcap.packet(&ethernet(&pcap::tcp(server, client, (9, acknowledged, ACK), &[])));
    pcap.packet(&ethernet(&pcap::tcp(
        server,
        client,
        (9, acknowledged, ACK),
        &message(9, 8),
    )));
    let mut take = |captured: &capture::Captured<'_>| times.push((captured.at, captured.from.port()));
    capture::read_from(pcap.bytes(), &mut take).unwrap();
    let ports: Vec<_> = times.iter().map(|(_, port)| *port).collect();
    assert_eq!(ports, [40000, 40000, 3868]);
    assert!(times[1].0 < times[2].0);
}

#[test]
fn a_capture_that_begins_within_a_message_is_read_from_the_next_one() {
    let (messages, bytes) = three();
    let first = messages[0].len();
    let packets = [
        segment(1, &bytes, 30, first),
        segment(1, &bytes, first, bytes.len()),
    ];
    let (found, summary) = read(&frames(&packets));
    assert_eq!(found, messages[1..]);
    assert_eq!(summary.gaps, 0);
}

#[test]
fn a_new_connection_of_the_same_ports_begins_anew() {
    let (messages, bytes) = three();
    let (client, server) = ends();
    let open = |number: u32| pcap::tcp(client, server, (number, 0, SYN), &[]);
    let packets = [
        open(99),
        segment(100, &bytes, 0, 40),
        pcap::tcp(client, server, (140, 0, RST), &[]),
        open(4_000_000),
        open(4_000_000),
        segment(4_000_001, &bytes, 0, bytes.len()),
    ];
    let (found, summary) = read(&frames(&packets));
    assert_eq!(found, messages);
    assert_eq!(summary.gaps, 0);
}

#[test]
fn a_packet_of_which_the_capture_has_the_beginning_is_a_gap_at_once() {
    let (messages, bytes) = three();
    let mut pcap = frames(&[]);
    let first = ethernet(&segment(1, &bytes, 0, messages[0].len()));
    pcap.cut(&first, first.len() - 10);
    pcap.packet(&ethernet(&segment(1, &bytes, messages[0].len(), bytes.len())));
    let (found, summary) = read(&pcap);
    assert_eq!(found, messages[1..]);
    assert_eq!((summary.packets_cut, summary.gaps), (1, 1));
    assert_eq!(
        summary.bytes_skipped, 0,
        "of a stream without a message yet nothing is said"
    );
}

#[test]
fn other_protocols_and_tls_are_counted_and_not_read() {
    let (client, server) = ends();
    let packets = [
        pcap::tcp(
            client,
            server,
            (1, 0, 0),
            b"GET / HTTP/1.1\r\nHost: example\r\n\r\n",
        ),
        pcap::tcp(server, client, (1, 0, 0), &[0x16, 3, 3, 0, 5, 1, 2, 3, 4, 5]),
        pcap::ipv4(client, server, 17, &[0; 8]),
    ];
    let (found, summary) = read(&frames(&packets));
    assert!(found.is_empty());
    assert_eq!((summary.streams_of_others, summary.streams_encrypted), (1, 1));
    assert_eq!(summary.packets_of_others, 1);
}

#[test]
fn a_gap_that_is_not_filled_is_given_up_after_a_bounded_number_of_segments() {
    let (client, server) = ends();
    let one = message(1, 40);
    let mut packets = vec![pcap::tcp(client, server, (1, 0, SYN), &[])];
    let count = 3000;
    for number in 0..count {
        // The first segment is missing.
        let at = 2 + one.len() as u32 * (number + 1);
        packets.push(pcap::tcp(client, server, (at, 0, 0), &message(number, 40)));
    }
    let (found, summary) = read(&frames(&packets));
    assert_eq!((found.len() as u32, summary.gaps), (count, 1));
    assert_eq!(found.last(), Some(&message(count - 1, 40)));
}

#[test]
fn streams_of_other_protocols_do_not_keep_those_of_diameter_out() {
    let (client, server) = ends();
    let mut pcap = frames(&[]);
    let count = capture::MAX_STREAMS as u32 + 10;
    for number in 0..count {
        let other = std::net::SocketAddrV4::new(number.into(), 80);
        pcap.packet(&ethernet(&pcap::tcp(other, server, (1, 0, 0), b"GET / HTTP/1.1")));
    }
    pcap.packet(&ethernet(&pcap::tcp(client, server, (1, 0, 0), &message(1, 8))));
    let (found, summary) = read(&pcap);
    assert_eq!(found, [message(1, 8)]);
    assert_eq!(summary.streams_of_others, u64::from(count));
}

#[test]
fn streams_that_have_ended_do_not_keep_others_out() {
    let (_, server) = ends();
    let mut pcap = frames(&[]);
    let count = capture::MAX_STREAMS as u32 + 10;
    for number in 0..count {
        let client = std::net::SocketAddrV4::new(number.into(), 40_000);
        let one = message(number, 8);
        let flags = [FIN, RST][number as usize % 2];
        let size = one.len() as u32;
        let end = pcap::tcp(client, server, (1 + size, 0, flags), &[]);
        pcap.packet(&ethernet(&pcap::tcp(client, server, (1, 0, 0), &one)));
        if number == 0 {
            pcap.packet(&ethernet(&pcap::tcp(client, server, (2 + size, 0, 0), &one)));
        }
        pcap.packet(&ethernet(&end));
    }
    let (found, summary) = read(&pcap);
    // Behind the gap of the first one, too.
    assert_eq!((found.len() as u32, summary.gaps), (count + 1, 1));
    assert_eq!(summary.packets_beyond_bounds, 0);
}
