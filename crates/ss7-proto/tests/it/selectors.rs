//! Selectors that look at the content of a message: calling party, operation, application context, numbers of MAP.

use ss7_proto::Digits;
use ss7_proto::gtt::{BuildError, Circumstances, Content, Number, Selector, Table, TableBuilder};
use ss7_proto::point_code::PointCode;
use ss7_proto::sccp::{self, Address, AddressBuf, Format};
use ss7_proto::tcap::{ContextPrefix, element};

use crate::exercise::begin_in;
use crate::gtt::{ANY, address, digits, octets, solitary, to};

/// A table of one prefix, `43`, for each selector; the calling party has 43664, the message invokes an operation.
fn selecting(selectors: &[Selector], prefix: &str) -> Table {
    let mut builder = TableBuilder::new();
    let group = builder.group(solitary(1));
    for selector in selectors {
        let set = builder.set(*selector);
        builder.prefix(set, digits(prefix), to(group));
    }
    builder.build().unwrap()
}

/// The set for a message, and how many digits of which number decided.
fn selected(
    table: &Table,
    called: &AddressBuf,
    opc: u32,
    data: &[u8],
) -> Option<(u16, Option<Number>, usize)> {
    let (called, calling) = (octets(called), octets(&address("43664")));
    let unitdata = sccp::Unitdata {
        message_type: sccp::MessageType::Udt,
        class_or_cause: 0,
        hop_counter: 0,
        called: &called,
        calling: &calling,
        data,
        optional: &[],
    };
    let message = Circumstances {
        opc: Some(PointCode(opc)),
        content: Some(Content::new(&unitdata, Format::Itu)),
    };
    let called = Address::parse(&called, Format::Itu).unwrap();
    let found = table.translate_within(&called, &message)?;
    // Nothing that names content fits where it is not known.
    let bare = table.translate(&called);
    assert!(bare.is_none_or(|bare| bare.number.is_none()));
    Some((found.set.0, found.number, found.digits))
}

#[test]
fn a_selector_may_name_what_a_message_has_beside_its_title() {
    let update = Selector {
        ssn: Some(6),
        operation: Some(2),
        ..ANY
    };
    let vlr = Selector { ssn: Some(7), ..ANY };
    let from = Selector {
        opc: Some(PointCode(9)),
        ..ANY
    };
    let table = selecting(&[ANY, vlr, from, update], "43");
    assert!(table.selects_by_content());
    for (ssn, opc, operation, wanted) in [
        (6, 1, None, 0),
        (7, 1, Some(2), 1),
        (8, 9, Some(2), 2),
        (6, 9, Some(2), 3),
        (6, 9, Some(3), 2),
    ] {
        let mut called = address("43660");
        called.ssn = Some(ssn);
        let data = operation.map_or_else(Vec::new, |code| begin_in(&[], code, &[]));
        let (set, ..) = selected(&table, &called, opc, &data).unwrap();
        assert_eq!(set, wanted, "{ssn} {opc} {operation:?}");
    }
}

#[test]
fn the_longest_calling_prefix_and_context_decide() {
    let calling = |text: &str| Selector {
        calling: Some(digits(text)),
        ..ANY
    };
    let context = |text: &str| Selector {
        context: ContextPrefix::parse(text),
        ..ANY
    };
    let table = selecting(
        &[
            ANY,
            calling("43"),
            calling("4366"),
            calling("49"),
            context("0.4.0.0.1.0.1"),
        ],
        "43",
    );
    assert_eq!(
        selected(&table, &address("43660"), 1, b"other"),
        Some((2, None, 2))
    );
    let table = selecting(
        &[
            ANY,
            context("0.4.0"),
            context("0.4.0.0.1.0.1.3"),
            context("0.4.0.0.1.0.1"),
        ],
        "43",
    );
    for (octets, wanted) in [
        (&[4, 0, 0, 1, 0, 1, 3][..], 2),
        (&[4, 0, 0, 1, 0, 1, 2], 3),
        (&[4, 0, 0, 1, 0, 14, 3], 1),
        (&[4, 1], 0),
        (&[], 0),
    ] {
        let data = begin_in(octets, 2, &[]);
        let found = selected(&table, &address("43660"), 1, &data);
        assert_eq!(found.unwrap().0, wanted, "{octets:02x?}");
    }
    // Several selectors of one set, in one table with another.
    let mut builder = TableBuilder::new();
    let group = builder.group(solitary(1));
    let (any, set) = (builder.set(ANY), builder.set(calling("49")));
    builder.selector(set, calling("4366"));
    for set in [any, set] {
        builder.prefix(set, Digits::EMPTY, to(group));
    }
    let table = builder.build().unwrap();
    assert_eq!(selected(&table, &address("1"), 1, &[]), Some((1, None, 0)));
    let mut twice = TableBuilder::new();
    let set = twice.set(calling("43"));
    twice.selector(set, calling("43"));
    assert!(matches!(twice.build(), Err(BuildError::Selector(_))));
}

