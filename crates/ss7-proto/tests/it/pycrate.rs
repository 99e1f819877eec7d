//! pycrate (PyPI) as a judge of TCAP, MAP and ISUP: random messages of each side, read by the other.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use ss7_proto::Digits;
use ss7_proto::isup::{Cause, Iam, Number, write_release};
use ss7_proto::map::{AddressString, Fields, SmRpAddress, Tbcd};
use ss7_proto::tcap::{
    self, Answer, ApplicationContext, ComponentType, OperationCode, Outcome, Problem, Reason, Transaction,
};

const JUDGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/judge.py");
/// Random messages in each direction.
const COUNT: usize = 600;

/// What the judge prints, line by line; `None` where it cannot be had.
fn judge(arguments: &[&str], input: String) -> Option<Vec<String>> {
    let Some(folder) = testpeer::python::pycrate(env!("CARGO_TARGET_TMPDIR")) else {
        testpeer::skip::missing("pycrate from PyPI");
        return None;
    };
    let mut python = Command::new("python3")
        .arg(JUDGE)
        .args(arguments)
        .env("PYTHONPATH", folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = python.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = python.wait_with_output().unwrap();
    let _ = writer.join();
    assert!(output.status.success(), "the judge failed");
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(str::to_owned).collect())
}

/// Fields in the form of the judge.
fn shown(fields: &BTreeMap<&str, String>) -> String {
    let pairs: Vec<String> = fields
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.join(";")
}

pub(crate) fn hex(octets: &[u8]) -> String {
    octets.iter().fold(String::new(), |mut text, octet| {
        let _ = write!(text, "{octet:02x}");
        text
    })
}

fn unhex(text: &str) -> Vec<u8> {
    let octet = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(octet).collect()
}

fn address(address: AddressString<'_>) -> String {
    format!("{}:{}:{}", address.nature, address.plan, address.number)
}

fn sm_rp(one: SmRpAddress<'_>) -> String {
    match one {
        SmRpAddress::Imsi(imsi) => format!("imsi {imsi}"),
        SmRpAddress::Lmsi(lmsi) => format!("lmsi {}", hex(lmsi)),
        SmRpAddress::Msisdn(number) => format!("msisdn {}", address(number)),
        SmRpAddress::ServiceCentre(number) => format!("sc {}", address(number)),
        SmRpAddress::None => "none".to_owned(),
    }
}

/// A Begin with one Invoke of MAP, as it is read here.
fn map(octets: &[u8]) -> String {
    let begin = Transaction::parse(octets).unwrap();
    let invoke = { begin.components }.next().unwrap().unwrap();
    assert_eq!(invoke.component_type, ComponentType::Invoke);
    let Some(OperationCode::Local(operation)) = invoke.operation else {
        panic!("{invoke:?}")
    };
    let fields = Fields::read(operation, invoke.parameter.unwrap());
    let number = |number: Option<Tbcd<'_>>| number.map(|number| number.to_string());
    let all = [
        ("otid", begin.originating.map(|id| hex(id.octets()))),
        ("context", begin.context.map(|context| context.to_string())),
        ("id", invoke.invoke_id.map(|id| id.to_string())),
        ("op", Some(operation.to_string())),
        ("imsi", number(fields.imsi)),
        ("imei", number(fields.imei)),
        ("msisdn", fields.msisdn.map(address)),
        ("vlr", fields.vlr.map(address)),
        ("msc", fields.msc.map(address)),
        ("sgsn", fields.sgsn.map(address)),
        ("sc", fields.service_centre.map(address)),
        ("scf", fields.scf.map(address)),
        ("da", fields.sm_rp_da.map(sm_rp)),
        ("oa", fields.sm_rp_oa.map(sm_rp)),
        ("ui", fields.sm_rp_ui.map(hex)),
    ];
    let all = all.into_iter().filter_map(|(name, value)| Some((name, value?)));
    shown(&all.collect())
}

fn party(number: Number) -> String {
    let plan = number.indicators >> 4 & 7;
    format!("{}:{plan}:{}", number.nature, number.digits)
}

fn circuit(octets: [u8; 2]) -> String {
    u16::from_le_bytes(octets).to_string()
}

