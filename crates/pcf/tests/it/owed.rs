//! What a consumer has not got when the process is killed: the next one sends it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use diameter::proto::known::{application, disconnect_cause};
use http::{Method, StatusCode};
use pcf::Config;
use sbi::client::Origin;
use sbi::problem::Problem;
use sbi::response::no_content;
use serde_json::{Map, Value, json};
use testpeer::sbi::{Got, Server};

use crate::authorization::{APP_SESSIONS, call};
use crate::diameter::{AAR, STR, ask, peer_at, received};
use crate::pages::admin;
use crate::policies::{AM, association};
use crate::process::Process;
use crate::support::{
    SM_POLICIES, ask_sources, client, config, context, judged, local, path_of, request, start, until,
};

/// Settings by which a notification is taken up soon after its attempts.
pub(crate) fn settings(folder: &std::path::Path) -> Config {
    let mut settings = config(folder);
    settings.notifications.attempts = 1;
    settings.notifications.redirects = 0;
    settings.notifications.timeout = settings::Period::from_millis(500);
    settings.notifications.retry_pause = settings::Period::from_millis(10);
    settings.notifications.max_retry_pause = settings::Period::from_millis(10);
    settings
}

/// A call of an AF that is not there; its path.
async fn called(origin: &Origin) -> String {
    let call = call("http://127.0.0.1:9/af", &json!({}));
    path_of(&post(origin, APP_SESSIONS, &call).await)
}

/// The rules of AF sessions among those of a session.
pub(crate) fn af_rules(rules: &Value) -> Vec<&String> {
    let names = rules.as_object().unwrap().keys();
    names.filter(|id| id.starts_with("af-")).collect()
}

/// An SMF reports that it has no resources for rules.
pub(crate) fn failed(rules: &[&String]) -> Value {
    json!({"ruleReports": [{"pccRuleIds": rules, "ruleStatus": "INACTIVE", "failureCode": "RES_ALLO_FAIL"}]})
}

/// A consumer that takes notifications, or refuses them for a time.
pub(crate) struct Consumer {
    pub(crate) server: Server,
    pub(crate) taken: Rc<RefCell<Vec<(String, Value)>>>,
    refused: Rc<Cell<usize>>,
    refuses: Rc<Cell<bool>>,
}

impl Consumer {
    pub(crate) fn start() -> Self {
        let (taken, refused, refuses) = <(Rc<RefCell<Vec<_>>>, Rc<Cell<usize>>, Rc<Cell<bool>>)>::default();
        let (list, count, state) = (taken.clone(), refused.clone(), refuses.clone());
        let server = Server::start(move |seen| {
            if state.get() {
                count.set(count.get() + 1);
                return Problem::of_status(StatusCode::SERVICE_UNAVAILABLE).into_response();
            }
            list.borrow_mut()
                .push((seen.uri().path().to_owned(), seen.json()));
            no_content()
        });
        Self {
            server,
            taken,
            refused,
            refuses,
        }
    }

    pub(crate) fn root(&self) -> String {
        self.server.root()
    }

    pub(crate) fn refuse(&self, refuses: bool) {
        self.refuses.set(refuses);
    }

    /// Waits until it has refused this many.
    async fn refused(&self, count: usize) {
        until(|| self.refused.get() >= count).await;
    }

    /// Waits until it has taken this many: all of them.
    async fn taken(&self, count: usize) -> Vec<(String, Value)> {
        until(|| self.taken.borrow().len() >= count).await;
        self.taken.borrow().clone()
    }
}

pub(crate) async fn post(origin: &Origin, path: &str, body: &Value) -> Got {
    let request = request(Method::POST, path, "application/json", body.to_string());
    judged(&client(), origin, request).await
}

pub(crate) async fn decision(origin: &Origin, path: &str) -> Value {
    let got = judged(&client(), origin, request(Method::GET, path, "", "")).await;
    assert_eq!(got.status, StatusCode::OK);
    got.json["policy"].clone()
}

