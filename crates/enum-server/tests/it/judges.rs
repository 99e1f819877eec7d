//! Answers as programs by other people read them.

use std::fmt::Write as _;
use std::process::Command;

use domain::base::Rtype;
use testpeer::tshark::{COMPLAINTS, tshark};

use crate::support::{Client, config, name, numbers, query, range, start};

const APEX: &str = "e164enum.net";

fn run(program: &str, port: u16, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    command
        .args(["@127.0.0.1", "-p", &port.to_string()])
        .args(arguments);
    let output = testpeer::skip::output(&mut command)?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}

/// What both say of an answer that they do not like.
const WARNINGS: [&str; 6] = [
    "Warning",
    "WARNING",
    "malformed",
    "unexpected",
    "mismatch",
    "extra bytes",
];

#[test]
fn dig_and_kdig_accept_every_kind_of_answer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("numbers.num");
    numbers(&path, "msisdn,43112,ported,rn=+4366099\n");
    let mut wanted = config();
    wanted.numbers = Some(path);
    wanted.trees[0].ranges.push(range("1", "many", 5, 5));
    let server = start(wanted);
    let port = server.addresses()[0].port();
    let ported = name("43112", APEX);
    let many = name("12345", APEX);
    let incomplete = name("431", APEX);
    let unknown = name("44", APEX);
    for (program, patient) in [
        ("dig", ["+norecurse", "+tries=1", "+time=60"]),
        ("kdig", ["+norecurse", "+retry=0", "+time=60"]),
    ] {
        let asked = [
            (
                vec![ported.as_str(), "NAPTR"],
                "NOERROR",
                "!^.*$!tel:+43112;npdi;rn=+4366099!",
            ),
            (
                vec![ported.as_str(), "NAPTR", "+tcp"],
                "NOERROR",
                "!^.*$!sip:+43112@ims.example.net!",
            ),
            (vec![many.as_str(), "NAPTR"], "NOERROR", "proxy-11"),
            (vec![many.as_str(), "NAPTR", "+noedns"], "NOERROR", "proxy-11"),
            (vec![many.as_str(), "NAPTR", "+bufsize=512"], "NOERROR", "proxy-0"),
            (vec![ported.as_str(), "A"], "NOERROR", "hostmaster.e164enum.net."),
            (vec![incomplete.as_str(), "NAPTR"], "NOERROR", "SOA"),
            (vec![unknown.as_str(), "NAPTR"], "NXDOMAIN", "SOA"),
            (vec![APEX, "SOA"], "NOERROR", "ns1.example.net."),
            (vec![APEX, "NS"], "NOERROR", "ns2.example.net."),
            (vec![ported.as_str(), "ANY"], "NOERROR", "RFC8482"),
            (vec!["example.org", "NAPTR"], "REFUSED", ""),
        ];
        for (arguments, status, text) in asked {
            let Some(printed) = run(program, port, &[&arguments[..], &patient].concat()) else {
                break;
            };
            assert!(
                printed.contains(&format!("status: {status}")),
                "{program} {arguments:?}: {printed}"
            );
            assert!(printed.contains(text), "{program} {arguments:?}: {printed}");
            // That it comes again over TCP is what it should do.
            let printed: Vec<&str> = printed
                .lines()
                .filter(|line| !line.contains("truncated reply"))
                .collect();
            let printed = printed.join("\n");
            for warning in WARNINGS {
                assert!(!printed.contains(warning), "{program} {arguments:?}: {printed}");
            }
        }
    }
}

/// The tests of RFC 8906 §8 and what it expects: arguments of dig, status and flags of the answer, records in it.
const FAILURES_TO_COMMUNICATE: [(&str, &str, usize); 26] = [
    ("SOA +noedns", "NOERROR qr aa", 1),
    ("TYPE1000 +noedns", "NOERROR qr aa", 0),
    ("SOA +noedns +cd", "NOERROR qr aa", 1),
    ("SOA +noedns +adflag", "NOERROR qr aa", 1),
    ("SOA +noedns +zflag", "NOERROR qr aa", 1),
    ("SOA +noedns +rec", "NOERROR qr aa rd", 1),
    ("SOA +noedns +opcode=15 +header-only", "NOTIMP qr", 0),
    ("SOA +noedns +opcode=notify", "NOTIMP qr", 0),
    ("SOA +noedns +opcode=update", "NOTIMP qr", 0),
    ("SOA +noedns +opcode=iquery", "NOTIMP qr", 0),
    ("SOA +noedns +tcp", "NOERROR qr aa", 1),
    ("SOA +edns=0", "NOERROR qr aa", 1),
    ("SOA +edns=1", "BADVERS qr", 0),
    ("SOA +edns=255", "BADVERS qr", 0),
    ("SOA +edns=0 +ednsopt=100", "NOERROR qr aa", 1),
    ("SOA +edns=0 +ednsflags=0x40", "NOERROR qr aa", 1),
    ("SOA +edns=1 +ednsflags=0x40", "BADVERS qr", 0),
    ("SOA +edns=1 +ednsopt=100", "BADVERS qr", 0),
    ("SOA +edns=1 +dnssec", "BADVERS qr", 0),
    ("SOA +edns=0 +dnssec", "NOERROR qr aa", 1),
    ("DNSKEY +edns=0 +dnssec +bufsize=512 +ignore", "NOERROR qr aa", 0),
    ("SOA +edns=0 +nsid +expire +subnet=0.0.0.0/0", "NOERROR qr aa", 1),
    // RFC 7873 §5.2: who has no cookies ignores those of others.
    (
        "SOA +edns=0 +cookie=0123456789abcdef0123456789abcdef",
        "NOERROR qr aa",
        1,
    ),
    ("SOA CH +edns=0", "REFUSED qr", 0),
    ("-t SOA -c ANY +edns=0", "REFUSED qr", 0),
    ("AXFR +noedns +tcp", "Transfer failed", 0),
];

