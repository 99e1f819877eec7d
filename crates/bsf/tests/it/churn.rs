//! PCFs that register, change and remove bindings without end, and what must be true of these bindings whatever
//! happens to the BSF or its store: as they were acknowledged, whole, and found by each of their keys.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bsf::binding::{Place, Query};
use bsf::repository::Repository;
use http::{Method, StatusCode};
use sbi::client::{Client, Origin};
use serde_json::{Map, Value, json};
use store::Scan;

use crate::support::{Got, request, send};

/// No answer takes longer, or it is none.
const PATIENCE: Duration = Duration::from_secs(60);
pub const COLLECTION: &str = "/nbsf-management/v1/pcfBindings";

/// How far a binding has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    #[default]
    Nothing,
    Registered,
    Changed,
    Removed,
}

/// A binding as its PCF knows it.
#[derive(Clone, Debug, Default)]
pub struct Life {
    pub acknowledged: Stage,
    /// What was asked for and not answered, or answered with an error of the server: it may have been done.
    pub asked: Option<Stage>,
    pub id: Option<String>,
}

impl Life {
    fn may_be(&self, stage: Stage) -> bool {
        self.acknowledged == stage || self.asked == Some(stage)
    }
}

pub type Lives = BTreeMap<u64, Life>;

/// What a PCF does with a binding, in this order.
fn steps(number: u64) -> impl Iterator<Item = Stage> {
    let changed = (!number.is_multiple_of(3)).then_some(Stage::Changed);
    let removed = number.is_multiple_of(2).then_some(Stage::Removed);
    std::iter::once(Stage::Registered).chain(changed).chain(removed)
}

/// Registered members, or those after the change, which gives the session another address and another PCF.
pub fn members(number: u64, changed: bool) -> Value {
    let [.., a, b, c] = number.to_be_bytes();
    // Without leading zeros, as the pattern of Ipv6Prefix has it (TS 29.571).
    let group = u16::from_be_bytes([b, c]);
    let (network, pcf) = if changed { (11, "pcf2") } else { (10, "pcf1") };
    let mut value = json!({
        "supi": format!("imsi-00101{:010}", number / 2), "gpsi": format!("msisdn-1555{:09}", number / 2),
        "dnn": if number.is_multiple_of(2) { "internet" } else { "ims" }, "snssai": {"sst": 1, "sd": "000001"},
        "pcfFqdn": format!("{pcf}.example.org"), "pcfDiamHost": format!("{pcf}.example.org"),
        "pcfDiamRealm": "example.org", "vendorNumber": number, "vendorPad": "x".repeat((number * 37 % 700) as usize),
    });
    if number.is_multiple_of(4) {
        value["ipv6Prefix"] = json!(format!("2001:db8:{network}{a:02x}:{group:x}::/64"));
    } else {
        value["ipv4Addr"] = json!(format!("{network}.{a}.{b}.{c}"));
    }
    if number.is_multiple_of(5) {
        value["macAddr48"] = json!(format!("02-{network}-00-{a:02x}-{b:02x}-{c:02x}"));
    }
    if number.is_multiple_of(7) {
        value["addIpv6Prefixes"] = json!([format!("2001:db9:{network}{a:02x}:{group:x}::/64")]);
    }
    value
}

fn patch(number: u64) -> Value {
    let (before, after) = (members(number, false), members(number, true));
    let after = after.as_object().unwrap().clone();
    let differs = |(name, value): &(String, Value)| before[name] != *value;
    Value::Object(after.into_iter().filter(differs).collect::<Map<_, _>>())
}

/// Every question that must find a binding with these members, and only it.
fn questions(value: &Value) -> Vec<Query> {
    let text = |name: &str| value[name].as_str().map(str::to_owned);
    let further = value["addIpv6Prefixes"][0].as_str().map(str::to_owned);
    let mac = text("macAddr48").as_deref().and_then(Place::mac);
    let by_address = [
        text("ipv4Addr").map(|address| Query {
            ipv4: address.parse().ok(),
            ..Query::default()
        }),
        text("ipv6Prefix").map(|prefix| Query {
            ipv6: prefix.parse().ok(),
            ..Query::default()
        }),
        further.map(|prefix| Query {
            ipv6: prefix.parse().ok(),
            ..Query::default()
        }),
        mac.and_then(|mac| match mac {
            Place::Mac(mac) => Some(Query {
                mac: Some(mac),
                ..Query::default()
            }),
            _ => None,
        }),
    ];
    let by_identity = [(text("supi"), None), (None, text("gpsi"))].map(|(supi, gpsi)| {
        Some(Query {
            supi,
            gpsi,
            dnn: text("dnn"),
            ..Query::default()
        })
    });
    by_address.into_iter().chain(by_identity).flatten().collect()
}

/// Path and query that find a binding by its address.
pub fn by_address(value: &Value) -> String {
    match (value["ipv4Addr"].as_str(), value["ipv6Prefix"].as_str()) {
        (Some(address), _) => format!("{COLLECTION}?ipv4Addr={address}"),
        (None, prefix) => format!("{COLLECTION}?ipv6Prefix={}", prefix.unwrap()),
    }
}

