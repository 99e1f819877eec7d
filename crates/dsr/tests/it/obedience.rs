//! What clients with overload control get, and what the router does about those that obey.

use diameter::proto::known::command;
use diameter::proto::overload::doic::{LOSS, Report, SupportedFeatures};
use diameter::proto::{MessageMut, ResultCode};
use dsr::{Config, Event};
use testpeer::diameter::Peer;

use crate::overload::{at_level, relayed};
use crate::support::{MME, client, config, one_list, run, ulr, ulr_with, world};

const HSS: [&str; 1] = ["hss1.example"];

fn able() -> MessageMut {
    ulr_with("1", |b| {
        SupportedFeatures { vector: LOSS }.write(b);
    })
}

/// The report in the answer to a request, relayed or not.
async fn reported(mme: &mut Peer, hss: &mut Peer) -> Option<Report> {
    mme.send(able().as_bytes()).await;
    let answer = tokio::select! {
        biased;
        answer = mme.expect(command::UPDATE_LOCATION) => answer,
        request = hss.expect(command::UPDATE_LOCATION) => {
            hss.answer(&request, ResultCode::SUCCESS).await;
            mme.expect(command::UPDATE_LOCATION).await
        }
    };
    Report::all(&answer).next()
}

#[test]
fn clients_that_obey_are_not_discarded_from_a_second_time() {
    run(async {
        let (dsr, _servers, mut peers) = world(config(), HSS, &one_list(&HSS)).await;
        let mut mme = client(&dsr, MME).await;
        at_level(&dsr, 61.0, 2).await;
        let report = loop {
            if let Some(report) = reported(&mut mme, &mut peers[0]).await {
                break report;
            }
        };
        assert_eq!(report.reduction, 25);
        let before = dsr.count(Event::OverloadDiscarded);
        assert_eq!(relayed(&mut mme, &mut peers[0], &able(), 75).await, 75);
        assert_eq!(dsr.count(Event::OverloadDiscarded), before);
        // A level that asks for more takes what the client does not hold back yet: a third, until it has the report.
        at_level(&dsr, 67.0, 3).await;
        loop {
            let report = reported(&mut mme, &mut peers[0]).await;
            if report.is_some_and(|report| report.reduction == 50) {
                break;
            }
        }
        assert_eq!(relayed(&mut mme, &mut peers[0], &able(), 50).await, 50);
        // Clients without overload control give the share of the level.
        let passed = relayed(&mut mme, &mut peers[0], &ulr("1"), 200).await;
        assert!((80..=120).contains(&passed), "{passed}");
    });
}

#[test]
fn the_end_of_an_overload_is_reported_also_after_a_reload() {
    run(async {
        let assumed = |percent: f64, config: &Config| {
            let mut config = config.clone();
            config.overload.assumed_load = Some(settings::Percent::new(percent));
            config.overload.doic_validity = settings::Period::from_secs(60);
            config
        };
        let (dsr, _servers, mut peers) = world(assumed(61.0, &config()), HSS, &one_list(&HSS)).await;
        let mut mme = client(&dsr, MME).await;
        let first = loop {
            if let Some(report) = reported(&mut mme, &mut peers[0]).await {
                break report;
            }
        };
        assert_eq!((first.reduction, first.validity.as_secs()), (25, 60));
        dsr.reload(&assumed(0.0, &dsr.snapshot().config)).unwrap();
        let last = loop {
            let report = reported(&mut mme, &mut peers[0]).await.unwrap();
            if report.sequence > first.sequence && report.reduction == 0 {
                break report;
            }
        };
        assert!(last.validity.is_zero(), "{last:?}");
    });
}
