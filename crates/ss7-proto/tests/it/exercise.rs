//! What fuzz targets do with octets, and examples of every message.

use ss7_proto::Digits;
use ss7_proto::cap::InitialDp;
use ss7_proto::gtt::Content;
use ss7_proto::isup::{AnsiIam, Iam, Number};
use ss7_proto::m3ua::{Builder, Data, Message, MessageType, ServiceIndicator, Tag};
use ss7_proto::map::Fields;
use ss7_proto::point_code::{Plan, PointCode};
use ss7_proto::sccp::{self, Address, Connection, Format, Management, ReturnCause, Unitdata, optional_part};
use ss7_proto::tcap::{OperationCode, Transaction};

/// Reads everything of an M3UA message.
pub(crate) fn m3ua(octets: &[u8]) {
    match Message::parse(octets) {
        Ok(message) => {
            for parameter in message.parameters() {
                assert!(parameter.is_ok(), "a proven message has whole parameters");
            }
            for tag in message.message_type().mandatory() {
                assert!(message.get(*tag).is_some());
            }
            let _ = message.routing_contexts().count();
            if let Some(data) = message.data() {
                let mut again = Vec::new();
                data.write(&mut again);
                assert_eq!(Message::parse(&again).unwrap().data(), Some(data));
            } else {
                assert_ne!(message.message_type(), MessageType::Data);
            }
        }
        Err(fault) => {
            let mut error = Vec::new();
            if fault.write_error(octets, &mut error) {
                let error = Message::parse(&error).expect("ERR is well-formed");
                assert_eq!(error.word(Tag::ERROR_CODE), Some(fault.code as u32));
            }
        }
    }
}

/// Reads a stream of IPA, frame by frame.
pub(crate) fn ipa(octets: &[u8]) {
    use ss7_proto::ipa::{Control, Frame, length, unit_name, write_sccp};
    let mut rest = octets;
    while let Some((frame, behind)) = length(rest).and_then(|length| rest.split_at_checked(length)) {
        let mut again = Vec::new();
        match Frame::read(frame) {
            Frame::Sccp(message) => {
                assert!(write_sccp(message, &mut again));
                assert_eq!(again, frame);
            }
            Frame::Control(Control::Response(elements)) => {
                assert!(unit_name(elements).is_none_or(|name| name.len() < elements.len()));
            }
            Frame::Control(control) => {
                control.write(&mut again);
                assert_eq!(Frame::read(&again), Frame::Control(control));
            }
            Frame::Unknown => {}
        }
        rest = behind;
    }
}

/// Gives octets, message by message, to links of M2PA in each state; what they accept is read as an MSU of management.
pub(crate) fn m2pa(octets: &[u8]) {
    use ss7_proto::m2pa::{Link, LinkState, LinkStatus, Timers};
    use ss7_proto::mtp3::{Management, Msu, TestMessage};
    let status = |status| {
        let mut out = Vec::new();
        let content = ss7_proto::m2pa::Content::LinkStatus(status);
        let (bsn, fsn) = (0x00ff_ffff, 0x00ff_ffff);
        ss7_proto::m2pa::Message { bsn, fsn, content }.write(&mut out);
        out
    };
    let before = [
        LinkStatus::Alignment,
        LinkStatus::ProvingEmergency,
        LinkStatus::Ready,
    ];
    for steps in 0..=before.len() {
        let (mut now, mut out) = (std::time::Instant::now(), Vec::new());
        let mut link: Link<Vec<u8>> = Link::new(Timers::default());
        link.start(true, now, &mut out);
        for one in before.iter().take(steps) {
            link.received(&status(*one), now, &mut out);
            now += Timers::default().emergency_proving;
            link.tick(now, &mut out);
        }
        let (mut rest, mut accepted) = (octets, 0);
        while !rest.is_empty() {
            let length = rest
                .get(4..8)
                .map_or(0, |length| u32::from_be_bytes(length.try_into().unwrap()));
            let (message, behind) = rest.split_at((length as usize).clamp(1, rest.len()));
            rest = behind;
            let sent = link.send(vec![0; 20], now, &mut out);
            assert_eq!(sent.is_ok(), link.takes());
            let received = link.received(message, now, &mut out);
            if let Some(msu) = received.msu {
                assert_eq!(link.state(), LinkState::InService);
                accepted += 1;
                for plan in [Plan::Itu, Plan::Ansi, Plan::China, Plan::Japan] {
                    let read = Msu::read(msu, plan).map_or(&[][..], |msu| msu.user_data);
                    if let Some(management) = Management::read(read, plan) {
                        let mut again = Vec::new();
                        management.write(plan, 3, &mut again);
                        assert_eq!(Management::read(&again, plan), Some(management));
                    }
                    let _ = TestMessage::read(read);
                }
            }
        }
        let retrieval = link.retrieve();
        assert!(retrieval.accepted == 0x00ff_ffff || retrieval.accepted < accepted);
    }
}

