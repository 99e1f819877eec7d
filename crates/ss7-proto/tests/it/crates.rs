//! The crates `m3ua` and `sccp` as judges: what one side writes the other reads alike, and what both accept they read alike.

use m3ua::{M3uaMessage, ProtocolData};
use proptest::prelude::*;
use sccp::{GlobalTitle, SccpAddress, SccpMessage};
use ss7_proto::m3ua::{Data, Message as M3ua, ServiceIndicator};
use ss7_proto::point_code::PointCode;
use ss7_proto::sccp::{Address, AddressBuf, Format, GlobalTitleBuf, Message, MessageType, Unitdata};
use ss7_proto::{Digits, sccp as ours};

const TYPES: [MessageType; 6] = [
    MessageType::Udt,
    MessageType::Udts,
    MessageType::Xudt,
    MessageType::Xudts,
    MessageType::Ludt,
    MessageType::Ludts,
];

/// A title of decimal digits: the judge has other letters for the other semi-octets (docs/ss7.md).
fn title() -> impl Strategy<Value = GlobalTitleBuf> {
    let fields = (1..=4_u8, any::<u8>(), 0..=15_u8, 0..=0x7f_u8, "[0-9]{1,15}");
    fields.prop_map(
        |(indicator, translation_type, numbering_plan, nature, digits)| GlobalTitleBuf {
            indicator,
            translation_type,
            numbering_plan,
            nature,
            digits: Digits::parse(&digits).unwrap(),
        },
    )
}

fn address() -> impl Strategy<Value = AddressBuf> {
    use proptest::option::of;
    let fields = (of(0..0x4000_u32), of(any::<u8>()), any::<bool>(), of(title()));
    fields.prop_map(|(point_code, ssn, route_on_title, title)| AddressBuf {
        point_code: point_code.map(PointCode),
        ssn,
        route_on_title,
        national: false,
        title,
    })
}

fn written(address: &AddressBuf) -> Vec<u8> {
    let mut out = Vec::new();
    address.write(Format::Itu, &mut out).unwrap();
    out
}

/// What both sides know of an address, in words of their own made alike.
type Known = (Option<u32>, Option<u8>, bool, Option<[u8; 4]>, String);

fn read_by_judge(address: &SccpAddress) -> Known {
    let (title, digits) = match &address.global_title {
        GlobalTitle::NoTitle => (None, ""),
        GlobalTitle::Gt0001 {
            nature_of_address,
            digits,
            ..
        } => (Some([1, 0, 0, *nature_of_address]), &**digits),
        GlobalTitle::Gt0010 {
            translation_type,
            digits,
        } => (Some([2, *translation_type, 0, 0]), &**digits),
        GlobalTitle::Gt0011 {
            translation_type,
            numbering_plan,
            digits,
            ..
        } => (Some([3, *translation_type, *numbering_plan, 0]), &**digits),
        GlobalTitle::Gt0100 {
            translation_type,
            numbering_plan,
            nature_of_address,
            digits,
            ..
        } => (
            Some([4, *translation_type, *numbering_plan, *nature_of_address]),
            &**digits,
        ),
    };
    (
        address.point_code.map(u32::from),
        address.ssn.as_ref().map(sccp::SubsystemNumber::value),
        !address.route_on_ssn,
        title,
        digits.to_owned(),
    )
}

fn read_here(octets: &[u8]) -> Option<Known> {
    let address = Address::parse(octets, Format::Itu).ok()?;
    let digits = match &address.title {
        None => String::new(),
        Some(title) => title.digits()?.to_string(),
    };
    let title = address.title.map(|title| {
        [
            title.indicator,
            title.translation_type.unwrap_or_default(),
            title.numbering_plan.unwrap_or_default(),
            title.nature.unwrap_or_default(),
        ]
    });
    Some((
        address.point_code.map(|code| code.0),
        address.ssn,
        address.route_on_title,
        title,
        digits,
    ))
}

/// A digit too many where a reader cannot know: indicator 0010 does not say whether the last semi-octet is a filler.
fn without_filler(known: Option<Known>) -> Option<Known> {
    known.map(|(code, ssn, by_title, title, digits)| {
        let is_blind = title.is_some_and(|[indicator, ..]| indicator == 2);
        let digits = if is_blind {
            digits.trim_end_matches(['0', 'f']).to_owned()
        } else {
            digits
        };
        (code, ssn, by_title, title, digits)
    })
}

