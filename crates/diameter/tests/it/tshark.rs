//! tshark as the judge: it decodes our captures without a complaint, and its dictionary and ours agree.
//! Where it is missing, each test says so and passes.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::SystemTime;

use diameter::capture::Capture;
use diameter::proto::dictionary::AvpDefinition;
use diameter::proto::known::{self, command};
use diameter::proto::{
    AvpType, AvpWriter, Dictionary, Kind, MessageBuilder, Origin, ResultCode, encode_one, kind, text,
};
use testpeer::diameter::Peer;
use testpeer::tshark::{COMPLAINTS, tshark};

use crate::support::{S6A, hss, run, ulr};

const A: &str = "127.0.0.1:3868";
const B: &str = "[::1]:40000";

/// tshark looks into User-Name on S6a.
const IMSI: &str = "001010000000001";

fn addresses() -> (SocketAddr, SocketAddr) {
    (A.parse().unwrap(), B.parse().unwrap())
}

#[test]
fn our_traffic_decodes_without_a_malformed_packet() {
    run(async {
        let (_server, address) = hss("hss.example");
        let mut peer = Peer::connect(address).await;
        let (us, them) = (peer.local(), address);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("traffic.pcapng");
        let mut capture = Capture::new(std::fs::File::create(&file).unwrap()).unwrap();
        let cea = peer.capabilities("mme.example", S6A).await;
        capture
            .message(SystemTime::now(), them, us, &[cea.as_bytes()], "the CEA")
            .unwrap();
        let dictionary = Dictionary::standard();
        let mut broken = ulr("mme.example", IMSI).as_bytes().to_vec();
        // The length of the second AVP, Auth-Session-State.
        let second = 20
            + ulr("mme.example", IMSI)
                .avps()
                .next()
                .unwrap()
                .unwrap()
                .padded()
                .len();
        broken[second + 5..second + 8].copy_from_slice(&[0xff, 0xff, 0xff]);
        let requests = [
            text::parse(
                "DWR { Origin-Host = \"mme.example\" Origin-Realm = \"example\" }",
                dictionary,
            )
            .unwrap(),
            ulr("mme.example", IMSI).freeze(),
            text::parse(
                "CCR app=16777238 { Session-Id = \"s\" Origin-Host = \"mme.example\" }",
                dictionary,
            )
            .unwrap(),
            text::parse(
                "DPR { Origin-Host = \"mme.example\" Origin-Realm = \"example\" Disconnect-Cause = BUSY }",
                dictionary,
            )
            .unwrap(),
        ];
        let mut count = 1;
        for (n, request) in requests.iter().enumerate() {
            if n == 3 {
                // Ours to be complained about, theirs (the answer) not.
                peer.send(&broken).await;
                let answer = peer
                    .expect_result(command::UPDATE_LOCATION, ResultCode::INVALID_AVP_LENGTH)
                    .await;
                capture
                    .message(SystemTime::now(), them, us, &[answer.as_bytes()], "")
                    .unwrap();
                count += 1;
            }
            let (head, tail) = request.as_bytes().split_at(20);
            capture
                .message(SystemTime::now(), us, them, &[head, tail], "")
                .unwrap();
            peer.send(request.as_bytes()).await;
            let answer = peer.expect(request.command()).await;
            capture
                .message(SystemTime::now(), them, us, &[answer.as_bytes()], "")
                .unwrap();
            count += 2;
        }
        capture.flush().unwrap();
        let Some(all) = tshark(&["-Y", "diameter"], &file) else {
            return;
        };
        assert_eq!(all.lines().count(), count, "{all}");
        let complaints = tshark(&["-Y", COMPLAINTS], &file).unwrap();
        assert!(complaints.is_empty(), "{complaints}");
        let comments = tshark(&["-Y", "frame.comment == \"the CEA\""], &file).unwrap();
        assert_eq!(comments.lines().count(), 1);
    });
}

