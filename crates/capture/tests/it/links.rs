//! Link types, byte orders, and files that are cut or of another format.

use capture::Error;
use testpeer::pcap::{ETHERNET, Pcap, ethernet, tcp};

use crate::support::{ends, frames, message, read, read_bytes};

#[test]
fn each_link_type_leads_to_the_same_message() {
    let (client, server) = ends();
    let packet = tcp(client, server, (1, 0, 0), &message(1, 20));
    let with = |header: &[u8]| [header, &packet].concat();
    let mut vlan = vec![2; 12];
    vlan.extend_from_slice(&[0x81, 0, 0, 5, 8, 0]);
    let mut cooked = [0; 16];
    cooked[14] = 8;
    let mut cooked_2 = [0; 20];
    cooked_2[0] = 8;
    for (link_type, data) in [
        (ETHERNET, with(&vlan)),
        (0, with(&[2, 0, 0, 0])),
        (101, packet.clone()),
        (228, packet.clone()),
        (113, with(&cooked)),
        (276, with(&cooked_2)),
    ] {
        let mut pcap = Pcap::new(link_type);
        pcap.packet(&data);
        assert_eq!(read(&pcap).0, [message(1, 20)], "{link_type}");
    }
    let mut other = Pcap::new(147);
    other.packet(&packet);
    let (found, summary) = read(&other);
    assert_eq!((found.len(), summary.packets_of_others), (0, 1));
}

#[test]
fn a_capture_that_ends_within_a_packet_is_read_up_to_there() {
    let (client, server) = ends();
    let packet = |number: u32| tcp(client, server, (number * 100, 0, 0), &message(number, 20));
    let pcap = frames(&[packet(1), packet(2)]);
    let whole = pcap.bytes();
    for end in [whole.len() - 1, whole.len() - 60] {
        let (found, summary) = read_bytes(&whole[..end]);
        assert_eq!(found, [message(1, 20)]);
        assert!(summary.is_damaged);
    }
    assert!(!read(&pcap).1.is_damaged);
    // Fragments of IP are not joined.
    let mut fragment = packet(1);
    fragment[6] = 0x20;
    let (found, summary) = read(&frames(&[fragment]));
    assert_eq!((found.len(), summary.ip_fragments), (0, 1));
}

#[test]
fn what_is_not_a_capture_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    for text in ["", "text that is long enough for a header of a file"] {
        std::fs::write(&file, text).unwrap();
        let error = capture::read(&file, &mut |_| ()).unwrap_err();
        assert!(matches!(error, Error::Format), "{error}");
    }
    for other in [folder.path(), &folder.path().join("none")] {
        assert!(matches!(capture::read(other, &mut |_| ()), Err(Error::Io(_))));
    }
    std::fs::write(&file, frames(&[]).bytes()).unwrap();
    assert_eq!(capture::read(&file, &mut |_| ()).unwrap().packets, 0);
    let mut jumbo = Pcap::new(ETHERNET);
    jumbo.packet(&ethernet(&vec![0; 300_000]));
    assert_eq!(read(&jumbo).1.packets, 1, "longer than the buffer is at first");
}
