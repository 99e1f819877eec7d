//! Under load: peers that die, clients that reconnect, a peer that sends random bytes.

use std::collections::BTreeSet;

use diameter::proto::known::{self, command};
use diameter::proto::{MessageMut, ResultCode};
use dsr::{Event, Running};
use testpeer::diameter::Peer;
use tokio::task::JoinHandle;

use crate::support::{APPLICATIONS, Waiting, available, client, config, run, ulr, ulr_to, until, world};

/// Requests of a client in flight.
const WINDOW: u32 = 64;
const BOTH: &str = "  peerRouteTables:\n    - {name: default, rules: [{action: {routeList: all}}]}\n  \
     routeLists:\n    - {name: all, groups: [all]}\n  routeGroups:\n    \
     - {name: all, peers: [{host: hss1.example}, {host: hss2.example}]}\n";

/// Answers a number of requests, then disconnects with the others unanswered; without a number, until the router ends
/// the connection.
fn serve(mut peer: Peer, until: Option<usize>) -> JoinHandle<usize> {
    tokio::task::spawn_local(async move {
        let mut count = 0;
        while let Some(request) = peer.next().await {
            if until == Some(count) {
                peer.break_off();
                return count;
            }
            if request.command() == command::UPDATE_LOCATION {
                peer.answer(&request, ResultCode::SUCCESS).await;
                count += 1;
            }
        }
        count
    })
}

fn numbered(number: u32, host: Option<&str>) -> MessageMut {
    let mut request = match host {
        Some(host) => ulr_to(host),
        None => ulr(&number.to_string()),
    };
    request.set_hop_by_hop(number);
    request.set_end_to_end(number);
    request
}

/// Removes an answer from the list of missing ones.
fn tick(missing: &mut BTreeSet<u32>, answer: &MessageMut) {
    assert_eq!(answer.require(known::RESULT_CODE).unwrap(), 2001, "{answer:?}");
    assert!(
        missing.remove(&answer.hop_by_hop()),
        "{answer:?} was answered twice or never asked"
    );
}

async fn two_workers() -> (Running, Vec<Waiting>, Vec<Peer>) {
    let mut two = config();
    two.workers = 2;
    two.limits.gather = settings::Period::default();
    world(two, ["hss1.example", "hss2.example"], BOTH).await
}

#[test]
fn a_server_that_dies_costs_no_request() {
    run(async {
        let (dsr, _servers, mut peers) = two_workers().await;
        let second = serve(peers.remove(1), None);
        let first = serve(peers.remove(0), Some(1500));
        let clients: Vec<_> = (0..4)
            .map(|n| {
                let address = dsr.addresses()[0];
                tokio::task::spawn_local(async move {
                    let mut mme = Peer::connect(address).await;
                    mme.capabilities(&format!("mme{n}.example"), APPLICATIONS).await;
                    let mut missing = BTreeSet::new();
                    for number in 0..2000 {
                        mme.send(numbered(number, None).as_bytes()).await;
                        missing.insert(number);
                        while missing.len() >= WINDOW as usize {
                            tick(&mut missing, &mme.expect(command::UPDATE_LOCATION).await);
                        }
                    }
                    while !missing.is_empty() {
                        tick(&mut missing, &mme.expect(command::UPDATE_LOCATION).await);
                    }
                })
            })
            .collect();
        for client in clients {
            client.await.unwrap();
        }
        assert_eq!(first.await.unwrap(), 1500);
        assert!(dsr.count(Event::Rerouted) > 0);
        assert_eq!(dsr.count(Event::Refused), 0);
        dsr.stop().unwrap();
        assert!(second.await.unwrap() >= 6500);
    });
}

#[test]
fn a_client_that_reconnects_repeatedly_loses_no_answer() {
    run(async {
        let (dsr, _servers, peers) = two_workers().await;
        for peer in peers {
            serve(peer, None);
        }
        let mut mme = client(&dsr, "mme.example").await;
        let mut missing = BTreeSet::new();
        for number in 0..10_000u32 {
            mme.send(numbered(number, None).as_bytes()).await;
            missing.insert(number);
            if number % 500 == 499 {
                // No DPR: the new connection replaces the old one while requests are in flight, some of which the
                // router has not read yet.
                let mut again = Peer::connect(dsr.addresses()[0]).await;
                again.capabilities("mme.example", APPLICATIONS).await;
                while let Some(answer) = mme.next().await {
                    tick(&mut missing, &answer);
                }
                mme = again;
            }
            while missing.len() >= WINDOW as usize {
                tick(&mut missing, &mme.expect(command::UPDATE_LOCATION).await);
            }
        }
        while !missing.is_empty() {
            tick(&mut missing, &mme.expect(command::UPDATE_LOCATION).await);
        }
        assert_eq!(dsr.count(Event::AnswerLost), 0);
    });
}

#[test]
fn a_peer_that_sends_random_bytes_affects_no_other() {
    run(async {
        let (dsr, _servers, peers) = two_workers().await;
        for peer in peers {
            serve(peer, None);
        }
        let mut mme = client(&dsr, "mme.example").await;
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut dice = |sides: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 16) as usize % sides
        };
        for round in 0..300u32 {
            // As a client, and under the name of a server: what it sends are requests and answers to nothing.
            let name = format!("bad{}.example", round % 7);
            let mut bad = Peer::connect(dsr.addresses()[0]).await;
            bad.send_cer(&name, APPLICATIONS).await;
            for _ in 0..20 {
                let mut bytes = ulr_to("hss1.example").as_bytes().to_vec();
                for _ in 0..=dice(6) {
                    let at = dice(bytes.len());
                    bytes[at] = dice(256) as u8;
                }
                if dice(10) == 0 {
                    bytes.truncate(dice(bytes.len()));
                }
                if !bad.try_send(&bytes).await {
                    break;
                }
            }
            if round % 2 == 0 {
                bad.break_off();
            }
            if round % 10 == 0 {
                mme.send(numbered(round, None).as_bytes()).await;
                let mut missing = BTreeSet::from([round]);
                tick(&mut missing, &mme.expect(command::UPDATE_LOCATION).await);
            }
        }
        assert!(dsr.count(Event::BadRequest) > 0);
        // Both servers are still there.
        available(&dsr, "hss1.example").await;
        available(&dsr, "hss2.example").await;
        until(|| {
            dsr.peers()
                .iter()
                .filter(|row| row.configured)
                .all(|row| row.pending == 0)
        })
        .await;
    });
}