#[test]
fn dig_finds_no_failure_to_communicate() {
    let server = start(config());
    let port = server.addresses()[0].port();
    let patient = [
        APEX,
        "+norec",
        "+nocookie",
        "+noednsnegotiation",
        "+tries=1",
        "+time=60",
    ];
    for (arguments, answer, records) in FAILURES_TO_COMMUNICATE {
        let wanted: Vec<&str> = arguments.split(' ').collect();
        let Some(printed) = run("dig", port, &[&patient, &wanted[..]].concat()) else {
            return;
        };
        let says = |text: &str| assert!(printed.contains(text), "{arguments}: not `{text}`: {printed}");
        let Some((status, flags)) = answer.split_once(' ').filter(|(status, _)| *status != "Transfer") else {
            says(answer);
            continue;
        };
        says(&format!("status: {status},"));
        says(&format!("flags: {flags};"));
        says(&format!("ANSWER: {records},"));
        if arguments.contains("+noedns") {
            assert!(!printed.contains("EDNS"), "{arguments}: {printed}");
        } else {
            let dnssec_ok = if arguments.contains("+dnssec") { " do" } else { "" };
            says(&format!("; EDNS: version: 0, flags:{dnssec_ok}; udp: 1232"));
        }
        // Neither options nor flags without a meaning are sent back.
        for text in ["OPT=", "COOKIE", "NSID", "EXPIRE", "CLIENT-SUBNET", "MBZ"] {
            assert!(!printed.contains(text), "{arguments}: {printed}");
        }
    }
}

#[test]
fn tshark_reads_every_answer() {
    let mut wanted = config();
    wanted.trees[0].ranges.push(range("1", "many", 5, 5));
    let server = start(wanted);
    let client = Client::new(server.addresses()[0]);
    let mut dump = String::new();
    let known = name("436601234567", APEX);
    for (text, kind, size) in [
        (known.as_str(), Rtype::NAPTR, None),
        (&known, Rtype::NAPTR, Some(1_232)),
        (&known, Rtype::ANY, Some(1_232)),
        (&known, Rtype::A, Some(1_232)),
        (&name("12345", APEX), Rtype::NAPTR, None),
        (&name("12345", APEX), Rtype::NAPTR, Some(1_232)),
        (&name("44", APEX), Rtype::NAPTR, Some(1_232)),
        (APEX, Rtype::SOA, None),
        (APEX, Rtype::NS, None),
    ] {
        let answer = client.ask(&query(1, text, kind, size));
        // The form of text2pcap: an offset, then octets.
        dump.push_str("000000");
        answer
            .as_slice()
            .iter()
            .for_each(|octet| write!(dump, " {octet:02x}").unwrap());
        dump.push('\n');
    }
    let folder = tempfile::tempdir().unwrap();
    let (text, capture) = (folder.path().join("dump.txt"), folder.path().join("answers.pcap"));
    std::fs::write(&text, dump).unwrap();
    let mut convert = Command::new("text2pcap");
    convert.args(["-q", "-u", "53,5353"]).args([&text, &capture]);
    let Some(converted) = testpeer::skip::output(&mut convert) else {
        return;
    };
    assert!(converted.status.success());
    let Some(complaints) = tshark(&["-Y", COMPLAINTS], &capture) else {
        return;
    };
    assert_eq!(complaints, "");
    let Some(read) = tshark(
        &[
            "-Y",
            "dns",
            "-T",
            "fields",
            "-e",
            "dns.naptr.regex",
            "-e",
            "dns.soa.mname",
        ],
        &capture,
    ) else {
        return;
    };
    assert!(read.contains("sip:+436601234567@ims.example.net"), "{read}");
    assert!(read.contains("ns1.example.net"), "{read}");
    assert_eq!(read.matches("proxy-7").count(), 1, "{read}");
}
