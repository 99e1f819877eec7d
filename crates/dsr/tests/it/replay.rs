//! Captures through the security application.

use std::net::SocketAddrV4;
use std::path::Path;

use diameter::proto::known::{self, command};
use diameter::proto::{MessageBuilder, MessageMut};
use dsr::config::{Trace, TracePoint};
use dsr::replay::{Options, Refused, Report, replay};
use dsr_dsa::{Dsa, Event};
use testpeer::pcap::{ETHERNET, Pcap, ethernet, tcp};

use crate::dsa::{ANSWER, DETECT, FOREIGN, HEAD, HOME, HSS, RESET, guarded, request, served, tables};
use crate::support::{Waiting, client, config, read, run, until};

/// A capture of connections, each of which sends from a port of its own.
struct Link {
    pcap: Pcap,
    /// Next numbers of the streams.
    sent: Vec<(SocketAddrV4, u32)>,
}

impl Link {
    fn new() -> Self {
        let (pcap, sent) = (Pcap::new(ETHERNET), Vec::new());
        Self { pcap, sent }
    }

    fn send(&mut self, from: &str, to: &str, message: &MessageMut) {
        let (from, to): (SocketAddrV4, SocketAddrV4) = (from.parse().unwrap(), to.parse().unwrap());
        let at = self.sent.iter().position(|(known, _)| *known == from);
        let at = at.unwrap_or_else(|| {
            self.sent.push((from, 1));
            self.sent.len() - 1
        });
        let number = &mut self.sent[at].1;
        let packet = tcp(from, to, (*number, 0, 0), message.as_bytes());
        *number += message.as_bytes().len() as u32;
        self.pcap.packet(&ethernet(&packet));
    }
}

const PARTNER: &str = "192.0.2.1:40000";
const ROUTER: &str = "192.0.2.9:3868";
const ROUTER_TO_HSS: &str = "192.0.2.9:41000";
const OUR_HSS: &str = "192.0.2.20:3868";
const UNKNOWN: &str = "192.0.2.66:40000";

/// A message between neighbours.
fn of_neighbour(command: u32, host: &str) -> MessageMut {
    let mut builder = MessageBuilder::request(command, 0);
    builder
        .put(known::ORIGIN_HOST, host)
        .put(known::ORIGIN_REALM, "example");
    builder.finish().unwrap()
}

fn numbered(mut message: MessageMut, number: u32) -> MessageMut {
    message.set_hop_by_hop(number);
    message.set_end_to_end(number);
    message
}

fn success(request: &MessageMut) -> MessageMut {
    let mut answer = MessageBuilder::answer(request);
    answer
        .put(known::SESSION_ID, request.require(known::SESSION_ID).unwrap())
        .put(known::RESULT_CODE, 2001)
        .put(known::ORIGIN_HOST, HSS)
        .put(known::ORIGIN_REALM, HOME);
    answer.finish().unwrap()
}

/// The configuration of a router with these tables.
fn guard(directory: &Path) -> dsr::Config {
    let tables = directory.display();
    read(
        config(),
        &format!("applications: [{{name: guard, dsa: {{tables: {tables}, learning: 0s}}}}]\n"),
    )
}

fn replayed(directory: &Path, pcap: &Pcap, options: &Options) -> Report {
    let file = directory.join("link.pcap");
    std::fs::write(&file, pcap.bytes()).unwrap();
    replay(&guard(directory), &file, options).unwrap()
}

fn rows(report: &Report) -> Vec<(&str, &str, &str, u64)> {
    let rows = report.findings.iter();
    rows.map(|row| (row.partner.as_str(), row.measure, row.outcome, row.count))
        .collect()
}

/// What a partner sends: a registration, which our router sends on, a purge of another MME, and a command that is not for
/// interconnection.
fn day(link: &mut Link) {
    link.send(PARTNER, ROUTER, &of_neighbour(280, FOREIGN));
    link.send(OUR_HSS, ROUTER_TO_HSS, &of_neighbour(280, HSS));
    let registration = numbered(request(command::UPDATE_LOCATION, "mme1"), 1);
    let mut sent_on = numbered(request(command::UPDATE_LOCATION, "mme1"), 1);
    sent_on.set_hop_by_hop(77);
    link.send(PARTNER, ROUTER, &registration);
    link.send(ROUTER_TO_HSS, OUR_HSS, &sent_on);
    link.send(OUR_HSS, ROUTER_TO_HSS, &success(&sent_on));
    link.send(ROUTER, PARTNER, &success(&registration));
    link.send(PARTNER, ROUTER, &numbered(request(command::PURGE_UE, "mme2"), 2));
    let reset = numbered(request(RESET, "mme1"), 3);
    link.send(PARTNER, ROUTER, &reset);
    link.send(ROUTER, PARTNER, &success(&reset));
}

