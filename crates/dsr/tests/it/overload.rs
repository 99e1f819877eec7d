//! Rates, levels of overload (with an assumed load), reports to clients.

use diameter::proto::known::{self, command};
use diameter::proto::overload::doic::{LOSS, Report, ReportType, SupportedFeatures};
use diameter::proto::{MessageMut, ResultCode};
use dsr::{Event, Running};
use testpeer::diameter::Peer;

use crate::support::{MME, answered, client, config, one_list, read, run, ulr, ulr_with, until, world};

const HSS: [&str; 1] = ["hss1.example"];

pub(crate) async fn at_level(dsr: &Running, load: f64, level: u64) {
    dsr.drive_load(0, Some(load));
    until(|| dsr.congestion_level(0) as u64 == level).await;
}

/// Sends `count` requests; how many were relayed. The rest was answered DIAMETER_TOO_BUSY.
pub(crate) async fn relayed(mme: &mut Peer, hss: &mut Peer, request: &MessageMut, count: usize) -> usize {
    let mut relayed = 0;
    for _ in 0..count {
        mme.send(request.as_bytes()).await;
        tokio::select! {
            biased;
            answer = mme.expect(command::UPDATE_LOCATION) => {
                assert_eq!(answer.require(known::RESULT_CODE).unwrap(), 3004);
            }
            request = hss.expect(command::UPDATE_LOCATION) => {
                relayed += 1;
                hss.answer(&request, ResultCode::SUCCESS).await;
                mme.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS).await;
            }
        }
    }
    relayed
}

#[test]
fn discards_follow_the_percentages_of_the_level() {
    run(async {
        let (dsr, _servers, mut peers) = world(config(), HSS, &one_list(&HSS)).await;
        let mut mme = client(&dsr, MME).await;
        let low = ulr("1");
        let high = ulr_with("1", |b| {
            b.put(known::DRMP, 0);
        });
        assert_eq!(relayed(&mut mme, &mut peers[0], &low, 50).await, 50);
        let before = dsr.count(Event::Message);
        // The share is one of all requests: where the spared ones are not discarded, more of the others are.
        for (load, level, least, most) in [
            (55.0, 1, 370, 390),
            (61.0, 2, 290, 310),
            (67.0, 3, 190, 210),
            (75.0, 4, 15, 50),
        ] {
            at_level(&dsr, load, level).await;
            let passed = relayed(&mut mme, &mut peers[0], &low, 400).await;
            assert!((least..=most).contains(&passed), "level {level}: {passed}");
            // The most important are not discarded, whatever the level.
            assert_eq!(relayed(&mut mme, &mut peers[0], &high, 20).await, 20);
        }
        let discarded = dsr.count(Event::OverloadDiscarded);
        assert_eq!(
            dsr.count(Event::Message) - before,
            2 * (4 * 420 - discarded),
            "discarded requests do not count as messages of MPS"
        );
        // Watchdogs pass at any level.
        mme.send_text("DWR { Origin-Host = \"mme.example\" Origin-Realm = \"epc.example\" }")
            .await;
        mme.expect_result(command::DEVICE_WATCHDOG, ResultCode::SUCCESS)
            .await;
        // Down again, after the abatement time.
        at_level(&dsr, 40.0, 0).await;
        assert_eq!(relayed(&mut mme, &mut peers[0], &low, 50).await, 50);
    });
}

#[test]
fn discards_can_be_silent_and_by_class() {
    run(async {
        let settings = "overload:
  answer: {resultCode: 0}
  levels:
    - name: DOC
      discard: 0%
      classes: [{fromPriority: 8, toPriority: 15, discard: 100%}]
";
        let (dsr, _servers, mut peers) = world(read(config(), settings), HSS, &one_list(&HSS)).await;
        let mut mme = client(&dsr, MME).await;
        at_level(&dsr, 55.0, 1).await;
        mme.send(ulr("1").as_bytes()).await;
        crate::support::counted(&dsr, Event::OverloadDiscarded, 1).await;
        mme.send(
            ulr_with("1", |b| {
                b.put(known::DRMP, 7);
            })
            .as_bytes(),
        )
        .await;
        answered(&mut mme, &mut peers[0]).await;
    });
}

