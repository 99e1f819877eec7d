//! TCAP and MAP: operations that routing uses, other versions, ANSI, octets that lie.

use ss7_proto::ber::BerFault;
use ss7_proto::map::{Fields, SmRpAddress, operation};
use ss7_proto::tcap::{ComponentType, Fault, MessageType, OperationCode, Transaction};

use crate::exercise::{begin, ber};

/// IMSI 232010123456789.
const IMSI: &[u8] = &[0x32, 0x02, 0x01, 0x21, 0x43, 0x65, 0x87, 0xf9];
/// International E.164 43660123456 and 43660999.
const MSISDN: &[u8] = &[0x91, 0x34, 0x66, 0x10, 0x32, 0x54, 0xf6];
const NODE: &[u8] = &[0x91, 0x34, 0x66, 0x90, 0x99];

pub(crate) struct Example {
    pub(crate) operation: i32,
    context: (u8, u8),
    argument: Vec<u8>,
    pub(crate) imsi: Option<&'static str>,
}

pub(crate) fn message(example: &Example) -> Vec<u8> {
    begin(
        example.context,
        u8::try_from(example.operation).unwrap(),
        &example.argument,
    )
}

fn seq(parts: &[Vec<u8>]) -> Vec<u8> {
    ber(0x30, &parts.concat())
}

/// One message for each operation, as TS 29.002 §17.6 writes arguments of version 2 and 3.
pub(crate) fn examples() -> Vec<Example> {
    let imsi = Some("232010123456789");
    let example = |operation, context, argument, imsi| Example {
        operation,
        context,
        argument,
        imsi,
    };
    // SMS-SUBMIT: reference, destination 1234, text of one letter.
    let submit = [0x01, 0, 4, 0x91, 0x21, 0x43, 0, 0, 1, 0x61];
    let from_mobile = seq(&[ber(0x84, NODE), ber(0x82, MSISDN), ber(4, &submit)]);
    // SMS-DELIVER from 1234 at a moment of 2024, text of one letter.
    let deliver = [
        0x04, 4, 0x91, 0x21, 0x43, 0, 0, 0x42, 0x10, 0x10, 0, 0, 0, 0, 1, 0x61,
    ];
    let to_mobile = seq(&[ber(0x80, IMSI), ber(0x84, NODE), ber(4, &deliver)]);
    vec![
        example(
            2,
            (1, 3),
            seq(&[ber(4, IMSI), ber(0x81, NODE), ber(4, NODE)]),
            imsi,
        ),
        example(3, (2, 3), ber(0xa3, &ber(4, IMSI)), imsi),
        example(
            4,
            (3, 3),
            seq(&[ber(0x80, IMSI), ber(0x81, NODE), ber(0x82, MSISDN)]),
            imsi,
        ),
        example(7, (16, 3), seq(&[ber(0x80, IMSI), ber(0x81, MSISDN)]), imsi),
        example(8, (16, 3), seq(&[ber(0x80, IMSI)]), imsi),
        example(
            22,
            (5, 3),
            seq(&[ber(0x80, MSISDN), ber(0x83, &[0]), ber(0x86, NODE)]),
            None,
        ),
        example(
            23,
            (32, 3),
            seq(&[ber(4, IMSI), ber(4, NODE), ber(4, &[4, 10, 0, 0, 1])]),
            imsi,
        ),
        example(24, (33, 3), seq(&[ber(0x80, IMSI)]), imsi),
        example(43, (13, 2), ber(4, IMSI), None),
        example(44, (25, 3), to_mobile, imsi),
        example(
            45,
            (20, 3),
            seq(&[ber(0x80, MSISDN), ber(0x81, &[0xff]), ber(0x82, NODE)]),
            None,
        ),
        example(46, (21, 3), from_mobile, None),
        example(
            47,
            (20, 3),
            seq(&[ber(4, MSISDN), ber(4, NODE), ber(0x0a, &[1])]),
            None,
        ),
        example(56, (14, 2), ber(4, IMSI), imsi),
        example(56, (14, 3), seq(&[ber(0x80, IMSI), ber(2, &[1])]), imsi),
        example(57, (18, 3), seq(&[ber(4, IMSI)]), imsi),
        example(
            59,
            (19, 2),
            seq(&[ber(4, &[15]), ber(4, &[0xaa, 0x18, 0xa]), ber(0x80, MSISDN)]),
            None,
        ),
        example(64, (23, 2), seq(&[ber(4, MSISDN), ber(4, NODE)]), None),
        example(66, (24, 3), seq(&[ber(0x80, IMSI), ber(0x0a, &[0])]), imsi),
        example(
            67,
            (27, 3),
            ber(0xa3, &[ber(4, IMSI), ber(0x80, NODE)].concat()),
            imsi,
        ),
        example(
            70,
            (28, 3),
            seq(&[ber(0x80, IMSI), ber(0xa2, &ber(0x80, &[]))]),
            imsi,
        ),
        example(
            71,
            (29, 3),
            seq(&[
                ber(0xa0, &ber(0x81, MSISDN)),
                ber(0xa1, &ber(0x80, &[])),
                ber(0x83, NODE),
            ]),
            None,
        ),
    ]
}