#[test]
fn each_request_is_judged_once_with_what_answers_before_it_have_taught() {
    let directory = tables(&format!("AppCmdCst,Enable,{ANSWER}\nPreLocChk,Enable,{DETECT}\n"));
    let mut link = Link::new();
    day(&mut link);
    let report = replayed(
        directory.path(),
        &link.pcap,
        &Options {
            examples: 1,
            ..Options::default()
        },
    );
    let expected = [
        ("west", "AppCmdCst", "answered", 1),
        ("west", "PreLocChk", "detected", 1),
    ];
    assert_eq!(rows(&report), expected);
    assert_eq!(
        (
            report.requests,
            report.copies,
            report.answers,
            report.of_neighbours
        ),
        (4, 1, 3, 2)
    );
    // The answers to the registration on both connections, of which the application sees one; none behind a block.
    assert_eq!((report.screened, report.blocked, report.subscribers), (4, 1, 1));
    assert_eq!((report.answers_without_request, report.unnamed), (0, 0));
    let example = &report.findings[1].examples[0];
    assert_eq!(example["peer"], FOREIGN);
    assert_eq!(example["imsi"], "262011234567890");
    // Times are those of the capture.
    let (first, last) = (report.first.unwrap(), report.last.unwrap());
    assert!((first..=last).contains(&example["time"].as_f64().unwrap()));
    assert_eq!(last - first, 8.0);
}

#[test]
fn a_request_of_a_sender_without_a_name_is_that_of_an_unlisted_peer() {
    let directory = tables(&format!("AppCmdCst,Enable,{DETECT}\n"));
    let mut link = Link::new();
    // The same identifiers and origin as before at another peer do not make a copy of it.
    for sender in [PARTNER, UNKNOWN] {
        link.send(sender, ROUTER, &numbered(request(RESET, "mme1"), 3));
    }
    let report = replayed(directory.path(), &link.pcap, &Options::default());
    assert_eq!(rows(&report), [("unlisted", "AppCmdCst", "detected", 2)]);
    assert_eq!((report.unnamed, report.copies), (2, 0));
    assert!(report.peers.iter().all(|peer| peer.host.is_none()));
    for address in ["192.0.2.1", PARTNER] {
        let named = format!("{address}={FOREIGN}").parse().unwrap();
        let peers = vec![named, format!("{UNKNOWN}=hss2.{HOME}").parse().unwrap()];
        let report = replayed(
            directory.path(),
            &link.pcap,
            &Options {
                peers,
                ..Options::default()
            },
        );
        // Behind a peer of ours an origin of a foreign realm is foreign still.
        let expected = [
            ("unlisted", "AppCmdCst", "detected", 1),
            ("west", "AppCmdCst", "detected", 1),
        ];
        assert_eq!(rows(&report), expected);
        assert_eq!(report.unnamed, 0);
    }
    for wrong in ["192.0.2.1", "host=x", "192.0.2.1="] {
        assert!(wrong.parse::<dsr::replay::Named>().is_err(), "{wrong}");
    }
}

#[test]
fn learning_lasts_for_the_time_of_the_setting_in_the_capture() {
    let directory = tables(&format!("PreLocChk,Enable,{ANSWER}\n"));
    let mut link = Link::new();
    day(&mut link);
    for (learning, outcome) in [(3600, "detected"), (2, "answered")] {
        let learning = Some(std::time::Duration::from_secs(learning));
        let report = replayed(
            directory.path(),
            &link.pcap,
            &Options {
                learning,
                ..Options::default()
            },
        );
        assert_eq!(rows(&report), [("west", "PreLocChk", outcome, 1)]);
    }
}