#[test]
fn clients_that_support_doic_get_overload_reports() {
    run(async {
        let (dsr, _servers, mut peers) = world(config(), HSS, &one_list(&HSS)).await;
        let mut mme = client(&dsr, MME).await;
        let able = ulr_with("1", |b| {
            b.put(known::DRMP, 0);
            SupportedFeatures { vector: LOSS }.write(b);
        });
        mme.send(able.as_bytes()).await;
        let request = peers[0].expect(command::UPDATE_LOCATION).await;
        peers[0].answer(&request, ResultCode::SUCCESS).await;
        let calm = mme.expect(command::UPDATE_LOCATION).await;
        assert_eq!(Report::all(&calm).count(), 0);
        assert!(
            SupportedFeatures::of(&calm).is_some(),
            "RFC 7683 §5.1.2: in each answer to a request that has them"
        );
        at_level(&dsr, 61.0, 2).await;
        mme.send(able.as_bytes()).await;
        let request = peers[0].expect(command::UPDATE_LOCATION).await;
        peers[0].answer(&request, ResultCode::SUCCESS).await;
        let answer = mme.expect(command::UPDATE_LOCATION).await;
        let reports: Vec<Report> = Report::all(&answer).collect();
        assert_eq!(reports.len(), 1);
        assert_eq!((reports[0].kind, reports[0].reduction), (ReportType::Realm, 25));
        assert!(SupportedFeatures::of(&answer).is_some());
        assert_eq!(answer.as_bytes().len(), answer.header().length as usize);
        // A report about the host comes from the host.
        let named = ulr_with("1", |b| {
            b.put(known::DRMP, 0).put(known::DESTINATION_HOST, HSS[0]);
            SupportedFeatures { vector: LOSS }.write(b);
        });
        mme.send(named.as_bytes()).await;
        let request = peers[0].expect(command::UPDATE_LOCATION).await;
        peers[0].answer(&request, ResultCode::SUCCESS).await;
        let answer = mme.expect(command::UPDATE_LOCATION).await;
        assert_eq!(Report::all(&answer).count(), 0);
        // The reports of a server that supports DOIC itself are relayed instead.
        mme.send(able.as_bytes()).await;
        let request = peers[0].expect(command::UPDATE_LOCATION).await;
        peers[0]
            .send_text(&format!(
                "ULA app=16777251 flags=P hbh={} {{ Session-Id = \"x\" Result-Code = 2001 OC-Supported-Features = {{ }} \
                 OC-OLR = {{ OC-Sequence-Number = 1 OC-Report-Type = 0 OC-Reduction-Percentage = 77 }} }}",
                request.hop_by_hop()
            ))
            .await;
        let answer = mme.expect(command::UPDATE_LOCATION).await;
        let reports: Vec<Report> = Report::all(&answer).collect();
        assert_eq!((reports.len(), reports[0].reduction), (1, 77));
        // A client without OC-Supported-Features gets no report.
        mme.send(
            ulr_with("1", |b| {
                b.put(known::DRMP, 0);
            })
            .as_bytes(),
        )
        .await;
        let request = peers[0].expect(command::UPDATE_LOCATION).await;
        peers[0].answer(&request, ResultCode::SUCCESS).await;
        assert_eq!(
            Report::all(&mme.expect(command::UPDATE_LOCATION).await).count(),
            0
        );
    });
}

/// An answer of this host with an overload report about it (0) or its realm (1).
fn report(request: &MessageMut, host: &str, number: u32, kind: u32, reduction: u32) -> String {
    format!(
        "ULA app=16777251 flags=P hbh={} {{ Session-Id = \"x\" Result-Code = 2001 Origin-Host = \"{host}\" \
         Origin-Realm = \"epc.example\" OC-Supported-Features = {{ }} OC-OLR = {{ OC-Sequence-Number = {number} \
         OC-Report-Type = {kind} OC-Reduction-Percentage = {reduction} OC-Validity-Duration = 30 }} }}",
        request.hop_by_hop()
    )
}

