//! Load of the router as reported to its peers (RFC 8583).

use diameter::proto::known::{self, command};
use diameter::proto::overload::doic::{LOSS, Report, SupportedFeatures};
use diameter::proto::overload::load::{IDLE, Load, LoadType};
use diameter::proto::{MessageMut, ResultCode};
use dsr::config::{Overload, Peer as PeerConfig};
use dsr::{Config, Event};
use testpeer::diameter::Peer;

use crate::support::{DSR, MME, client, config, one_list, read, run, ulr_with, until, world};

const HSS: [&str; 1] = ["hss.example"];
const FOREIGN: &str = "mme.foreign.example";

fn request() -> MessageMut {
    ulr_with("1", |b| {
        b.put(known::DRMP, 0);
        SupportedFeatures { vector: LOSS }.write(b);
    })
}

/// The answer to a request, and the load of the router in it. The server reports its own: as a host and as a neighbour.
async fn asked(mme: &mut Peer, hss: &mut Peer) -> (MessageMut, Option<u16>) {
    mme.send(request().as_bytes()).await;
    let request = hss.expect(command::UPDATE_LOCATION).await;
    hss.send_text(&format!(
        "ULA app=16777251 flags=P hbh={} {{ Session-Id = \"x\" Result-Code = 2001 \
         Load = {{ Load-Type = 0 Load-Value = 7 SourceID = \"hss.example\" }} \
         Load = {{ Load-Type = 1 Load-Value = 8 SourceID = \"hss.example\" }} }}",
        request.hop_by_hop()
    ))
    .await;
    let answer = mme
        .expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
        .await;
    assert_eq!(answer.as_bytes().len(), answer.header().length as usize);
    let (hosts, mut ours): (Vec<Load>, Vec<Load>) =
        Load::all(&answer).partition(|load| load.kind == LoadType::Host);
    // The server's load as a host is relayed, that as a neighbour ends here.
    assert_eq!(hosts.len(), 1, "{hosts:?}");
    assert!(ours.len() <= 1, "{ours:?}");
    let ours = ours.pop().map(|load| {
        assert_eq!(load.source, DSR);
        load.value
    });
    (answer, ours)
}

/// Sends requests until an answer reports the router's load.
async fn news(mme: &mut Peer, hss: &mut Peer) -> u16 {
    loop {
        if let (_, Some(value)) = asked(mme, hss).await {
            return value;
        }
    }
}

#[test]
fn a_change_of_load_is_reported_once_to_each_peer() {
    run(async {
        let settings = "overload: {tellLoad: {enabled: true, interval: 1h}}";
        let (dsr, _servers, mut peers) = world(read(config(), settings), HSS, &one_list(&HSS)).await;
        let hss = &mut peers[0];
        let (mut one, mut other) = (client(&dsr, MME).await, client(&dsr, "other.example").await);
        assert_eq!(news(&mut one, hss).await, IDLE);
        assert_eq!(asked(&mut one, hss).await.1, None);
        dsr.drive_load(0, Some(40.0));
        assert_eq!(news(&mut one, hss).await, 39_321);
        assert_eq!(asked(&mut one, hss).await.1, None);
        assert_eq!(
            asked(&mut other, hss).await.1,
            Some(39_321),
            "each peer gets the report"
        );
        assert_eq!(dsr.count(Event::LoadTold), 3);
        // A peer that reconnects gets the report again.
        other.break_off();
        until(|| dsr.hops().get(&b"other.example"[..]).is_none()).await;
        let mut other = client(&dsr, "other.example").await;
        assert_eq!(asked(&mut other, hss).await.1, Some(39_321));
    });
}

#[test]
fn every_answer_reports_the_load_where_configured_and_foreign_networks_get_no_report() {
    run(async {
        let settings = "overload: {tellLoad: {enabled: true, interval: 0s}}";
        let mut base = config();
        base.peers.push(PeerConfig {
            host: FOREIGN.to_owned(),
            untrusted: true,
            trust_priority: Some(true),
            ..PeerConfig::default()
        });
        let (dsr, _servers, mut peers) = world(base, HSS, &one_list(&HSS)).await;
        let change = |settings: &str| {
            let now = Config::clone(&dsr.snapshot().config);
            let overload = Overload {
                advertise_load: read(Config::default(), settings).overload.advertise_load,
                ..now.overload.clone()
            };
            dsr.reload(&Config { overload, ..now }).unwrap();
        };
        let hss = &mut peers[0];
        let (mut mme, mut foreign) = (client(&dsr, MME).await, client(&dsr, FOREIGN).await);
        assert_eq!(asked(&mut mme, hss).await.1, None, "load reports are off");
        change(settings);
        assert_eq!(news(&mut mme, hss).await, IDLE);
        dsr.drive_load(0, Some(61.0));
        while news(&mut mme, hss).await == IDLE {}
        // Beside the overload report; foreign networks get neither (RFC 7683 §10.4).
        for _ in 0..3 {
            let (answer, load) = asked(&mut mme, hss).await;
            assert_eq!(load, Some(25_559));
            assert_eq!(Report::all(&answer).count(), 1);
            let (answer, load) = asked(&mut foreign, hss).await;
            assert_eq!(load, None);
            assert_eq!(Report::all(&answer).count(), 0);
        }
        // An answer of the router itself reports it as well.
        let lost = ulr_with("1", |b| {
            b.put(known::DRMP, 0);
        });
        peers.clear();
        until(|| {
            dsr.hops()
                .get(HSS[0].as_bytes())
                .unwrap()
                .iter()
                .all(|hop| hop.state() == dsr::HopState::Down)
        })
        .await;
        mme.send(lost.as_bytes()).await;
        let answer = mme
            .expect_result(command::UPDATE_LOCATION, ResultCode::UNABLE_TO_DELIVER)
            .await;
        assert_eq!(
            Load::all(&answer).map(|load| load.value).collect::<Vec<_>>(),
            [25_559]
        );
    });
}
