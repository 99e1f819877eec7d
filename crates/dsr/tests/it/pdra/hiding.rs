//! Clients of Gx and Rx know PCRFs by other names, each application by its own, and reach them by these.

use diameter::proto::known::{self, application, command};
use diameter::proto::{AvpFlags, AvpKey, CommandFlags, MessageBuilder, MessageMut, ResultCode};
use testpeer::diameter::Peer;

use super::support::{AF, IMSI, PCRFS, PGW, World, aar, agent, ccr, request, subscriber};
use crate::support::{REALM, run};

/// The realm of the PCRFs, and a host of theirs before us.
const HOME: &str = "pcc.home.example";
const AGENT: &str = "agent.pcc.home.example";

const HIDING: &str = "topologyHiding:
  scopes:
    - applications: [16777238]
      networks: [example]
      names:
        - {actual: PCRF1.example, pseudo: gx-a.edge.example}
        - {actual: pcrf2.example, pseudo: gx-b.edge.example}
        - {actual: pcc.home.example, pseudo: edge.example}
        - {actual: agent.pcc.home.example, pseudo: gx-x.edge.example}
    - applications: [16777236]
      networks: [epc.example]
      names:
        - {actual: pcrf1.example, pseudo: rx-a.edge.example}
        - {actual: pcrf2.example, pseudo: rx-b.edge.example}
        - {actual: pcc.home.example, pseudo: edge.example}
        - {actual: agent.pcc.home.example, pseudo: rx-x.edge.example}
";

/// No real name is in the message.
fn is_hidden(message: &MessageMut) {
    let bytes = message.as_bytes().to_ascii_lowercase();
    for name in PCRFS.iter().chain([&HOME, &AGENT]) {
        let is_there = bytes.windows(name.len()).any(|part| part == name.as_bytes());
        assert!(!is_there, "{name} in {}", String::from_utf8_lossy(&bytes));
    }
}

async fn world(folder: &std::path::Path) -> World {
    let mut config = agent(folder, &PCRFS, "");
    config.topology_hiding = crate::support::read(crate::support::config(), HIDING).topology_hiding;
    World::of(config, &PCRFS).await
}

/// Everything that may hold a name, in an answer or a request of this PCRF.
fn names(builder: &mut MessageBuilder, at: usize) {
    let host = PCRFS[at];
    builder
        .put(known::ORIGIN_HOST, host)
        .put(known::ORIGIN_REALM, HOME)
        .put(known::ERROR_REPORTING_HOST, AGENT)
        .put(
            known::ERROR_MESSAGE,
            &*format!("{host} (behind {AGENT}) says no."),
        )
        .put(known::REDIRECT_HOST, &*format!("aaa://{host}:3868;transport=tcp"))
        .put(known::CLASS, host.as_bytes())
        .group(known::FAILED_AVP, |group| {
            group
                .put(known::DESTINATION_HOST, host)
                .put(known::ROUTE_RECORD, AGENT);
        });
    // A group of a vendor that no dictionary has.
    let mut inner = diameter::proto::AvpWriter::with_capacity(0);
    inner.put(known::SOURCE_ID, host);
    let unknown = AvpKey {
        vendor: 99_999,
        code: 7,
    };
    builder.put_raw(unknown, AvpFlags::VENDOR, inner.as_bytes());
}

/// The PCRF answers with all of its names; what the client gets has none of them.
async fn answered(
    pcrf: &mut Peer,
    client: &mut Peer,
    at: usize,
    asked: &MessageMut,
    code: u32,
) -> MessageMut {
    let mut answer = MessageBuilder::answer(asked);
    answer.put(known::RESULT_CODE, code);
    names(&mut answer, at);
    pcrf.send(answer.finish().unwrap().as_bytes()).await;
    let answer = client.expect_result(asked.command(), ResultCode(code)).await;
    is_hidden(&answer);
    answer
}

