//! All that clients of Gx, Gxx, S9, Sd and Rx are sent, searched byte by byte for 1,000 names of PCRFs: requests and answers, success and
//! every class of failure.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use diameter::proto::known::{self, application, command};
use diameter::proto::{AvpFlags, AvpKey, AvpWriter, CommandFlags, MessageBuilder, MessageMut, ResultCode};
use testpeer::diameter::Peer;
use testpeer::local_within;

use super::support::{AF, GXX, IMSI, PGW, World, agent, request, subscriber};
use crate::support::{REALM, config, read};

const NAMES: usize = 1_000;
/// The realm of the PCRFs, with which each of their names ends.
const HOME: &str = "core.home.example";
/// Vendor-Id of 3GPP.
const TGPP: u32 = 10_415;

/// A name of a PCRF; the first one is that of the PCRF behind the router.
fn real(number: usize) -> String {
    format!("pcrf{number:04}.{HOME}")
}

fn pseudo(number: usize) -> String {
    format!("p{number}.edge.example")
}

async fn world(folder: &Path) -> World {
    let names = (0..NAMES).map(|number| (real(number), pseudo(number)));
    let names = names.chain([(HOME.to_owned(), "edge.example".to_owned())]);
    let names: String = names
        .map(|(actual, pseudo)| format!("        - {{actual: {actual}, pseudo: {pseudo}}}\n"))
        .collect();
    let hosts = [real(0)];
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let mut settings = agent(folder, &hosts, "      wait: 60s");
    let hiding = format!("topologyHiding:\n  scopes:\n    - names:\n{names}");
    settings.topology_hiding = read(config(), &hiding).topology_hiding;
    World::of(settings, &hosts).await
}

/// What clients have been sent.
struct Capture {
    names: HashSet<Vec<u8>>,
    /// Application, command, request, and result of an answer.
    kinds: BTreeSet<(u32, u32, bool, u32)>,
}

impl Capture {
    fn new() -> Self {
        Self {
            names: (0..NAMES).map(|number| real(number).into_bytes()).collect(),
            kinds: BTreeSet::new(),
        }
    }

    /// How many of the names are in these bytes, in letters of either case.
    fn finds(&self, bytes: &[u8]) -> usize {
        let bytes = bytes.to_ascii_lowercase();
        let found = bytes
            .windows(real(0).len())
            .filter(|part| self.names.contains(*part));
        found.collect::<HashSet<_>>().len()
    }

    /// The next message for a client, in which no name is.
    async fn next(&mut self, client: &mut Peer, command: u32) -> MessageMut {
        let message = client.expect(command).await;
        let routing = diameter::proto::Routing::scan(&message, b"").unwrap();
        let experimental = routing.experimental_result().map(|(_, code)| code);
        let result = routing.result_code.or(experimental).unwrap_or_default();
        self.kinds
            .insert((message.application(), command, message.is_request(), result));
        assert_eq!(
            self.finds(message.as_bytes()),
            0,
            "{} {command} {result}",
            message.application()
        );
        let bytes = message.as_bytes().to_ascii_lowercase();
        let realm = bytes.windows(HOME.len()).position(|part| part == HOME.as_bytes());
        assert_eq!(realm, None, "{} {command} {result}", message.application());
        message
    }
}

/// Every name, in everything that may hold one.
fn names(builder: &mut MessageBuilder, is_request: bool) {
    builder
        .put(known::ORIGIN_HOST, &*real(0))
        .put(known::ORIGIN_REALM, HOME);
    for number in 1..NAMES {
        let name = &*real(number);
        let upper = name.to_ascii_uppercase();
        match number % 9 {
            0 => builder.put(known::ROUTE_RECORD, name),
            1 => builder.put(known::ERROR_REPORTING_HOST, &*upper),
            2 => builder.put(known::ERROR_MESSAGE, &*format!("{name}: not now; ask ({name}).")),
            3 => builder.put(known::REDIRECT_HOST, &*format!("aaa://{name}:3868;transport=tcp")),
            4 => builder.put(known::CLASS, name.as_bytes()),
            5 => builder.group(known::FAILED_AVP, |group| {
                group
                    .put(known::ORIGIN_HOST, name)
                    .put(known::SESSION_ID, &*format!("{name};1;2"))
                    .group(known::FAILED_AVP, |inner| {
                        inner.put(known::ROUTE_RECORD, &*upper);
                    });
            }),
            6 if is_request => builder.group(known::PROXY_INFO, |group| {
                group
                    .put(known::PROXY_HOST, name)
                    .put(known::PROXY_STATE, name.as_bytes());
            }),
            7 => builder.put(known::USER_NAME, &*format!("{name}\u{20ac}")),
            _ => {
                // A group of a vendor that no dictionary has.
                let mut inner = AvpWriter::with_capacity(0);
                inner.put(known::SOURCE_ID, name);
                let unknown = AvpKey {
                    vendor: 99_999,
                    code: 7,
                };
                builder.put_raw(unknown, AvpFlags::VENDOR, inner.as_bytes())
            }
        };
    }
}