/// Names that tshark 4 spells otherwise than the standard does, or knows by an older name.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("Acct-Multi-Session-Id", "Accounting-Multi-Session-Id"),
    ("Acct-Tunnel-Connection", "Tunnel-Connection-ID"),
    ("SIP-Method", "3GPP-SIP-Method"),
    ("Reporting-Reason", "3GPP-Reporting-Reason"),
    ("User-Data", "Cx-User-Data"),
    ("SIP-Number-Auth-Items", "3GPP-SIP-Number-Auth-Items"),
    ("SIP-Authentication-Scheme", "3GPP-SIP-Authentication-Scheme"),
    ("SIP-Authenticate", "3GPP-SIP-Authenticate"),
    ("SIP-Authorization", "3GPP-SIP-Authorization"),
    ("SIP-Auth-Data-Item", "3GPP-SIP-Auth-Data-Item"),
    ("SIP-Item-Number", "3GPP-SIP-Item-Number"),
    ("Wildcarded-Public-Identity", "Wildcarded-PSI"),
    ("Associated-Registered-Groups", "Associated-Registered-Identities"),
    ("3GPP-IPv6-DNS-Servers", "3GPP-IPv6-DNS-Server"),
    ("3GPP-PS-Data-Off-Status", "3GPP-PS-Data-Off-Status-Gx"),
    ("Service-Type", "3GPP-Service-Type"),
    ("Call-Barring-Info", "Call-Barring-Infor-List"),
    ("PPR-Address", "PSR-Address"),
    ("SLg-Location-Type", "Slg-Location-Type"),
    ("Termination-Cause", "Termination-Cause-3GPP"),
    ("1xRTT-RCID", "OnexRTT-RCID"),
    ("Service-ID", "S6-Service-ID"),
    ("Group-Report", "Group-Monitoring-Event-Report"),
    ("Group-Report-Item", "Group-Monitoring-Event-Report-Item"),
];

/// AVPs whose bytes tshark looks into: our example is of the right type, and no right content. (The first is a
/// number by RFC 7155 §4.4.10.3.1 and text to tshark.)
const LOOKED_INTO: &[&str] = &[
    "Framed-IPX-Network",
    "Framed-IPv6-Prefix",
    "EAP-Payload",
    "EAP-Reissued-Payload",
    "3GPP-GPRS-Negotiated-QoS-Profile",
    "Presence-Reporting-Area-Elements-List",
    "Visited-PLMN-Id",
    "Group-PLMN-Id",
    "TMGI",
    "MBMS-Service-Area",
    "RAI",
];

/// The AVP with a value of its type, a group with an Origin-Host in it.
fn example(avp: &AvpDefinition) -> AvpWriter {
    let data = match avp.kind {
        AvpType::Grouped => encode_one(known::ORIGIN_HOST, "x.example").to_vec(),
        AvpType::Address => {
            let mut out = bytes::BytesMut::new();
            kind::Address::write(std::net::Ipv4Addr::LOCALHOST.into(), &mut out);
            out.to_vec()
        }
        AvpType::OctetString => vec![0x21; 4],
        AvpType::Utf8String | AvpType::DiameterIdentity => b"x.example".to_vec(),
        AvpType::DiameterUri => b"aaa://x.example".to_vec(),
        AvpType::IpFilterRule | AvpType::QosFilterRule => b"permit out ip from any to any".to_vec(),
        fixed => {
            let value = avp.values.first().map_or(1, |(value, _)| *value);
            value.to_be_bytes()[8 - fixed.min_len()..].to_vec()
        }
    };
    let mut writer = AvpWriter::default();
    writer.put_raw(avp.key, avp.flags(), &data);
    writer
}

/// `AVP: Name(code) …` lines: name and code of the outer, whether an Origin-Host is inside.
fn decoded(output: &str) -> Vec<(String, u32, bool)> {
    let mut found: Vec<(String, u32, bool)> = Vec::new();
    for line in output.lines() {
        let Some(rest) = line.trim_start().strip_prefix("AVP: ") else {
            continue;
        };
        let Some((name, rest)) = rest.split_once('(') else {
            continue;
        };
        let Some(code) = rest.split(')').next().and_then(|code| code.parse().ok()) else {
            continue;
        };
        let depth = line.len() - line.trim_start().len();
        if depth > 4 {
            if let Some(last) = found.last_mut() {
                last.2 |= name == "Origin-Host";
            }
        } else {
            found.push((name.to_owned(), code, false));
        }
    }
    found
}