/// An SMF: it merges what it is notified of into what it has (TS 29.512 §4.2.6.2).
fn merge(has: &mut Map<String, Value>, change: &Value) {
    for (name, value) in change.as_object().into_iter().flatten() {
        match value {
            Value::Null => drop(has.shift_remove(name)),
            Value::Object(entries) if has.get(name).is_none_or(Value::is_object) => {
                let held = has
                    .entry(name.clone())
                    .or_insert_with(|| Value::Object(Map::new()));
                let Value::Object(held) = held else {
                    continue;
                };
                for (id, entry) in entries {
                    match entry {
                        Value::Null => drop(held.shift_remove(id)),
                        entry => drop(held.insert(id.clone(), entry.clone())),
                    }
                }
            }
            value => drop(has.insert(name.clone(), value.clone())),
        }
    }
    has.retain(|_, value| value.as_object().is_none_or(|entries| !entries.is_empty()));
}

/// The decision of an SMF after what it has taken.
pub(crate) fn held(created: &Value, taken: &[(String, Value)]) -> Map<String, Value> {
    let mut has = created.as_object().unwrap().clone();
    has.shift_remove("suppFeat");
    for (path, body) in taken {
        if path.ends_with("/update") {
            merge(&mut has, &body["smPolicyDecision"]);
        }
    }
    has
}

/// The process is killed while the SMF does not take the change; the next one brings it to the present decision, by what was added
/// and by what was removed.
#[test]
fn an_smf_gets_what_it_was_owed_when_the_process_was_killed() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(folder.path());
        let smf = Consumer::start();
        let more = json!({"notificationUri": smf.root()});
        let first = Process::start(&settings);
        let created = post(&first.origin, SM_POLICIES, &context(&more)).await;
        let path = path_of(&created);
        let kept = called(&first.origin).await;
        let taken = smf.taken(1).await;
        assert!(held(&created.json, &taken)["pccRules"].is_object());

        smf.refuse(true);
        let ended = post(&first.origin, &format!("{kept}/delete"), &json!({})).await;
        assert_eq!(ended.status, StatusCode::NO_CONTENT, "{}", ended.json);
        let begun = call("http://127.0.0.1:9/af", &json!({"afAppId": "other"}));
        path_of(&post(&first.origin, APP_SESSIONS, &begun).await);
        smf.refused(1).await;
        drop(first);
        smf.refuse(false);

        let second = Process::start(&settings);
        let expected = decision(&second.origin, &path).await;
        assert!(expected.get("pccRules").is_some(), "{expected}");
        let mut count = 2;
        loop {
            let taken = smf.taken(count).await;
            if Value::Object(held(&created.json, &taken)) == expected {
                break;
            }
            count += 1;
        }
    });
}

/// A consumer that is away for longer than all attempts gets the present decision when it is back, without another change.
#[test]
fn a_consumer_that_was_away_gets_the_decision_when_it_is_back() {
    local(async {
        let smf = Consumer::start();
        let pcf = start(|config| {
            let short = settings(std::path::Path::new("."));
            config.notifications = short.notifications;
        });
        smf.refuse(true);
        let created = pcf
            .post(SM_POLICIES, &context(&json!({"notificationUri": smf.root()})))
            .await;
        let path = path_of(&created);
        called(&pcf.origin).await;
        until(|| pcf.running().count(pcf::Event::NotificationFailed) >= 1).await;
        smf.refuse(false);
        let taken = smf.taken(1).await;
        let expected = pcf.get(&path).await.json["policy"].clone();
        assert_eq!(Value::Object(held(&created.json, &taken)), expected);
        until(|| pcf.running().count(pcf::Event::NotificationResumed) >= 1).await;
    });
}

