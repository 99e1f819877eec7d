//! Which messages pass the router: those of PA2, and those of a redirect agent (TS 29.213 §7.1, §7.4.2).

use diameter::proto::known::{self, application, command};
use diameter::proto::{CommandFlags, MessageMut, ResultCode};
use dsr_pdra::Event;
use testpeer::diameter::Peer;

use super::support::{AF, IMSI, PCRFS, PGW, World, aar, ccr, client, initial, request, subscriber};
use crate::support::{DSR, available, config, one_list, routing, run};

/// An AA-Request for the subscriber.
fn of_af(session: &str) -> MessageMut {
    aar(session, |b| subscriber(b, 1, IMSI))
}

#[test]
fn with_pa2_sessions_of_gateways_end_here_and_those_of_afs_are_not_kept() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "      mode: pa2\n      wait: 60s").await;
        let at = world.session(&initial("pgw;1;1", IMSI)).await;
        assert_eq!(world.of_af(&of_af("af;1;1")).await, at);
        assert_eq!(world.count(Event::Kept), 1);
        let end = |host: Option<&str>| {
            request(command::SESSION_TERMINATION, application::RX, AF, "af;1;1", |b| {
                b.maybe(known::DESTINATION_HOST, host);
            })
        };
        world.af.send(end(None).as_bytes()).await;
        world
            .af
            .expect_result(command::SESSION_TERMINATION, ResultCode::UNKNOWN_SESSION_ID)
            .await;
        assert_eq!(world.of_af(&end(Some(PCRFS[at]))).await, at);
        // The end of the gateway's session passes, and ends the binding.
        let end = ccr("pgw;1;1", 3, |b| {
            b.put(known::DESTINATION_HOST, PCRFS[at]);
        });
        assert_eq!(world.session(&end).await, at);
        world.is_unknown(&of_af("af;1;2")).await;
        assert_eq!(world.count(Event::Ended), 1);
    });
}

/// The PCRF to which a client is redirected, for which requests, and for how long.
async fn redirected(client: &mut Peer, request: &MessageMut) -> (usize, i32, Option<u32>) {
    client.send(request.as_bytes()).await;
    let answer = client
        .expect_result(request.command(), ResultCode::REDIRECT_INDICATION)
        .await;
    assert!(answer.flags().contains(CommandFlags::ERROR));
    assert_eq!(answer.require(known::ORIGIN_HOST).unwrap(), DSR);
    let uri = answer.require(known::REDIRECT_HOST).unwrap();
    let at = PCRFS.iter().position(|host| uri == format!("aaa://{host}"));
    let usage = answer.require(known::REDIRECT_HOST_USAGE).unwrap();
    let seconds = answer.get(known::REDIRECT_MAX_CACHE_TIME).unwrap();
    (at.unwrap(), usage, seconds)
}