#[test]
fn our_dictionary_and_tsharks_agree() {
    let dictionary = Dictionary::standard();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dictionary.pcapng");
    let mut capture = Capture::new(std::fs::File::create(&file).unwrap()).unwrap();
    let (from, to) = addresses();
    for avp in dictionary.avps() {
        let mut message = MessageBuilder::request(316, 16_777_251);
        // tshark takes nothing below 36 bytes for Diameter.
        message.put(known::SESSION_ID, "x.example;1;1");
        message.append_encoded(example(avp).as_bytes());
        let message = message.finish().unwrap();
        capture
            .message(SystemTime::now(), from, to, &[message.as_bytes()], "")
            .unwrap();
    }
    capture.flush().unwrap();
    let Some(output) = tshark(&["-V", "-O", "diameter"], &file) else {
        return;
    };
    let theirs: Vec<_> = decoded(&output).into_iter().skip(1).step_by(2).collect();
    assert_eq!(
        theirs.len(),
        dictionary.avps().count(),
        "one AVP after the Session-Id of each message"
    );
    let other_names: BTreeMap<_, _> = OTHER_NAMES.iter().copied().collect();
    let mut unknown = 0;
    let mut differences = Vec::new();
    for (ours, (name, code, has_member)) in dictionary.avps().zip(&theirs) {
        assert_eq!(ours.key.code, *code);
        if name == "Unknown" {
            unknown += 1;
            continue;
        }
        if *ours.name != **name && other_names.get(&*ours.name) != Some(&name.as_str()) {
            differences.push(format!("{} is `{}` here, `{name}` there", ours.key, ours.name));
        }
        if (ours.kind == AvpType::Grouped) != *has_member {
            differences.push(format!("{} {}: a group on one side only", ours.key, ours.name));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(
        unknown * 20 < theirs.len(),
        "{unknown} of {} are unknown to tshark",
        theirs.len()
    );
    // A length that does not fit tshark's type is an expert complaint: of our types, none does not.
    let complaints = tshark(&["-Y", COMPLAINTS, "-T", "fields", "-e", "frame.number"], &file).unwrap();
    let complained: Vec<_> = complaints
        .lines()
        .filter_map(|line| line.trim().parse::<usize>().ok())
        .filter(|frame| theirs[frame - 1].0 != "Unknown")
        .filter_map(|frame| dictionary.avps().nth(frame - 1))
        .filter(|avp| !LOOKED_INTO.contains(&&*avp.name))
        .map(|avp| format!("{} {} {}", avp.key, avp.name, avp.kind.name()))
        .collect();
    assert!(complained.is_empty(), "{complained:#?}");
}

#[test]
fn commands_have_the_names_tshark_gives_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("commands.pcapng");
    let mut capture = Capture::new(std::fs::File::create(&file).unwrap()).unwrap();
    let (from, to) = addresses();
    let commands: Vec<_> = Dictionary::standard().commands().collect();
    for command in &commands {
        let mut message = MessageBuilder::request(command.code, command.application.unwrap_or(0));
        let origin = Origin::new("x.example", "example");
        message
            .put(known::ORIGIN_HOST, &origin.host)
            .put(known::ORIGIN_REALM, &origin.realm);
        let message = message.finish().unwrap();
        capture
            .message(SystemTime::now(), from, to, &[message.as_bytes()], "")
            .unwrap();
    }
    capture.flush().unwrap();
    let Some(output) = tshark(&["-V", "-O", "diameter"], &file) else {
        return;
    };
    let names: Vec<_> = output
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Command Code: "))
        .map(|rest| rest.split(" (").next().unwrap_or(rest).to_owned())
        .collect();
    assert_eq!(names.len(), commands.len());
    let simple = |name: &str| name.replace("3GPP-", "").replace(' ', "-").to_ascii_lowercase();
    let different: Vec<_> = commands
        .iter()
        .zip(&names)
        .filter(|(ours, theirs)| *theirs != "Unknown" && simple(&ours.name) != simple(theirs))
        .map(|(ours, theirs)| format!("{} {} is `{theirs}` there", ours.code, ours.name))
        .collect();
    assert!(different.is_empty(), "{different:#?}");
}

#[test]
fn the_golden_vectors_decode_there_too() {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../diameter-proto/tests/vectors");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("vectors.pcapng");
    let mut capture = Capture::new(std::fs::File::create(&file).unwrap()).unwrap();
    let (from, to) = addresses();
    let mut count = 0;
    for entry in std::fs::read_dir(vectors).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            let message =
                text::parse(&std::fs::read_to_string(&path).unwrap(), Dictionary::standard()).unwrap();
            let name = path.display().to_string();
            capture
                .message(SystemTime::now(), from, to, &[message.as_bytes()], &name)
                .unwrap();
            count += 1;
        }
    }
    capture.flush().unwrap();
    let Some(all) = tshark(&["-Y", "diameter"], &file) else {
        return;
    };
    assert_eq!(all.lines().count(), count, "{all}");
    // Errors only: one vector has an AVP of an unknown vendor, which is a warning.
    let complaints = tshark(
        &[
            "-Y",
            "_ws.malformed || _ws.expert.severity >= 0x800000",
            "-T",
            "fields",
            "-e",
            "frame.comment",
            "-e",
            "_ws.expert.message",
        ],
        &file,
    )
    .unwrap();
    assert!(complaints.is_empty(), "{complaints}");
}