#[test]
fn a_server_that_asks_for_less_gets_less() {
    run(async {
        let hosts = ["hss1.example", "hss2.example"];
        let both = "  peerRouteTables:\n    - {name: default, rules: [{when: {destinationHost: {present: false}}, \
             action: {routeList: all}}]}\n  routeLists:\n    - {name: all, groups: [all]}\n  routeGroups:\n    \
             - {name: all, peers: [{host: hss1.example}, {host: hss2.example}]}\n";
        let mut two = read(config(), "overload: {heed: {ask: true}}");
        // A report that one worker receives takes effect at the other.
        two.workers = 2;
        let (dsr, _servers, mut peers) = world(two, hosts, both).await;
        let (first, second) = peers.split_at_mut(1);
        let (hss1, hss2) = (&mut first[0], &mut second[0]);
        let mut clients = Vec::new();
        for n in 0..4 {
            clients.push(client(&dsr, &format!("mme{n}.example")).await);
        }
        let named = |host: &str, priority: i32| {
            ulr_with("1", |b| {
                b.put(known::DESTINATION_HOST, host).put(known::DRMP, priority);
            })
        };
        // The router supports DOIC on behalf of the client, and does not relay the report.
        clients[0].send(named(hosts[0], 10).as_bytes()).await;
        let request = hss1.expect(command::UPDATE_LOCATION).await;
        assert!(SupportedFeatures::of(&request).is_some());
        assert_eq!(request.as_bytes().len(), request.header().length as usize);
        hss1.send_text(&report(&request, hosts[0], 1, 0, 100)).await;
        let answer = clients[0]
            .expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
            .await;
        assert!(SupportedFeatures::of(&answer).is_none() && Report::all(&answer).next().is_none());
        assert_eq!(answer.as_bytes().len(), answer.header().length as usize);
        until(|| dsr.count(Event::ReportHeard) == 1).await;
        // A request that names the host is refused, whichever worker has its client; one without a host goes to the
        // other server.
        for mme in &mut clients {
            loop {
                mme.send(named(hosts[0], 10).as_bytes()).await;
                tokio::select! {
                    biased;
                    answer = mme.expect(command::UPDATE_LOCATION) => {
                        assert_eq!(answer.require(known::RESULT_CODE).unwrap(), 5012);
                        break;
                    }
                    // The report is in transit to the other worker.
                    request = hss1.expect(command::UPDATE_LOCATION) => {
                        hss1.send_text(&report(&request, hosts[0], 1, 0, 100)).await;
                        mme.expect(command::UPDATE_LOCATION).await;
                    }
                }
            }
            for _ in 0..10 {
                mme.send(ulr("1").as_bytes()).await;
                answered(mme, hss2).await;
            }
            mme.send(named(hosts[1], 10).as_bytes()).await;
            answered(mme, hss2).await;
        }
        assert!(dsr.count(Event::Abated) >= 4 && dsr.count(Event::Diverted) > 5);
        // A client that supports DOIC itself is not abated, and gets the reports.
        let able = ulr_with("1", |b| {
            b.put(known::DESTINATION_HOST, hosts[0]);
            SupportedFeatures { vector: LOSS }.write(b);
        });
        clients[0].send(able.as_bytes()).await;
        let request = hss1.expect(command::UPDATE_LOCATION).await;
        hss1.send_text(&report(&request, hosts[0], 2, 0, 0)).await;
        let answer = clients[0].expect(command::UPDATE_LOCATION).await;
        assert_eq!(Report::all(&answer).count(), 1);
        until(|| dsr.count(Event::ReportHeard) == 2).await;
        // A reduction of nothing ends it, everywhere.
        for mme in &mut clients {
            loop {
                mme.send(named(hosts[0], 10).as_bytes()).await;
                tokio::select! {
                    biased;
                    answer = mme.expect(command::UPDATE_LOCATION) => {
                        assert_eq!(answer.require(known::RESULT_CODE).unwrap(), 5012);
                    }
                    request = hss1.expect(command::UPDATE_LOCATION) => {
                        hss1.answer(&request, ResultCode::SUCCESS).await;
                        mme.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS).await;
                        break;
                    }
                }
            }
        }
        // The realm: of requests that name no host a half goes, the less important ones.
        clients[0].send(named(hosts[0], 10).as_bytes()).await;
        let request = hss1.expect(command::UPDATE_LOCATION).await;
        hss1.send_text(&report(&request, hosts[0], 3, 1, 50)).await;
        clients[0].expect(command::UPDATE_LOCATION).await;
        let mut refused = [0; 2];
        for n in 0..200 {
            let class = n % 2;
            let request = ulr_with("1", |b| {
                b.put(known::DRMP, if class == 0 { 2 } else { 12 });
            });
            let mme = &mut clients[0];
            mme.send(request.as_bytes()).await;
            let answer = tokio::select! {
                biased;
                answer = mme.expect(command::UPDATE_LOCATION) => answer,
                request = hss1.expect(command::UPDATE_LOCATION) => {
                    hss1.answer(&request, ResultCode::SUCCESS).await;
                    mme.expect(command::UPDATE_LOCATION).await
                }
                request = hss2.expect(command::UPDATE_LOCATION) => {
                    hss2.answer(&request, ResultCode::SUCCESS).await;
                    mme.expect(command::UPDATE_LOCATION).await
                }
            };
            refused[class] += u32::from(answer.require(known::RESULT_CODE).unwrap() == 5012);
        }
        assert!(refused[0] <= 10 && refused[1] >= 80, "{refused:?} of 100 each");
    });
}

