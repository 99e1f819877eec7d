//! tshark reads everything that we write.

use ss7_proto::isup::{AnsiIam, Cause, Iam, Number, write_release};
use ss7_proto::m3ua::{Message, PPID, ServiceIndicator};
use ss7_proto::tcap::{OperationCode, Transaction};

use crate::calls::{CAP_4, CORE_INAP, answers, inap_parameters, initial_dp, routed};
use crate::capture::judge;
use crate::exercise::{begin_in, ber, data, every_m3ua, every_management, every_sccp, iam, iam_of_ansi, msu};

#[test]
fn every_m3ua_message_decodes_without_a_complaint() {
    let messages = every_m3ua();
    let fields = [
        "-T",
        "fields",
        "-e",
        "m3ua.message_class",
        "-e",
        "m3ua.message_type",
    ];
    let Some((read, complaints)) = judge(PPID, &messages, &fields) else {
        return;
    };
    assert_eq!(complaints, "");
    let ours: String = messages
        .iter()
        .map(|octets| Message::parse(octets).unwrap().message_type())
        .map(|kind| format!("{}\t{}\n", kind.class() as u8, kind.number()))
        .collect();
    assert_eq!(read, ours);
}

#[test]
fn the_parameters_of_data_and_registration_read_the_same() {
    let fields = "m3ua.protocol_data_opc m3ua.protocol_data_dpc m3ua.protocol_data_si m3ua.protocol_data_ni \
                  m3ua.protocol_data_sls m3ua.routing_context m3ua.network_appearance";
    let mut arguments = vec!["-T", "fields"];
    for field in fields.split(' ').filter(|field| !field.is_empty()) {
        arguments.extend(["-e", field]);
    }
    let messages = [data(&[0x09])];
    let Some((read, _)) = judge(PPID, &messages, &arguments) else {
        return;
    };
    assert_eq!(read.trim_end(), "1234\t6545\t3\t2\t11\t77\t1");
}

#[test]
fn every_sccp_message_decodes_without_a_complaint() {
    let mut sccp = every_sccp();
    // tshark 4.0 decodes each field of SSC (the last one), then warns of an unknown message: see
    // `management_reads_the_same`.
    sccp.extend(every_management().into_iter().filter(|octets| octets.len() < 18));
    let messages: Vec<_> = sccp.iter().map(|octets| data(octets)).collect();
    let fields = ["-T", "fields", "-e", "sccp.message_type"];
    let Some((read, complaints)) = judge(PPID, &messages, &fields) else {
        return;
    };
    assert_eq!(complaints, "");
    let ours: String = sccp
        .iter()
        .map(|octets| format!("{:#04x}\n", octets[0]))
        .collect();
    assert_eq!(read, ours);
}

#[test]
fn parts_of_sccp_messages_read_the_same() {
    let messages: Vec<_> = every_sccp().iter().map(|octets| data(octets)).collect();
    let fields = "sccp.hops sccp.called.ssn sccp.called.digits sccp.calling.pc sccp.importance sccp.segmentation.slr sccp.slr sccp.dlr";
    let mut arguments = vec!["-T", "fields"];
    for field in fields.split(' ') {
        arguments.extend(["-e", field]);
    }
    let Some((read, _)) = judge(PPID, &messages, &arguments) else {
        return;
    };
    let lines: Vec<Vec<&str>> = read.lines().map(|line| line.split('\t').collect()).collect();
    for line in &lines[..12] {
        assert_eq!(line[1..3], ["250", "436601234567"], "{line:?}");
    }
    assert_eq!(lines[4][0], "0x0c");
    assert_eq!(lines[4][4], "0x05");
    assert_eq!(lines[4][5], "0x0a0b0c");
    assert_eq!(lines[12][6], "0x060504");
    for line in &lines[lines.len() - 3..] {
        assert_eq!((line[4], line[5]), ("0x05", "0x0a0b0c"), "{line:?}");
    }
}

#[test]
fn management_reads_the_same() {
    let messages: Vec<_> = every_management().iter().map(|octets| data(octets)).collect();
    let fields = [
        "-T",
        "fields",
        "-e",
        "sccpmg.message_type",
        "-e",
        "sccpmg.ssn",
        "-e",
        "sccpmg.pc",
    ];
    let Some((read, _)) = judge(PPID, &messages, &fields) else {
        return;
    };
    for (n, line) in read.lines().enumerate() {
        assert_eq!(line, format!("{:#04x}\t6\t6545", n + 1));
    }
}

