//! UE policies on their way to UEs: N1 messages through AMFs (TS 29.525 §4.2.2.2, TS 29.518, TS 24.501 annex D).

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use http::{Method, StatusCode};
use pcf::Event;
use sbi::Response;
use sbi::multipart::{self, Part};
use sbi::problem::Problem;
use serde_json::{Value, json};
use settings::Period;
use testpeer::sbi::{Got, Seen, Server, no_content, request};

use crate::support::{Pcf, config, local, path_of, start, with};

const UE: &str = "/npcf-ue-policy-control/v1/policies";
const AMF_FILE: &str = "TS29518_Namf_Communication.yaml";
const MESSAGES: &str = "/namf-comm/v1/ue-contexts/imsi-001010000000001/n1-n2-messages";

fn association(more: &Value) -> Value {
    let value = json!({
        "notificationUri": "http://127.0.0.1:9/amf/n1", "supi": "imsi-001010000000001",
        "servingPlmn": {"mcc": "001", "mnc": "01"}, "suppFeat": "0",
        "guami": {"plmnId": {"mcc": "001", "mnc": "01"}, "amfId": "0000ff"},
    });
    with(value, more)
}

/// An AMF that takes subscriptions and messages; a message is answered with `status`.
fn amf(status: impl Fn() -> StatusCode + 'static) -> Server {
    Server::start(move |seen| match (seen.method.as_str(), seen.path.as_str()) {
        ("DELETE", _) => no_content(),
        (_, path) if path.ends_with("/subscriptions") => {
            crate::judge::is(AMF_FILE, "UeN1N2InfoSubscriptionCreateData", &seen.json());
            let created = json!({"n1n2NotifySubscriptionId": "7"});
            let location = format!("{MESSAGES}/subscriptions/7");
            let location = sbi::Value::new(location.as_bytes()).unwrap();
            sbi::json::response(StatusCode::CREATED, &created).with(sbi::name::LOCATION, location)
        }
        _ => taken(status()),
    })
}

fn taken(status: StatusCode) -> Response {
    match status {
        StatusCode::OK => sbi::json::response(status, &json!({"cause": "N1_N2_TRANSFER_INITIATED"})),
        status => Problem::of_status(status).into_response(),
    }
}

/// The JSON and the octets of an N1 message that an AMF got.
fn message_of(seen: &Seen) -> (Value, Vec<u8>) {
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", MESSAGES));
    let parts = multipart::read(seen.header("content-type"), &seen.body).unwrap();
    let data: Value = serde_json::from_slice(parts[0].body).unwrap();
    crate::judge::is(AMF_FILE, "N1N2MessageTransferReqData", &data);
    let id = data["n1MessageContainer"]["n1MessageContent"]["contentId"].as_str();
    let octets = parts.iter().find(|part| part.id == id).unwrap();
    assert_eq!(octets.content_type, "application/vnd.3gpp.5gnas");
    (data, octets.body.to_vec())
}

fn with_amf(server: &Server, t3501: Period) -> Pcf {
    let root = server.root();
    start(|config| {
        config.ue_policy.amf_api_root = Some(root);
        config.ue_policy.t3501 = t3501;
    })
}

async fn until(what: impl Fn() -> bool) {
    let patience = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), patience)
        .await
        .expect("it happens in time");
}

/// A UE answers: the AMF notifies the PCF at the callback of its subscription.
async fn answers(pcf: &Pcf, callback: &str, octets: &[u8]) -> Got {
    let data = json!({"n1NotifySubscriptionId": "7", "n1MessageContainer":
        {"n1MessageClass": "UPDP", "n1MessageContent": {"contentId": "m"}}});
    crate::judge::is(AMF_FILE, "N1MessageNotification", &data);
    let data = data.to_string();
    let json = Part {
        content_type: "application/json",
        id: None,
        body: data.as_bytes(),
    };
    let message = Part {
        content_type: "application/vnd.3gpp.5gnas",
        id: Some("m"),
        body: octets,
    };
    let (content_type, body) = multipart::write(&[json, message]);
    let path = callback.parse::<http::Uri>().unwrap().path().to_owned();
    let request = request(Method::POST, &path, &content_type, body);
    testpeer::sbi::send(&pcf.client, &pcf.origin, request)
        .await
        .unwrap()
}

