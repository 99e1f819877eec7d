//! What a signal transfer point does with one MSU, without sockets: M3UA, SCCP, translation among a million numbers, the next
//! routing label, encoding.
//!
//! ```sh
//! cargo build --release -p ss7-proto --example relay_cost
//! for n in 1000 11000; do valgrind --tool=callgrind target/release/examples/relay_cost $n; done
//! ```
//!
//! The difference of the two counts of instructions by 10,000 is the cost of a message.

use std::io::{self, Write};

use ss7_proto::Digits;
use ss7_proto::gtt::{Change, Group, Member, Mode, Modification, Selector, Table, TableBuilder, Translation};
use ss7_proto::m3ua::{Data, Message, ServiceIndicator};
use ss7_proto::point_code::PointCode;
use ss7_proto::sccp::{self, Address, AddressBuf, Format, GlobalTitleBuf, Unitdata};

const NUMBERS: u64 = 1_000_000;

fn main() -> io::Result<()> {
    let count = std::env::args().nth(1).and_then(|count| count.parse().ok());
    let count: u64 = count.unwrap_or(1_000_000);
    let table = table();
    let messages: Vec<Vec<u8>> = (0..64).map(|n| message(n * 15_485_863 % NUMBERS)).collect();
    let (mut out, mut called) = (Vec::new(), Vec::new());
    let mut octets = 0;
    for n in 0..count {
        let message = &messages[(n % 64) as usize];
        out.clear();
        if relay(&table, message, &mut called, &mut out).is_some() {
            octets += out.len();
        }
    }
    writeln!(
        io::stdout(),
        "{count} messages, {octets} octets, {} octets of table",
        table.octets()
    )
}

/// Digits of the number with this index: spread over the numbers of a country.
fn number(index: u64) -> String {
    format!("43{:010}", index * 7_919 % 10_000_000_000)
}

fn table() -> Table {
    let mut builder = TableBuilder::new();
    let set = builder.set(Selector {
        indicator: Some(4),
        translation_type: Some(0),
        numbering_plan: Some(1),
        nature: Some(4),
        ..Selector::ANY
    });
    for code in 0..100 {
        let member = |point_code| Member {
            point_code: PointCode(point_code),
            ssn: None,
            weight: 1,
        };
        builder.group(Group {
            mode: Mode::LoadShared,
            members: vec![member(code), member(code + 1_000)],
        });
    }
    for index in 0..NUMBERS {
        let modification = Modification {
            prefix: Digits::parse("0").unwrap_or_default(),
            remove_prefix: 2,
            nature: Some(3),
            point_code: Change::Set(PointCode((index % 100) as u32)),
            ..Modification::default()
        };
        let translation = Translation {
            group: (index % 100) as u32,
            modification,
        };
        builder.prefix(
            set,
            Digits::parse(&number(index)).unwrap_or_default(),
            translation,
        );
    }
    builder.build().expect("the numbers differ")
}

/// A message of about 200 octets.
fn message(index: u64) -> Vec<u8> {
    let address = |ssn, text: &str| {
        let mut octets = Vec::new();
        let address = AddressBuf {
            ssn: Some(ssn),
            route_on_title: true,
            title: Some(GlobalTitleBuf {
                indicator: 4,
                translation_type: 0,
                numbering_plan: 1,
                nature: 4,
                digits: Digits::parse(text).unwrap_or_default(),
            }),
            ..AddressBuf::default()
        };
        address
            .write(Format::Itu, &mut octets)
            .expect("indicator 4 has a form");
        octets
    };
    let mut user_data = Vec::new();
    Unitdata {
        message_type: sccp::MessageType::Udt,
        class_or_cause: 0x81,
        hop_counter: 0,
        called: &address(6, &number(index)),
        calling: &address(8, "436600000000"),
        data: &[0x62; 130],
        optional: &[],
    }
    .write(&mut user_data)
    .expect("the parts are short");
    let mut out = Vec::new();
    Data {
        network_appearance: None,
        routing_context: Some(1),
        opc: PointCode(1),
        dpc: PointCode(2),
        si: ServiceIndicator::SCCP,
        ni: 2,
        mp: 0,
        sls: (index % 16) as u8,
        user_data: &user_data,
        correlation_id: None,
    }
    .write(&mut out);
    out
}

fn relay(table: &Table, octets: &[u8], called: &mut Vec<u8>, out: &mut Vec<u8>) -> Option<()> {
    let data = Message::parse(octets).ok()?.data()?;
    let sccp::Message::Unitdata(unitdata) = sccp::Message::parse(data.user_data).ok()? else {
        return None;
    };
    let address = Address::parse(unitdata.called, Format::Itu).ok()?;
    let found = table.translate(&address)?;
    let next = found.group.choose(u32::from(data.sls), |_| true)?;
    called.clear();
    found.apply(&address)?.write(Format::Itu, called).ok()?;
    let relayed = Unitdata {
        called: called.as_slice(),
        ..unitdata.next_hop().ok()?
    };
    // The length of the user data is known once it is written: it is written in place, behind the routing label.
    let dpc = next.point_code;
    Data {
        opc: PointCode(3),
        dpc,
        ..data
    }
    .write_with(out, |out| relayed.write(out).is_ok())
    .then_some(())
}