#[test]
fn map_reads_the_same() {
    let messages: Vec<_> = crate::tcap::examples()
        .iter()
        .map(|example| {
            let mut out = Vec::new();
            let tcap = crate::tcap::message(example);
            let ssn = [0x42, 6];
            crate::exercise::unitdata(&ssn, &[0x42, 8], &tcap)
                .write(&mut out)
                .unwrap();
            data(&out)
        })
        .collect();
    let fields = "gsm_old.localValue tcap.otid e212.imsi e164.msisdn";
    let mut arguments = vec!["-T", "fields"];
    for field in fields.split(' ') {
        arguments.extend(["-e", field]);
    }
    let Some((read, complaints)) = judge(PPID, &messages, &arguments) else {
        return;
    };
    assert_eq!(complaints, "");
    let examples = crate::tcap::examples();
    assert_eq!(read.lines().count(), examples.len());
    for (line, example) in read.lines().zip(examples) {
        let fields: Vec<&str> = line.split('\t').collect();
        assert_eq!(
            fields[..2],
            [&example.operation.to_string()[..], "deadbeef"],
            "{line}"
        );
        if let Some(imsi) = example.imsi {
            assert_eq!(fields[2], imsi, "{line}");
        }
    }
}

/// A UDT between subsystems, in DATA.
fn between(ssn: u8, tcap: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    crate::exercise::unitdata(&[0x42, ssn], &[0x42, ssn], tcap)
        .write(&mut out)
        .unwrap();
    data(&out)
}

#[test]
fn camel_and_inap_read_the_same() {
    // CAMEL is at subsystem 146 of its own accord.
    let inap = ber(0x30, &inap_parameters());
    for (ssn, context, argument, name) in [
        (146, CAP_4, &initial_dp(), "camel"),
        (12, CORE_INAP, &inap, "inap"),
    ] {
        let mut messages = vec![between(ssn, &begin_in(context, 0, argument))];
        messages.extend(answers(context).iter().map(|answer| between(ssn, answer)));
        let fields = [
            "-o".to_owned(),
            "inap.ssn:12".to_owned(),
            "-T".to_owned(),
            "fields".to_owned(),
            "-e".to_owned(),
            "_ws.col.Info".to_owned(),
            "-e".to_owned(),
            format!("{name}.serviceKey"),
            "-e".to_owned(),
            "isup.called_party_nature_of_address_indicator".to_owned(),
            "-e".to_owned(),
            "isup.called".to_owned(),
        ];
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        let Some((read, complaints)) = judge(PPID, &messages, &fields) else {
            return;
        };
        assert_eq!(complaints, "", "{name}");
        // What stands before the operation differs between the two dissectors.
        let last_word = |line: &'_ str| {
            line.rsplit_once(' ').map(|(words, fields)| {
                let word = words.rsplit(' ').next().unwrap_or_default();
                format!("{word}{fields}")
            })
        };
        let lines: Vec<String> = read.lines().filter_map(last_word).collect();
        let wanted = [
            "initialDP\t100\t3\t664567F",
            "connect\t\t8\tD99664567F",
            "continue\t\t\t",
            "releaseCall\t\t\t",
            "missingParameter\t\t\t",
        ];
        assert_eq!(lines, wanted, "{name}");
    }
}

#[test]
fn isup_reads_the_same() {
    let octets = iam();
    let (mut edited, mut release) = (Vec::new(), Vec::new());
    let read = Iam::parse(&octets).unwrap();
    read.write_with_called(&routed(), true, &mut edited).unwrap();
    write_release(read.circuit(), Cause::UNALLOCATED, &mut release);
    let messages = [octets, edited, release].map(|octets| msu(ServiceIndicator::ISUP, &octets));
    let fields = "isup.message_type isup.cic isup.called isup.calling isup.called_party_nature_of_address_indicator \
                  isup.cause_indicator";
    let mut arguments = vec!["-T", "fields"];
    for field in fields.split(' ').filter(|field| !field.is_empty()) {
        arguments.extend(["-e", field]);
    }
    let Some((read, complaints)) = judge(PPID, &messages, &arguments) else {
        return;
    };
    assert_eq!(complaints, "");
    let lines: Vec<&str> = read.lines().collect();
    assert_eq!(
        lines,
        [
            "1\t291\t664567F\t4366012345\t3\t",
            "1\t291\tD99664567F\t4366012345\t8\t",
            "12\t291\t\t\t\t1",
        ]
    );
}

#[test]
fn isup_of_ansi_reads_the_same() {
    let octets = iam_of_ansi();
    let (mut edited, mut release) = (Vec::new(), Vec::new());
    let read = AnsiIam::parse(&octets).unwrap();
    let dialled = read.called().unwrap();
    let routing = Number {
        digits: ss7_proto::Digits::parse("3125550000").unwrap(),
        ..dialled
    };
    read.write_queried(&routing, Some(&dialled), &mut edited).unwrap();
    write_release(read.circuit(), Cause::UNALLOCATED, &mut release);
    let messages = [octets, edited, release].map(|octets| msu(ServiceIndicator::ISUP, &octets));
    let fields = "isup.message_type isup.called isup.calling isup.forw_call_ported_num_trans_indicator isup.cause_indicator";
    let mut arguments = vec!["-o", "mtp3.standard:ANSI", "-T", "fields", "-E", "separator=,"];
    for field in fields.split(' ') {
        arguments.extend(["-e", field]);
    }
    let Some((read, complaints)) = judge(PPID, &messages, &arguments) else {
        return;
    };
    assert_eq!(complaints, "");
    let lines: Vec<&str> = read.lines().collect();
    assert_eq!(
        lines,
        [
            "1,6605550123,6605559876,0,",
            "1,3125550000,6605559876,1,",
            "12,,,,1",
        ]
    );
}