/// An MSU for SCCP.
pub(crate) fn data(user_data: &[u8]) -> Vec<u8> {
    msu(ServiceIndicator::SCCP, user_data)
}

/// An MSU for a user part.
pub(crate) fn msu(si: ServiceIndicator, user_data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Data {
        network_appearance: Some(1),
        routing_context: Some(77),
        opc: PointCode(1234),
        dpc: PointCode(6545),
        si,
        ni: 2,
        mp: 0,
        sls: 11,
        user_data,
        correlation_id: Some(5),
    }
    .write(&mut out);
    out
}

fn value(builder: &mut Builder<'_>, tag: Tag) {
    match tag {
        Tag::ROUTING_CONTEXT => builder.words(tag, &[77, 78]),
        Tag::AFFECTED_POINT_CODE => builder.words(tag, &[6545, 0x0300_1000]),
        Tag::ERROR_CODE => builder.word(tag, 0x19),
        Tag::STATUS => builder.word(tag, 0x0001_0003),
        Tag::TRAFFIC_MODE_TYPE => builder.word(tag, 2),
        Tag::USER_CAUSE => builder.word(tag, 0x0001_0003),
        Tag::CONGESTION_INDICATIONS => builder.word(tag, 2),
        Tag::DIAGNOSTIC_INFORMATION => builder.parameter(tag, &[1, 0, 4, 1, 0, 0, 0, 8]),
        Tag::HEARTBEAT_DATA => builder.parameter(tag, b"beat!"),
        Tag::ROUTING_KEY => builder.group(tag, |key| {
            key.word(Tag::LOCAL_ROUTING_KEY_IDENTIFIER, 1)
                .word(Tag::TRAFFIC_MODE_TYPE, 3)
                .word(Tag::DESTINATION_POINT_CODE, 6545)
                .parameter(Tag::SERVICE_INDICATORS, &[3, 5])
                .words(Tag::ORIGINATING_POINT_CODE_LIST, &[1, 2]);
        }),
        Tag::REGISTRATION_RESULT => builder.group(tag, |result| {
            result
                .word(Tag::LOCAL_ROUTING_KEY_IDENTIFIER, 1)
                .word(Tag::REGISTRATION_STATUS, 0)
                .word(Tag::ROUTING_CONTEXT, 77);
        }),
        Tag::DEREGISTRATION_RESULT => builder.group(tag, |result| {
            result
                .word(Tag::ROUTING_CONTEXT, 77)
                .word(Tag::DEREGISTRATION_STATUS, 0);
        }),
        Tag::PROTOCOL_DATA => builder.parameter(
            tag,
            &[
                0, 0, 4, 210, 0, 0, 0x19, 0x91, 5, 2, 0, 11, 1, 0, 12, 2, 0, 2, 0x83, 0x90,
            ],
        ),
        _ => builder.word(tag, 7),
    };
}

/// Every M3UA message with every parameter that it may have.
pub(crate) fn every_m3ua() -> Vec<Vec<u8>> {
    let every = |kind: &MessageType| {
        let mut out = Vec::new();
        let mut builder = Builder::new(*kind, &mut out);
        for tag in kind.optional().iter().chain(kind.mandatory()) {
            value(&mut builder, *tag);
        }
        builder.parameter(Tag::INFO_STRING, b"signalbox");
        builder.finish();
        out
    };
    let mut all: Vec<_> = MessageType::ALL.iter().map(every).collect();
    // DUPU has one point code and no mask (RFC 4666 §3.4.5).
    for message in &mut all {
        if let [_, _, 2, 5, ..] = message[..] {
            message.clear();
            let mut builder = Builder::new(MessageType::Dupu, message);
            builder
                .word(Tag::AFFECTED_POINT_CODE, 6545)
                .word(Tag::USER_CAUSE, 0x0001_0003);
            builder.finish();
        }
    }
    all
}