/// What is sent again is the decision of now: an answer to an update that came meanwhile is not overwritten.
#[test]
fn a_further_attempt_has_the_decision_of_now() {
    local(async {
        let smf = Consumer::start();
        let pcf = start(|config| {
            config.notifications.retry_pause = settings::Period::from_millis(1_500);
            config.notifications.attempts = 10;
        });
        smf.refuse(true);
        let created = pcf
            .post(SM_POLICIES, &context(&json!({"notificationUri": smf.root()})))
            .await;
        let path = path_of(&created);
        called(&pcf.origin).await;
        smf.refused(1).await;
        // The SMF has installed the rules, its answer was lost; it has to remove them again.
        let rules = pcf.get(&path).await.json["policy"]["pccRules"].clone();
        let names = af_rules(&rules);
        let report = failed(&names);
        let updated = pcf.post(&format!("{path}/update"), &report).await;
        assert_eq!(updated.status, StatusCode::OK, "{}", updated.json);
        smf.refuse(false);
        let taken = smf.taken(1).await;
        let has = held(&created.json, &taken);
        let left = has.get("pccRules").map(af_rules).unwrap_or_default();
        assert_eq!(left.len(), 0, "{has:?}");
    });
}

/// Nothing is owed to the consumer of an association that has ended.
#[test]
fn a_record_of_an_association_that_has_ended_goes() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(folder.path());
        let smf = Server::start(|_| Problem::of_status(StatusCode::SERVICE_UNAVAILABLE).into_response());
        let first = Process::start(&settings);
        let created = post(
            &first.origin,
            SM_POLICIES,
            &context(&json!({"notificationUri": smf.root()})),
        )
        .await;
        let path = path_of(&created);
        called(&first.origin).await;
        until(|| smf.count() >= 1).await;
        let ended = post(&first.origin, &format!("{path}/delete"), &json!({})).await;
        assert_eq!(ended.status, StatusCode::NO_CONTENT, "{}", ended.json);
        drop(first);
        // The next one has nothing to send, and says nothing of the session that has ended.
        let alive = Server::start(|_| no_content());
        let second = Process::start(&settings);
        let more = json!({"notificationUri": alive.root(), "pduSessionId": 9});
        path_of(&post(&second.origin, SM_POLICIES, &context(&more)).await);
        called(&second.origin).await;
        until(|| alive.count() >= 1).await;
    });
}

/// An AF over N5 that does not take what it is notified of gets the event and the end from the next process.
#[test]
fn an_af_gets_events_and_the_end_that_it_was_owed() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(folder.path());
        // The SMF takes the rules: that it does not is an event of its own.
        let (smf, af) = (Consumer::start(), Consumer::start());
        af.refuse(true);
        let first = Process::start(&settings);
        let body = context(&json!({"notificationUri": format!("{}/smf", smf.root())}));
        let path = path_of(&post(&first.origin, SM_POLICIES, &body).await);
        path_of(&post(&first.origin, APP_SESSIONS, &call(&af.root(), &json!({}))).await);
        let rules = decision(&first.origin, &path).await["pccRules"].clone();
        let names = af_rules(&rules);
        let report = failed(&names[..1]);
        let updated = post(&first.origin, &format!("{path}/update"), &report).await;
        assert_eq!(updated.status, StatusCode::OK, "{}", updated.json);
        let ended = post(&first.origin, &format!("{path}/delete"), &json!({})).await;
        assert_eq!(ended.status, StatusCode::NO_CONTENT, "{}", ended.json);
        af.refused(2).await;
        drop(first);
        af.refuse(false);

        let _second = Process::start(&settings);
        let taken = af.taken(2).await;
        let has = |end: &str, member: &str| {
            let mut own = taken.iter().filter(|(path, _)| path.ends_with(end));
            own.any(|(_, body)| body.get(member).is_some())
        };
        assert!(has("/events/notify", "failedResourcAllocReports"), "{taken:?}");
        assert!(has("/af/terminate", "termCause"), "{taken:?}");
    });
}