/// Translations of a number within MAP count where there is one for it; what has none is another set's.
#[test]
fn translations_may_be_about_a_number_of_map() {
    let of = |number| Selector {
        number: Some(number),
        ..ANY
    };
    // mo-ForwardSM: service centre 4911, MSISDN 4366, SUBMIT to 4377; mt-ForwardSM: IMSI 2321, service centre 4911, DELIVER.
    let argument = |parts: &[(u8, &[u8])]| {
        let mut out = Vec::new();
        element(0x30, &mut out, |out| {
            for (tag, value) in parts {
                element(*tag, out, |out| out.extend_from_slice(value));
            }
        });
        out
    };
    let submit = [1, 0, 4, 0x91, 0x34, 0x77, 0, 0, 0];
    let mo = argument(&[
        (0x84, &[0x91, 0x94, 0x11]),
        (0x82, &[0x91, 0x34, 0x66]),
        (4, &submit),
    ]);
    let mt = argument(&[(0x80, &[0x32, 0x12]), (0x84, &[0x91, 0x94, 0x11]), (4, &submit)]);
    let routing = argument(&[
        (0x80, &[0x91, 0x34, 0x66]),
        (0x81, &[0xff]),
        (0x82, &[0x91, 0x94, 0x11]),
    ]);
    let update = argument(&[
        (4, &[0x32, 0x12]),
        (0x81, &[0x91, 0x34, 0x66]),
        (4, &[0x91, 0x34, 0x66]),
    ]);
    let map = [4, 0, 0, 1, 0, 21, 3];
    let (number, all) = (
        address("1"),
        [
            Number::Imsi,
            Number::Msisdn,
            Number::SmRpDa,
            Number::SmRpOa,
            Number::TpDa,
        ],
    );
    for (operation, argument, wanted) in [
        (2, &update, [Some("2321"), None, None, None, None]),
        (45, &routing, [None, Some("4366"), None, None, None]),
        (46, &mo, [None, None, Some("4911"), Some("4366"), Some("4377")]),
        (44, &mt, [None, None, Some("2321"), Some("4911"), None]),
        (71, &mo, [None; 5]),
    ] {
        for (one, wanted) in all.into_iter().zip(wanted) {
            let data = begin_in(&map, operation, argument);
            let prefix = wanted.unwrap_or_default();
            let table = selecting(&[ANY, of(one)], prefix);
            let found = selected(&table, &number, 1, &data);
            match wanted {
                Some(_) => assert_eq!(found, Some((1, Some(one), 4)), "{operation} {one}"),
                None => assert_eq!(found, Some((0, None, 0)), "{operation} {one}"),
            }
            // Another number has no translation in the set: the set of the title decides.
            let title = Selector {
                indicator: Some(4),
                nature: Some(4),
                ..ANY
            };
            let table = selecting(&[title, of(one)], "99");
            assert_eq!(selected(&table, &address("99"), 1, &data), Some((0, None, 2)));
        }
    }
    // The same codes in CAP are other operations.
    let table = selecting(&[of(Number::Imsi)], "2321");
    assert_eq!(
        selected(&table, &number, 1, &begin_in(&[4, 0, 0, 1, 0, 50, 1], 2, &update)),
        None
    );
    let calling = selecting(&[of(Number::Calling)], "4366");
    assert_eq!(
        selected(&calling, &number, 1, &[]),
        Some((0, Some(Number::Calling), 4))
    );
}