/// Reads everything of an SCCP message, in both forms of addresses.
pub(crate) fn sccp(octets: &[u8]) {
    match sccp::Message::parse(octets) {
        Ok(sccp::Message::Unitdata(unitdata)) => {
            let mut again = Vec::new();
            if unitdata.write(&mut again).is_ok() {
                let Ok(sccp::Message::Unitdata(read)) = sccp::Message::parse(&again) else {
                    panic!("what is written can be read");
                };
                assert_eq!(read, unitdata);
            }
            for octets in [unitdata.called, unitdata.calling] {
                address(octets);
            }
            let _ = (unitdata.segmentation(), unitdata.importance());
            if let Some(returned) = unitdata.returned(ReturnCause::UNQUALIFIED) {
                assert_eq!(returned.calling, unitdata.called);
            }
            let _ = unitdata.next_hop();
            for format in [Format::Itu, Format::Ansi] {
                if let Some(management) = Management::read(unitdata.data, format) {
                    let mut again = Vec::new();
                    management.write(format, &mut again);
                    assert_eq!(Management::read(&again, format), Some(management));
                }
            }
        }
        Ok(sccp::Message::Connection(connection)) => connected(&connection, octets),
        Err(_) => {}
    }
    address(octets);
}

fn connected(connection: &Connection<'_>, octets: &[u8]) {
    let mut patched = octets.to_vec();
    Connection::patch_references(&mut patched, Some(0x01_0203), Some(0x04_0506));
    let Ok(sccp::Message::Connection(read)) = sccp::Message::parse(&patched) else {
        panic!("a patched message can be read");
    };
    assert_eq!(
        read.destination_reference().is_some(),
        connection.destination_reference().is_some()
    );
    assert!(
        read.destination_reference()
            .is_none_or(|reference| reference == 0x01_0203)
    );
    assert!(
        read.source_reference()
            .is_none_or(|reference| reference == 0x04_0506)
    );
    let _ = (connection.cause(), connection.protocol_class());
    for octets in [connection.called(), connection.calling()].into_iter().flatten() {
        address(octets);
    }
    let mut again = Vec::new();
    if connection.write_with_called(&[0x42, 8], &mut again).is_ok() {
        let Ok(sccp::Message::Connection(read)) = sccp::Message::parse(&again) else {
            panic!("what is written can be read");
        };
        assert_eq!(
            (read.called(), read.data()),
            (Some(&[0x42, 8][..]), connection.data())
        );
    }
}

fn address(octets: &[u8]) {
    for format in [Format::Itu, Format::Ansi] {
        let Ok(address) = Address::parse(octets, format) else {
            continue;
        };
        let ours = address.to_buf();
        let mut again = Vec::new();
        if ours.write(format, &mut again).is_ok() {
            let read = Address::parse(&again, format)
                .expect("what is written can be read")
                .to_buf();
            // Indicator 0010 says nothing of an odd count.
            if ours.title.is_none_or(|title| title.indicator != 2) {
                assert_eq!(read, ours);
            }
        }
    }
}

/// A UDT with these addresses.
pub(crate) fn unitdata<'a>(called: &'a [u8], calling: &'a [u8], data: &'a [u8]) -> Unitdata<'a> {
    Unitdata {
        message_type: sccp::MessageType::Udt,
        class_or_cause: 0x80,
        hop_counter: 0,
        called,
        calling,
        data,
        optional: &[],
    }
}