/// A request of the PCRF in a session reaches the client, which answers; what comes back is about the request as it was sent.
async fn asked_by_pcrf(
    pcrf: &mut Peer,
    client: &mut Peer,
    at: usize,
    to: &str,
    (command, application, session): (u32, u32, &str),
) {
    let mut sent = MessageBuilder::request(command, application);
    sent.put(known::SESSION_ID, session)
        .put(known::ROUTE_RECORD, AGENT)
        .put(known::DESTINATION_REALM, REALM)
        .put(known::DESTINATION_HOST, to);
    names(&mut sent, at);
    sent.group(known::PROXY_INFO, |group| {
        group
            .put(known::PROXY_HOST, AGENT)
            .put(known::PROXY_STATE, PCRFS[at].as_bytes());
    });
    let mut sent = sent.finish().unwrap();
    sent.set_flags(sent.flags().with(CommandFlags::PROXIABLE));
    pcrf.send(sent.as_bytes()).await;
    let arrived = client.expect(command).await;
    is_hidden(&arrived);
    assert_eq!(arrived.require(known::DESTINATION_HOST).unwrap(), to);
    let mut answer = MessageBuilder::answer(&arrived);
    let named = arrived.require(known::ORIGIN_HOST).unwrap();
    answer
        .put(known::RESULT_CODE, ResultCode::UNABLE_TO_COMPLY.0)
        .put(known::ORIGIN_HOST, to)
        .put(known::ORIGIN_REALM, REALM)
        .group(known::FAILED_AVP, |group| {
            group.put(known::ORIGIN_HOST, named);
        });
    client.send(answer.finish().unwrap().as_bytes()).await;
    let answer = pcrf.expect_result(command, ResultCode::UNABLE_TO_COMPLY).await;
    let failed = answer.require(known::FAILED_AVP).unwrap();
    assert_eq!(failed.get(known::ORIGIN_HOST).unwrap(), Some(PCRFS[at]));
    let proxy = answer.require(known::PROXY_INFO).unwrap();
    assert_eq!(proxy.clone().get(known::PROXY_HOST).unwrap(), Some(AGENT));
    assert_eq!(proxy.get(known::PROXY_STATE).unwrap(), Some(PCRFS[at].as_bytes()));
}

#[test]
fn no_message_to_a_client_has_the_name_of_a_pcrf_and_all_come_back() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = world(folder.path()).await;
        let first = ccr("pgw;1;1", 1, |b| {
            subscriber(b, 1, IMSI);
            b.put(known::FRAMED_IP_ADDRESS, &[10, 0, 0, 1]);
        });
        let (at, asked) = world.reaches(&first).await;
        let World { pcrfs, pgw, af, .. } = &mut world;
        let pcrf = &mut pcrfs[at];
        let answer = answered(pcrf, pgw, at, &asked, 2001).await;
        let gx = ["gx-a.edge.example", "gx-b.edge.example"][at];
        assert_eq!(answer.require(known::ORIGIN_HOST).unwrap(), gx);
        assert_eq!(answer.require(known::ORIGIN_REALM).unwrap(), "edge.example");

        // The AF has another name for the same PCRF.
        let of_af = aar("af;1;1", |b| {
            b.put(known::FRAMED_IP_ADDRESS, &[10, 0, 0, 1]);
        });
        af.send(of_af.as_bytes()).await;
        let asked = pcrf.expect(command::AA).await;
        let answer = answered(pcrf, af, at, &asked, 2001).await;
        let rx = ["rx-a.edge.example", "rx-b.edge.example"][at];
        assert_eq!(answer.require(known::ORIGIN_HOST).unwrap(), rx);

        for command in [command::RE_AUTH, command::ABORT_SESSION] {
            asked_by_pcrf(pcrf, pgw, at, PGW, (command, application::GX, "pgw;1;1")).await;
            asked_by_pcrf(pcrf, af, at, AF, (command, application::RX, "af;1;1")).await;
        }

        // In the session, by the name that the client knows; every kind of answer.
        for (kind, code) in [(2, 2001), (2, 5030), (2, 3004), (2, 3006), (2, 4001), (3, 2001)] {
            let next = ccr("pgw;1;1", kind, |b| {
                b.put(known::DESTINATION_HOST, gx)
                    .put(known::CLASS, gx.as_bytes());
            });
            pgw.send(next.as_bytes()).await;
            let asked = pcrf.expect(command::CREDIT_CONTROL).await;
            assert_eq!(asked.require(known::DESTINATION_HOST).unwrap(), PCRFS[at]);
            // What the PCRF has given, it gets back.
            assert_eq!(asked.require(known::CLASS).unwrap(), PCRFS[at].as_bytes());
            answered(pcrf, pgw, at, &asked, code).await;
        }
        let end = request(command::SESSION_TERMINATION, application::RX, AF, "af;1;1", |b| {
            b.put(known::DESTINATION_HOST, rx);
        });
        af.send(end.as_bytes()).await;
        let asked = pcrf.expect(command::SESSION_TERMINATION).await;
        answered(pcrf, af, at, &asked, 2001).await;
    });
}