#[test]
fn a_redirect_agent_sends_all_clients_of_a_subscriber_to_one_pcrf_until_its_session_ends() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "      mode: redirect\n      wait: 60s").await;
        let first = initial("pgw;1;1", IMSI);
        let (at, usage, seconds) = redirected(&mut world.pgw, &first).await;
        // DONT_CACHE: the gateway asks again when it ends its session.
        assert_eq!((usage, seconds), (0, None));
        let rows = world.dsr.pdra_sessions("binding", IMSI);
        assert_eq!(rows[0]["pcrf"], PCRFS[at]);
        // Again, another one of the subscriber, and what comes in the session.
        let mut again = first.clone();
        again.set_flags(again.flags().with(CommandFlags::RETRANSMITTED));
        for request in [
            again,
            initial("pgw;1;2", IMSI),
            ccr("pgw;1;1", 2, |_| ()),
            ccr("pgw;1;2", 3, |_| ()),
        ] {
            assert_eq!(redirected(&mut world.pgw, &request).await, (at, 0, None));
        }
        // ALL_SESSION: the AF comes back with its next session.
        let of_session = redirected(&mut world.af, &of_af("af;1;1")).await;
        assert_eq!(of_session, (at, 1, Some(7 * 24 * 3600)));
        assert_eq!(world.dsr.pdra_sessions("binding", IMSI).len(), 1);
        // What a PCRF sends passes.
        let rar = request(command::RE_AUTH, application::GX, PCRFS[at], "pgw;1;1", |b| {
            b.put(known::DESTINATION_HOST, PGW);
        });
        world.pcrfs[at].send(rar.as_bytes()).await;
        let arrived = world.pgw.expect(command::RE_AUTH).await;
        world.pgw.answer(&arrived, ResultCode::SUCCESS).await;
        world.pcrfs[at]
            .expect_result(command::RE_AUTH, ResultCode::SUCCESS)
            .await;
        let end = |host: Option<&str>| {
            ccr("pgw;1;1", 3, |b| {
                b.maybe(known::DESTINATION_HOST, host);
            })
        };
        assert_eq!(redirected(&mut world.pgw, &end(None)).await, (at, 0, None));
        world.is_unknown(&of_af("af;1;2")).await;
        // One that is sent again is led by the PCRF that it names.
        world.pgw.send(end(None).as_bytes()).await;
        world
            .pgw
            .expect_result(command::CREDIT_CONTROL, ResultCode::UNKNOWN_SESSION_ID)
            .await;
        let named = redirected(&mut world.pgw, &end(Some(PCRFS[at]))).await;
        assert_eq!(named, (at, 0, None));
        assert_eq!((world.count(Event::Kept), world.count(Event::Ended)), (2, 2));
        assert_eq!(world.count(Event::Redirected), 8);
    });
}

#[test]
fn requests_of_one_subscriber_that_come_at_once_are_redirected_to_one_pcrf() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let more = "      mode: redirect\n      wait: 60s";
        let mut world = World::new(folder.path(), more).await;
        for number in 0..10 {
            let request = initial(&format!("pgw;1;{number}"), IMSI);
            world.pgw.send(request.as_bytes()).await;
        }
        let mut uris = Vec::new();
        for _ in 0..10 {
            let answer = world
                .pgw
                .expect_result(command::CREDIT_CONTROL, ResultCode::REDIRECT_INDICATION)
                .await;
            uris.push(answer.require(known::REDIRECT_HOST).unwrap().to_owned());
        }
        uris.dedup();
        assert_eq!(uris.len(), 1);
        assert_eq!((world.count(Event::Chosen), world.count(Event::Kept)), (1, 10));
    });
}

#[test]
fn a_router_before_it_follows_the_redirect_to_the_pcrf() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(folder.path(), "      mode: redirect").await;
        let mut front = config();
        front.local_nodes[0].host = "front.example".to_owned();
        front.peers.push(dsr::config::Peer {
            host: DSR.to_owned(),
            addresses: vec![world.dsr.addresses()[0]],
            ..dsr::config::Peer::default()
        });
        front
            .peers
            .extend(world.servers.iter().map(|server| server.peer()));
        routing(
            &mut front,
            &format!("  followRedirects: true\n{}", one_list(&[DSR])),
        );
        let front = dsr::start(front).unwrap();
        let mut pcrfs = Vec::new();
        for server in &world.servers {
            pcrfs.push(server.relay(&front).await);
        }
        available(&front, DSR).await;
        let mut pgw = client(&front, "other.example").await;
        for number in 0..4 {
            let imsi = format!("00101000000010{number}");
            let session = format!("pgw;1;{number}");
            pgw.send(initial(&session, &imsi).as_bytes()).await;
            let [one, other] = pcrfs.as_mut_slice() else {
                panic!("there are two PCRFs");
            };
            let (at, arrived) = tokio::select! {
                request = one.expect(command::CREDIT_CONTROL) => (0, request),
                request = other.expect(command::CREDIT_CONTROL) => (1, request),
            };
            pcrfs[at].answer(&arrived, ResultCode::SUCCESS).await;
            pgw.expect_result(command::CREDIT_CONTROL, ResultCode::SUCCESS)
                .await;
            let rows = world.dsr.pdra_sessions("session", &session);
            assert_eq!(rows[0]["pcrf"], PCRFS[at]);
        }
    });
}