/// Every SCCP message.
pub(crate) fn every_sccp() -> Vec<Vec<u8>> {
    use sccp::MessageType as T;
    // Global title 0100, E.164, 436601234567, routed by title; point code 1234 and subsystem 250.
    let called = [0x12, 250, 0, 0x12, 4, 0x34, 0x66, 0x10, 0x32, 0x54, 0x76];
    let calling = [0x43, 0xd2, 4, 250];
    let optional = optional_part(
        Some(sccp::Segmentation {
            first: true,
            class: 0,
            remaining: 1,
            reference: 0x0a_0b0c,
        }),
        Some(5),
    );
    let mut all = Vec::new();
    for message_type in [T::Udt, T::Udts, T::Xudt, T::Xudts, T::Ludt, T::Ludts] {
        for optional in [&optional[..], &[]] {
            let udt = matches!(message_type, T::Udt | T::Udts);
            let message = Unitdata {
                message_type,
                class_or_cause: 1,
                hop_counter: if udt { 0 } else { 12 },
                optional: if udt { &[] } else { optional },
                ..unitdata(&called, &calling, &[0xaa; 20])
            };
            let mut out = Vec::new();
            message.write(&mut out).unwrap();
            all.push(out);
        }
    }
    let (destination, source) = ([1, 2, 3], [4, 5, 6]);
    let data = [0x0f, 3, 0xaa, 0xbb, 0xcc, 0];
    let cr = [
        &[1][..],
        &source,
        &[2, 2, 4 + 9, 11],
        &called,
        &[4, 4],
        &calling,
        &data,
    ]
    .concat();
    all.push(cr[..].to_vec());
    all.push([&[2][..], &destination, &source, &[2, 1], &data].concat());
    all.push([&[3][..], &destination, &[1, 1], &data].concat());
    all.push([&[4][..], &destination, &source, &[3, 1], &data].concat());
    all.push([&[5][..], &destination, &source].concat());
    all.push([&[6][..], &destination, &[0, 1, 2, 0xaa, 0xbb]].concat());
    all.push([&[7][..], &destination, &[0, 0, 1, 2, 0xaa, 0xbb]].concat());
    all.push([&[8][..], &destination, &[0, 7]].concat());
    all.push([&[0x0b][..], &destination, &[1, 2, 0xaa, 0xbb]].concat());
    all.push([&[0x0c][..], &destination].concat());
    all.push([&[0x0d][..], &destination, &source, &[0]].concat());
    all.push([&[0x0e][..], &destination, &source].concat());
    all.push([&[0x0f][..], &destination, &[0]].concat());
    all.push([&[0x10][..], &destination, &source, &[2, 0, 0, 7]].concat());
    // Data so long that the optional part has to stand before them.
    let long = [0xaa; 255];
    for (message_type, length) in [(T::Xudt, 255), (T::Xudts, 236), (T::Xudt, 235)] {
        let message = Unitdata {
            message_type,
            class_or_cause: 1,
            hop_counter: 12,
            optional: &optional,
            ..unitdata(&called, &calling, &long[..length])
        };
        let mut out = Vec::new();
        message.write(&mut out).unwrap();
        all.push(out);
    }
    all
}

/// Every management message, as a UDT between subsystems 1.
pub(crate) fn every_management() -> Vec<Vec<u8>> {
    let every = |management_type: &sccp::ManagementType| {
        let mut data = Vec::new();
        Management {
            management_type: *management_type,
            ssn: 6,
            point_code: PointCode(6545),
            multiplicity: 1,
            congestion_level: 3,
        }
        .write(Format::Itu, &mut data);
        // Management does not ask for the return of its messages.
        let mut out = Vec::new();
        let message = Unitdata {
            class_or_cause: 0,
            ..unitdata(&[0x42, 1], &[0x42, 1], &data)
        };
        message.write(&mut out).unwrap();
        out
    };
    sccp::ManagementType::ALL.iter().map(every).collect()
}

/// Walks a TCAP message and the MAP in it.
pub(crate) fn tcap(octets: &[u8]) {
    let Ok(transaction) = Transaction::parse(octets) else {
        return;
    };
    if let Some(context) = transaction.context {
        let _ = (context.to_string(), context.map());
    }
    for component in transaction.components.map_while(Result::ok) {
        if let (Some(OperationCode::Local(code)), Some(parameter)) =
            (component.operation, component.parameter)
        {
            let _ = format!("{:?}", InitialDp::read(code, parameter));
            let fields = Fields::read(code, parameter);
            let _ = format!("{fields:?}");
            let _ = fields.imsi.and_then(|imsi| imsi.digits());
            assert!(fields.tp_da().is_none_or(|digits| digits.len() <= 20));
        }
    }
    selectors(octets);
}

/// Shows what selectors of translations see of a message: everything is read.
fn selectors(data: &[u8]) {
    for format in [Format::Itu, Format::Ansi] {
        let unitdata = Unitdata {
            message_type: sccp::MessageType::Udt,
            class_or_cause: 0,
            hop_counter: 0,
            called: data,
            calling: data,
            data,
            optional: &[],
        };
        assert!(!Content::new(&unitdata, format).to_string().is_empty());
    }
}

