//! A hand-made neighbour with two links of M2PA: a changeback that does not take place, tests of a wrong link or network,
//! other timers, a busy peer.

use std::net::SocketAddr;

use settings::Period;
use ss7_proto::m2pa::{Content, LinkStatus, Message, SEQUENCE_MASK};
use ss7_proto::m3ua::{MessageType, ServiceIndicator};
use ss7_proto::mtp3::{Management, Msu, TestMessage, link_code, test_indicator};
use ss7_proto::{Plan, PointCode};

use crate::signalling_links::{EAST, WEST, east, is_available};
use crate::support::{Asp, data, isup, metric, msu, start, until};

/// The neighbour's end of a link.
pub(crate) struct Neighbour {
    stream: Asp,
    plan: Plan,
    point_code: u32,
    code: u8,
    /// The network indicator of what it sends.
    network: u8,
    /// Of the last MSU that it has sent, and of the last one that it has received.
    sent: u32,
    received: u32,
}

impl Neighbour {
    /// Connects, and is aligned and tested.
    pub(crate) fn new(stp: SocketAddr, from: u8, code: u8) -> Self {
        Self::at(stp, from, code, WEST)
    }

    /// As [`Self::new`], at a point code.
    pub(crate) fn at(stp: SocketAddr, from: u8, code: u8, point_code: u32) -> Self {
        let mut link = Self::connect(stp, from, code);
        link.point_code = point_code;
        link.align();
        link
    }

    /// As [`Self::new`], in a network with another plan of point codes.
    pub(crate) fn of(plan: Plan, stp: SocketAddr, from: u8, code: u8) -> Self {
        let mut link = Self::connect(stp, from, code);
        link.plan = plan;
        link.align();
        link
    }

    pub(crate) fn connect(stp: SocketAddr, from: u8, code: u8) -> Self {
        Self {
            stream: Asp::connect(stp, from),
            plan: Plan::Itu,
            point_code: WEST,
            network: 2,
            code,
            sent: SEQUENCE_MASK,
            received: SEQUENCE_MASK,
        }
    }

    /// The next message of network management: the code of the link that it concerns, and the message.
    pub(crate) fn management(&mut self) -> (u8, Management) {
        loop {
            let octets = self.msu();
            let msu = Msu::read(&octets, self.plan).unwrap();
            if msu.si == ServiceIndicator::SNM {
                let code = link_code(msu.sls, msu.user_data, self.plan);
                return (code, Management::read(msu.user_data, self.plan).unwrap());
            }
        }
    }

    /// The next one about a link code.
    pub(crate) fn management_of(&mut self, code: u8) -> Management {
        loop {
            let (about, message) = self.management();
            if about == code {
                return message;
            }
        }
    }

    /// Waits for a message of network management.
    pub(crate) fn wait_for(&mut self, wanted: (u8, Management)) {
        while self.management() != wanted {}
    }

    /// As [`Self::wait_for`], of a message about a destination, whose link code has no meaning.
    pub(crate) fn wait_for_message(&mut self, wanted: Management) {
        while self.management().1 != wanted {}
    }

    /// Sends network management about a link code, from the neighbour itself.
    pub(crate) fn manage(&mut self, code: u8, message: Management) {
        self.manage_for(EAST, code, message);
    }

    /// As [`Self::manage`], to a node.
    pub(crate) fn manage_for(&mut self, dpc: u32, code: u8, message: Management) {
        let mut user_data = Vec::new();
        message.write(self.plan, code, &mut user_data);
        let own = std::mem::replace(&mut self.code, code);
        self.send_msu(ServiceIndicator::SNM, [self.point_code, dpc], &user_data);
        self.code = own;
    }

    /// Is aligned in a network with a plan of point codes; returns the first link test.
    pub(crate) fn aligned_until_test(&mut self, plan: Plan) -> Vec<u8> {
        self.plan = plan;
        self.prove();
        self.msu()
    }

    fn align(&mut self) {
        self.prove();
        let test = self.msu();
        self.acknowledge_test(&test);
    }

    fn prove(&mut self) {
        self.wait(LinkStatus::Alignment);
        for status in [
            LinkStatus::Alignment,
            LinkStatus::ProvingNormal,
            LinkStatus::Ready,
        ] {
            self.send(Content::LinkStatus(status));
        }
        self.wait(LinkStatus::Ready);
    }

