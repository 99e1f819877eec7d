//! Policy counters of an OCS, over Sy.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use diameter::endpoint::{Endpoint, Request, SendOptions, Service, To};
use diameter::proto::check::{Strictness, check};
use diameter::proto::known::{self, application, command};
use diameter::proto::peer::{ApplicationId, Capabilities};
use diameter::proto::{Dictionary, Message, MessageBuilder, MessageMut, ResultCode, text};
use diameter::{NodeConfig, PeerConfig};
use http::StatusCode;
use pcf::config::{ChfFallback, SySessions};
use pcf::{Config, Event};
use serde_json::json;
use testpeer::freediameter::{FreeDiameter, Setup};

use crate::diameter::{CCR_I, CCR_T, ask, peer, received};
use crate::support::{Pcf, SM_POLICIES, context, local, path_of, start};

const PCF: &str = "pcf.example.org";
const OCS: &str = "ocs.example";

/// An OCS that records requests. Its counter `day` has a status, and where a time is set a pending one.
struct Ocs {
    seen: RefCell<Vec<Message>>,
    status: Cell<&'static str>,
    pending: Cell<Option<(u64, &'static str)>>,
    result: Cell<u32>,
    silent: Cell<bool>,
}

impl Service for Ocs {
    async fn call(self: Rc<Self>, request: Request) -> MessageMut {
        check(&request.message, Dictionary::standard(), Strictness::Pedantic).unwrap();
        self.seen.borrow_mut().push(request.message.clone());
        if self.silent.get() {
            std::future::pending::<()>().await;
        }
        let mut answer = request.answer(ResultCode(self.result.get()));
        answer.put(known::AUTH_APPLICATION_ID, application::SY);
        if request.message.command() == command::SPENDING_LIMIT && self.result.get() == 2001 {
            put_day(&mut answer, self.status.get(), self.pending.get());
        }
        answer.finish().unwrap()
    }
}

fn put_day(out: &mut MessageBuilder, status: &str, pending: Option<(u64, &str)>) {
    out.group(known::POLICY_COUNTER_STATUS_REPORT, |out| {
        out.put(known::POLICY_COUNTER_IDENTIFIER, "day")
            .put(known::POLICY_COUNTER_STATUS, status);
        if let Some((seconds, status)) = pending {
            let time = std::time::UNIX_EPOCH + Duration::from_secs(seconds);
            out.group(known::PENDING_POLICY_COUNTER_INFORMATION, |out| {
                out.put(known::POLICY_COUNTER_STATUS, status).put(
                    known::PENDING_POLICY_COUNTER_CHANGE_TIME,
                    diameter::proto::kind::TimeValue::from_system_time(time),
                );
            });
        }
    });
}

/// An OCS that is connected to a peer: the PCF, or a relay.
async fn ocs(to: &str, address: SocketAddr) -> Endpoint<Ocs> {
    let local =
        Capabilities::new(OCS, "charging.example").with_applications([ApplicationId::tgpp(application::SY)]);
    let service = Ocs {
        seen: RefCell::default(),
        status: Cell::new("low"),
        pending: Cell::new(None),
        result: Cell::new(2001),
        silent: Cell::new(false),
    };
    let endpoint = Endpoint::new(NodeConfig::new(local), service, None, 1);
    endpoint
        .node()
        .add_peer(PeerConfig::connect(to, [address]))
        .unwrap();
    endpoint.available(to).await;
    endpoint
}

/// The request of this number, from 1, as text.
async fn asked(ocs: &Endpoint<Ocs>, number: usize) -> String {
    for _ in 0..2_000 {
        if let Some(message) = ocs.service().seen.borrow().get(number - 1) {
            return text::print(message, Dictionary::standard()).to_string();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("request {number} has not come");
}

/// Sends an SNR about the session of a request that the OCS has got: the result.
async fn notify(
    ocs: &Endpoint<Ocs>,
    to: To<'_>,
    about: usize,
    fill: impl FnOnce(&mut MessageBuilder),
) -> u32 {
    let request = ocs.service().seen.borrow()[about - 1].clone();
    let session = request.require(known::SESSION_ID).unwrap();
    let mut message = MessageBuilder::request(command::SPENDING_STATUS_NOTIFICATION, application::SY);
    message
        .put(known::SESSION_ID, session)
        .put(known::AUTH_APPLICATION_ID, application::SY)
        .put(known::ORIGIN_HOST, OCS)
        .put(known::ORIGIN_REALM, "charging.example")
        .put(known::DESTINATION_REALM, "example.org")
        .put(
            known::DESTINATION_HOST,
            request.require(known::ORIGIN_HOST).unwrap(),
        );
    fill(&mut message);
    let options = SendOptions {
        deadline: Duration::from_secs(60),
        failover: false,
    };
    let answer = ocs.request(to, message.finish().unwrap(), options).await.unwrap();
    check(&answer, Dictionary::standard(), Strictness::Pedantic).unwrap();
    answer.require(known::RESULT_CODE).unwrap()
}

/// A PCF whose project throttles a session by the status of the counter `day`.
fn with(folder: &Path, change: impl FnOnce(&mut Config)) -> Pcf {
    let text = "name: test\nservice: sm\nblocks:\n  - if: {$eq: [$counters.day.currentStatus, high]}\n    then:\n      \
                - sessionRule: {sessRuleId: slow, authSessAmbr: {uplink: 1 Mbps, downlink: 1 Mbps}}\n    else:\n      \
                - sessionRule: {sessRuleId: full, authSessAmbr: {uplink: 50 Mbps, downlink: 50 Mbps}}\n";
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("project.yaml"), text).unwrap();
    start(|config| {
        config.policy.sm = Some(folder.to_owned());
        config.diameter.host = PCF.to_owned();
        config.pds.sy.enabled = true;
        config.pds.sy.realm = "charging.example".to_owned();
        config.pds.sy.counters = vec!["day".to_owned()];
        config.pds.deadline = settings::Period::from_secs(20);
        change(config);
    })
}

const FULL: &str = "APN-Aggregate-Max-Bitrate-UL = 50000000";
const SLOW: &str = "APN-Aggregate-Max-Bitrate-UL = 1000000";

#[test]
fn counters_of_an_ocs_decide_over_a_gx_session_until_it_ends() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = None;
        let pcf = with(folder.path(), |config| settings = Some(config.clone()));
        let ocs = ocs(PCF, pcf.running().diameter_addresses()[0]).await;
        let pgw = peer("pgw.example.org", &pcf).await;
        let gx = async |text: &str| ask(&pgw, "pgw.example.org", "pgw;1;1", text).await;
        assert!(gx(CCR_I).await.contains(FULL));
        let begun = asked(&ocs, 1).await;
        for line in [
            "Spending-Limit-Request ",
            "SL-Request-Type = INITIAL_REQUEST",
            "Subscription-Id-Data = \"001010000000001\"",
            "Policy-Counter-Identifier = \"day\"",
            "Destination-Realm = \"charging.example\"",
        ] {
            assert!(begun.contains(line), "no {line} in\n{begun}");
        }

        // A status that changes reaches the PCEF at once, one that is pending when its time has come.
        let high = |out: &mut MessageBuilder| put_day(out, "high", None);
        assert_eq!(notify(&ocs, To::Peer(PCF), 1, high).await, 2001);
        let pushed = received(&pgw, 1).await;
        assert!(pushed.contains(SLOW), "{pushed}");
        let later = |out: &mut MessageBuilder| put_day(out, "low", Some((2_500_000_000, "high")));
        assert_eq!(notify(&ocs, To::Peer(PCF), 1, later).await, 2001);
        let pushed = received(&pgw, 2).await;
        for line in [
            FULL,
            "Event-Trigger = REVALIDATION_TIMEOUT",
            "Revalidation-Time = time 2500000000",
        ] {
            assert!(pushed.contains(line), "no {line} in\n{pushed}");
        }

        // Other counters after a reload: an intermediate request at the next event.
        let mut settings = settings.unwrap();
        settings.pds.sy.counters.push("month".to_owned());
        pcf.running().reload(&settings).unwrap();
        ocs.service().status.set("high");
        let update = "CCR\nCC-Request-Type = UPDATE_REQUEST\nCC-Request-Number = 1\nEvent-Trigger = RAT_CHANGE\nRAT-Type = UTRAN";
        assert!(gx(update).await.contains(SLOW));
        let more = asked(&ocs, 2).await;
        for line in [
            "SL-Request-Type = INTERMEDIATE_REQUEST",
            "Policy-Counter-Identifier = \"month\"",
            "Destination-Host = \"ocs.example\"",
        ] {
            assert!(more.contains(line), "no {line} in\n{more}");
        }

        assert!(gx(CCR_T).await.contains("Result-Code = DIAMETER_SUCCESS"));
        let ended = asked(&ocs, 3).await;
        assert!(
            ended.contains("Session-Termination-Request ") && ended.contains("DIAMETER_LOGOUT"),
            "{ended}"
        );
        assert_eq!(
            notify(&ocs, To::Peer(PCF), 1, |out| put_day(out, "low", None)).await,
            5002
        );
        let count = |event| pcf.running().count(event);
        assert_eq!(
            (
                count(Event::SySubscribed),
                count(Event::SyNotified),
                count(Event::SyFailed)
            ),
            (1, 2, 0)
        );
    });
}