#[test]
fn the_trace_of_a_router_has_the_findings_of_the_router() {
    run(async {
        let directory = tables(&format!("AppCmdCst,Enable,{DETECT}\nPreLocChk,Enable,{ANSWER}\n"));
        let traces = directory.path().join("trace");
        let server = Waiting::new(HSS).await;
        let mut base = config();
        base.peers.push(server.peer());
        let mut config = guarded(base, directory.path());
        config.trace = Trace {
            directory: traces.clone(),
            points: vec![TracePoint {
                name: "all".to_owned(),
                messages: 1000,
                ..TracePoint::default()
            }],
            ..Trace::default()
        };
        let dsr = dsr::start(config.clone()).unwrap();
        let mut hss = server.connected(&dsr).await;
        let mut foreign = client(&dsr, FOREIGN).await;
        for (command, host) in [
            (command::UPDATE_LOCATION, "mme1"),
            (RESET, "mme1"),
            (command::PURGE_UE, "mme1"),
        ] {
            served(&mut foreign, &mut hss, &request(command, host)).await;
        }
        foreign.send(request(command::PURGE_UE, "mme2").as_bytes()).await;
        foreign.expect(command::PURGE_UE).await;
        let found = dsr.count_of::<Dsa>(Event::Found);
        let screened = dsr.count_of::<Dsa>(Event::Screened);
        assert_eq!((found, screened), (2, 7));
        tokio::task::spawn_blocking(move || dsr.stop())
            .await
            .unwrap()
            .unwrap();
        let report = replay(&config, &traces.join("all.pcapng"), &Options::default()).unwrap();
        let expected = [
            ("west", "AppCmdCst", "detected", 1),
            ("west", "PreLocChk", "answered", 1),
        ];
        assert_eq!(rows(&report), expected);
        assert_eq!(
            (report.screened, report.unnamed, report.answers_without_request),
            (screened, 0, 0)
        );
    });
}

#[test]
fn the_samples_of_findings_have_the_findings() {
    run(async {
        let directory = tables(&format!("AppCmdCst,Enable,{DETECT}\n"));
        let samples = directory.path().join("samples");
        let server = Waiting::new(HSS).await;
        let mut base = config();
        base.peers.push(server.peer());
        let mut config = guarded(base, directory.path());
        let dsa = config.applications[0].dsa.as_mut().unwrap();
        dsa.samples = Some(dsr_dsa::config::Samples {
            directory: samples.clone(),
            ..dsr_dsa::config::Samples::default()
        });
        let dsr = dsr::start(config.clone()).unwrap();
        let mut hss = server.connected(&dsr).await;
        let mut foreign = client(&dsr, FOREIGN).await;
        for command in [command::UPDATE_LOCATION, RESET] {
            served(&mut foreign, &mut hss, &request(command, "mme1")).await;
        }
        let file = samples.join("findings.pcapng");
        until(|| std::fs::read(&file).is_ok_and(|bytes| bytes.len() > 300)).await;
        tokio::task::spawn_blocking(move || dsr.stop())
            .await
            .unwrap()
            .unwrap();
        let report = replay(&config, &file, &Options::default()).unwrap();
        assert_eq!(rows(&report), [("west", "AppCmdCst", "detected", 1)]);
        assert_eq!((report.screened, report.unnamed), (1, 0));
    });
}

#[test]
fn a_configuration_without_the_application_and_a_file_that_is_no_capture_are_refused() {
    let directory = tables(&format!("AppCmdCst,Enable,{DETECT}\n"));
    let file = directory.path().join("Realm_List.csv");
    let options = Options::default();
    let usage = |config: &dsr::Config, options: &Options| match replay(config, &file, options) {
        Err(Refused::Usage(mistake)) => mistake,
        other => panic!("{other:?}"),
    };
    assert!(usage(&config(), &options).contains("one security application"));
    let guard = guard(directory.path());
    let mut two = guard.clone();
    two.applications.extend(guard.applications.clone());
    assert!(usage(&two, &options).contains("has 2: name one"));
    let other = Options {
        application: Some("other".to_owned()),
        ..Options::default()
    };
    assert!(usage(&guard, &other).contains("`other`"));
    match replay(&guard, &file, &options) {
        Err(Refused::File(mistake)) => assert!(mistake.contains("is not a capture"), "{mistake}"),
        other => panic!("{other:?}"),
    }
    crate::dsa::write(
        directory.path(),
        "Security_Countermeasure_Config",
        &format!("{HEAD}Nonsense,Enable,{DETECT}\n"),
    );
    assert!(usage(&guard, &options).contains("unknown measure"));
}