/// Vendor-Id, 0 for a Result-Code, and code.
const RESULTS: [(u32, u32); 13] = [
    (0, 2001),
    (0, 2002),
    (0, 3001),
    (0, 3002),
    (0, 3004),
    (0, 3006),
    (0, 4001),
    (0, 5003),
    (0, 5012),
    (0, 5030),
    (TGPP, 4142),
    (TGPP, 5144),
    (0, 5002),
];

/// The PCRF answers with all names, and the client gets none.
async fn answered(
    world: &mut World,
    capture: &mut Capture,
    is_of_af: bool,
    asked: &MessageMut,
    (vendor, code): (u32, u32),
) {
    let mut answer = MessageBuilder::answer(asked);
    if vendor == 0 {
        answer.put(known::RESULT_CODE, code);
    } else {
        answer.group(known::EXPERIMENTAL_RESULT, |group| {
            group
                .put(known::VENDOR_ID, vendor)
                .put(known::EXPERIMENTAL_RESULT_CODE, code);
        });
    }
    names(&mut answer, false);
    if code / 1000 == 3 {
        let flags = answer.flags_mut();
        *flags = flags.with(CommandFlags::ERROR);
    }
    let answer = answer.finish().unwrap();
    assert_eq!(capture.finds(answer.as_bytes()), NAMES);
    world.pcrfs[0].send(answer.as_bytes()).await;
    let client = if is_of_af { &mut world.af } else { &mut world.pgw };
    let got = capture.next(client, asked.command()).await;
    assert_eq!(got.require(known::ORIGIN_HOST).unwrap(), pseudo(0));
}

/// A request of a client, which the PCRF gets with its own names.
async fn asked(world: &mut World, is_of_af: bool, request: &MessageMut) -> MessageMut {
    let client = if is_of_af { &mut world.af } else { &mut world.pgw };
    client.send(request.as_bytes()).await;
    let asked = world.pcrfs[0].expect(request.command()).await;
    let bytes = asked.as_bytes();
    let is_there = bytes.windows(12).any(|part| part == b"edge.example");
    assert!(!is_there, "a pseudo name is at the PCRF");
    assert_eq!(asked.require(known::DESTINATION_HOST).unwrap(), real(0));
    asked
}

/// A CC-Request of a session, by the name that the client knows.
fn ccr(application: u32, host: &str, session: &str, kind: i32) -> MessageMut {
    request(command::CREDIT_CONTROL, application, host, session, |b| {
        b.put(known::CC_REQUEST_TYPE, kind)
            .put(known::CC_REQUEST_NUMBER, 0_u32)
            .put(known::DESTINATION_HOST, &*pseudo(0))
            .put(known::CLASS, pseudo(7).as_bytes());
        subscriber(b, 1, IMSI);
    })
}

/// A request of Rx, by the name that the client knows.
fn of_af(command: u32, session: &str) -> MessageMut {
    request(command, application::RX, AF, session, |b| {
        b.put(known::DESTINATION_HOST, &*pseudo(0));
        subscriber(b, 1, IMSI);
    })
}

