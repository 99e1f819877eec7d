//! INAP, CAP and ISUP: the fields of InitialDP, what answers it, the edit of an IAM, octets that lie.

use ss7_proto::Digits;
use ss7_proto::ber::Elements;
use ss7_proto::cap::{self, Calling, InitialDp, operation};
use ss7_proto::isup::{AnsiIam, Cause, Fault, Iam, Number, TooLong, write_release};
use ss7_proto::tcap::{Answer, ApplicationContext, Outcome, Transaction};

use crate::exercise::{begin_in, ber, iam, iam_of_ansi};

/// The generic context of CAP version 4, `0.4.0.0.1.23.3.4`; the one of ETSI's INAP, `0.4.0.1.1.1.0.0`.
pub(crate) const CAP_4: &[u8] = &[4, 0, 0, 1, 23, 3, 4];
pub(crate) const CORE_INAP: &[u8] = &[4, 0, 1, 1, 1, 0, 0];

/// InitialDP of CAP with the parameters that number services read, and some that they do not.
pub(crate) fn initial_dp() -> Vec<u8> {
    let own = [
        [
            &[0x9f, 0x32, 8][..],
            &[0x32, 0x02, 0x01, 0x21, 0x43, 0x65, 0x87, 0xf9],
        ]
        .concat(),
        [&[0x9f, 0x36, 3][..], &[1, 2, 3]].concat(),
        [&[0x9f, 0x38, 5][..], &[0x81, 0x60, 0x46, 0x65, 0xf7]].concat(),
    ];
    ber(0x30, &[inap_parameters(), own.concat()].concat())
}

/// The parameters of it that INAP has too.
pub(crate) fn inap_parameters() -> Vec<u8> {
    let parts = [
        ber(0x80, &[100]),
        // National 664567, end of pulsing.
        ber(0x82, &[0x83, 0x10, 0x66, 0x54, 0x76, 0x0f]),
        ber(0x83, &[4, 0x13, 0x34, 0x66, 0x10, 0x32, 0x54]),
        ber(0x85, &[10]),
        ber(0xbb, &ber(0x80, &[0x80, 0x90, 0xa3])),
        ber(0x9c, &[12]),
    ];
    parts.concat()
}

/// What answers an InitialDP: Connect, Continue, ReleaseCall, an error.
pub(crate) fn answers(context: &[u8]) -> Vec<Vec<u8>> {
    let request = begin_in(context, 0, &initial_dp());
    let begin = Transaction::parse(&request).unwrap();
    let (mut connect, mut release) = (Vec::new(), Vec::new());
    cap::connect(&routed(), &mut connect);
    cap::release_call(Cause::UNALLOCATED, &mut release);
    let outcomes = [
        Outcome::Invoke(operation::CONNECT, &connect),
        Outcome::Invoke(operation::CONTINUE, &[]),
        Outcome::Invoke(operation::RELEASE_CALL, &release),
        Outcome::Error(cap::error::MISSING_PARAMETER),
    ];
    let write = |outcome| {
        let mut out = Vec::new();
        Answer {
            destination: begin.originating.unwrap(),
            context: begin.context,
            invoke_id: Some(1),
            outcome,
        }
        .write(&mut out);
        out
    };
    outcomes.map(write).to_vec()
}

/// Routing number D99 and a national number.
pub(crate) fn routed() -> Number {
    Number {
        nature: 8,
        indicators: Number::E164,
        digits: Digits::parse("d99664567f").unwrap(),
    }
}

fn read(operation: i32, argument: &[u8]) -> InitialDp<'_> {
    InitialDp::read(operation, Elements::new(argument).next().unwrap().unwrap())
}

fn digits(number: Option<Number>) -> String {
    number.map_or(String::new(), |number| number.digits.to_string())
}