/// The association does not change when no attempt brings the rules to the SMF; the AF learns it all the same.
#[test]
fn an_af_gets_the_notice_of_rules_that_their_smf_never_took() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(folder.path());
        let (smf, af) = (Consumer::start(), Consumer::start());
        smf.refuse(true);
        af.refuse(true);
        let first = Process::start(&settings);
        let body = context(&json!({"notificationUri": format!("{}/smf", smf.root())}));
        path_of(&post(&first.origin, SM_POLICIES, &body).await);
        path_of(&post(&first.origin, APP_SESSIONS, &call(&af.root(), &json!({}))).await);
        af.refused(1).await;
        drop(first);
        af.refuse(false);

        let _second = Process::start(&settings);
        let taken = af.taken(1).await;
        let (path, notice) = &taken[0];
        assert!(path.ends_with("/events/notify"), "{path}");
        assert!(notice.get("failedResourcAllocReports").is_some(), "{notice}");
    });
}

/// What is sent again goes to where the AF is subscribed now.
#[test]
fn an_event_goes_to_the_subscription_of_now() {
    local(async {
        let pcf = start(|config| {
            config.notifications = settings(std::path::Path::new(".")).notifications;
        });
        let (before, now) = (Consumer::start(), Consumer::start());
        before.refuse(true);
        let path = pcf.session(&json!({})).await;
        let app = path_of(&pcf.post(APP_SESSIONS, &call(&before.root(), &json!({}))).await);
        let rules = pcf.get(&path).await.json["policy"]["pccRules"].clone();
        let names = af_rules(&rules);
        let report = failed(&names[..1]);
        pcf.post(&format!("{path}/update"), &report).await;
        before.refused(1).await;
        let events = json!({"notifUri": format!("{}/other", now.root()), "events": [{"event": "FAILED_RESOURCES_ALLOCATION"}]});
        let put = pcf
            .ask(
                Method::PUT,
                &format!("{app}/events-subscription"),
                "application/json",
                events.to_string(),
            )
            .await;
        assert_eq!(put.status, StatusCode::OK, "{}", put.json);
        let taken = now.taken(1).await;
        assert_eq!(taken[0].0, "/other/notify");
        assert!(taken[0].1.get("failedResourcAllocReports").is_some(), "{taken:?}");
    });
}

/// The same over Rx: RAR and ASR.
#[test]
fn an_af_over_rx_gets_the_requests_that_it_was_owed() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = settings(folder.path());
        let address = free_ports::address().unwrap();
        settings.diameter.listen = settings::Listen(vec![address]);
        settings.diameter.timeout = settings::Period::from_secs(1);
        let rx = [application::RX];
        let first = Process::start(&settings);
        let cscf = peer_at("cscf.example.org", address, &rx).await;
        let smf = Consumer::start();
        let more = json!({"dnn": "ims", "notificationUri": format!("{}/smf", smf.root())});
        let path = path_of(&post(&first.origin, SM_POLICIES, &context(&more)).await);
        let action = "Specific-Action = INDICATION_OF_FAILED_RESOURCES_ALLOCATION";
        let begun = ask(&cscf, "cscf.example.org", "cscf;1;1", &format!("{AAR}\n{action}")).await;
        assert!(begun.contains("DIAMETER_SUCCESS"), "{begun}");
        cscf.service().silent.set(true);
        let rules = decision(&first.origin, &path).await["pccRules"].clone();
        let names = af_rules(&rules);
        let report = failed(&names[..1]);
        post(&first.origin, &format!("{path}/update"), &report).await;
        let ended = post(&first.origin, &format!("{path}/delete"), &json!({})).await;
        assert_eq!(ended.status, StatusCode::NO_CONTENT, "{}", ended.json);
        until(|| cscf.service().seen.borrow().len() >= 2).await;
        // It would connect again, beside the AF of below.
        let grace = std::time::Duration::from_millis(100);
        cscf.node().stop(grace, disconnect_cause::REBOOTING).await;
        drop(first);

        let _second = Process::start(&settings);
        let cscf = peer_at("cscf.example.org", address, &rx).await;
        until(|| cscf.service().seen.borrow().len() >= 2).await;
        let both = [received(&cscf, 1).await, received(&cscf, 2).await];
        for (command, line) in [
            ("Re-Auth-Request", "INDICATION_OF_FAILED_RESOURCES_ALLOCATION"),
            ("Abort-Session-Request", "Abort-Cause = BEARER_RELEASED"),
        ] {
            let is_one = |text: &&String| {
                text.starts_with(command) && text.contains(line) && text.contains("cscf;1;1")
            };
            assert!(both.iter().any(|text| is_one(&text)), "{command}: {both:?}");
        }
        let ended = ask(&cscf, "cscf.example.org", "cscf;1;1", STR).await;
        assert!(ended.contains("DIAMETER_SUCCESS"), "{ended}");
    });
}