async fn delivery(pcf: &Pcf, path: &str) -> Value {
    let id = path.rsplit('/').next().unwrap();
    let id = pcf::association::AssociationId::parse(id).unwrap();
    let stored = pcf.running().repository().get(id).await.unwrap().unwrap();
    stored.record.rooms["uePolicy"].clone()
}

/// The N1 messages that an AMF got.
fn commands(amf: &Server) -> Vec<Seen> {
    let mut seen = amf.seen();
    seen.retain(|seen| seen.path == MESSAGES);
    seen
}

fn callback_of(amf: &Server) -> String {
    let seen = amf.seen();
    let subscription = seen
        .iter()
        .find(|seen| seen.path.ends_with("/subscriptions"))
        .unwrap();
    subscription.json()["n1NotifyCallbackUri"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn count(pcf: &Pcf, event: Event) -> u64 {
    pcf.running().count(event)
}

#[test]
fn a_policy_reaches_its_ue_and_the_answer_is_kept() {
    local(async {
        let amf = amf(|| StatusCode::OK);
        let pcf = with_amf(&amf, Period::from_secs(3_600));
        let path = path_of(&pcf.post(UE, &association(&json!({}))).await);
        until(|| count(&pcf, Event::UePolicySent) == 1).await;
        let seen = amf.seen();
        assert_eq!(seen[0].path, format!("{MESSAGES}/subscriptions"));
        let subscription = seen[0].json();
        assert_eq!(subscription["n1MessageClass"], "UPDP");
        let (data, octets) = message_of(&seen[1]);
        assert_eq!(data["n1MessageContainer"]["n1MessageClass"], "UPDP");
        // PTI, MANAGE UE POLICY COMMAND; the PLMN of the sublist.
        assert_eq!(
            (&octets[..2], &octets[6..9]),
            (&[0x80, 1][..], &[0x00, 0xf1, 0x10][..])
        );
        assert_eq!(delivery(&pcf, &path).await["progress"], "sent");

        // Answers to no command of ours, and other octets, change nothing.
        let callback = callback_of(&amf);
        for stray in [&[0x81, 2][..], &[0x80, 4, 0, 0], &[0x80], &[0x80, 3, 0, 9]] {
            assert_eq!(
                answers(&pcf, &callback, stray).await.status,
                StatusCode::NO_CONTENT
            );
        }
        assert_eq!(count(&pcf, Event::UePolicyStray), 4);
        let wrong = request(
            Method::POST,
            callback.parse::<http::Uri>().unwrap().path(),
            "multipart/related",
            "x",
        );
        let refused = testpeer::sbi::send(&pcf.client, &pcf.origin, wrong)
            .await
            .unwrap();
        assert_eq!(
            (refused.status, refused.cause()),
            (StatusCode::BAD_REQUEST, "INVALID_MSG_FORMAT")
        );

        assert_eq!(
            answers(&pcf, &callback, &[0x80, 2]).await.status,
            StatusCode::NO_CONTENT
        );
        assert_eq!(delivery(&pcf, &path).await["progress"], "delivered");
        assert_eq!(count(&pcf, Event::UePolicyDelivered), 1);

        // The same rules are not sent again; the section of another PLMN is.
        let update = format!("{path}/update");
        pcf.post(&update, &json!({"triggers": ["PRA_CH"], "praStatuses": {"1": {"praId": "1", "presenceState": "IN_AREA"}}})).await;
        let moved = json!({"plmnId": {"mcc": "001", "mnc": "02"}});
        pcf.post(&update, &moved).await;
        until(|| count(&pcf, Event::UePolicySent) == 2).await;
        assert_eq!(amf.count(), 3, "one subscription");
        assert_eq!(message_of(&amf.seen()[2]).1[..2], [0x81, 1]);
        let reject = [0x81, 3, 0, 9, 1, 0x00, 0xf1, 0x20, 0, 1, 0, 1, 111];
        answers(&pcf, &callback, &reject).await;
        let kept = delivery(&pcf, &path).await;
        assert_eq!(kept["progress"], "rejected");
        assert_eq!(
            kept["results"],
            json!([{"upsc": 1, "instruction": 1, "cause": 111}])
        );
        assert_eq!(count(&pcf, Event::UePolicyRejected), 1);

        // The subscription ends with the association.
        pcf.ask(Method::DELETE, &path, "", "").await;
        until(|| amf.count() == 4).await;
        let last = &amf.seen()[3];
        assert_eq!(
            (last.method.as_str(), last.path.clone()),
            ("DELETE", format!("{MESSAGES}/subscriptions/7"))
        );
        let late = answers(&pcf, &callback, &[0x80, 2]).await;
        assert_eq!(
            (late.status, late.cause()),
            (StatusCode::NOT_FOUND, "CONTEXT_NOT_FOUND")
        );
    });
}

#[test]
fn a_ue_that_does_not_answer_gets_the_command_four_more_times() {
    local(async {
        let amf = amf(|| StatusCode::OK);
        let pcf = with_amf(&amf, Period::from_millis(20));
        let path = path_of(&pcf.post(UE, &association(&json!({}))).await);
        until(|| count(&pcf, Event::UePolicyFailed) == 1).await;
        let sent = (
            count(&pcf, Event::UePolicySent),
            count(&pcf, Event::UePolicyResent),
        );
        assert_eq!((sent, commands(&amf).len()), ((1, 4), 5), "TS 24.501 table D.7.1");
        for seen in &commands(&amf) {
            assert_eq!(message_of(seen).1[..2], [0x80, 1], "the same procedure");
        }
        let kept = delivery(&pcf, &path).await;
        assert_eq!(
            (&kept["progress"], &kept["attempts"]),
            (&json!("failed"), &json!(5))
        );
        assert!(
            kept["cause"]
                .as_str()
                .unwrap()
                .contains("the UE has not answered"),
            "{kept}"
        );

        // The AMF has news of the UE: another procedure.
        let connected = json!({"triggers": ["CON_STATE_CH"], "connectState": "CONNECTED"});
        pcf.post(&format!("{path}/update"), &connected).await;
        until(|| count(&pcf, Event::UePolicySent) == 2).await;
        assert_eq!(message_of(&commands(&amf)[5]).1[..2], [0x81, 1]);
    });
}

#[test]
fn an_attempt_at_a_slow_amf_is_left_to_the_worker_that_makes_it() {
    local(async {
        let amf = amf(|| StatusCode::OK);
        amf.waits(Duration::from_millis(300));
        let pcf = with_amf(&amf, Period::from_millis(20));
        pcf.post(UE, &association(&json!({}))).await;
        until(|| count(&pcf, Event::UePolicyFailed) == 1).await;
        let counted = [Event::UePolicySent, Event::UePolicyResent, Event::UePolicyResumed];
        assert_eq!(
            counted.map(|event| count(&pcf, event)),
            [1, 4, 0],
            "no sweep takes an attempt from its worker"
        );
        assert_eq!((amf.count(), commands(&amf).len()), (6, 5), "one subscription");
    });
}

#[test]
fn what_was_in_flight_when_the_process_ended_is_delivered_by_the_next_one() {
    local(async {
        let amf = amf(|| StatusCode::OK);
        let mut pcf = with_amf(&amf, Period::from_secs(2));
        let path = path_of(&pcf.post(UE, &association(&json!({}))).await);
        until(|| count(&pcf, Event::UePolicySent) == 1).await;
        let callback = callback_of(&amf);
        pcf.stop();
        let mut settings = config(pcf.directory.path());
        settings.ue_policy.amf_api_root = Some(amf.root());
        settings.ue_policy.t3501 = Period::from_secs(2);
        settings.ue_policy.timeout = Period::from_millis(500);
        pcf.running = Some(pcf::start(settings).unwrap());
        pcf.origin = format!("http://{}", pcf.running().addresses()[0])
            .parse()
            .unwrap();
        assert_eq!(delivery(&pcf, &path).await["progress"], "sent");
        until(|| count(&pcf, Event::UePolicyResumed) >= 1 && count(&pcf, Event::UePolicyResent) >= 1).await;
        answers(&pcf, &callback, &[0x80, 2]).await;
        assert_eq!(delivery(&pcf, &path).await["progress"], "delivered");
    });
}

#[test]
fn as_many_as_are_in_flight_are_taken_up_however_few_a_query_reads() {
    local(async {
        const UES: usize = 12;
        let server = amf(|| StatusCode::CONFLICT);
        let root = server.root();
        let settings = move |config: &mut pcf::Config| {
            config.max_candidates = 2;
            config.ue_policy.amf_api_root = Some(root);
            config.ue_policy.t3501 = Period::from_secs(1);
            config.ue_policy.timeout = Period::from_millis(500);
            config.ue_policy.retransmissions = 1_000;
        };
        let mut pcf = start(settings.clone());
        for number in 0..UES {
            let supi = json!({"supi": format!("imsi-0010100000001{number:02}")});
            pcf.post(UE, &association(&supi)).await;
        }
        pcf.stop();
        let before = server.seen().len();
        let mut again = config(pcf.directory.path());
        settings(&mut again);
        pcf.running = Some(pcf::start(again).unwrap());
        let reached = || {
            let seen = server.seen().split_off(before);
            let messages = seen.into_iter().map(|seen| seen.path);
            let paths = messages.filter(|path| path.ends_with("/n1-n2-messages"));
            paths.collect::<std::collections::BTreeSet<String>>().len()
        };
        until(|| reached() == UES).await;
    });
}

#[test]
fn the_amf_is_found_by_its_guami_and_another_of_its_set_is_tried() {
    local(async {
        let gone = Server::start(|_| {
            let problem = Problem::with_cause(StatusCode::NOT_FOUND, "CONTEXT_NOT_FOUND");
            problem.into_response()
        });
        let status = Rc::new(Cell::new(StatusCode::CONFLICT));
        let answer = status.clone();
        let second = amf(move || answer.get());
        let profile = |server: &Server, id: u8, priority: u8| {
            let port: u16 = server.root().rsplit(':').next().unwrap().parse().unwrap();
            json!({"nfInstanceId": format!("0c6a2e4f-7d7e-4a53-9f36-6f1f0a8d80{id:02}"), "nfType": "AMF",
                "nfStatus": "REGISTERED", "priority": priority, "nfServices": [{"serviceInstanceId": "1",
                "serviceName": "namf-comm", "scheme": "http", "nfServiceStatus": "REGISTERED",
                "ipEndPoints": [{"ipv4Address": "127.0.0.1", "port": port}]}]})
        };
        let found =
            json!({"validityPeriod": 60, "nfInstances": [profile(&second, 2, 2), profile(&gone, 1, 1)]});
        let nrf = Server::start(move |seen| match seen.uri().path() {
            "/nnrf-disc/v1/nf-instances" => sbi::json::response(StatusCode::OK, &found),
            _ => no_content(),
        });
        let root = nrf.root();
        let pcf = start(|config| {
            config.nrf.api_roots = vec![root];
            config.ue_policy.t3501 = Period::from_millis(20);
        });
        let path = path_of(&pcf.post(UE, &association(&json!({}))).await);
        // The UE is being handed over (409): that passes.
        until(|| !commands(&second).is_empty()).await;
        status.set(StatusCode::OK);
        until(|| count(&pcf, Event::UePolicyFailed) == 1).await;
        assert!(
            commands(&gone).is_empty() && gone.count() >= 1,
            "a subscription was tried there"
        );
        let kept = delivery(&pcf, &path).await;
        assert_eq!(kept["amf"], second.root(), "{kept}");
        let asked: Vec<String> = nrf
            .seen()
            .iter()
            .filter(|seen| seen.path.starts_with("/nnrf-disc"))
            .map(|seen| seen.path.clone())
            .collect();
        assert!((1..5).contains(&asked.len()), "what was discovered is cached");
        assert!(
            asked[0].contains("target-nf-type=AMF") && asked[0].contains("guami=%7B%22plmnId"),
            "{asked:?}"
        );
    });
}

#[test]
fn an_amf_that_cannot_reach_the_ue_ends_the_delivery_until_there_is_news() {
    local(async {
        let amf = amf(|| StatusCode::OK);
        let pcf = with_amf(&amf, Period::from_secs(3_600));
        let path = path_of(&pcf.post(UE, &association(&json!({}))).await);
        until(|| count(&pcf, Event::UePolicySent) == 1).await;
        let (data, _) = message_of(&amf.seen()[1]);
        let target: http::Uri = data["n1n2FailureTxfNotifURI"].as_str().unwrap().parse().unwrap();
        let failure = json!({"cause": "UE_NOT_RESPONDING", "n1n2MsgDataUri": "http://127.0.0.1:9/x"});
        crate::judge::is(AMF_FILE, "N1N2MsgTxfrFailureNotification", &failure);
        let got = pcf.post(target.path(), &failure).await;
        assert_eq!(got.status, StatusCode::NO_CONTENT);
        let kept = delivery(&pcf, &path).await;
        assert_eq!(
            (&kept["progress"], &kept["cause"]),
            (&json!("failed"), &json!("UE_NOT_RESPONDING"))
        );
        pcf.post(&format!("{path}/update"), &json!({"triggers": ["CON_STATE_CH"]}))
            .await;
        until(|| count(&pcf, Event::UePolicySent) == 2).await;

        // An AMF that does not know the UE: there is no use in another attempt.
        let refusing = self::amf(|| StatusCode::NOT_FOUND);
        let pcf = with_amf(&refusing, Period::from_millis(5));
        let path = path_of(&pcf.post(UE, &association(&json!({}))).await);
        until(|| count(&pcf, Event::UePolicyFailed) == 1).await;
        assert_eq!(delivery(&pcf, &path).await["attempts"], 1);
    });
}

#[test]
fn a_worker_without_room_leaves_deliveries_to_the_sweep() {
    local(async {
        let amf = amf(|| StatusCode::OK);
        amf.holds();
        let root = amf.root();
        let pcf = start(|config| {
            config.ue_policy.amf_api_root = Some(root);
            config.ue_policy.t3501 = Period::from_millis(100);
            (config.ue_policy.parallel, config.ue_policy.queue) = (1, 1);
        });
        for _ in 0..5 {
            pcf.post(UE, &association(&json!({}))).await;
        }
        assert!(count(&pcf, Event::UePolicyDeferred) >= 1);
        amf.releases();
        until(|| count(&pcf, Event::UePolicySent) == 5).await;
        assert!(count(&pcf, Event::UePolicyResumed) >= 1);
    });
}

/// An AMF that has moved names where its requests go now (TS 29.500 §6.10.9).
#[test]
fn a_redirection_of_an_amf_is_followed_and_no_circle() {
    local(async {
        let moved = amf(|| StatusCode::OK);
        let root = moved.root();
        let old = Server::start(move |seen| {
            let mut answer = Problem::of_status(StatusCode::TEMPORARY_REDIRECT).into_response();
            let location = format!("{root}{}", seen.path);
            answer.headers_mut().set_printed(sbi::name::LOCATION, location);
            answer
        });
        let pcf = with_amf(&old, Period::from_secs(3_600));
        path_of(&pcf.post(UE, &association(&json!({}))).await);
        until(|| !commands(&moved).is_empty()).await;
        message_of(&commands(&moved)[0]);
        assert!(old.count() >= 1);

        // One that redirects to itself is given up for the time being.
        let circle = Server::start(|_| no_content());
        let own = circle.root();
        circle.answers(move |seen| {
            let mut answer = Problem::of_status(StatusCode::PERMANENT_REDIRECT).into_response();
            let location = format!("{own}{}", seen.path);
            answer.headers_mut().set_printed(sbi::name::LOCATION, location);
            answer
        });
        let pcf = with_amf(&circle, Period::from_secs(3_600));
        path_of(&pcf.post(UE, &association(&json!({}))).await);
        until(|| circle.count() == 3).await;
    });
}