#[test]
fn a_loaded_server_gets_the_smaller_part() {
    run(async {
        let hosts = ["hss1.example", "hss2.example"];
        let both = "  peerRouteTables:\n    - {name: default, rules: [{action: {routeList: all}}]}\n  \
             routeLists:\n    - {name: all, groups: [all]}\n  routeGroups:\n    \
             - {name: all, peers: [{host: hss1.example}, {host: hss2.example}]}\n";
        let (dsr, _servers, mut peers) = world(config(), hosts, both).await;
        let (first, second) = peers.split_at_mut(1);
        let mut mme = client(&dsr, MME).await;
        let mut counts = [0; 2];
        for _ in 0..300 {
            mme.send(ulr("1").as_bytes()).await;
            let (at, server, request) = tokio::select! {
                request = first[0].expect(command::UPDATE_LOCATION) => (0, &mut first[0], request),
                request = second[0].expect(command::UPDATE_LOCATION) => (1, &mut second[0], request),
            };
            counts[at] += 1;
            // The first is nearly full, the second idle (RFC 8583 §7.3: 65535 means no load).
            server
                .send_text(&format!(
                    "ULA app=16777251 flags=P hbh={} {{ Session-Id = \"x\" Result-Code = 2001 \
                     Load = {{ Load-Type = 0 Load-Value = {value} SourceID = \"{host}\" }} \
                     Load = {{ Load-Type = 1 Load-Value = {value} SourceID = \"{host}\" }} }}",
                    request.hop_by_hop(),
                    value = [3000, 65_535][at],
                    host = hosts[at],
                ))
                .await;
            let answer = mme
                .expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
                .await;
            // The load of a peer ends with its neighbour, that of a host goes on.
            let left: Vec<_> = diameter::proto::overload::load::Load::all(&answer).collect();
            assert!(left.len() == 1 && left[0].source == hosts[at], "{left:?}");
        }
        assert!(counts[0] > 0 && counts[0] < 60, "{counts:?}");
        assert!(dsr.count(Event::LoadHeard) >= 300);
    });
}

#[test]
fn a_connection_keeps_to_its_maximum_and_others_do_not_suffer() {
    run(async {
        let mut config = config();
        config.ingress.maximum = 10;
        let (dsr, _servers, mut peers) = world(config, HSS, &one_list(&HSS)).await;
        let mut mme = client(&dsr, MME).await;
        let mut other = client(&dsr, "other.example").await;
        // One at once, and ten per second: most of a hundred in a row are refused.
        for _ in 0..100 {
            mme.send(ulr("1").as_bytes()).await;
        }
        until(|| dsr.count(Event::Request) == 100).await;
        assert!(dsr.count(Event::IngressDiscarded) > 50);
        other.send(ulr("1").as_bytes()).await;
        loop {
            let request = peers[0].expect(command::UPDATE_LOCATION).await;
            peers[0].answer(&request, ResultCode::SUCCESS).await;
            if request.require(known::ROUTE_RECORD).unwrap() == "other.example" {
                break;
            }
        }
        other
            .expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
            .await;
    });
}