#[test]
fn a_pending_status_whose_time_has_come_is_the_current_one() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let pcf = with(folder.path(), |_| {});
        let ocs = ocs(PCF, pcf.running().diameter_addresses()[0]).await;
        ocs.service().pending.set(Some((1_700_000_000, "high")));
        let pgw = peer("pgw.example.org", &pcf).await;
        let begun = ask(&pgw, "pgw.example.org", "pgw;1;1", CCR_I).await;
        assert!(begun.contains(SLOW), "{begun}");
    });
}

#[test]
fn an_ocs_ends_a_session_and_sessions_of_smfs_have_counters_too() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let pcf = with(folder.path(), |config| {
            config.pds.sy.sessions = vec![SySessions::N7];
        });
        let ocs = ocs(PCF, pcf.running().diameter_addresses()[0]).await;
        ocs.service().status.set("high");
        let made = pcf.post(SM_POLICIES, &context(&json!({}))).await;
        assert!(made.json["sessRules"].get("slow").is_some(), "{}", made.json);
        let path = path_of(&made);
        let begun = asked(&ocs, 1).await;
        assert!(
            begun.contains("Subscription-Id-Data = \"15551234567\""),
            "{begun}"
        );
        let abort = |out: &mut MessageBuilder| {
            out.put(known::SN_REQUEST_TYPE, 2);
        };
        assert_eq!(notify(&ocs, To::Peer(PCF), 1, abort).await, 2001);
        assert!(asked(&ocs, 2).await.contains("Session-Termination-Request "));
        let now = pcf.get(&path).await.json;
        assert!(now["policy"]["sessRules"].get("full").is_some(), "{now}");
        assert_eq!(pcf.running().count(Event::SyAborted), 1);
        // Gx sessions have no counters here.
        let pgw = peer("pgw.example.org", &pcf).await;
        assert!(
            ask(&pgw, "pgw.example.org", "pgw;1;1", CCR_I)
                .await
                .contains(FULL)
        );
        assert_eq!(ocs.service().seen.borrow().len(), 2);
    });
}