#[test]
fn the_fields_of_initial_dp() {
    let octets = begin_in(CAP_4, 0, &initial_dp());
    let begin = Transaction::parse(&octets).unwrap();
    assert_eq!(begin.context, Some(ApplicationContext::new(CAP_4)));
    let invoke = { begin.components }.next().unwrap().unwrap();
    let fields = InitialDp::read(0, invoke.parameter.unwrap());
    assert_eq!(fields.service_key, Some(100));
    assert_eq!(
        (fields.called.unwrap().nature, &digits(fields.called)[..]),
        (3, "664567f")
    );
    let Some(Calling::Number(calling)) = fields.calling else {
        panic!("{fields:?}")
    };
    assert_eq!(
        (calling.nature, calling.is_e164(), calling.digits.to_string()),
        (4, true, "4366012345".to_owned())
    );
    assert_eq!(fields.imsi.unwrap().to_string(), "232010123456789");
    assert_eq!(fields.dialled.unwrap().number.to_string(), "0664567");
}

#[test]
fn short_messages_have_other_tags() {
    let parts = [
        ber(0x80, &[7]),
        ber(0x81, &[0x91, 0x34, 0x66, 0xf5]),
        ber(0x82, &[0x91, 0x34, 0x66, 0x10]),
        ber(0x84, &[0x32, 0x02, 0x01, 0x21, 0x43, 0x65, 0x87, 0xf9]),
    ];
    let argument = ber(0x30, &parts.concat());
    let fields = read(operation::INITIAL_DP_SMS, &argument);
    assert_eq!(fields.service_key, Some(7));
    assert_eq!(fields.dialled.unwrap().number.to_string(), "43665");
    let Some(Calling::Address(calling)) = fields.calling else {
        panic!("{fields:?}")
    };
    assert_eq!(calling.number.to_string(), "436601");
    assert_eq!(fields.imsi.unwrap().to_string(), "232010123456789");
    assert_eq!((fields.called, read(99, &argument)), (None, InitialDp::default()));
}

#[test]
fn dialled_digits_of_inap_count_where_the_called_number_is_absent() {
    let dialled = ber(0x81, &[0x03, 0x10, 0x21, 0x43]);
    let called = ber(0x82, &[0x03, 0x10, 0x65, 0x87]);
    assert_eq!(digits(read(0, &ber(0x30, &dialled)).called), "1234");
    let both = ber(0x30, &[dialled.clone(), called].concat());
    assert_eq!(digits(read(0, &both).called), "5678");
    let broken = ber(0x30, &[dialled, ber(0x82, &[0x83])].concat());
    assert_eq!(digits(read(0, &broken).called), "1234");
}

#[test]
fn arguments_that_lie() {
    // Nested 1,000 deep, with open and with definite lengths; behind the service key what was read stays.
    let open = [&[0x30, 0x80, 0x80, 1, 5][..], &[0xa6, 0x80].repeat(1000), &[0; 4]].concat();
    assert!(Elements::new(&open).next().unwrap().is_err());
    let mut deep = vec![0xa6, 0];
    for _ in 0..1000 {
        let length = u16::try_from(deep.len()).unwrap().to_be_bytes();
        deep = [&[0xa6, 0x82][..], &length, &deep].concat();
    }
    let content = [ber(0x80, &[5]), deep, ber(0x82, &[3, 0x10, 0x21])].concat();
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    let argument = [&[0x30, 0x82][..], &length, &content].concat();
    let fields = read(0, &argument);
    assert_eq!((fields.service_key, &digits(fields.called)[..]), (Some(5), "12"));
    // A service key without octets, below 0, of five octets; another argument than a sequence.
    for key in [&[][..], &[0xff], &[1, 0, 0, 0, 0]] {
        assert_eq!(read(0, &ber(0x30, &ber(0x80, key))).service_key, None, "{key:?}");
    }
    assert_eq!(read(0, &ber(0x31, &ber(0x80, &[5]))), InitialDp::default());
    let cut = initial_dp();
    for length in 0..cut.len() {
        assert!(
            Elements::new(&cut[..length])
                .next()
                .is_none_or(|one| one.is_err())
        );
    }
}