/// Every type of message and component of T1.114, with private, national and missing operations.
fn every_tcap_of_ansi() -> Vec<Vec<u8>> {
    let one: &[u8] = &[0x11, 0x22, 0x33, 0x44];
    let types = [
        (0xe1, &[][..]),
        (0xe2, one),
        (0xe3, one),
        (0xe4, one),
        (0xe5, &[1, 2, 3, 4, 5, 6, 7, 8]),
        (0xe6, &[1, 2, 3, 4, 5, 6, 7, 8]),
    ];
    let parameters = ber(0xf2, &[]);
    let components = [
        // REGNOT, and a directive to return.
        (0xe9, [ber(0xd1, &[9, 13]), parameters.clone()].concat()),
        (0xed, [ber(0xd0, &[0x84, 1]), parameters.clone()].concat()),
        (0xea, parameters.clone()),
        (0xee, parameters.clone()),
        (0xeb, [ber(0xd4, &[0x85]), parameters.clone()].concat()),
        (0xec, [ber(0xd5, &[2, 1]), parameters].concat()),
    ];
    let mut messages = Vec::new();
    for (tag, identifiers) in types {
        for (at, (kind, contents)) in components.iter().enumerate() {
            let component = ber(*kind, &[&ber(0xcf, &[at as u8 + 1])[..], contents].concat());
            messages.push(ber(
                tag,
                &[ber(0xc7, identifiers), ber(0xe8, &component)].concat(),
            ));
        }
    }
    messages.push(ber(0xf6, &[ber(0xc7, one), ber(0xd7, &[1])].concat()));
    messages
}

/// Identifiers, invocation, private and national operation.
type OfAnsi = [String; 4];

fn read_of_ansi(octets: &[u8]) -> OfAnsi {
    let read = Transaction::parse(octets).unwrap();
    let hex = |octets: &[u8]| {
        octets
            .iter()
            .map(|octet| format!("{octet:02x}"))
            .collect::<String>()
    };
    let identifiers =
        [read.originating, read.destination].map(|id| id.map_or_else(String::new, |id| hex(id.octets())));
    let component = { read.components }.next().map(Result::unwrap);
    let (mut private, mut national) = (String::new(), String::new());
    match component.and_then(|component| component.operation) {
        Some(OperationCode::Private(code)) => private = code.to_string(),
        Some(OperationCode::National(code)) => national = code.to_string(),
        _ => {}
    }
    let id = component.and_then(|component| component.invoke_id);
    let id = id.map_or_else(String::new, |id| format!("{id:02x}"));
    [identifiers.concat(), id, private, national]
}

/// The fields of tshark: of an Invoke the identifiers stand in another field than of others, a national operation has a sign, and that
/// of a result is the one it has seen invoked.
fn judged_of_ansi(line: &str) -> OfAnsi {
    let fields: Vec<&str> = line.split(',').collect();
    let [identifiers, of_invoke, of_other, private, national] = fields[..] else {
        panic!("{line}")
    };
    let national = national.parse::<i32>().ok().filter(|_| of_other.is_empty());
    [
        identifiers.replace("<MISSING>", ""),
        [of_invoke, of_other].concat(),
        private.to_owned(),
        national.map_or_else(String::new, |code| (code & 0x7fff).to_string()),
    ]
}

#[test]
fn tcap_of_ansi_reads_the_same() {
    let messages = every_tcap_of_ansi();
    let party = [0xc1, 8];
    let in_data = |tcap: &Vec<u8>| {
        let mut out = Vec::new();
        crate::exercise::unitdata(&party, &party, tcap)
            .write(&mut out)
            .unwrap();
        data(&out)
    };
    let sent: Vec<_> = messages.iter().map(in_data).collect();
    let fields = "ansi_tcap.identifier ansi_tcap.componentIDs ansi_tcap.componentID ansi_tcap.private ansi_tcap.national";
    let mut arguments = vec!["-o", "mtp3.standard:ANSI", "-T", "fields", "-E", "separator=,"];
    for field in fields.split(' ') {
        arguments.extend(["-e", field]);
    }
    // It complains of the parameters of ANSI-41 that these operations lack.
    let Some((read, _)) = judge(PPID, &sent, &arguments) else {
        return;
    };
    let ours: Vec<_> = messages.iter().map(|octets| read_of_ansi(octets)).collect();
    assert_eq!(read.lines().map(judged_of_ansi).collect::<Vec<_>>(), ours);
}