#[test]
fn an_ocs_that_refuses_is_silent_or_gone_leaves_the_fallback_to_decide() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = None;
        let pcf = with(folder.path(), |config| {
            config.pds.sy.sessions.push(SySessions::N7);
            config.pds.sy.default.insert("day".to_owned(), "high".to_owned());
            settings = Some(config.clone());
        });
        let mut settings = settings.unwrap();
        let create = async || pcf.post(SM_POLICIES, &context(&json!({}))).await;
        let count = |event| pcf.running().count(event);
        // There is none.
        assert!(create().await.json["sessRules"].get("slow").is_some());
        let ocs = ocs(PCF, pcf.running().diameter_addresses()[0]).await;
        ocs.service().result.set(5030);
        assert!(create().await.json["sessRules"].get("slow").is_some());
        assert_eq!((count(Event::SyFailed), count(Event::SyDefaulted)), (2, 2));

        settings.pds.sy.fallback = ChfFallback::Reject;
        settings.pds.deadline = settings::Period::from_millis(50);
        pcf.running().reload(&settings).unwrap();
        ocs.service().silent.set(true);
        assert_eq!(create().await.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(count(Event::SyRejected), 1);
        // The OCS may have begun the session: the PCF ends it.
        let seen = async |number| asked(&ocs, number).await;
        assert!(seen(2).await.starts_with("Spending-Limit-Request"));
        assert!(seen(3).await.starts_with("Session-Termination-Request"));
    });
}

