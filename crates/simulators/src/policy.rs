//! Peers of a PCF: a UDR with policy data (TS 29.519), a CHF with policy counters (TS 29.594), an AMF that delivers UE
//! policies (TS 29.518). All documents follow from the subscriber's number, so that the laboratory knows them as well.

use ahash::AHashSet;
use serde_json::{Map, Value, json};

use crate::exchange::{Reply, Request};
use crate::settings::{PolicyCounters, PolicySubscribers};

/// Categories of subscribers, by the last digit of the SUPI modulo their number.
pub const CATEGORIES: [&str; 3] = ["gold", "silver", "basic"];
/// Data networks of a subscriber.
pub const DNNS: [&str; 4] = ["internet", "ims", "internet.app", "internet.admin"];
/// Where Nudr_DataRepository begins, with a version.
const UDR: &str = "/nudr-dr/v";
const CHF: &str = "/nchf-spendinglimitcontrol/v1/subscriptions";
/// Subscriptions that a simulator has at most; more are refused.
const MOST_SUBSCRIPTIONS: usize = 20_000_000;

/// The category of a subscriber.
#[must_use]
pub fn category(number: u64) -> &'static str {
    CATEGORIES[(number % 10 % CATEGORIES.len() as u64) as usize]
}

/// The `SmPolicyData` of a subscriber (TS 29.519 §5.4.2.3).
#[must_use]
pub fn sm_policy_data(number: u64) -> Value {
    let category = category(number);
    let dnns: Map<String, Value> = DNNS
        .iter()
        .map(|dnn| {
            let data = json!({
                "dnn": dnn,
                "subscCats": [category],
                "subscSpendingLimits": true,
                "refUmDataLimitIds": {"monthly": {"limitId": "monthly"}},
                "quota": 20_000_000_000_u64,
            });
            ((*dnn).to_owned(), data)
        })
        .collect();
    json!({
        "smPolicySnssaiData": {"1": {"snssai": {"sst": 1}, "smPolicyDnnData": dnns}},
        "umDataLimits": {"monthly": {
            "limitId": "monthly",
            "umLevel": "SESSION_LEVEL",
            "usageLimit": {"totalVolume": 20_000_000_000_u64},
            "resetPeriod": {"period": "MONTHLY"},
        }},
        "category": category,
        "customAttributes": {"category": category, "applications": ["netvideo", "mail"]},
    })
}

/// The `AmPolicyData` of a subscriber (TS 29.519 §5.4.2.2).
#[must_use]
pub fn am_policy_data(number: u64) -> Value {
    let category = category(number);
    let category_of_access = if category == "gold" {
        "business-gold"
    } else {
        category
    };
    json!({
        "subscCats": [category_of_access],
        "category": category,
        "praInfos": {"home": {"praId": "home", "trackingAreaList": [
            {"plmnId": {"mcc": "001", "mnc": "01"}, "tac": format!("{:06x}", number % 4096)},
        ]}},
    })
}

/// The `UePolicySet` of a subscriber (TS 29.519 §5.4.2.6).
#[must_use]
pub fn ue_policy_set(number: u64) -> Value {
    let category = category(number);
    json!({
        "subscCats": [category],
        "category": category,
        "allowedRouteSelDescs": {"00101": {"snssaiInfos": {"1": {"dnnInfos": [{"dnn": "internet"}, {"dnn": "ims"}]}}}},
        "pei": format!("imei-{:015}", 350_000_000_000_000 + number % 1_000_000),
    })
}

/// The digits at the end of a SUPI, as a number.
fn number_of(supi: &str) -> Option<u64> {
    supi.rsplit('-').next()?.parse().ok()
}

/// Numbers of resources that were created and not yet deleted.
#[derive(Debug, Default)]
struct Resources {
    next: u64,
    standing: AHashSet<u64>,
}