fn fields(operation: i32, argument: &[u8]) -> Fields<'_> {
    let element = ss7_proto::ber::Elements::new(argument).next().unwrap().unwrap();
    Fields::read(operation, element)
}

#[test]
fn begin_by_hand() {
    let examples = examples();
    let octets = message(&examples[0]);
    let transaction = Transaction::parse(&octets).unwrap();
    assert_eq!(transaction.message_type, MessageType::Begin);
    assert_eq!(
        transaction.originating.unwrap().octets(),
        [0xde, 0xad, 0xbe, 0xef]
    );
    assert_eq!(transaction.destination, None);
    let context = transaction.context.unwrap();
    assert_eq!(context.to_string(), "0.4.0.0.1.0.1.3");
    assert_eq!(context.map(), Some((1, 3)));
    let mut components = transaction.components;
    let invoke = components.next().unwrap().unwrap();
    assert_eq!(invoke.component_type, ComponentType::Invoke);
    assert_eq!(invoke.invoke_id, Some(1));
    assert_eq!(
        invoke.operation,
        Some(OperationCode::Local(operation::UPDATE_LOCATION))
    );
    let fields = Fields::read(2, invoke.parameter.unwrap());
    assert_eq!(fields.imsi.unwrap().to_string(), "232010123456789");
    assert_eq!(fields.msc.unwrap().number.to_string(), "43660999");
    assert_eq!(fields.vlr.unwrap().number.to_string(), "43660999");
    assert!(components.next().is_none());
}

#[test]
fn every_operation_leads_to_its_fields() {
    for example in examples() {
        let octets = message(&example);
        let transaction = Transaction::parse(&octets).unwrap();
        let invoke = { transaction.components }.next().unwrap().unwrap();
        assert!(operation::name(example.operation).is_some());
        let fields = Fields::read(example.operation, invoke.parameter.unwrap());
        let imsi = match fields.sm_rp_da {
            Some(SmRpAddress::Imsi(imsi)) => Some(imsi),
            _ => fields.imsi,
        };
        assert_eq!(
            imsi.map(|imsi| imsi.to_string()).as_deref(),
            example.imsi,
            "{}",
            example.operation
        );
        assert_ne!(fields, Fields::default(), "{}", example.operation);
    }
}

#[test]
fn short_messages_name_both_ends() {
    let examples = examples();
    let from_mobile = examples.iter().find(|example| example.operation == 46).unwrap();
    let fields = fields(46, &from_mobile.argument);
    let Some(SmRpAddress::ServiceCentre(centre)) = fields.sm_rp_da else {
        panic!()
    };
    assert_eq!(centre.number.to_string(), "43660999");
    let Some(SmRpAddress::Msisdn(msisdn)) = fields.sm_rp_oa else {
        panic!()
    };
    assert_eq!(msisdn.number.to_string(), "43660123456");
    assert_eq!(fields.sm_rp_ui.unwrap()[0], 1);
}

#[test]
fn versions_differ_in_the_tag_around_the_argument() {
    let alone = ber(4, IMSI);
    assert_eq!(fields(3, &alone).imsi.unwrap().to_string(), "232010123456789");
    let with_lmsi = ber(0x30, &[ber(4, IMSI), ber(4, &[1, 2, 3, 4])].concat());
    assert_eq!(
        fields(3, &ber(0xa3, &with_lmsi)).imsi.unwrap().to_string(),
        "232010123456789"
    );
    assert_eq!(
        fields(67, &seq(&[ber(4, IMSI), ber(4, NODE)]))
            .vlr
            .unwrap()
            .number
            .to_string(),
        "43660999"
    );
    assert_eq!(
        fields(43, &seq(&[ber(4, IMSI)])).imei.unwrap().to_string(),
        "232010123456789"
    );
    // An operation that the table lacks.
    assert_eq!(fields(99, &alone), Fields::default());
}

#[test]
fn indefinite_lengths_read_the_same() {
    let invoke = [
        &[0xa1, 0x80][..],
        &ber(2, &[1]),
        &ber(2, &[45]),
        &[0x30, 0x80],
        &ber(0x80, MSISDN),
        &[0; 4],
    ]
    .concat();
    let octets = [&[0x62, 0x80, 0x48, 1, 7, 0x6c, 0x80][..], &invoke, &[0; 4]].concat();
    let transaction = Transaction::parse(&octets).unwrap();
    let invoke = { transaction.components }.next().unwrap().unwrap();
    let fields = Fields::read(45, invoke.parameter.unwrap());
    assert_eq!(fields.msisdn.unwrap().number.to_string(), "43660123456");
}