/// What ends an association is asked for until the association has ended, also by the next process.
#[test]
fn a_consumer_is_asked_again_to_end_an_association() {
    local(async {
        let smf = Consumer::start();
        smf.refuse(true);
        let mut pcf = start(|config| {
            config.notifications = settings(std::path::Path::new(".")).notifications;
        });
        let more = json!({"notificationUri": smf.root()});
        let path = path_of(&pcf.post(SM_POLICIES, &context(&more)).await);
        let id = path.rsplit('/').next().unwrap();
        assert_eq!(
            admin(&pcf, "DELETE", &format!("/pcf/sessions/{id}"), "").await,
            200
        );
        smf.refused(1).await;
        pcf.stop();
        smf.refuse(false);
        let mut again = config(pcf.directory.path());
        again.notifications = settings(std::path::Path::new(".")).notifications;
        pcf.running = Some(pcf::start(again).unwrap());
        pcf.origin = format!("http://{}", pcf.running().addresses()[0])
            .parse()
            .unwrap();
        let taken = smf.taken(1).await;
        assert_eq!(taken[0].0, "/terminate");
        assert_eq!(taken[0].1["cause"], "UNSPECIFIED");
        let ended = pcf.post(&format!("{path}/delete"), &json!({})).await;
        assert_eq!(ended.status, StatusCode::NO_CONTENT, "{}", ended.json);
    });
}

/// A UDR with the category of a subscriber.
pub(crate) fn udr(category: Rc<Cell<&'static str>>) -> Server {
    let udr = Server::start(|_| no_content());
    let root = udr.root();
    udr.answers(move |seen| match seen.method {
        Method::POST => {
            let mut made = sbi::json::response(StatusCode::CREATED, &seen.json());
            let location = format!("{root}/nudr-dr/v2/policy-data/subs-to-notify/s1");
            made.headers_mut().set_printed(sbi::name::LOCATION, location);
            made
        }
        Method::GET => sbi::json::response(StatusCode::OK, &json!({"category": category.get()})),
        _ => no_content(),
    });
    udr
}

/// The UDR notifies of a change at the callback of the first subscription.
pub(crate) async fn data_change(origin: &Origin, udr: &Server) {
    let seen = udr.seen().into_iter().find(|seen| seen.method == Method::POST);
    let callback = seen.unwrap().json()["notificationUri"]
        .as_str()
        .unwrap()
        .to_owned();
    let callback = callback.parse::<http::Uri>().unwrap().path().to_owned();
    let change = json!([{"ueId": "imsi-001010000000001", "amPolicyData": {"category": "other"}}]);
    let noted = post(origin, &callback, &change).await;
    assert_eq!(noted.status, StatusCode::NO_CONTENT, "{}", noted.json);
}