fn iam(octets: &[u8]) -> String {
    let read = Iam::parse(octets).unwrap();
    let all = [
        ("circuit", Some(circuit(read.circuit()))),
        ("called", read.called().map(party)),
        ("calling", read.calling().map(party)),
    ];
    let all = all.into_iter().filter_map(|(name, value)| Some((name, value?)));
    shown(&all.collect())
}

#[test]
fn what_pycrate_writes_reads_the_same() {
    let Some(lines) = judge(&["write", "2501", &COUNT.to_string()], String::new()) else {
        return;
    };
    assert_eq!(lines.len(), COUNT);
    for line in &lines {
        let parts: Vec<&str> = line.splitn(3, ' ').collect();
        let [kind, octets, fields] = parts[..] else {
            panic!("{line}")
        };
        let octets = unhex(octets);
        let read = if kind == "map" { map(&octets) } else { iam(&octets) };
        assert_eq!(read, fields, "{line}");
    }
}

/// A message and what it says.
pub(crate) type Written = (&'static str, Vec<u8>, BTreeMap<&'static str, String>);

fn transaction_id() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 1..=4)
}

/// A Begin with an identifier, of which an answer takes its destination.
fn begin(id: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    tcap::element(0x62, &mut out, |out| {
        tcap::element(0x48, out, |out| out.extend_from_slice(id));
    });
    out
}

fn context(number: u8, version: u8) -> [u8; 7] {
    [4, 0, 0, 1, 0, number, version]
}

fn dotted(number: u8, version: u8) -> String {
    format!("0.4.0.0.1.0.{number}.{version}")
}

/// Operations of MAP with these results.
const RESULTS: [u8; 3] = [2, 3, 7];

pub(crate) fn answer() -> impl Strategy<Value = Written> {
    let outcome = (
        0..4_usize,
        0..RESULTS.len(),
        0..4_usize,
        proptest::option::of(any::<i8>()),
    );
    let contexts = proptest::option::of((1..=40_u8, 1..=4_u8));
    (transaction_id(), outcome, contexts).prop_map(|(id, (kind, result, problem, invoke_id), name)| {
        let octets = begin(&id);
        let begin = Transaction::parse(&octets).unwrap();
        let mut fields = BTreeMap::from([("type", "end".to_owned()), ("dtid", hex(&id))]);
        let arcs = name.map(|(number, version)| context(number, version));
        if let Some((number, version)) = name {
            fields.insert("context", dotted(number, version));
            fields.insert("dialogue", "dialogueResponse".to_owned());
            fields.insert("accepted", "0".to_owned());
        }
        let operation = RESULTS[result];
        let problems = [
            (Problem::MistypedComponent, "general 1"),
            (Problem::BadlyStructuredComponent, "general 2"),
            (Problem::UnrecognizedOperation, "invoke 1"),
            (Problem::MistypedParameter, "invoke 2"),
        ];
        // Only a Reject may be without.
        let invoke_id = if kind == 3 {
            invoke_id
        } else {
            Some(invoke_id.unwrap_or(1))
        };
        let component = match kind {
            0 => "returnResult",
            1 => "returnError",
            2 => "invoke",
            _ => "reject",
        };
        let outcome = match kind {
            0 => Outcome::Result(
                operation,
                if operation == 2 {
                    RESULT_WITH_NUMBER
                } else {
                    &[0x30, 0]
                },
            ),
            1 => Outcome::Error(27),
            2 => Outcome::Invoke(22, ROUTING_INFO),
            _ => Outcome::Reject(problems[problem].0),
        };
        fields.insert("component", component.to_owned());
        if let Some(id) = invoke_id {
            fields.insert("id", id.to_string());
        }
        match kind {
            0 => fields.insert("op", operation.to_string()),
            1 => fields.insert("error", "27".to_owned()),
            2 => fields.insert("op", "22".to_owned()),
            _ => fields.insert("problem", problems[problem].1.to_owned()),
        };
        let mut out = Vec::new();
        Answer {
            destination: begin.originating.unwrap(),
            context: arcs.as_ref().map(|arcs| ApplicationContext::new(arcs)),
            invoke_id,
            outcome,
        }
        .write(&mut out);
        ("map", out, fields)
    })
}