/// What PCFs share.
#[derive(Clone, Default)]
pub struct Churn {
    pub lives: Rc<RefCell<Lives>>,
    pub next: Rc<Cell<u64>>,
    pub stop: Rc<Cell<bool>>,
    /// Answers that told of an error of the server.
    pub errors: Rc<Cell<u64>>,
    /// When something was acknowledged last, and the longest time without.
    last: Rc<Cell<Option<Instant>>>,
    silence: Rc<Cell<Duration>>,
}

impl Churn {
    /// One PCF, until it is stopped or its BSF is gone.
    pub async fn pcf(self, client: Client, origin: Origin) {
        while !self.stop.get() {
            let number = self.next.replace(self.next.get() + 1);
            let mut life = Life::default();
            let goes_on = self.live(&client, &origin, number, &mut life).await;
            self.lives.borrow_mut().insert(number, life);
            if !goes_on {
                return;
            }
        }
    }

    /// One binding through its stages; false when the BSF is gone.
    async fn live(&self, client: &Client, origin: &Origin, number: u64, life: &mut Life) -> bool {
        for stage in steps(number) {
            life.asked = Some(stage);
            let path = life
                .id
                .as_ref()
                .map_or_else(|| COLLECTION.to_owned(), |id| format!("{COLLECTION}/{id}"));
            let (message, expected) = match stage {
                Stage::Changed => {
                    let body = patch(number).to_string();
                    let message = request(Method::PATCH, &path, "application/merge-patch+json", body);
                    (message, StatusCode::OK)
                }
                Stage::Removed => (request(Method::DELETE, &path, "", ""), StatusCode::NO_CONTENT),
                _ => {
                    let body = members(number, false).to_string();
                    (
                        request(Method::POST, &path, "application/json", body),
                        StatusCode::CREATED,
                    )
                }
            };
            let answer = tokio::time::timeout(PATIENCE, send(client, origin, message)).await;
            let Ok(got) = answer.expect("a BSF that is gone is noticed") else {
                return false;
            };
            if got.status.is_server_error() {
                self.errors.set(self.errors.get() + 1);
                return true;
            }
            assert_eq!(got.status, expected, "binding {number}, {stage:?}: {}", got.json);
            if stage == Stage::Registered {
                life.id = Some(id_of(&got));
            }
            (life.acknowledged, life.asked) = (stage, None);
            let now = Instant::now();
            if let Some(last) = self.last.replace(Some(now)) {
                self.silence.set(self.silence.get().max(now - last));
            }
        }
        true
    }

    /// Waits until this many more bindings have lived.
    pub async fn goes_on(&self, more: usize) {
        let wanted = self.lives.borrow().len() + more;
        let begun = Instant::now();
        while self.lives.borrow().len() < wanted {
            assert!(begun.elapsed() < PATIENCE, "nothing is acknowledged any more");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// The longest time in which nothing was acknowledged.
    pub fn silence(&self) -> Duration {
        self.silence.get()
    }
}

fn id_of(created: &Got) -> String {
    let location = created.headers["location"].to_str().unwrap();
    location.rsplit('/').next().unwrap().to_owned()
}

/// Compares what a store has with what PCFs know: every binding is whole and found by each of its keys, and is as
/// it was acknowledged or as it was asked to become. What was in doubt is settled from here on.
pub async fn settle(repository: &Repository, lives: &mut Lives, when: &str) {
    let mut stages: BTreeMap<u64, Stage> = BTreeMap::new();
    let mut next = Some(Scan::all(1_000));
    while let Some(scan) = next {
        // A document that does not parse ends the scan.
        let page = repository.sessions.scan(&scan).await.unwrap();
        for stored in &page.records {
            let document = &stored.record.0;
            let number = document.member("vendorNumber").and_then(Value::as_u64).unwrap();
            let changed = *document.value() == members(number, true);
            assert!(
                changed || *document.value() == members(number, false),
                "{when}: binding {number} is neither what was registered nor what it was changed to: {}",
                document.value()
            );
            let stage = if changed {
                Stage::Changed
            } else {
                Stage::Registered
            };
            assert_eq!(
                stages.insert(number, stage),
                None,
                "{when}: binding {number} is there twice"
            );
            let known = lives[&number].id.as_ref();
            let named = document.id.to_string();
            assert!(
                known.is_none_or(|id| *id == named),
                "{when}: binding {number} is {named}"
            );
            for question in questions(document.value()) {
                let found = repository.matching(&question).await.unwrap();
                let ids: Vec<_> = found.iter().map(|binding| binding.0.id).collect();
                assert_eq!(ids, [document.id], "{when}: binding {number} by {question:?}");
            }
        }
        next = page.next;
    }
    for (number, life) in lives {
        let stage = stages.get(number).copied();
        // What is not there was removed, or never came.
        let fits = match stage {
            Some(stage) => life.may_be(stage),
            None => life.may_be(Stage::Removed) || life.may_be(Stage::Nothing),
        };
        assert!(fits, "{when}: binding {number} is {stage:?}, and was {life:?}");
        life.acknowledged = stage.unwrap_or(Stage::Removed);
        life.asked = None;
    }
}
