//! What fuzz targets do with octets, and examples of every message.

use ss7_proto::m3ua::{Builder, Data, Message, MessageType, ServiceIndicator, Tag};
use ss7_proto::point_code::PointCode;

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

/// An MSU for SCCP.
pub(crate) fn data(user_data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Data {
        network_appearance: Some(1),
        routing_context: Some(77),
        opc: PointCode(1234),
        dpc: PointCode(6545),
        si: ServiceIndicator::SCCP,
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
