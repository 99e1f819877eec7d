//! M3UA: vectors by hand, faults and their codes.

use ss7_proto::m3ua::{
    AffectedPointCode, Builder, Class, Data, ErrorCode, Message, MessageType, RegistrationResult, RoutingKey,
    ServiceIndicator, Status, Tag, TrafficMode,
};
use ss7_proto::point_code::PointCode;

use crate::exercise::{data, every_m3ua};

/// ASPAC as osmo-stp's clients send it: traffic mode override, routing context 3.
const ASPAC: &[u8] = &[
    1, 0, 4, 1, 0, 0, 0, 24, 0, 0x0b, 0, 8, 0, 0, 0, 1, 0, 6, 0, 8, 0, 0, 0, 3,
];

fn refused(octets: &[u8]) -> ErrorCode {
    Message::parse(octets).expect_err("refused").code
}

/// A message of one parameter.
fn with(class: u8, number: u8, parameters: &[u8]) -> Vec<u8> {
    let length = u8::try_from(8 + parameters.len()).unwrap();
    [&[1, 0, class, number, 0, 0, 0, length], parameters].concat()
}

#[test]
fn aspac_by_hand() {
    let message = Message::parse(ASPAC).unwrap();
    assert_eq!(message.message_type(), MessageType::Aspac);
    let mode = message
        .word(Tag::TRAFFIC_MODE_TYPE)
        .and_then(TrafficMode::from_number);
    assert_eq!(mode, Some(TrafficMode::Override));
    assert_eq!(message.routing_contexts().collect::<Vec<_>>(), [3]);
    let mut out = Vec::new();
    let mut builder = Builder::new(MessageType::Aspac, &mut out);
    builder
        .word(Tag::TRAFFIC_MODE_TYPE, 1)
        .word(Tag::ROUTING_CONTEXT, 3);
    builder.finish();
    assert_eq!(out, ASPAC);
}

#[test]
fn every_message_reads_back() {
    for octets in every_m3ua() {
        let message = Message::parse(&octets).unwrap();
        assert_eq!(message.message_type().class() as u8, octets[2]);
        // Parameters in any order.
        let mut turned = Vec::new();
        let mut builder = Builder::new(message.message_type(), &mut turned);
        let mut parameters: Vec<_> = message.parameters().flatten().collect();
        parameters.reverse();
        for parameter in parameters {
            builder.parameter(parameter.tag, parameter.value);
        }
        builder.finish();
        assert!(
            Message::parse(&turned).is_ok(),
            "{}",
            message.message_type().name()
        );
    }
}

#[test]
fn each_mandatory_parameter_is_missed() {
    for octets in every_m3ua() {
        let message = Message::parse(&octets).unwrap();
        for needed in message.message_type().mandatory() {
            let mut without = Vec::new();
            let mut builder = Builder::new(message.message_type(), &mut without);
            for parameter in message.parameters().flatten().filter(|p| p.tag != *needed) {
                builder.parameter(parameter.tag, parameter.value);
            }
            builder.finish();
            let fault = Message::parse(&without).expect_err("refused");
            assert_eq!(
                (fault.code, fault.parameter),
                (ErrorCode::MissingParameter, Some(*needed))
            );
        }
    }
}

#[test]
fn headers_that_lie() {
    assert_eq!(refused(&[]), ErrorCode::ProtocolError);
    assert_eq!(refused(&[1, 0, 3]), ErrorCode::ProtocolError);
    assert_eq!(refused(&[1, 0, 3, 1]), ErrorCode::ProtocolError);
    assert_eq!(refused(&[2, 0, 3, 1, 0, 0, 0, 8]), ErrorCode::InvalidVersion);
    for class in [5, 6, 7, 8, 10, 255] {
        assert_eq!(
            refused(&[1, 0, class, 1, 0, 0, 0, 8]),
            ErrorCode::UnsupportedMessageClass
        );
    }
    for (class, number) in [
        (0, 2),
        (1, 0),
        (1, 2),
        (2, 0),
        (2, 7),
        (3, 0),
        (3, 7),
        (4, 5),
        (9, 0),
        (9, 5),
    ] {
        assert_eq!(
            refused(&[1, 0, class, number, 0, 0, 0, 8]),
            ErrorCode::UnsupportedMessageType
        );
    }
    for length in [0, 7, 9, 12, 255] {
        assert_eq!(
            refused(&[1, 0, 3, 1, 0, 0, 0, length]),
            ErrorCode::ProtocolError,
            "{length}"
        );
    }
    assert_eq!(
        refused(&[1, 0, 3, 1, 0xff, 0xff, 0xff, 0xff]),
        ErrorCode::ProtocolError
    );
}

#[test]
fn padding_of_the_last_parameter_may_be_missing() {
    // Five octets of heartbeat data: padded and counted, padded and not counted, not padded.
    let beat = [0, 9, 0, 9, 1, 2, 3, 4, 5];
    let mut padded = with(3, 3, &[&beat[..], &[0; 3]].concat());
    assert!(Message::parse(&padded).is_ok());
    padded[7] = 17;
    assert!(Message::parse(&padded).is_ok());
    let message = with(3, 3, &beat);
    assert_eq!(
        Message::parse(&message).unwrap().get(Tag::HEARTBEAT_DATA),
        Some(&[1, 2, 3, 4, 5][..])
    );
}