/// Sessions of one subscriber, at a PCEF and at an SMF, before and after a restart: one Sy session.
#[test]
fn the_sessions_of_a_subscriber_share_one_sy_session_until_the_last_one_ends() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = None;
        let shared = |config: &mut Config| {
            config.pds.sy.sessions = vec![SySessions::Gx, SySessions::N7];
            config.workers = 2;
        };
        let mut pcf = with(folder.path(), |config| {
            shared(config);
            settings = Some(config.clone());
        });
        let first = ocs(PCF, pcf.running().diameter_addresses()[0]).await;
        let pgw = peer("pgw.example.org", &pcf).await;
        assert!(
            ask(&pgw, "pgw.example.org", "pgw;1;1", CCR_I)
                .await
                .contains(FULL)
        );
        let made = pcf.post(SM_POLICIES, &context(&json!({}))).await;
        let path = path_of(&made);
        assert_eq!(first.service().seen.borrow().len(), 1);

        // A status reaches both, and a session that begins later.
        let high = |out: &mut MessageBuilder| put_day(out, "high", None);
        assert_eq!(notify(&first, To::Peer(PCF), 1, high).await, 2001);
        assert!(received(&pgw, 1).await.contains(SLOW));
        assert!(
            pcf.get(&path).await.json["policy"]["sessRules"]
                .get("slow")
                .is_some()
        );
        let other = context(&json!({"pduSessionId": 6, "ipv4Address": "10.0.0.7"}));
        let late = pcf.post(SM_POLICIES, &other).await;
        assert!(late.json["sessRules"].get("slow").is_some(), "{}", late.json);
        let late = path_of(&late);
        let ended = pcf.post(&format!("{path}/delete"), &json!({})).await;
        assert_eq!(ended.status, StatusCode::NO_CONTENT);
        assert_eq!(first.service().seen.borrow().len(), 1);
        let count = |pcf: &Pcf, event| pcf.running().count(event);
        assert_eq!(
            (count(&pcf, Event::SySubscribed), count(&pcf, Event::SyShared)),
            (1, 2)
        );

        // Another process goes on with it.
        let request = first.service().seen.borrow()[0].clone();
        drop((first, pgw));
        pcf.stop();
        pcf.running = Some(pcf::start(settings.unwrap()).unwrap());
        pcf.origin = format!("http://{}", pcf.running().addresses()[0])
            .parse()
            .unwrap();
        let second = ocs(PCF, pcf.running().diameter_addresses()[0]).await;
        second.service().seen.borrow_mut().push(request);
        let low = |out: &mut MessageBuilder| put_day(out, "low", None);
        assert_eq!(notify(&second, To::Peer(PCF), 1, low).await, 2001);
        assert!(
            pcf.get(&late).await.json["policy"]["sessRules"]
                .get("full")
                .is_some()
        );
        let pgw = peer("pgw.example.org", &pcf).await;
        pcf.post(&format!("{late}/delete"), &json!({})).await;
        assert!(
            ask(&pgw, "pgw.example.org", "pgw;1;1", CCR_T)
                .await
                .contains("Result-Code = DIAMETER_SUCCESS")
        );
        assert!(asked(&second, 2).await.starts_with("Session-Termination-Request"));
        assert_eq!(second.service().seen.borrow().len(), 2);
        assert_eq!(notify(&second, To::Peer(PCF), 1, low).await, 5002);
    });
}

#[test]
fn sessions_that_begin_at_one_moment_leave_one_sy_session() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let pcf = with(folder.path(), |config| {
            config.pds.sy.sessions = vec![SySessions::N7];
            config.workers = 2;
        });
        let ocs = ocs(PCF, pcf.running().diameter_addresses()[0]).await;
        let create = async |number: u64| {
            let address = format!("10.0.0.{number}");
            let body = context(&json!({"pduSessionId": number, "ipv4Address": address}));
            path_of(&pcf.post(SM_POLICIES, &body).await)
        };
        let made = tokio::join!(create(1), create(2), create(3), create(4), create(5));
        let paths = [made.0, made.1, made.2, made.3, made.4];
        let kinds = |command: u32| {
            let seen = ocs.service().seen.borrow();
            seen.iter().filter(|one| one.command() == command).count()
        };
        let open = || kinds(command::SPENDING_LIMIT) - kinds(command::SESSION_TERMINATION);
        while open() != 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for path in &paths {
            pcf.post(&format!("{path}/delete"), &json!({})).await;
        }
        while open() != 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
}

#[test]
fn free_diameter_relays_sy_between_the_pcf_and_an_ocs() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let setup = Setup {
            identity: "relay.example",
            realm: "relay.example",
            port: free_ports::port().unwrap(),
            peers: &[],
        };
        let Some(relay) = FreeDiameter::start(setup).await else {
            return;
        };
        let pcf = with(folder.path(), |config| {
            let peer = json!({"host": "relay.example", "addresses": [relay.address().to_string()]});
            config.diameter.peers = vec![serde_json::from_value(peer).unwrap()];
            config.diameter.host = "pcf.example".to_owned();
            config.pds.sy.sessions = vec![SySessions::N7];
        });
        let ocs = ocs("relay.example", relay.address()).await;
        // Until the PCF is connected to the relay, the fallback decides.
        let path = loop {
            let made = pcf.post(SM_POLICIES, &context(&json!({}))).await;
            if pcf.running().count(Event::SySubscribed) == 1 {
                assert!(made.json["sessRules"].get("full").is_some(), "{}", made.json);
                break path_of(&made);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        let begun = asked(&ocs, 1).await;
        assert!(begun.contains("Route-Record = \"pcf.example\""), "{begun}");
        let high = |out: &mut MessageBuilder| put_day(out, "high", None);
        assert_eq!(notify(&ocs, To::Peer("relay.example"), 1, high).await, 2001);
        let now = pcf.get(&path).await.json;
        assert!(now["policy"]["sessRules"].get("slow").is_some(), "{now}");
        let ended = pcf.post(&format!("{path}/delete"), &json!({})).await;
        assert_eq!(ended.status, StatusCode::NO_CONTENT);
        assert!(asked(&ocs, 2).await.starts_with("Session-Termination-Request"));
    });
}
