//! M3UA and M2PA over the kernel's SCTP.

use std::net::SocketAddr;

use settings::Listen;
use socket2::{Domain, Protocol, Socket, Type};
use ss7_proto::m3ua::{Message, MessageType, Tag};
use stp::config::{Link, Role, Transport};

use crate::signalling_links::{EAST, WEST, is_available, stp};
use crate::support::{Asp, address, aspac, config, data, isup, link, metric, plain, start, until};

/// Sends each message as one of SCTP.
fn connect(stp: SocketAddr, from: u8) -> Asp {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::from(132))).unwrap();
    socket.bind(&SocketAddr::new(address(from), 0).into()).unwrap();
    socket.connect(&stp.into()).unwrap();
    // A `TcpStream` reads and writes any stream socket.
    Asp::over(socket.into())
}

/// What is sent from now on goes by a stream (`SCTP_DEFAULT_SEND_PARAM`, RFC 6458 §8.1.13), with payload protocol identifier 3.
#[allow(unsafe_code)]
fn use_stream(asp: &Asp, stream: u16) {
    use std::os::fd::AsRawFd as _;
    let mut parameters = [0_u8; 32];
    parameters[..2].copy_from_slice(&stream.to_ne_bytes());
    parameters[8..12].copy_from_slice(&3_u32.to_be_bytes());
    // SAFETY: pointer and length are those of one live array, which the kernel only reads during the call; the descriptor is
    // open because `asp` owns it.
    let outcome = unsafe {
        libc::setsockopt(
            asp.stream.as_raw_fd(),
            libc::IPPROTO_SCTP,
            10,
            parameters.as_ptr().cast(),
            parameters.len() as libc::socklen_t,
        )
    };
    assert_eq!(outcome, 0, "{}", std::io::Error::last_os_error());
}

fn active(stp: SocketAddr, from: u8, context: u32) -> Asp {
    let mut asp = connect(stp, from);
    asp.send(&plain(MessageType::Aspup));
    asp.expect(MessageType::AspupAck);
    asp.send(&aspac(context));
    asp.expect(MessageType::AspacAck);
    asp
}

#[test]
fn data_goes_from_association_to_association() {
    if !testpeer::sctp::is_here("sctp::data_goes_from_association_to_association") {
        return;
    }
    let mut settings = config();
    settings.listen = Listen(Vec::new());
    settings.sctp_listen = Listen(vec![
        SocketAddr::new(address(1), 29_050),
        SocketAddr::new(address(2), 29_050),
    ]);
    for link in &mut settings.links {
        link.transport = Transport::Sctp;
    }
    let stp = start(settings);
    let at = stp.addresses()[0];
    let (mut one, mut two) = (active(at, 11, 11), active(at, 12, 12));
    for n in 0..100_u32 {
        one.send(&isup(11, 1, 2, (n % 16) as u8, &n.to_be_bytes()));
    }
    in_order(&mut two);
    drop(two);
    one.expect(MessageType::Duna);
    // Another process would get some of the associations.
    assert!(stp::is_taken_over_sctp(at));
    assert!(!stp::is_taken_over_sctp(SocketAddr::new(address(1), 29_051)));
    // A message whose length lies is refused alone.
    let mut lying = isup(11, 1, 2, 0, b"lying");
    lying[7] += 40;
    one.send(&lying);
    one.expect(MessageType::Err);
    one.settle();
}

/// RFC 4666 §1.4.7: DATA must not be sent on stream 0. It is taken and counted, or refused.
#[test]
fn data_on_stream_0_are_counted_and_refused_where_that_is_wanted() {
    if !testpeer::sctp::is_here("sctp::data_on_stream_0_are_counted_and_refused_where_that_is_wanted") {
        return;
    }
    let mut settings = config();
    settings.listen = Listen(Vec::new());
    settings.sctp_listen = Listen(vec![SocketAddr::new(address(1), 29_052)]);
    for link in &mut settings.links {
        link.transport = Transport::Sctp;
    }
    let stp = start(settings.clone());
    let at = stp.addresses()[0];
    let (mut one, mut two) = (active(at, 11, 11), active(at, 12, 12));
    let misplaced = || metric(&stp, "signalbox_stp_data_on_stream_0_total{link=\"a\"}");
    for (stream, count) in [(0, 1.0), (3, 1.0), (0, 2.0)] {
        use_stream(&one, stream);
        one.send(&isup(11, 1, 2, 0, b"call"));
        assert_eq!(data(&two.expect(MessageType::Data)).user_data, b"call");
        assert_eq!(misplaced(), count);
    }
    settings.strict_streams = true;
    stp.reload(&settings).unwrap();
    one.send(&isup(11, 1, 2, 0, b"refused"));
    let refused = one.expect(MessageType::Err);
    let code = Message::parse(&refused).unwrap().word(Tag::ERROR_CODE);
    assert_eq!(code, Some(9), "Invalid Stream Identifier");
    assert_eq!(misplaced(), 3.0);
    use_stream(&one, 1);
    one.send(&isup(11, 1, 2, 0, b"taken"));
    assert_eq!(data(&two.expect(MessageType::Data)).user_data, b"taken");
}

/// Receives 100 messages. Streams are independent of one another; the order of each link selection holds.
fn in_order(asp: &mut Asp) {
    let mut last = [None; 16];
    for _ in 0..100 {
        let received = asp.expect(MessageType::Data);
        let msu = data(&received);
        let number = u32::from_be_bytes(msu.user_data.try_into().unwrap());
        let before = last[usize::from(msu.sls)].replace(number);
        assert!(before < Some(number), "{before:?} {number}");
    }
}

#[test]
fn a_link_of_m2pa_is_aligned_carries_and_returns() {
    if !testpeer::sctp::is_here("sctp::a_link_of_m2pa_is_aligned_carries_and_returns") {
        return;
    }
    let link = |connect: bool| Link {
        transport: Transport::Sctp,
        role: Role::M2pa,
        port: connect.then_some(29_051),
        connect,
        ..link("a", 1)
    };
    let mut settings = stp(EAST, ("one", 1, 11), 2, WEST, vec![link(false)]);
    settings.sctp_listen = Listen(vec![SocketAddr::new(address(1), 29_051)]);
    let east = start(settings);
    let west = || start(stp(WEST, ("two", 2, 12), 1, EAST, vec![link(true)]));
    let mut one = Asp::active(east.addresses()[0], 11, 11);
    for round in 0..2_u32 {
        let west = west();
        let mut two = Asp::active(west.addresses()[0], 12, 12);
        for stp in [&east, &west] {
            until("the link carries traffic", || is_available(stp, "a"));
        }
        one.expect(MessageType::Dava);
        for n in 0..100_u32 {
            let number = (round * 100 + n).to_be_bytes();
            one.send(&isup(11, 1, 2, (n % 16) as u8, &number));
            two.send(&isup(12, 2, 1, (n % 16) as u8, &number));
        }
        in_order(&mut two);
        in_order(&mut one);
        drop((two, west));
        one.expect(MessageType::Duna);
    }
}
