//! Headers by which consumers, producers and SCPs say what is to be done and what was (TS 29.500 §5.2.3.2, §5.2.3.3).

use http::{Method, StatusCode};
use sbi::Body;
use serde_json::json;

use crate::support::{PATH, Producer, knowing, local, start};

#[test]
fn a_request_is_not_repeated_when_its_consumer_says_so() {
    local(async {
        let (busy, other) = (Producer::start(1), Producer::start(2));
        busy.fails_with(503);
        let scp = knowing(&[&busy, &other], |_| {});
        let root = busy.root();
        let target = ("3gpp-sbi-target-apiroot", root.as_str());
        for header in [
            ("3gpp-sbi-retry-info", "no-retries"),
            ("3gpp-sbi-selection-info", "reselection=false"),
        ] {
            let got = scp.ask(Method::GET, PATH, &[target, header]).await;
            assert_eq!(got.status, StatusCode::SERVICE_UNAVAILABLE, "{header:?}");
        }
        assert_eq!(other.count(), 0);
        let got = scp
            .ask(
                Method::GET,
                PATH,
                &[target, ("3gpp-sbi-selection-info", "reselection=true")],
            )
            .await;
        assert_eq!(got.by(), other.id);
        // The second one learns that the request was sent before.
        assert_eq!(other.seen()[0].header("3gpp-sbi-request-info"), "retrans=true");
        assert!(
            busy.seen()
                .iter()
                .all(|seen| seen.header("3gpp-sbi-request-info").is_empty())
        );
    });
}

#[test]
fn whom_a_request_excludes_is_not_selected() {
    local(async {
        let (first, second) = (Producer::start(1), Producer::start(2));
        let scp = knowing(&[&first, &second], |_| {});
        let binding = "bl=nf-set; nfset=set1.udmset.5gc.mnc001.mcc001";
        for (criterion, excluded, expected) in [
            ("not-select-nfinst", first.id.as_str(), &second),
            ("not-select-nfinst", second.id.as_str(), &first),
        ] {
            let info = format!("{criterion}={excluded}");
            for _ in 0..8 {
                let headers = [
                    ("3gpp-sbi-routing-binding", binding),
                    ("3gpp-sbi-selection-info", &*info),
                ];
                let got = scp.ask(Method::GET, PATH, &headers).await;
                assert_eq!(got.by(), expected.id, "{info}");
            }
        }
        let all = [
            ("3gpp-sbi-routing-binding", binding),
            (
                "3gpp-sbi-selection-info",
                "not-select-nfset=set1.udmset.5gc.mnc001.mcc001",
            ),
        ];
        assert_eq!(
            scp.ask(Method::GET, PATH, &all).await.status,
            StatusCode::GATEWAY_TIMEOUT
        );
    });
}

#[test]
fn a_producer_that_asks_for_a_pause_gets_it_while_another_serves() {
    local(async {
        let (tired, other) = (Producer::start(1), Producer::start(2));
        tired.answers(|_| {
            let mut response = sbi::Response::new(StatusCode::SERVICE_UNAVAILABLE);
            response.headers_mut().set_printed("retry-after", 30);
            response
        });
        let scp = knowing(&[&tired, &other], |_| {});
        for _ in 0..5 {
            assert_eq!(scp.get(&tired).await.by(), other.id);
        }
        assert_eq!((tired.count(), other.count()), (1, 5));
        // Without another it is asked all the same.
        let alone = knowing(&[&tired], |_| {});
        for _ in 0..2 {
            assert_eq!(alone.get(&tired).await.status, StatusCode::SERVICE_UNAVAILABLE);
        }
        assert_eq!(tired.count(), 3);
    });
}

#[test]
fn peers_are_named_by_who_they_are_on_each_leg() {
    local(async {
        let producer = Producer::start(1);
        let scp = knowing(&[&producer], |_| {});
        let root = producer.root();
        let headers = [
            ("3gpp-sbi-target-apiroot", root.as_str()),
            (
                "3gpp-sbi-nf-peer-info",
                "srcinst=4947a69a-f61b-4bc1-b9da-47c9c5d14b64; dstscp=SCP-scp1.test",
            ),
        ];
        assert_eq!(scp.ask(Method::GET, PATH, &headers).await.status, StatusCode::OK);
        assert_eq!(
            producer.seen()[0].header("3gpp-sbi-nf-peer-info"),
            format!(
                "srcinst=4947a69a-f61b-4bc1-b9da-47c9c5d14b64; srcscp=SCP-scp1.test; dstinst={}; dstservinst=sdm-1",
                producer.id
            )
        );
    });
}