/// updateLocation's result with an HLR number; sendRoutingInfo's argument: MSISDN, basic call, GMSC.
const RESULT_WITH_NUMBER: &[u8] = &[0x30, 6, 4, 4, 0x91, 0x34, 0x66, 0xf0];
const ROUTING_INFO: &[u8] = &[
    0x30, 15, 0x80, 4, 0x91, 0x34, 0x66, 0xf0, 0x83, 1, 0, 0x86, 4, 0x91, 0x34, 0x66, 0xf1,
];

pub(crate) fn abort() -> impl Strategy<Value = Written> {
    (transaction_id(), 0..5_u8, (1..=40_u8, 1..=4_u8)).prop_map(|(id, kind, (number, version))| {
        let octets = begin(&id);
        let destination = Transaction::parse(&octets).unwrap().originating.unwrap();
        let arcs = context(number, version);
        let mut fields = BTreeMap::from([("type", "abort".to_owned()), ("dtid", hex(&id))]);
        let reason = match kind {
            0 => {
                fields.insert("cause", "1".to_owned());
                Reason::UnknownTransaction
            }
            1 => {
                fields.insert("dialogue", "dialogueAbort".to_owned());
                fields.insert("source", "1".to_owned());
                Reason::BadDialogue
            }
            2 => {
                fields.insert("dialogue", "dialogueAbort".to_owned());
                fields.insert("source", "0".to_owned());
                Reason::User { has_dialogue: true }
            }
            3 => Reason::User { has_dialogue: false },
            _ => {
                fields.insert("dialogue", "dialogueResponse".to_owned());
                fields.insert("accepted", "1".to_owned());
                fields.insert("context", dotted(number, version));
                Reason::Context(ApplicationContext::new(&arcs))
            }
        };
        let mut out = Vec::new();
        tcap::abort(destination, reason, &mut out);
        ("map", out, fields)
    })
}

/// IAMs whose called number is changed: decimal digits, which both sides show alike.
fn call() -> impl Strategy<Value = Written> {
    let fields = (0..4096_u16, 0..0x80_u8, 0..8_u8, "[0-9]{1,32}", any::<bool>());
    fields.prop_map(|(code, nature, plan, digits, ported)| {
        let mut octets = crate::exercise::iam();
        octets[..2].copy_from_slice(&code.to_le_bytes());
        let number = Number {
            nature,
            indicators: plan << 4,
            digits: Digits::parse(&digits).unwrap(),
        };
        let mut out = Vec::new();
        let read = Iam::parse(&octets).unwrap();
        read.write_with_called(&number, ported, &mut out).unwrap();
        let status = if ported { 3 } else { 1 };
        let fields = BTreeMap::from([
            ("type", "1".to_owned()),
            ("circuit", code.to_string()),
            ("called", format!("{nature}:{plan}:{digits}")),
            ("calling", "4:1:4366012345".to_owned()),
            ("status", status.to_string()),
        ]);
        ("isup", out, fields)
    })
}

fn release() -> impl Strategy<Value = Written> {
    (0..4096_u16, 0..16_u8, 0..128_u8).prop_map(|(code, location, value)| {
        let mut out = Vec::new();
        write_release(code.to_le_bytes(), Cause { location, value }, &mut out);
        let fields = BTreeMap::from([
            ("type", "12".to_owned()),
            ("circuit", code.to_string()),
            ("cause", value.to_string()),
            ("location", location.to_string()),
        ]);
        ("isup", out, fields)
    })
}

#[test]
fn what_is_written_here_reads_in_pycrate_the_same() {
    let messages = prop_oneof![
        answer().boxed(),
        abort().boxed(),
        call().boxed(),
        release().boxed()
    ];
    let mut runner = TestRunner::deterministic();
    let messages: Vec<Written> = (0..COUNT)
        .map(|_| messages.new_tree(&mut runner).unwrap().current())
        .collect();
    let input = messages
        .iter()
        .fold(String::new(), |mut text, (kind, octets, _)| {
            let _ = writeln!(text, "{kind} {}", hex(octets));
            text
        });
    let Some(lines) = judge(&["read"], input) else {
        return;
    };
    assert_eq!(lines.len(), messages.len());
    for (line, (kind, octets, fields)) in lines.iter().zip(&messages) {
        assert_eq!(*line, shown(fields), "{kind} {}", hex(octets));
    }
}