/// Reads an IAM, and writes it with other numbers.
pub(crate) fn isup(octets: &[u8]) {
    isup_of_ansi(octets);
    let Ok(iam) = Iam::parse(octets) else {
        return;
    };
    let _ = (iam.circuit(), iam.calling());
    if let Some(called) = iam.called() {
        let mut same = Vec::new();
        if iam.write_with_called(&called, false, &mut same).is_ok() {
            assert_eq!(same.len(), octets.len());
            assert_eq!(Iam::parse(&same).unwrap().called(), Some(called));
        }
    }
    for count in [0, 1, 2, 17, 40] {
        let number = Number {
            nature: 8,
            indicators: Number::E164,
            digits: Digits::parse(&"1".repeat(count)).unwrap(),
        };
        let mut out = Vec::new();
        if iam.write_with_called(&number, true, &mut out).is_ok() {
            let again = Iam::parse(&out).expect("what is written can be read");
            assert_eq!((again.called(), again.calling()), (Some(number), iam.calling()));
        } else {
            assert!(out.is_empty());
        }
    }
}

fn isup_of_ansi(octets: &[u8]) {
    let Ok(iam) = AnsiIam::parse(octets) else {
        return;
    };
    let _ = (iam.circuit(), iam.is_queried(), iam.ported());
    for count in [0, 1, 10, 40] {
        let number = Number {
            nature: 3,
            indicators: Number::E164,
            digits: Digits::parse(&"1".repeat(count)).unwrap(),
        };
        for ported in [None, Some(&number)] {
            let mut out = Vec::new();
            if iam.write_queried(&number, ported, &mut out).is_ok() {
                assert_eq!(out.len(), iam.queried_len(&number, ported));
                let again = AnsiIam::parse(&out).expect("what is written can be read");
                assert_eq!((again.called(), again.calling()), (Some(number), iam.calling()));
                assert!(again.is_queried());
                assert!(ported.is_none() || again.ported() == Some(number));
            } else {
                assert!(out.is_empty());
            }
        }
    }
}

/// An IAM of ANSI for 6605550123, national, from 6605559876: user service information of speech before the called number.
pub(crate) fn iam_of_ansi() -> Vec<u8> {
    [
        &[0x23, 1, 1, 0, 0x60, 1, 10, 3, 6, 13][..],
        &[3, 0x80, 0x90, 0xa2],
        &[7, 3, 0x10, 0x66, 0x50, 0x55, 0x10, 0x32],
        &[0x0a, 7, 3, 0x10, 0x66, 0x50, 0x55, 0x89, 0x67, 0],
    ]
    .concat()
}

/// An IAM for 664567, national, from 4366012345: with simple segmentation, and a portability status of *not queried*.
pub(crate) fn iam() -> Vec<u8> {
    [
        &[0x23, 1, 1, 0, 0x60, 1, 10, 0, 2, 8][..],
        &[6, 0x83, 0x10, 0x66, 0x54, 0x76, 0x0f],
        &[0x0a, 7, 4, 0x13, 0x34, 0x66, 0x10, 0x32, 0x54],
        &[8, 1, 4, 0x8d, 1, 0x81, 0],
    ]
    .concat()
}

/// A BER element of definite length.
pub(crate) fn ber(tag: u8, value: &[u8]) -> Vec<u8> {
    let length = u8::try_from(value.len()).unwrap();
    match length {
        0..0x80 => [&[tag, length], value].concat(),
        _ => [&[tag, 0x81, length], value].concat(),
    }
}

/// Begin with one Invoke of MAP: application context number and version, operation, argument.
pub(crate) fn begin(context: (u8, u8), operation: u8, argument: &[u8]) -> Vec<u8> {
    begin_in(&[4, 0, 0, 1, 0, context.0, context.1], operation, argument)
}

/// Begin with one Invoke: the octets of the application context, operation, argument.
pub(crate) fn begin_in(context: &[u8], operation: u8, argument: &[u8]) -> Vec<u8> {
    let name = ber(0x06, context);
    let aarq = ber(0x60, &[ber(0x80, &[7, 0x80]), ber(0xa1, &name)].concat());
    let dialogue_as = ber(0x06, &[0, 0x11, 0x86, 5, 1, 1, 1]);
    let external = ber(0x28, &[dialogue_as, ber(0xa0, &aarq)].concat());
    let invoke = [ber(2, &[1]), ber(2, &[operation]), argument.to_vec()].concat();
    let parts = [
        ber(0x48, &[0xde, 0xad, 0xbe, 0xef]),
        ber(0x6b, &external),
        ber(0x6c, &ber(0xa1, &invoke)),
    ];
    ber(0x62, &parts.concat())
}