#[test]
fn nesting_and_lengths_that_lie() {
    for tag in [0x62, 0x65, 0x6c, 0x30] {
        let octets = [&[0x62, 0x80][..], &[tag, 0x80].repeat(1000)].concat();
        assert_eq!(
            Transaction::parse(&octets).unwrap_err(),
            Fault::Ber(BerFault::Depth)
        );
    }
    // Definite lengths nest as deep as they like: no walk enters what it does not know.
    let mut octets = vec![0x30, 0];
    for _ in 0..40 {
        octets = ber(0x30, &octets);
    }
    let argument = octets;
    assert!(Transaction::parse(&begin((1, 3), 2, &argument)).is_ok());
    assert_eq!(Transaction::parse(&[]).unwrap_err(), Fault::Empty);
    assert_eq!(
        Transaction::parse(&[0x63, 0]).unwrap_err(),
        Fault::MessageType(0x63)
    );
    assert_eq!(Transaction::parse(&[0x62, 0]).unwrap_err(), Fault::TransactionId);
    assert_eq!(
        Transaction::parse(&[0x62, 2, 0x48, 0]).unwrap_err(),
        Fault::TransactionId
    );
    assert_eq!(
        Transaction::parse(&[0x62, 7, 0x48, 5, 1, 2, 3, 4, 5]).unwrap_err(),
        Fault::TransactionId
    );
    assert_eq!(
        Transaction::parse(&[0x65, 3, 0x48, 1, 1]).unwrap_err(),
        Fault::TransactionId
    );
    let whole = message(&examples()[0]);
    for length in 1..whole.len() {
        assert!(Transaction::parse(&whole[..length]).is_err());
    }
}

#[test]
fn ends_results_and_aborts() {
    let result = ber(
        0xa2,
        &[ber(2, &[1]), seq(&[ber(2, &[45]), seq(&[ber(4, IMSI)])])].concat(),
    );
    let error = ber(0xa3, &[ber(2, &[2]), ber(2, &[27])].concat());
    let reject = ber(0xa4, &[ber(2, &[3]), ber(0x81, &[1])].concat());
    let octets = ber(
        0x64,
        &[ber(0x49, &[1, 2]), ber(0x6c, &[result, error, reject].concat())].concat(),
    );
    let transaction = Transaction::parse(&octets).unwrap();
    assert_eq!(transaction.destination.unwrap().octets(), [1, 2]);
    let components: Vec<_> = transaction.components.map(Result::unwrap).collect();
    assert_eq!(components[0].operation, Some(OperationCode::Local(45)));
    assert_eq!(
        (components[1].component_type, components[1].error),
        (ComponentType::ReturnError, Some(27))
    );
    assert_eq!(components[2].component_type, ComponentType::Reject);
    let abort = ber(0x67, &[ber(0x49, &[9]), ber(0x4a, &[1])].concat());
    assert_eq!(Transaction::parse(&abort).unwrap().abort_cause, Some(1));
}

#[test]
fn ansi_messages() {
    // Query with permission, one Invoke (last) of IS-41's REGNOT: private operation 9, 13.
    let parameters = ber(0xf2, &ber(0x88, &[1, 2]));
    let invoke = ber(0xe9, &[ber(0xcf, &[5]), ber(0xd1, &[9, 13]), parameters].concat());
    let octets = ber(0xe2, &[ber(0xc7, &[1, 2, 3, 4]), ber(0xe8, &invoke)].concat());
    let transaction = Transaction::parse(&octets).unwrap();
    assert!(transaction.ansi);
    assert_eq!(transaction.message_type, MessageType::Begin);
    assert_eq!(transaction.originating.unwrap().octets(), [1, 2, 3, 4]);
    let component = { transaction.components }.next().unwrap().unwrap();
    assert_eq!(component.invoke_id, Some(5));
    assert_eq!(component.operation, Some(OperationCode::Private(0x090d)));
    // A national operation whose family has the bit for a reply.
    let invoke = ber(0xe9, &[ber(0xcf, &[5]), ber(0xd0, &[0x84, 1])].concat());
    let octets = ber(0xe2, &[ber(0xc7, &[1, 2, 3, 4]), ber(0xe8, &invoke)].concat());
    let component = { Transaction::parse(&octets).unwrap().components }
        .next()
        .unwrap()
        .unwrap();
    assert_eq!(component.operation, Some(OperationCode::National(0x0401)));
    let conversation = ber(0xe5, &ber(0xc7, &[1, 2, 3, 4, 5, 6, 7, 8]));
    let conversation = Transaction::parse(&conversation).unwrap();
    assert_eq!(conversation.destination.unwrap().octets(), [5, 6, 7, 8]);
    assert_eq!(
        Transaction::parse(&ber(0xe5, &ber(0xc7, &[1, 2, 3, 4]))).unwrap_err(),
        Fault::TransactionId
    );
    assert_eq!(
        Transaction::parse(&ber(0xe2, &[])).unwrap_err(),
        Fault::TransactionId
    );
}