impl Resources {
    fn create(&mut self) -> Option<u64> {
        (self.standing.len() < MOST_SUBSCRIPTIONS).then(|| {
            self.next += 1;
            self.standing.insert(self.next);
            self.next
        })
    }

    /// Answers a deletion of the resource at the end of the path.
    fn delete(&mut self, path: &str) -> Reply {
        let number = path.rsplit('/').next().and_then(|id| id.parse().ok());
        match number.is_some_and(|number: u64| self.standing.remove(&number)) {
            true => Reply::empty(204),
            false => Reply::problem(404, "SUBSCRIPTION_NOT_FOUND"),
        }
    }
}

fn created(collection: &str, number: Option<u64>, body: &Value) -> Reply {
    let Some(number) = number else {
        return Reply::problem(503, "INSUFFICIENT_RESOURCES");
    };
    let mut reply = Reply::json(201, body.to_string());
    reply
        .headers
        .push(("location", format!("http://peer.example{collection}/{number}")));
    reply
}

/// A path without its query, if it is text.
fn path_of<'a>(request: &Request<'a>) -> &'a str {
    let path = std::str::from_utf8(request.path).unwrap_or_default();
    path.split('?').next().unwrap_or_default()
}

/// A unified data repository with policy data.
#[derive(Debug)]
pub struct Udr {
    subscribers: PolicySubscribers,
    subscriptions: Resources,
}

impl Udr {
    pub(crate) fn new(subscribers: &PolicySubscribers) -> Self {
        Self {
            subscribers: subscribers.clone(),
            subscriptions: Resources::default(),
        }
    }

    pub(crate) fn answer(&mut self, request: &Request<'_>) -> Reply {
        let path = path_of(request);
        let Some((version, path)) = path
            .strip_prefix(UDR)
            .and_then(|rest| rest.split_once("/policy-data/"))
        else {
            return Reply::problem(404, "RESOURCE_URI_STRUCTURE_NOT_FOUND");
        };
        if let Some(ue) = path.strip_prefix("ues/") {
            return self.ue(request, ue);
        }
        match request.method {
            b"POST" if path == "subs-to-notify" => {
                let Ok(body) = serde_json::from_slice::<Value>(request.body) else {
                    return Reply::problem(400, "INVALID_MSG_FORMAT");
                };
                if body.get("notificationUri").is_none() || body.get("monitoredResourceUris").is_none() {
                    return Reply::problem(400, "MANDATORY_IE_MISSING");
                }
                let collection = format!("{UDR}{version}/policy-data/subs-to-notify");
                created(&collection, self.subscriptions.create(), &body)
            }
            b"DELETE" if path.starts_with("subs-to-notify/") => self.subscriptions.delete(path),
            _ => Reply::problem(404, "RESOURCE_URI_STRUCTURE_NOT_FOUND"),
        }
    }

    /// Answers for what is below `ues/`.
    fn ue(&self, request: &Request<'_>, path: &str) -> Reply {
        let (supi, resource) = path.split_once('/').unwrap_or((path, ""));
        let PolicySubscribers { first, count } = self.subscribers;
        let Some(number) = number_of(supi).filter(|number| number.wrapping_sub(first) < count) else {
            // TS 29.519 §5.2.3: no such subscriber.
            return Reply::problem(404, "USER_NOT_FOUND");
        };
        match (request.method, resource) {
            (b"GET", "sm-data") => Reply::json(200, sm_policy_data(number).to_string()),
            (b"GET", "am-data") => Reply::json(200, am_policy_data(number).to_string()),
            (b"GET", "ue-policy-set") => Reply::json(200, ue_policy_set(number).to_string()),
            (b"PUT" | b"DELETE", resource) if resource.starts_with("sm-data/") => Reply::empty(204),
            (b"PATCH", "sm-data") => Reply::empty(204),
            _ => Reply::problem(404, "DATA_NOT_FOUND"),
        }
    }
}

/// A charging function with policy counters.
#[derive(Debug)]
pub struct Chf {
    counters: PolicyCounters,
    subscriptions: Resources,
}