#[test]
fn answers_of_the_router_itself_name_no_pcrf() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = world(folder.path()).await;
        let at = world
            .session(&ccr("pgw;1;1", 1, |b| subscriber(b, 1, IMSI)))
            .await;
        drop(world.pcrfs);
        for host in PCRFS {
            crate::support::until(|| {
                let hops = world.dsr.hops();
                hops.get(host.as_bytes()).unwrap()[0].state() != dsr::HopState::Available
            })
            .await;
        }
        let to = ["gx-a.edge.example", "gx-b.edge.example"][at];
        let named = |session: &str, kind: i32| {
            ccr(session, kind, |b| {
                b.put(known::DESTINATION_HOST, to);
                subscriber(b, 1, IMSI);
            })
        };
        // Unreachable, refused by the application, and a prefix that is none beside the name.
        let wrong = ccr("pgw;1;2", 1, |b| {
            b.put(known::DESTINATION_HOST, to)
                .put(known::FRAMED_IPV6_PREFIX, &[0, 8, 0x20]);
        });
        for request in [named("pgw;1;1", 2), named("pgw;1;3", 1), wrong] {
            world.pgw.send(request.as_bytes()).await;
            let answer = world.pgw.expect(command::CREDIT_CONTROL).await;
            assert_ne!(answer.require(known::RESULT_CODE).unwrap(), 2001);
            is_hidden(&answer);
        }
    });
}

/// Names of these servers by which what has some texts gets too long: a message of 210,000 bytes gets 17 MB.
pub(crate) fn lengthening(application: u32, servers: [&str; 2]) -> dsr::config::TopologyHiding {
    let long = |letter: &str| format!("{}example", format!("{}.", letter.repeat(60)).repeat(4));
    let settings = format!(
        "topologyHiding:
  scopes:
    - applications: [{application}]
      names:
        - {{actual: pa, pseudo: {}}}
        - {{actual: {}, pseudo: cb}}
        - {{actual: {}, pseudo: gx-a.edge.example}}
        - {{actual: {}, pseudo: gx-b.edge.example}}
",
        long("x"),
        long("y"),
        servers[0],
        servers[1],
    );
    crate::support::read(crate::support::config(), &settings).topology_hiding
}

/// A successful answer of a server that gets too long by such names.
pub(crate) fn too_long(asked: &MessageMut, server: &str) -> MessageMut {
    let mut answer = MessageBuilder::answer(asked);
    answer
        .put(known::RESULT_CODE, 2001_u32)
        .put(known::ORIGIN_HOST, server)
        .put(known::ERROR_MESSAGE, &*"pa ".repeat(70_000));
    answer.finish().unwrap()
}

