//! An NRF that says what a test wants, and learns callback URIs from subscriptions as any NRF does.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use http::{Method, StatusCode};
use sbi::Response;
use serde_json::{Value, json};
use testpeer::sbi::request;

use crate::support::{Got, Producer, Scp, Seen, start, until};

pub struct StubNrf {
    server: Producer,
    state: Rc<State>,
}

#[derive(Default)]
struct State {
    profiles: RefCell<BTreeMap<String, Value>>,
    /// Paths of the callback URIs, in the order of the subscriptions.
    callbacks: RefCell<Vec<String>>,
    looked_up: RefCell<BTreeMap<String, usize>>,
    forgets: Cell<bool>,
}

const SUBSCRIPTIONS: &str = "/nnrf-nfm/v1/subscriptions";
const INSTANCES: &str = "/nnrf-nfm/v1/nf-instances";

impl State {
    fn answer(&self, seen: &Seen) -> Response {
        let of_status = |status| sbi::problem::Problem::of_status(status).into_response();
        if seen.path == SUBSCRIPTIONS {
            let mut data = seen.json();
            let uri: http::Uri = data["nfStatusNotificationUri"].as_str().unwrap().parse().unwrap();
            self.callbacks.borrow_mut().push(uri.path().to_owned());
            // Renewed after two thirds of what is left: after the second that is the least.
            data["validityTime"] = json!("2001-01-01T00:00:00Z");
            data["subscriptionId"] = json!(format!("{}", self.callbacks.borrow().len()));
            return sbi::json::response(StatusCode::CREATED, &data);
        }
        if seen.path.starts_with(SUBSCRIPTIONS) {
            return match self.forgets.get() {
                true => of_status(StatusCode::NOT_FOUND),
                false => sbi::json::response(StatusCode::OK, &json!({})),
            };
        }
        let query = seen.path.split_once('?').map_or("", |(_, query)| query);
        let asked = query.split('&').find_map(|pair| {
            pair.strip_prefix("target-nf-type=")
                .or(pair.strip_prefix("nf-type="))
        });
        let fits = |profile: &Value| asked.is_none_or(|asked| profile["nfType"] == asked);
        if seen.path.starts_with("/nnrf-disc/") {
            let profiles = self.profiles.borrow();
            let profiles: Vec<&Value> = profiles.values().filter(|one| fits(one)).collect();
            let found = json!({"validityPeriod": 3_600, "nfInstances": profiles});
            return sbi::json::response(StatusCode::OK, &found);
        }
        let Some(rest) = seen.path.strip_prefix(INSTANCES) else {
            return of_status(StatusCode::BAD_REQUEST);
        };
        let profiles = self.profiles.borrow();
        match rest.strip_prefix('/') {
            None => {
                let items = profiles
                    .iter()
                    .filter(|(_, profile)| fits(profile))
                    .map(|(id, _)| json!({"href": format!("http://nrf{INSTANCES}/{id}")}));
                let list = json!({"_links": {"item": items.collect::<Vec<_>>()}});
                sbi::json::response(StatusCode::OK, &list)
            }
            Some(id) => {
                *self.looked_up.borrow_mut().entry(id.to_owned()).or_default() += 1;
                match profiles.get(id) {
                    Some(profile) => sbi::json::response(StatusCode::OK, profile),
                    None => of_status(StatusCode::NOT_FOUND),
                }
            }
        }
    }
}

impl StubNrf {
    pub fn start() -> Self {
        let (server, state) = (Producer::start(0xfff), Rc::new(State::default()));
        let answering = state.clone();
        server.answers(move |seen| answering.answer(seen));
        Self { server, state }
    }

    /// An SCP that learns UDMs from it, by notifications only once it has begun.
    pub fn learner(&self, change: impl FnOnce(&mut scp::Config)) -> Scp {
        let root = self.server.root();
        start(|config| {
            config.nrf.roots = vec![root];
            config.nrf.nf_types = vec!["UDM".into()];
            config.nrf.register = false;
            config.nrf.audit_interval = settings::Period::from_secs(3_600);
            config.forward_to_unknown = false;
            change(config);
        })
    }

    /// From now on it has this profile.
    pub fn knows(&self, profile: Value) {
        let id = profile["nfInstanceId"].as_str().unwrap().to_owned();
        self.state.profiles.borrow_mut().insert(id, profile);
    }

    pub fn forgets(&self, id: &str) {
        self.state.profiles.borrow_mut().remove(id);
    }

    /// Whether it knows no subscription any more.
    pub fn forgets_subscriptions(&self, forgets: bool) {
        self.state.forgets.set(forgets);
    }

    /// Its process ends.
    pub fn stop(&self) {
        self.server.stop();
    }

    /// Discoveries that it has answered.
    pub fn discoveries(&self) -> usize {
        let seen = self.server.seen();
        seen.iter()
            .filter(|one| one.path.starts_with("/nnrf-disc/"))
            .count()
    }

    pub fn waits(&self, delay: Duration) {
        self.server.waits(delay);
    }

    pub fn callbacks(&self) -> Vec<String> {
        self.state.callbacks.borrow().clone()
    }

    /// Where the last subscription wants its notifications.
    pub async fn callback(&self) -> String {
        until("somebody subscribes", async || !self.callbacks().is_empty()).await;
        self.callbacks().pop().unwrap()
    }

    /// How often the profile of an NF was asked for.
    pub fn looked_up(&self, id: &str) -> usize {
        self.state.looked_up.borrow().get(id).copied().unwrap_or(0)
    }

    pub fn all_looked_up(&self) -> usize {
        self.state.looked_up.borrow().values().sum()
    }
}

/// `NotificationData` about an NF.
pub fn notification(event: &str, id: &str, profile: Option<&Value>) -> Value {
    let mut body = json!({"event": event, "nfInstanceUri": format!("http://nrf{INSTANCES}/{id}")});
    if let Some(profile) = profile {
        body["nfProfile"] = profile.clone();
    }
    body
}

impl Scp {
    /// Somebody notifies it at this path.
    pub async fn notify(&self, path: &str, body: &Value) -> Got {
        let request = request(Method::POST, path, "application/json", body.to_string());
        self.send(request).await
    }
}