impl Chf {
    pub(crate) fn new(counters: &PolicyCounters) -> Self {
        Self {
            counters: counters.clone(),
            subscriptions: Resources::default(),
        }
    }

    pub(crate) fn answer(&mut self, request: &Request<'_>) -> Reply {
        let path = path_of(request);
        let below = path.strip_prefix(CHF);
        match (request.method, below) {
            (b"POST", Some("")) | (b"PUT", Some(_)) => {
                let Ok(context) = serde_json::from_slice::<Value>(request.body) else {
                    return Reply::problem(400, "INVALID_MSG_FORMAT");
                };
                let Some(supi) = context.get("supi").and_then(Value::as_str) else {
                    return Reply::problem(400, "MANDATORY_IE_MISSING");
                };
                let status = json!({"supi": supi, "statusInfos": self.status_infos(&context)});
                if request.method == b"PUT" {
                    return Reply::json(200, status.to_string());
                }
                created(CHF, self.subscriptions.create(), &status)
            }
            (b"DELETE", Some(id)) if id.len() > 1 => self.subscriptions.delete(path),
            _ => Reply::problem(404, "RESOURCE_URI_STRUCTURE_NOT_FOUND"),
        }
    }

    /// The counters that were asked for; all of them where none is named (TS 29.594 §5.6.2.2).
    fn status_infos(&self, context: &Value) -> Value {
        let asked = context.get("policyCounterIds").and_then(Value::as_array);
        let is_asked = |id: &str| asked.is_none_or(|asked| asked.iter().any(|one| one == id));
        let infos = self.counters.statuses.iter().filter(|(id, _)| is_asked(id));
        infos
            .map(|(id, status)| {
                (
                    id.clone(),
                    json!({"policyCounterId": id, "currentStatus": status}),
                )
            })
            .collect::<Map<_, _>>()
            .into()
    }
}

/// An AMF at Namf_Communication: takes subscriptions to N1 messages and N1 messages for UEs, and any notification.
#[derive(Debug, Default)]
pub struct Amf {
    subscriptions: Resources,
}