/// Class and message handling, or the return cause.
fn class_or_cause(message: &SccpMessage) -> u8 {
    match message {
        SccpMessage::Udt(one) => one.protocol_class | one.message_handling << 4,
        SccpMessage::Xudt(one) => one.protocol_class | one.message_handling << 4,
        SccpMessage::Ludt(one) => one.protocol_class | one.message_handling << 4,
        SccpMessage::Udts(one) => one.return_cause.value(),
        SccpMessage::Xudts(one) => one.return_cause.value(),
        SccpMessage::Ludts(one) => one.return_cause.value(),
    }
}

fn parsed(octets: &[u8]) -> Option<Unitdata<'_>> {
    match Message::parse(octets) {
        Ok(ours::Message::Unitdata(unitdata)) => Some(unitdata),
        _ => None,
    }
}

fn agree(octets: &[u8], judged: &SccpMessage) {
    let read = parsed(octets).unwrap();
    assert_eq!(read.data, judged.data());
    assert_eq!(
        read.class_or_cause,
        class_or_cause(judged),
        "{:?}",
        read.message_type
    );
    if let Some(hops) = judged.hop_counter() {
        assert_eq!(read.hop_counter, hops);
    }
    for (mine, theirs) in [
        (read.called, judged.called_party()),
        (read.calling, judged.calling_party()),
    ] {
        let (mine, theirs) = (read_here(mine), Some(read_by_judge(theirs)));
        assert_eq!(without_filler(mine), without_filler(theirs));
    }
}

proptest! {
    #[test]
    fn unitdata_is_read_alike(
        message_type in proptest::sample::select(&TYPES[..]),
        class_or_cause in 0..=14_u8,
        hop_counter in 1..=15_u8,
        called in address(),
        calling in address(),
        data in proptest::collection::vec(any::<u8>(), 2..200),
    ) {
        let (called, calling) = (written(&called), written(&calling));
        let is_service = matches!(message_type, MessageType::Udts | MessageType::Xudts | MessageType::Ludts);
        let class_or_cause = if is_service { class_or_cause } else { 0x80 | class_or_cause & 1 };
        let message = Unitdata {
            message_type,
            class_or_cause,
            hop_counter,
            called: &called,
            calling: &calling,
            data: &data,
            optional: &[],
        };
        let mut octets = Vec::new();
        message.write(&mut octets).unwrap();
        let judged = SccpMessage::decode(&octets).unwrap();
        agree(&octets, &judged);
        // What the judge writes of it is read here.
        let again = judged.encode().unwrap();
        agree(&again, &judged);
    }

    /// One octet is another: where both accept the message they read the same.
    #[test]
    fn changed_unitdata_is_read_alike_or_refused(
        called in address(),
        calling in address(),
        place in 5..40_usize,
        octet in any::<u8>(),
    ) {
        let (called, calling) = (written(&called), written(&calling));
        let mut octets = Vec::new();
        let message = crate::exercise::unitdata(&called, &calling, &[0xaa; 20]);
        message.write(&mut octets).unwrap();
        let place = place % octets.len();
        octets[place.max(5)] = octet;
        let (mine, theirs) = (parsed(&octets), SccpMessage::decode(&octets));
        if let (Some(mine), Ok(theirs)) = (mine, theirs) {
            assert_eq!(mine.data, theirs.data());
        }
    }

    #[test]
    fn data_of_m3ua_is_read_alike(
        routing_context in proptest::option::of(any::<u32>()),
        codes in (any::<u32>(), any::<u32>()),
        label in (0..=15_u8, 0..=3_u8, 0..=3_u8, any::<u8>()),
        user_data in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let (si, ni, mp, sls) = label;
        let mut octets = Vec::new();
        let data = Data {
            network_appearance: None,
            routing_context,
            opc: PointCode(codes.0),
            dpc: PointCode(codes.1),
            si: ServiceIndicator(si),
            ni,
            mp,
            sls,
            user_data: &user_data,
            correlation_id: None,
        };
        data.write(&mut octets);
        let judged = M3uaMessage::decode(&octets).unwrap();
        assert_eq!(judged.routing_context(), routing_context);
        let expected = ProtocolData::new(codes.0, codes.1, si, ni, mp, sls, user_data.clone());
        assert_eq!(judged.protocol_data().unwrap(), expected);
        let theirs = M3uaMessage::data(None, routing_context, expected, None).encode();
        assert_eq!(M3ua::parse(&theirs).unwrap().data(), Some(data));
        assert_eq!(theirs, octets);
    }
}