/// Octets that pycrate 0.7.0 (PyPI) reads as the same messages.
#[test]
fn answers_are_written_as_other_encoders_write_them() {
    let hex = |octets: &[u8]| {
        octets
            .iter()
            .map(|octet| format!("{octet:02x}"))
            .collect::<String>()
    };
    let [connect, go_on, release, error] = &answers(CAP_4)[..] else {
        panic!()
    };
    assert!(
        hex(connect).ends_with("6c15a113020101020114300ba009040708109d694665f7"),
        "{}",
        hex(connect)
    );
    assert!(hex(go_on).ends_with("6c08a10602010102011f"), "{}", hex(go_on));
    assert!(
        hex(release).ends_with("6c0ca10a02010102011604028381"),
        "{}",
        hex(release)
    );
    assert!(hex(error).ends_with("6c08a306020101020107"), "{}", hex(error));
}

#[test]
fn an_iam_reads_and_is_written_with_another_number() {
    let octets = iam();
    let read = Iam::parse(&octets).unwrap();
    assert_eq!(read.circuit(), [0x23, 1]);
    assert_eq!(
        (digits(read.called()), digits(read.calling()), read.is_queried()),
        ("664567f".to_owned(), "4366012345".to_owned(), false)
    );
    // The same number: octet for octet.
    let mut same = Vec::new();
    read.write_with_called(&read.called().unwrap(), false, &mut same)
        .unwrap();
    assert_eq!(same, octets);
    for length in 0..=40 {
        let number = Number {
            digits: Digits::parse(&"1234567890".repeat(4)[..length]).unwrap(),
            ..routed()
        };
        let mut out = vec![0xaa];
        read.write_with_called(&number, true, &mut out).unwrap();
        let again = Iam::parse(&out[1..]).unwrap();
        assert_eq!((again.called(), again.calling()), (Some(number), read.calling()));
        assert!(again.is_queried(), "its status is: ported");
        // Fixed part and optional part, but for pointer and status.
        assert_eq!(out[1..9], octets[..8]);
        let optional = octets.len() - 17;
        let tail = &out[out.len() - optional..];
        assert_eq!(tail[..optional - 2], octets[17..octets.len() - 2]);
        assert_eq!(tail[optional - 2..], [0x83, 0]);
    }
}

#[test]
fn pointers_and_lengths_that_lie() {
    let octets = iam();
    for length in 0..octets.len() {
        // Without its whole optional part it is an IAM still.
        assert_eq!(Iam::parse(&octets[..length]).is_ok(), length >= 18, "{length}");
    }
    let with = |at: usize, octet: u8| {
        let mut changed = octets.clone();
        changed[at] = octet;
        changed
    };
    for (changed, fault) in [
        (with(2, 6), Fault::MessageType),
        // Into the pointers, past the end, a length past the end, into the called party number.
        (with(8, 0), Fault::Pointer),
        (with(8, 1), Fault::Pointer),
        (with(8, 0xff), Fault::Pointer),
        (with(10, 0xff), Fault::Pointer),
        (with(9, 3), Fault::Pointer),
        (with(9, 0xff), Fault::Pointer),
        // The optional part before the called party number.
        (
            b"\x23\x01\x01\x00\x60\x01\x0a\x00\x06\x01\x8d\x01\x81\x00\x03\x03\x10\x21".to_vec(),
            Fault::Pointer,
        ),
    ] {
        assert_eq!(Iam::parse(&changed).unwrap_err(), fault);
    }
    // An odd digit without octet; an optional parameter that ends past the message; no optional part.
    let odd = [&octets[..8], &[2, 0, 2, 0x83, 0x10]].concat();
    assert_eq!(Iam::parse(&odd).unwrap().called(), None);
    assert_eq!(Iam::parse(&with(18, 0xff)).unwrap().calling(), None);
    let none = Iam::parse(&odd).unwrap();
    assert_eq!((none.calling(), none.is_queried()), (None, false));
    // A pointer of one octet does not reach behind a longer number.
    let far = [
        &[0x23, 1, 1, 0, 0x60, 1, 10, 0, 2, 255, 3, 3, 0x10, 0x21][..],
        &[0; 251],
    ]
    .concat();
    let far = Iam::parse(&far).unwrap();
    let mut out = vec![7];
    assert_eq!(far.write_with_called(&routed(), false, &mut out), Err(TooLong));
    assert_eq!(out, [7], "nothing was appended");
}