#[test]
fn parameters_that_do_not_fit() {
    for broken in [
        &[0, 6, 0, 3][..],
        &[0, 6, 0, 0],
        &[0, 6, 0, 12, 0, 0, 0, 1],
        &[0, 6, 0, 6, 0, 1, 0, 0],
        &[0, 6, 0, 4],
        &[0, 6, 0, 8, 0, 0, 0, 1, 0, 6, 0, 255],
    ] {
        assert_eq!(
            refused(&with(4, 1, broken)),
            ErrorCode::ParameterFieldError,
            "{broken:?}"
        );
    }
    assert_eq!(
        refused(&with(4, 1, &[0, 0x0b, 0, 8, 0, 0, 0, 4])),
        ErrorCode::UnsupportedTrafficModeType
    );
    // Protocol data of 11 octets has no whole routing label.
    let short = [2, 0x10, 0, 15, 0, 0, 0, 1, 0, 0, 0, 2, 3, 2, 0, 0];
    assert_eq!(refused(&with(1, 1, &short)), ErrorCode::ParameterFieldError);
}

#[test]
fn parameters_in_the_wrong_message_or_twice() {
    let context = [0, 6, 0, 8, 0, 0, 0, 1];
    assert_eq!(refused(&with(3, 1, &context)), ErrorCode::UnexpectedParameter);
    assert_eq!(
        refused(&with(4, 1, &[context, context].concat())),
        ErrorCode::UnexpectedParameter
    );
    // INFO String may stand anywhere, unknown parameters too.
    assert!(Message::parse(&with(3, 2, &[0, 4, 0, 6, b'h', b'i', 0, 0])).is_ok());
    let message = with(3, 2, &[0x99, 0x99, 0, 6, 1, 2, 0, 0]);
    assert_eq!(
        Message::parse(&message).unwrap().get(Tag(0x9999)),
        Some(&[1, 2][..])
    );
}

#[test]
fn routing_keys_are_proven_inside() {
    let key = |members: &[u8]| {
        let length = u8::try_from(4 + members.len()).unwrap();
        with(9, 1, &[&[2, 7, 0, length], members].concat())
    };
    let identifier = [2, 0x0a, 0, 8, 0, 0, 0, 9];
    let destination = [2, 0x0b, 0, 8, 0, 0, 0x19, 0x91];
    let whole = key(&[identifier, destination].concat());
    let message = Message::parse(&whole).unwrap();
    let routing_key = RoutingKey::new(message.get(Tag::ROUTING_KEY).unwrap());
    assert_eq!(routing_key.local_identifier(), 9);
    assert_eq!(routing_key.destination(), PointCode(6545));
    assert_eq!(refused(&key(&identifier)), ErrorCode::MissingParameter);
    assert_eq!(
        refused(&key(&[identifier, identifier].concat())),
        ErrorCode::UnexpectedParameter
    );
    assert_eq!(
        refused(&key(&[2, 0x0a, 0, 9, 0, 0, 0, 9])),
        ErrorCode::ParameterFieldError
    );
    // A routing key within a routing key is not entered.
    assert_eq!(
        refused(&key(&[2, 7, 0, 8, 2, 7, 0, 4])),
        ErrorCode::UnexpectedParameter
    );
}

#[test]
fn error_answers_quote_the_message() {
    let octets = [1, 0, 7, 1, 0, 0, 0, 8];
    let fault = Message::parse(&octets).unwrap_err();
    let mut out = Vec::new();
    assert!(fault.write_error(&octets, &mut out));
    let error = Message::parse(&out).unwrap();
    assert_eq!(error.word(Tag::ERROR_CODE), Some(3));
    assert_eq!(error.get(Tag::DIAGNOSTIC_INFORMATION), Some(&octets[..]));
    // An ERR is never answered, whatever is wrong with it.
    let broken = with(0, 0, &[]);
    let fault = Message::parse(&broken).unwrap_err();
    assert!(!fault.write_error(&broken, &mut out));
}

#[test]
fn streams_of_each_class() {
    assert!(!MessageType::Data.may_use_stream(0));
    assert!(MessageType::Data.may_use_stream(1));
    assert!(!MessageType::Aspup.may_use_stream(1));
    assert!(MessageType::Beat.may_use_stream(4));
    assert!(MessageType::Duna.may_use_stream(0));
    let octets = data(b"x");
    let msu = Message::parse(&octets).unwrap().data().unwrap();
    assert_eq!((msu.stream(17), msu.stream(3), msu.stream(1)), (12, 2, 0));
    for sls in 0..=255 {
        assert!(Data { sls, ..msu }.stream(16) > 0);
    }
}

#[test]
fn values_of_parameters() {
    let octets = data(b"x");
    let msu = Message::parse(&octets).unwrap().data().unwrap();
    assert_eq!((msu.si, msu.user_data), (ServiceIndicator::SCCP, &b"x"[..]));
    for number in [
        0x0001_0002,
        0x0001_0003,
        0x0001_0004,
        0x0002_0001,
        0x0002_0002,
        0x0002_0003,
        0x0005_0006,
    ] {
        assert_eq!(Status::from_number(number).number(), number);
    }
    let affected = AffectedPointCode::from_number(0x0300_1000);
    assert!(affected.covers(PointCode(0x1007)) && !affected.covers(PointCode(0x1008)));
    assert!(AffectedPointCode::from_number(0xff00_0001).covers(PointCode(0x00ff_ffff)));
    assert_eq!(Class::from_number(9), Some(Class::Rkm));
    let all = every_m3ua();
    let response = all.iter().find(|octets| octets[2..4] == [9, 2]).unwrap();
    let response = Message::parse(response).unwrap();
    let result = RegistrationResult::read(response.get(Tag::REGISTRATION_RESULT).unwrap());
    assert_eq!(
        (result.local_identifier, result.status, result.routing_context),
        (1, 0, 77)
    );
}