/// An AMF that a UE moves to while the one before does not take a change gets the change.
#[test]
fn an_amf_that_takes_over_gets_what_the_one_before_was_owed() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let text = "name: am\nservice: am\nblocks:\n  - if: {$eq: [$subscriber.category, gold]}\n    \
            then: [amPolicy: {rfsp: 9}]\n    else: [amPolicy: {rfsp: 7}, triggers: [LOC_CH]]\n";
        std::fs::write(folder.path().join("project.yaml"), text).unwrap();
        let category = Rc::new(Cell::new("silver"));
        let udr = udr(category.clone());
        let pcf = start(|config| {
            config.policy.am = Some(folder.path().to_owned());
            ask_sources(config, Some(&udr), None);
        });
        let amf = Consumer::start();
        amf.refuse(true);
        let path = path_of(
            &pcf.post(AM, &association(&json!({"notificationUri": amf.root()})))
                .await,
        );
        category.set("gold");
        data_change(&pcf.origin, &udr).await;
        amf.refused(1).await;
        let update = json!({"notificationUri": "http://127.0.0.1:9/new"});
        let got = pcf.post(&format!("{path}/update"), &update).await;
        assert_eq!(got.status, StatusCode::OK, "{}", got.json);
        assert_eq!(got.json["rfsp"], 9, "{}", got.json);
        assert_eq!(got.json.get("triggers"), Some(&Value::Null), "{}", got.json);
    });
}

/// A policy that refuses an association and then allows it again: nothing ends it any more.
#[test]
fn an_amf_is_not_asked_to_end_what_the_policy_allows_again() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let text = "name: am\nservice: am\nblocks:\n  - if: {$eq: [$subscriber.category, barred]}\n    \
            then: [reject: {cause: USER_UNKNOWN}]\n    else: [amPolicy: {rfsp: 7}]\n";
        std::fs::write(folder.path().join("project.yaml"), text).unwrap();
        let category = Rc::new(Cell::new("silver"));
        let udr = udr(category.clone());
        let pcf = start(|config| {
            config.notifications = settings(std::path::Path::new(".")).notifications;
            config.policy.am = Some(folder.path().to_owned());
            ask_sources(config, Some(&udr), None);
        });
        let (amf, other) = (Consumer::start(), Consumer::start());
        path_of(
            &pcf.post(AM, &association(&json!({"notificationUri": amf.root()})))
                .await,
        );
        let more = json!({"notificationUri": other.root(), "supi": "imsi-001010000000002"});
        let ended = path_of(&pcf.post(AM, &association(&more)).await);
        amf.refuse(true);
        for now in ["barred", "barred", "silver"] {
            category.set(now);
            data_change(&pcf.origin, &udr).await;
        }
        amf.refused(1).await;
        // What is taken up after it was taken up before.
        let id = ended.rsplit('/').next().unwrap();
        assert_eq!(
            admin(&pcf, "DELETE", &format!("/pcf/sessions/{id}"), "").await,
            200
        );
        other.taken(2).await;
        amf.refuse(false);
        other.taken(3).await;
        let taken = amf.taken(0).await;
        assert!(taken.iter().all(|(path, _)| path != "/terminate"), "{taken:?}");
    });
}

/// An AMF that does not take a change of the AM policy gets the policy of now from the next process.
#[test]
fn an_amf_gets_what_it_was_owed_when_the_process_was_killed() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("project");
        std::fs::create_dir_all(&project).unwrap();
        let text = "name: am\nservice: am\nblocks:\n  - if: {$eq: [$subscriber.category, gold]}\n    \
            then: [amPolicy: {rfsp: 9}]\n    else: [amPolicy: {rfsp: 7}]\n";
        std::fs::write(project.join("project.yaml"), text).unwrap();
        let category = Rc::new(Cell::new("silver"));
        let udr = udr(category.clone());
        let mut settings = settings(folder.path());
        settings.policy.am = Some(project);
        ask_sources(&mut settings, Some(&udr), None);
        let amf = Consumer::start();
        let first = Process::start(&settings);
        let request = association(&json!({"notificationUri": amf.root()}));
        let created = post(&first.origin, AM, &request).await;
        assert_eq!(created.json["rfsp"], 7, "{}", created.json);
        amf.refuse(true);
        category.set("gold");
        data_change(&first.origin, &udr).await;
        amf.refused(1).await;
        drop(first);
        amf.refuse(false);

        let _second = Process::start(&settings);
        let taken = amf.taken(1).await;
        assert_eq!((taken[0].0.as_str(), &taken[0].1["rfsp"]), ("/update", &json!(9)));
    });
}