#[test]
fn an_iam_of_ansi_gets_a_location_routing_number() {
    let octets = iam_of_ansi();
    let read = AnsiIam::parse(&octets).unwrap();
    assert_eq!(read.circuit(), [0x23, 1]);
    assert_eq!(
        (digits(read.called()), digits(read.calling()), read.is_queried()),
        ("6605550123".to_owned(), "6605559876".to_owned(), false)
    );
    let dialled = read.called().unwrap();
    let routing = Number {
        digits: Digits::parse("3125550000").unwrap(),
        ..dialled
    };
    // Bit M, the called number, and a generic address in front of the optional part.
    let mut out = vec![0xaa];
    read.write_queried(&routing, Some(&dialled), &mut out).unwrap();
    let wanted = [
        &[0xaa, 0x23, 1, 1, 0, 0x60, 0x11, 10, 3, 6, 13][..],
        &[3, 0x80, 0x90, 0xa2],
        &[7, 3, 0x10, 0x13, 0x52, 0x55, 0x00, 0x00],
        &[0xc0, 8, 0xc0, 3, 0x10, 0x66, 0x50, 0x55, 0x10, 0x32],
        &octets[22..],
    ]
    .concat();
    assert_eq!(out, wanted);
    let again = AnsiIam::parse(&out[1..]).unwrap();
    assert_eq!((again.is_queried(), again.ported()), (true, Some(dialled)));
    // Without an optional part it gets one; without a ported number none.
    let mut bare = octets[..22].to_vec();
    bare[9] = 0;
    let read = AnsiIam::parse(&bare).unwrap();
    assert_eq!((read.calling(), read.ported()), (None, None));
    let (mut ported, mut alone) = (Vec::new(), Vec::new());
    read.write_queried(&routing, Some(&dialled), &mut ported).unwrap();
    read.write_queried(&routing, None, &mut alone).unwrap();
    assert!(ported.ends_with(&[0x10, 0x32, 0]));
    assert_eq!((ported[9], alone[9], alone.len()), (13, 0, bare.len()));
    // The called number before the user service information, whose pointer moves.
    let swapped = [
        &octets[..7],
        &[11, 2, 13],
        &octets[14..22],
        &octets[10..14],
        &octets[22..],
    ]
    .concat();
    let read = AnsiIam::parse(&swapped).unwrap();
    let shorter = Number {
        digits: Digits::parse("31255").unwrap(),
        ..dialled
    };
    let mut out = Vec::new();
    read.write_queried(&shorter, None, &mut out).unwrap();
    assert_eq!(out[7..10], [9, 2, 11]);
    assert_eq!(AnsiIam::parse(&out).unwrap().calling(), read.calling());
}

#[test]
fn pointers_of_an_iam_of_ansi_that_lie() {
    let octets = iam_of_ansi();
    for length in 0..octets.len() {
        assert_eq!(
            AnsiIam::parse(&octets[..length]).is_ok(),
            length >= 23,
            "{length}"
        );
    }
    // Each into the pointers, past the end, into another parameter.
    for (at, octet) in [
        (7, 0),
        (7, 2),
        (7, 0xff),
        (7, 7),
        (8, 1),
        (8, 0xff),
        (8, 2),
        (9, 1),
        (9, 0xff),
        (9, 5),
        (10, 0xff),
        (10, 4),
        (14, 0xff),
    ] {
        let mut changed = octets.clone();
        changed[at] = octet;
        assert_eq!(
            AnsiIam::parse(&changed).unwrap_err(),
            Fault::Pointer,
            "{at}: {octet}"
        );
    }
}

#[test]
fn a_release_has_its_cause_alone() {
    let mut out = Vec::new();
    write_release([0x23, 1], Cause::UNALLOCATED, &mut out);
    assert_eq!(out, [0x23, 1, 0x0c, 2, 0, 2, 0x83, 0x81]);
}