#[test]
fn what_gets_too_long_by_other_names_is_refused_and_counted() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut config = agent(folder.path(), &PCRFS, "");
        config.topology_hiding = lengthening(application::GX, PCRFS);
        let mut world = World::of(config, &PCRFS).await;
        let at = world
            .session(&ccr("pgw;1;1", 1, |b| subscriber(b, 1, IMSI)))
            .await;
        let unhidden = || world.dsr.count(dsr::Event::HidingTooLong);
        let (pcrf, pgw) = (&mut world.pcrfs[at], &mut world.pgw);

        // The answer of a PCRF.
        let update = ccr("pgw;1;1", 2, |_| ());
        pgw.send(update.as_bytes()).await;
        let asked = pcrf.expect(command::CREDIT_CONTROL).await;
        pcrf.send(too_long(&asked, PCRFS[at]).as_bytes()).await;
        let refused = pgw
            .expect_result(command::CREDIT_CONTROL, ResultCode::UNABLE_TO_COMPLY)
            .await;
        assert_eq!(refused.require(known::SESSION_ID).unwrap(), "pgw;1;1");
        is_hidden(&refused);
        assert_eq!(unhidden(), 1);

        // An answer that does not reach the client begins no session.
        let kept = world.dsr.count_of::<dsr_pdra::Pdra>(dsr_pdra::Event::Kept);
        let first = ccr("pgw;1;2", 1, |b| subscriber(b, 1, IMSI));
        pgw.send(first.as_bytes()).await;
        let asked = pcrf.expect(command::CREDIT_CONTROL).await;
        pcrf.send(too_long(&asked, PCRFS[at]).as_bytes()).await;
        pgw.expect_result(command::CREDIT_CONTROL, ResultCode::UNABLE_TO_COMPLY)
            .await;
        assert!(world.dsr.pdra_sessions("session", "pgw;1;2").is_empty());
        let kept_then = world.dsr.count_of::<dsr_pdra::Pdra>(dsr_pdra::Event::Kept);
        assert_eq!((unhidden(), kept_then), (2, kept));
        // The PCRF has begun it: the router ends it there in the name of the client, and again where that fails.
        for result in [ResultCode::TOO_BUSY, ResultCode::SUCCESS] {
            let end = pcrf.expect(command::CREDIT_CONTROL).await;
            assert_eq!(end.require(known::SESSION_ID).unwrap(), "pgw;1;2");
            assert_eq!(end.require(known::CC_REQUEST_TYPE).unwrap(), 3);
            assert_eq!(end.require(known::CC_REQUEST_NUMBER).unwrap(), 1);
            assert_eq!(end.require(known::ORIGIN_HOST).unwrap(), PGW);
            // It has answered: the T flag is not for that (RFC 6733 §3).
            assert!(!end.flags().contains(CommandFlags::RETRANSMITTED));
            pcrf.answer(&end, result).await;
        }
        let ended = || {
            let event = dsr_pdra::Event::EndedForClient;
            world.dsr.count_of::<dsr_pdra::Pdra>(event)
        };
        crate::support::until(|| ended() == 1).await;

        // Its request, and one of the client.
        let rar = request(command::RE_AUTH, application::GX, PCRFS[at], "pgw;1;1", |b| {
            b.put(known::DESTINATION_HOST, PGW)
                .put(known::ERROR_MESSAGE, &*"pa ".repeat(70_000));
        });
        pcrf.send(rar.as_bytes()).await;
        let refused = pcrf.expect(command::RE_AUTH).await;
        assert!(refused.require(known::RESULT_CODE).unwrap() >= 3000);
        assert_eq!(unhidden(), 3);
        let update = ccr("pgw;1;1", 2, |b| {
            b.put(known::CLASS, "cb ".repeat(70_000).as_bytes());
        });
        pgw.send(update.as_bytes()).await;
        let refused = pgw.expect(command::CREDIT_CONTROL).await;
        assert!(refused.require(known::RESULT_CODE).unwrap() >= 3000);
        assert_eq!(unhidden(), 4);
    });
}

#[test]
fn clients_of_other_networks_and_applications_see_the_real_names() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = world(folder.path()).await;
        // A TDF: Sd is in no scope.
        let first = ccr("pgw;1;1", 1, |b| subscriber(b, 1, IMSI));
        let at = world.session(&first).await;
        let tdf = request(command::CREDIT_CONTROL, application::SD, PGW, "tdf;1;1", |b| {
            b.put(known::CC_REQUEST_TYPE, 1)
                .put(known::CC_REQUEST_NUMBER, 0_u32);
            subscriber(b, 1, IMSI);
        });
        // An AF of another realm.
        let mut abroad = MessageBuilder::request(command::AA, application::RX);
        abroad
            .put(known::SESSION_ID, "af;9;9")
            .put(known::AUTH_APPLICATION_ID, application::RX)
            .put(known::ORIGIN_HOST, AF)
            .put(known::ORIGIN_REALM, "otherepc.example")
            .put(known::DESTINATION_REALM, REALM);
        subscriber(&mut abroad, 1, IMSI);
        let mut abroad = abroad.finish().unwrap();
        abroad.set_flags(abroad.flags().with(CommandFlags::PROXIABLE));
        for request in [tdf, abroad] {
            world.af.send(request.as_bytes()).await;
            let asked = world.pcrfs[at].expect(request.command()).await;
            world.pcrfs[at].answer(&asked, ResultCode::SUCCESS).await;
            let answer = world
                .af
                .expect_result(request.command(), ResultCode::SUCCESS)
                .await;
            assert_eq!(answer.require(known::ORIGIN_HOST).unwrap(), PCRFS[at]);
        }
    });
}