    pub(crate) fn send(&mut self, content: Content<'_>) {
        if let Content::UserData { .. } = content {
            self.sent = self.sent.wrapping_add(1) & SEQUENCE_MASK;
        }
        let (bsn, fsn) = (self.received, self.sent);
        let mut out = Vec::new();
        Message { bsn, fsn, content }.write(&mut out);
        self.stream.send(&out);
    }

    pub(crate) fn wait(&mut self, wanted: LinkStatus) {
        let mut found = None;
        while found != Some(Content::LinkStatus(wanted)) {
            let octets = self.stream.any().expect("closed");
            found = match Message::parse(&octets).unwrap().content {
                Content::LinkStatus(status) => Some(Content::LinkStatus(status)),
                _ => None,
            };
        }
    }

    /// The next MSU.
    pub(crate) fn msu(&mut self) -> Vec<u8> {
        loop {
            let octets = self.stream.any().expect("closed");
            let message = Message::parse(&octets).unwrap();
            if let Content::UserData { msu, .. } = message.content {
                self.received = message.fsn;
                return msu.to_vec();
            }
        }
    }

    pub(crate) fn acknowledge_test(&mut self, test: &[u8]) {
        let test = TestMessage::read(Msu::read(test, self.plan).unwrap().user_data).unwrap();
        let mut user_data = Vec::new();
        TestMessage {
            acknowledges: true,
            ..test
        }
        .write(self.plan, self.code, &mut user_data);
        self.send_msu(test_indicator(self.plan), [self.point_code, EAST], &user_data);
    }

    pub(crate) fn send_msu(&mut self, si: ServiceIndicator, [opc, dpc]: [u32; 2], user_data: &[u8]) {
        let mut msu = Vec::new();
        Msu {
            si,
            ni: self.network,
            priority: 0,
            dpc: PointCode(dpc),
            opc: PointCode(opc),
            sls: self.code,
            user_data,
        }
        .write(self.plan, &mut msu);
        self.send(Content::UserData {
            priority: 0,
            msu: &msu,
        });
    }
}

/// Of a peer that does not prove the link the association stays: timers of a reload count from the next alignment.
#[test]
fn timers_count_from_the_next_alignment() {
    let mut settings = east();
    settings.m2pa.t2 = Period::from_secs(60);
    settings.m2pa.t3 = Period::from_millis(20);
    settings.m2pa.t4e = Period::from_secs(3_600);
    let stp = start(settings.clone());
    let mut a = Neighbour::connect(stp.addresses()[0], 21, 0);
    a.wait(LinkStatus::Alignment);
    settings.m2pa.t3 = Period::from_secs(60);
    settings.m2pa.t4e = Period::from_millis(50);
    stp.reload(&settings).unwrap();
    a.send(Content::LinkStatus(LinkStatus::Alignment));
    a.wait(LinkStatus::OutOfService);
    a.align();
    until("the link carries traffic", || is_available(&stp, "a"));
}

/// What was held for a changeback stays behind what its former link has queued, when the link to which it was to move fails
/// before the peer has acknowledged it.
#[test]
fn a_changeback_that_does_not_take_place_misorders_nothing() {
    let stp = start(east());
    let at = stp.addresses()[0];
    let mut b = Neighbour::new(at, 22, 1);
    until("the link carries traffic", || is_available(&stp, "b"));
    let mut one = Asp::active(at, 11, 11);
    let octets = || metric(&stp, "signalbox_stp_received_bytes_total{link=\"b\"}");
    let before = octets();
    b.send(Content::LinkStatus(LinkStatus::Busy));
    until("the STP knows that it is busy", || octets() > before);
    let send = |one: &mut Asp, number: u8| {
        (0..16).for_each(|sls| one.send(&isup(11, 1, 2, sls, &[number])));
        one.settle();
    };
    send(&mut one, 1);
    let a = Neighbour::new(at, 21, 0);
    until("the changeback has begun", || is_available(&stp, "a"));
    send(&mut one, 2);
    drop(a);
    until("the link has failed", || !is_available(&stp, "a"));
    send(&mut one, 3);
    b.send(Content::LinkStatus(LinkStatus::BusyEnded));
    let mut last = [0; 16];
    while last.iter().any(|number| *number < 3) {
        let octets = b.msu();
        let msu = Msu::read(&octets, Plan::Itu).unwrap();
        if msu.si == ServiceIndicator::ISUP {
            let last = &mut last[usize::from(msu.sls)];
            *last += 1;
            assert_eq!(msu.user_data, [*last], "link selection {}", msu.sls);
        }
    }
}

