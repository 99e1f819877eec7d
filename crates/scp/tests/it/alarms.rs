//! Alarms, and the time that requests spend here.

use std::time::Duration;

use http::StatusCode;
use serde_json::json;
use settings::Period;

use crate::support::{Producer, Scp, knowing, local, start, until};

fn active(scp: &Scp) -> Vec<u32> {
    let alarms = scp.running.as_ref().unwrap().handle().alarms().active();
    alarms.iter().map(|alarm| alarm.number).collect()
}

#[test]
fn a_set_without_a_usable_producer_raises_an_alarm_until_one_serves_again() {
    local(async {
        let (one, two) = (Producer::start(1), Producer::start(2));
        let scp = knowing(&[&one, &two], |config| {
            config.protection.outliers.consecutive_failures = 0;
            config.protection.breaker.failures = 2;
            config.protection.breaker.open = Period::from_millis(200);
            config.protection.breaker.successes = 1;
        });
        one.fails_with(503);
        for _ in 0..3 {
            assert_eq!(scp.get(&one).await.by(), two.id);
        }
        assert_eq!(active(&scp), Vec::<u32>::new(), "the other one serves");
        two.fails_with(503);
        for _ in 0..3 {
            scp.get(&two).await;
        }
        assert_eq!(active(&scp), [10_532]);
        two.answers(|_| sbi::Response::default());
        until("the circuit closes", async || {
            tokio::time::sleep(Duration::from_millis(20)).await;
            scp.get(&two).await.status == StatusCode::OK
        })
        .await;
        assert_eq!(active(&scp), Vec::<u32>::new());
    });
}

#[test]
fn an_nrf_that_does_not_answer_raises_an_alarm() {
    local(async {
        let nrf = Producer::start(99);
        nrf.fails_with(503);
        let root = nrf.root();
        let scp = start(|config| {
            config.nrf.roots = vec![root];
            config.nrf.register = false;
        });
        until("the alarm is raised", async || active(&scp) == [10_530]).await;
        let mut config = crate::support::config();
        config.nrf.roots.clear();
        scp.running.as_ref().unwrap().reload(&config).unwrap();
        until("the alarm ends with the setting", async || {
            active(&scp).is_empty()
        })
        .await;
    });
}

#[test]
fn own_time_is_without_the_waits_for_others() {
    local(async {
        let producer = Producer::start(1);
        producer.waits(Duration::from_millis(150));
        let scp = knowing(&[&producer], |_| {});
        assert_eq!(scp.get(&producer).await.status, StatusCode::OK);
        let sum = |metric: &str| scp.count(metric, "nudm-sdm");
        assert!(sum("signalbox_scp_producer_seconds_sum") >= 0.15);
        assert_eq!(sum("signalbox_scp_own_seconds_count"), 1.0);
        assert!(
            sum("signalbox_scp_own_seconds_sum") < 0.1,
            "{}",
            json!(sum("signalbox_scp_own_seconds_sum"))
        );
    });
}