impl Amf {
    pub(crate) fn answer(&mut self, request: &Request<'_>) -> Reply {
        let path = path_of(request);
        let contexts = path.starts_with("/namf-comm/v1/ue-contexts/");
        match request.method {
            b"POST" if contexts && path.ends_with("/n1-n2-messages/subscriptions") => {
                let number = self.subscriptions.create();
                let body = json!({"n1n2NotifySubscriptionId": number.unwrap_or_default().to_string()});
                created(path, number, &body)
            }
            // TS 29.518 §5.2.2.5.2: to changes of the AMF's status
            b"POST" if path == "/namf-comm/v1/subscriptions" => match serde_json::from_slice(request.body) {
                Ok(body) => created(path, self.subscriptions.create(), &body),
                Err(_) => Reply::problem(400, "INVALID_MSG_FORMAT"),
            },
            b"DELETE" if path.starts_with("/namf-comm/v1/") && path.contains("/subscriptions/") => {
                self.subscriptions.delete(path)
            }
            // TS 29.518 §5.2.2.3.1.2
            b"POST" if contexts && path.ends_with("/n1-n2-messages") => {
                Reply::json(200, r#"{"cause":"N1_N2_TRANSFER_INITIATED"}"#)
            }
            b"POST" if !contexts => Reply::empty(204),
            _ => Reply::problem(404, "RESOURCE_URI_STRUCTURE_NOT_FOUND"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(method: &str, path: &str, body: &str, answer: impl FnOnce(&Request<'_>) -> Reply) -> Reply {
        answer(&Request {
            method: method.as_bytes(),
            path: path.as_bytes(),
            body: body.as_bytes(),
        })
    }

    fn body(reply: &Reply) -> Value {
        serde_json::from_slice(&reply.body).unwrap()
    }

    #[test]
    fn the_udr_has_policy_data_of_its_subscribers_and_of_no_others() {
        let subscribers = PolicySubscribers {
            first: 1000,
            count: 10,
        };
        let mut udr = Udr::new(&subscribers);
        let mut get = |supi: &str, resource: &str| {
            let path = format!("/nudr-dr/v2/policy-data/ues/{supi}/{resource}?dnn=internet");
            ask("GET", &path, "", |request| udr.answer(request))
        };
        let found = get("imsi-000000000001001", "sm-data");
        assert_eq!(found.status, 200);
        let dnns = &body(&found)["smPolicySnssaiData"]["1"]["smPolicyDnnData"];
        assert_eq!(dnns["ims"]["subscCats"], json!(["silver"]));
        assert_eq!(body(&get("imsi-000000000001000", "am-data"))["category"], "gold");
        assert_eq!(get("imsi-000000000001002", "ue-policy-set").status, 200);
        assert_eq!(get("imsi-000000000001002", "other").status, 404);
        for unknown in ["imsi-000000000001010", "imsi-000000000000999", "imsi-", "x"] {
            let refused = get(unknown, "sm-data");
            assert_eq!(
                (refused.status, &body(&refused)["cause"]),
                (404, &json!("USER_NOT_FOUND"))
            );
        }
    }

    #[test]
    fn subscriptions_end_once() {
        let mut udr = Udr::new(&PolicySubscribers::default());
        let collection = "/nudr-dr/v2/policy-data/subs-to-notify";
        let wanted = r#"{"notificationUri": "http://pcf.example/n", "monitoredResourceUris": ["/x"]}"#;
        let made = ask("POST", collection, wanted, |request| udr.answer(request));
        assert_eq!(made.status, 201);
        let location = made.headers[0]
            .1
            .strip_prefix("http://peer.example")
            .unwrap()
            .to_owned();
        assert!(location.starts_with(collection), "{location}");
        for status in [204, 404] {
            assert_eq!(
                ask("DELETE", &location, "", |request| udr.answer(request)).status,
                status
            );
        }
        assert_eq!(
            ask("POST", collection, "{}", |request| udr.answer(request)).status,
            400
        );
    }

    #[test]
    fn the_chf_reports_the_counters_that_were_asked_for() {
        let mut chf = Chf::new(&PolicyCounters::default());
        let mut create = |context: &str| ask("POST", CHF, context, |request| chf.answer(request));
        let some = body(&create(
            r#"{"supi": "imsi-1", "policyCounterIds": ["daily", "none"]}"#,
        ));
        assert_eq!(
            some["statusInfos"],
            json!({"daily": {"policyCounterId": "daily", "currentStatus": "normal"}})
        );
        let all = create(r#"{"supi": "imsi-1"}"#);
        assert_eq!(body(&all)["statusInfos"].as_object().unwrap().len(), 2);
        assert_eq!(create("{}").status, 400);
        let path = all.headers[0]
            .1
            .strip_prefix("http://peer.example")
            .unwrap()
            .to_owned();
        assert_eq!(
            ask("DELETE", &path, "", |request| chf.answer(request)).status,
            204
        );
    }

    #[test]
    fn the_amf_takes_messages_for_ues_and_notifications() {
        let mut amf = Amf::default();
        let mut post = |path: &str| ask("POST", path, "{}", |request| amf.answer(request)).status;
        assert_eq!(
            post("/namf-comm/v1/ue-contexts/imsi-1/n1-n2-messages/subscriptions"),
            201
        );
        assert_eq!(post("/namf-comm/v1/ue-contexts/imsi-1/n1-n2-messages"), 200);
        assert_eq!(post("/namf-comm/v1/subscriptions"), 201);
        assert_eq!(post("/notify/1/update"), 204);
        assert_eq!(post("/namf-comm/v1/ue-contexts/imsi-1/other"), 404);
    }
}