#[test]
fn headers_that_contradict_each_other_are_refused() {
    local(async {
        let (first, second) = (Producer::start(1), Producer::start(2));
        let scp = knowing(&[&first, &second], |_| {});
        let (one, other) = (first.root(), second.root());
        let twice = |a: &str, b: &str| {
            let request = http::Request::get(PATH)
                .header("3gpp-sbi-target-apiroot", a)
                .header("3gpp-sbi-target-apiroot", b);
            request.body(Body::empty()).unwrap()
        };
        let got = scp.send(twice(&one, &other)).await;
        assert_eq!(
            (got.status, got.cause()),
            (StatusCode::BAD_REQUEST, "INVALID_MSG_FORMAT")
        );
        assert_eq!(scp.send(twice(&one, &one)).await.status, StatusCode::OK);
        assert_eq!((first.count(), second.count()), (1, 0));
    });
}

#[test]
fn an_nrf_may_send_a_discovery_to_another() {
    local(async {
        let producer = Producer::start(1);
        let (first, second) = (Producer::start(98), Producer::start(99));
        let location = format!("{}/nnrf-disc/v1/nf-instances", second.root());
        first.answers(move |_| {
            let mut response = sbi::Response::new(StatusCode::TEMPORARY_REDIRECT);
            response.headers_mut().set_printed("location", &location);
            response
        });
        let profile = producer.profile(&json!({}));
        second.answers(move |_| {
            let found = json!({"validityPeriod": 60, "nfInstances": [profile]});
            sbi::json::response(StatusCode::OK, &found)
        });
        let scp = start(|config| {
            config.nrf.roots = vec![first.root()];
            config.nrf.register = false;
            config.nrf.nf_types.clear();
        });
        let wish = [
            ("3gpp-sbi-discovery-target-nf-type", "UDM"),
            ("3gpp-sbi-discovery-service-names", "nudm-sdm"),
        ];
        assert_eq!(scp.ask(Method::GET, PATH, &wish).await.by(), producer.id);
        assert_eq!(first.seen()[0].path, second.seen()[0].path);
        // One that sends in a circle is not followed for ever.
        let circle = Producer::start(97);
        let location = format!("{}/nnrf-disc/v1/nf-instances", circle.root());
        circle.answers(move |_| {
            let mut response = sbi::Response::new(StatusCode::TEMPORARY_REDIRECT);
            response.headers_mut().set_printed("location", &location);
            response
        });
        let scp = start(|config| {
            config.nrf.roots = vec![circle.root()];
            config.nrf.register = false;
            config.nrf.nf_types.clear();
        });
        assert_eq!(
            scp.ask(Method::GET, PATH, &wish).await.cause(),
            "NF_DISCOVERY_FAILURE"
        );
        assert!(circle.count() <= 4, "{}", circle.count());
    });
}

#[test]
fn several_workers_share_the_answers_of_nrfs() {
    local(async {
        let (producer, nrf) = (Producer::start(1), Producer::start(99));
        let profile = producer.profile(&json!({}));
        nrf.answers(move |_| {
            let found = json!({"validityPeriod": 60, "nfInstances": [profile]});
            sbi::json::response(StatusCode::OK, &found)
        });
        let scp = start(|config| {
            config.workers = 4;
            config.nrf.roots = vec![nrf.root()];
            config.nrf.register = false;
            config.nrf.nf_types.clear();
        });
        let wish = |client: sbi::client::Client| {
            let origin = scp.origin.clone();
            async move {
                let request = http::Request::get(PATH)
                    .header("3gpp-sbi-discovery-target-nf-type", "UDM")
                    .header("3gpp-sbi-discovery-service-names", "nudm-sdm");
                let request = request.body(Body::empty()).unwrap();
                testpeer::sbi::send(&client, &origin, request).await.unwrap()
            }
        };
        // Thirty-two connections come to all workers.
        let many = (0..32).map(|_| wish(crate::support::client("AMF-test")));
        for got in futures_util::future::join_all(many).await {
            assert_eq!(got.by(), producer.id);
        }
        assert_eq!(nrf.count(), 1, "the NRF is asked once for all of them");
        assert!(scp.count("signalbox_scp_discovery_answers", "") >= 1.0);
    });
}