/// A request of the PCRF with all names, which the client gets without; its answer is about the names as they were.
async fn asked_by_pcrf(
    world: &mut World,
    capture: &mut Capture,
    is_of_af: bool,
    (command, application, session): (u32, u32, &str),
) {
    let to = if is_of_af { AF } else { PGW };
    for code in [2001, 5012, 3004] {
        let mut sent = MessageBuilder::request(command, application);
        sent.put(known::SESSION_ID, session)
            .put(known::AUTH_APPLICATION_ID, application)
            .put(known::DESTINATION_REALM, REALM)
            .put(known::DESTINATION_HOST, to);
        names(&mut sent, true);
        let sent = sent.finish().unwrap();
        assert_eq!(capture.finds(sent.as_bytes()), NAMES);
        world.pcrfs[0].send(sent.as_bytes()).await;
        let client = if is_of_af { &mut world.af } else { &mut world.pgw };
        let arrived = capture.next(client, command).await;
        let mut answer = MessageBuilder::answer(&arrived);
        let named = arrived.require(known::ORIGIN_HOST).unwrap();
        assert_eq!(named, pseudo(0));
        answer
            .put(known::RESULT_CODE, code)
            .put(known::ORIGIN_HOST, to)
            .put(known::ORIGIN_REALM, REALM)
            .group(known::FAILED_AVP, |group| {
                group.put(known::ORIGIN_HOST, named);
            });
        client.send(answer.finish().unwrap().as_bytes()).await;
        let answer = world.pcrfs[0].expect_result(command, ResultCode(code)).await;
        assert_eq!(answer.require(known::SESSION_ID).unwrap(), session);
        let failed = answer.require(known::FAILED_AVP).unwrap();
        assert_eq!(failed.get(known::ORIGIN_HOST).unwrap(), Some(&*real(0)));
        let proxies = answer.avps().flatten().filter(|avp| avp.is(known::PROXY_INFO));
        assert_eq!(
            proxies.count(),
            (1..NAMES).filter(|number| number % 9 == 6).count()
        );
    }
}

#[test]
fn a_capture_of_all_messages_to_clients_has_none_of_a_thousand_names() {
    local_within(std::time::Duration::from_secs(600), async {
        let folder = tempfile::tempdir().unwrap();
        let (mut world, mut capture) = (world(folder.path()).await, Capture::new());
        // Sessions of gateways: that of Gx stays, for those of the TDF and the AF.
        for application in [application::S9, GXX, application::GX] {
            for (number, result) in RESULTS.into_iter().enumerate() {
                let failing = format!("pgw;{application};{number}");
                let begins = asked(&mut world, false, &ccr(application, PGW, &failing, 1)).await;
                answered(&mut world, &mut capture, false, &begins, result).await;
                let ends = asked(&mut world, false, &ccr(application, PGW, &failing, 3)).await;
                answered(&mut world, &mut capture, false, &ends, result).await;
            }
            let session = format!("pgw;{application}");
            let begins = asked(&mut world, false, &ccr(application, PGW, &session, 1)).await;
            answered(&mut world, &mut capture, false, &begins, (0, 2001)).await;
            asked_by_pcrf(
                &mut world,
                &mut capture,
                false,
                (command::RE_AUTH, application, &session),
            )
            .await;
            for result in RESULTS.into_iter().filter(|result| result.1 != 5002) {
                let update = asked(&mut world, false, &ccr(application, PGW, &session, 2)).await;
                answered(&mut world, &mut capture, false, &update, result).await;
            }
        }
        // Those of AFs, and of a TDF (which is the same peer here).
        for (number, result) in RESULTS.into_iter().enumerate() {
            let session = format!("af;{number}");
            for command in [command::AA, command::SESSION_TERMINATION] {
                let next = asked(&mut world, true, &of_af(command, &session)).await;
                answered(&mut world, &mut capture, true, &next, result).await;
            }
            let session = format!("tdf;{number}");
            for kind in [1, 2, 3] {
                let next = asked(&mut world, true, &ccr(application::SD, AF, &session, kind)).await;
                answered(&mut world, &mut capture, true, &next, result).await;
            }
        }
        for command in [command::RE_AUTH, command::ABORT_SESSION] {
            asked_by_pcrf(&mut world, &mut capture, true, (command, application::RX, "af;1")).await;
        }
        // The PCRF has begun this session, and its name is in the Session-Id.
        let session = format!("{};1;9", real(0));
        for command in [command::TDF_SESSION, command::RE_AUTH] {
            asked_by_pcrf(
                &mut world,
                &mut capture,
                true,
                (command, application::SD, &session),
            )
            .await;
        }
        // Answers of three commands of Gx, Gxx and S9 are one; RAR and ASR are requests.
        let gateways = 3 * (RESULTS.len() + 1);
        let (afs, tdf) = (2 * RESULTS.len() + 2, RESULTS.len() + 2);
        assert_eq!(capture.kinds.len(), gateways + afs + tdf, "{:?}", capture.kinds);
    });
}