/// Q.707 §2.2: a test for another node came by a link that is connected to a wrong one. It is discarded: behind this STP it would
/// be taken for that of a link there.
#[test]
fn a_link_test_for_another_node_ends_here() {
    let stp = start(east());
    let at = stp.addresses()[0];
    let mut one = Asp::active(at, 11, 11);
    let mut a = Neighbour::new(at, 21, 0);
    until("the link carries traffic", || is_available(&stp, "a"));
    let mut test = Vec::new();
    TestMessage {
        acknowledges: false,
        pattern: b"test",
    }
    .write(Plan::Itu, 0, &mut test);
    a.send_msu(ServiceIndicator::SNT, [WEST, 1], &test);
    a.send_msu(ServiceIndicator::ISUP, [WEST, 1], b"call");
    let received = one.expect(MessageType::Data);
    assert_eq!(data(&received).si, ServiceIndicator::ISUP);
}

/// Network management comes from neighbours alone: an application server could forge that of another node (TFP, a changeover).
#[test]
fn an_application_server_sends_no_network_management() {
    let stp = start(east());
    let at = stp.addresses()[0];
    let mut one = Asp::active(at, 11, 11);
    let mut a = Neighbour::new(at, 21, 0);
    until("the link carries traffic", || is_available(&stp, "a"));
    for si in [ServiceIndicator::SNM, ServiceIndicator::SNT] {
        one.send(&msu(11, 1, 2, 0, si, b"forged"));
    }
    one.send(&isup(11, 1, 2, 0, b"call"));
    loop {
        let octets = a.msu();
        let msu = Msu::read(&octets, Plan::Itu).unwrap();
        assert_ne!(msu.user_data, b"forged");
        if msu.si == ServiceIndicator::ISUP {
            break;
        }
    }
    let dropped = "signalbox_stp_undelivered_messages_total{why=\"user_part\"}";
    assert_eq!(metric(&stp, dropped), 2.0);
}

/// Q.704 §14.2.2: the network indicator is part of the destination. A test of another network is not for this STP.
#[test]
fn a_link_test_of_another_network_is_not_answered() {
    let stp = start(east());
    let at = stp.addresses()[0];
    let mut a = Neighbour::new(at, 21, 0);
    until("the link carries traffic", || is_available(&stp, "a"));
    for (network, pattern) in [(0, b"none"), (2, b"ours")] {
        let mut test = Vec::new();
        TestMessage {
            acknowledges: false,
            pattern,
        }
        .write(Plan::Itu, 0, &mut test);
        a.network = network;
        a.send_msu(ServiceIndicator::SNT, [WEST, EAST], &test);
    }
    loop {
        let octets = a.msu();
        let msu = Msu::read(&octets, Plan::Itu).unwrap();
        let test = TestMessage::read(msu.user_data).filter(|_| msu.si == ServiceIndicator::SNT);
        if let Some(test) = test.filter(|test| test.acknowledges) {
            assert_eq!(test.pattern, b"ours");
            break;
        }
    }
    let discarded = "signalbox_stp_discarded_link_tests_total{link=\"a\"}";
    assert_eq!(metric(&stp, discarded), 1.0);
}

/// A test that is due while the peer is busy is sent when it is not: the next one would come after T1.
#[test]
fn a_link_test_waits_for_a_busy_peer() {
    let mut settings = east();
    settings.mtp.link_test_interval = Period::from_millis(20);
    settings.mtp.link_test_timeout = Period::from_secs(3_600);
    let stp = start(settings);
    let mut a = Neighbour::new(stp.addresses()[0], 21, 0);
    until("the link carries traffic", || is_available(&stp, "a"));
    a.send(Content::LinkStatus(LinkStatus::Busy));
    // The next test is due.
    std::thread::sleep(std::time::Duration::from_millis(100));
    a.send(Content::LinkStatus(LinkStatus::BusyEnded));
    for _ in 0..3 {
        let test = loop {
            let octets = a.msu();
            if Msu::read(&octets, Plan::Itu).unwrap().si == ServiceIndicator::SNT {
                break octets;
            }
        };
        a.acknowledge_test(&test);
    }
    assert!(is_available(&stp, "a"));
}