#[test]
fn a_throttle_group_at_its_rate_is_bypassed() {
    run(async {
        let hosts = ["hss1.example", "hss2.example"];
        let settings = "peers: []\nthrottleGroups: []\n";
        let (dsr, _servers, mut peers) = world(read(config(), settings), hosts, &one_list(&hosts)).await;
        let mut next = dsr.snapshot().config.as_ref().clone();
        next.throttle_groups = vec![dsr::config::ThrottleGroup {
            name: "first".to_owned(),
            peers: vec![hosts[0].to_owned()],
            rate: 1,
            ..dsr::config::ThrottleGroup::default()
        }];
        let version = dsr.snapshot().version;
        dsr.reload(&next).unwrap();
        assert!(dsr.snapshot().version > version);
        let mut mme = client(&dsr, MME).await;
        // One per second goes to the first, the rest to the second.
        let mut second = 0;
        let (a, b) = peers.split_at_mut(1);
        while second < 10 {
            mme.send(ulr("1").as_bytes()).await;
            tokio::select! {
                request = a[0].expect(command::UPDATE_LOCATION) => a[0].answer(&request, ResultCode::SUCCESS).await,
                request = b[0].expect(command::UPDATE_LOCATION) => {
                    second += 1;
                    b[0].answer(&request, ResultCode::SUCCESS).await;
                }
            }
            mme.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
                .await;
        }
        assert!(dsr.count(Event::Throttled) >= 10);
    });
}

#[test]
fn the_rate_of_a_throttle_group_follows_its_available_peers() {
    run(async {
        let hosts = ["hss1.example", "hss2.example"];
        let mut config = config();
        config.workers = 2;
        let (dsr, _servers, mut peers) = world(config, hosts, &one_list(&hosts)).await;
        let mut next = dsr.snapshot().config.as_ref().clone();
        next.throttle_groups = vec![dsr::config::ThrottleGroup {
            name: "both".to_owned(),
            peers: hosts.map(str::to_owned).to_vec(),
            rate: 100,
            ..dsr::config::ThrottleGroup::default()
        }];
        dsr.reload(&next).unwrap();
        let snapshot = dsr.snapshot();
        let shares = || [0, 1].map(|worker| snapshot.throttle_share(0, worker));
        assert_eq!(shares(), [0.5, 0.5]);
        peers.pop().unwrap().break_off();
        until(|| shares() == [1.0, 0.0]).await;
        // While none is available, each keeps what it will have.
        peers.pop().unwrap().break_off();
        until(|| shares() == [0.5, 0.5]).await;
    });
}

#[test]
fn priorities_of_foreign_networks_do_not_count() {
    run(async {
        let foreign = dsr::Config {
            dynamic_peers: vec![dsr::config::DynamicPeers {
                untrusted: true,
                ..dsr::config::DynamicPeers::default()
            }],
            ..config()
        };
        let (dsr, _servers, mut peers) = world(foreign, HSS, &one_list(&HSS)).await;
        let mut mme = client(&dsr, MME).await;
        let high = ulr_with("1", |b| {
            b.put(known::DRMP, 0);
        });
        at_level(&dsr, 75.0, 4).await;
        let passed = relayed(&mut mme, &mut peers[0], &high, 400).await;
        assert!((15..=60).contains(&passed), "a tenth: {passed}");
    });
}

#[test]
fn the_worker_of_the_server_protects_itself() {
    run(async {
        let mut two = config();
        two.workers = 2;
        let server = crate::support::Waiting::new(HSS[0]).await;
        two.peers = vec![dsr::config::Peer {
            worker: Some(0),
            ..server.peer()
        }];
        crate::support::routing(&mut two, &one_list(&HSS));
        let dsr = dsr::start(two).unwrap();
        let mut hss = server.connected(&dsr).await;
        // The fewest connections has the other worker.
        let mut mme = client(&dsr, MME).await;
        assert_eq!((dsr.connections_of(0), dsr.connections_of(1)), (1, 1));
        at_level(&dsr, 75.0, 4).await;
        let passed = relayed(&mut mme, &mut hss, &ulr("1"), 400).await;
        assert!((15..=60).contains(&passed), "a tenth: {passed}");
        let high = ulr_with("1", |b| {
            b.put(known::DRMP, 0);
        });
        assert_eq!(relayed(&mut mme, &mut hss, &high, 20).await, 20);
        // Where both have too much to do, a request is judged once.
        dsr.drive_load(1, Some(75.0));
        until(|| dsr.congestion_level(1) == 4).await;
        let passed = relayed(&mut mme, &mut hss, &ulr("1"), 400).await;
        assert!((15..=60).contains(&passed), "a tenth: {passed}");
    });
}
