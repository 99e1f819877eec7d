//! Why a message goes where it goes: reads a pasted message, asks the planners of the functions that would get it, as `signalbox scp
//! why` and `signalbox dsr why` do, and makes sentences of their answers.

use std::net::SocketAddr;

use function::pages::segment;
use futures_util::future::join_all;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::Connection;
use crate::config::Target;
use crate::find::quoted;
use crate::observation::cut;
use crate::pasted::{Pasted, Request};

/// Octets of a page: the candidates of a large set.
const MOST_PAGE: usize = 8 << 20;
/// Octets of a question: admin endpoints read heads of 16 KB.
const MOST_QUESTION: usize = 15 << 10;
/// Candidates of one answer that are shown.
const MOST_CANDIDATES: usize = 200;
/// Characters of what an audit log says of a question.
const ABOUT: usize = 200;

/// What was pasted.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Form {
    /// The message.
    text: String,
    /// The function that would get it, by its name on the page; empty: each that may.
    function: String,
    /// The peer that sends a Diameter message; empty: its Origin-Host.
    peer: String,
}

/// What functions are asked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// The message in a few words.
    pub(crate) about: String,
    asked: Vec<Asked>,
    /// The name of the one function that is asked.
    only: String,
    /// What of the message the functions do not see, and why.
    notes: Vec<String>,
}

/// A question for all functions of a kind.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    kind: &'static str,
    path: &'static str,
    query: String,
}

impl Question {
    /// Reads a message; an error is for the person who pasted it.
    pub(crate) fn new(form: &Form) -> Result<Self, String> {
        let mut notes = Vec::new();
        let (about, asked) = match Pasted::read(&form.text)? {
            Pasted::Request(request) => (
                format!("{} {}", request.method, request.path),
                of_request(&request, &mut notes)?,
            ),
            Pasted::Diameter(message) => {
                let query = parameters(&[("peer", form.peer.trim()), ("message", &message)]);
                let about = message.split_whitespace().next().unwrap_or_default();
                let asked = Asked {
                    kind: "dsr",
                    path: "/dsr/why",
                    query: bounded(query)?,
                };
                (format!("Diameter {}", cut(about, 80)), vec![asked])
            }
        };
        Ok(Self {
            about: cut(&about, ABOUT),
            asked,
            only: form.function.trim().to_owned(),
            notes,
        })
    }
}

/// What an SCP is asked of a request, and the NRF of a discovery.
fn of_request(request: &Request, notes: &mut Vec<String>) -> Result<Vec<Asked>, String> {
    let headers: Vec<String> = request
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    let mut all = vec![
        ("method", request.method.as_str()),
        ("path", request.path.as_str()),
    ];
    all.extend(
        request
            .authority
            .as_deref()
            .map(|authority| ("authority", authority)),
    );
    all.extend(headers.iter().map(|header| ("header", header.as_str())));
    let mut query = parameters(&all);
    if !request.body.is_empty() {
        let body = parameters(&[("body", &request.body)]);
        if query.len() + body.len() < MOST_QUESTION {
            query = format!("{query}&{body}");
        } else {
            notes.push("The body is too long for the question: rules of mediation do not see it.".to_owned());
        }
    }
    let mut asked = vec![Asked {
        kind: "scp",
        path: "/scp/why",
        query: bounded(query)?,
    }];
    let discovery = request.path.strip_prefix("/nnrf-disc/v1/nf-instances?");
    asked.extend(discovery.filter(|_| request.method == "GET").map(|query| Asked {
        kind: "nrf",
        path: "/nrf/why",
        query: query.to_owned(),
    }));
    Ok(asked)
}

fn bounded(query: String) -> Result<String, String> {
    match query.len() < MOST_QUESTION {
        true => Ok(query),
        false => Err(format!(
            "the message is too long: a question has {MOST_QUESTION} octets at most"
        )),
    }
}

fn parameters(all: &[(&str, &str)]) -> String {
    let each: Vec<String> = all
        .iter()
        .map(|(name, value)| format!("{name}={}", segment(value)))
        .collect();
    each.join("&")
}

/// Asks the functions; `functions` are kind and target of those that are followed.
pub(crate) async fn explained(question: &Question, functions: &[(String, Target)]) -> Value {
    let asked = question.asked.iter().flat_map(|asked| {
        let fits = |kind: &str, target: &Target| {
            kind == asked.kind && (question.only.is_empty() || question.only == target.name)
        };
        let targets = functions.iter().filter(move |(kind, target)| fits(kind, target));
        targets.map(move |(_, target)| answer(asked, &target.name, target.admin))
    });
    let answers = join_all(asked).await;
    json!({ "version": 1, "about": question.about, "notes": question.notes, "answers": answers })
}

async fn answer(asked: &Asked, name: &str, admin: SocketAddr) -> Value {
    let path = format!("{}?{}", asked.path, asked.query);
    let mut shown = json!({
        "function": name,
        "kind": asked.kind,
        "command": format!("signalbox {} why {} --admin {admin}", asked.kind, quoted(&asked.query)),
    });
    let page = async {
        let mut connection = Connection::open(admin).await?;
        connection.get(&path, MOST_PAGE).await
    };
    let said = match page.await {
        Ok(page) if page.status == 200 => {
            serde_json::from_slice::<Value>(&page.body).map_err(|error| error.to_string())
        }
        Ok(page) => {
            let words = String::from_utf8_lossy(&page.body);
            Err(format!("answered {}: {}", page.status, cut(words.trim(), 500)))
        }
        Err(failure) => Err(failure.to_string()),
    };
    match said {
        Ok(said) if said["error"].is_string() => shown["error"] = cut(text(&said["error"]), 500).into(),
        Ok(said) => {
            let (decision, steps, candidates) = match asked.kind {
                "scp" => of_scp(&said),
                "dsr" => of_dsr(&said),
                _ => of_nrf(&said),
            };
            let more = candidates.len().saturating_sub(MOST_CANDIDATES);
            shown["decision"] = decision.into();
            shown["steps"] = steps.into();
            shown["candidates"] = candidates.into_iter().take(MOST_CANDIDATES).collect();
            shown["moreCandidates"] = more.into();
            // As the command prints it.
            shown["answer"] = said;
        }
        Err(words) => shown["error"] = words.into(),
    }
    shown
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn rows(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The decision, the steps as sentences, the candidates.
type Explanation = (String, Vec<String>, Vec<Value>);

fn of_scp(said: &Value) -> Explanation {
    let mut steps: Vec<String> = rows(&said["why"]).map(|step| text(step).to_owned()).collect();
    let attempts = rows(&said["attempts"]).zip(1..).map(|(attempt, number)| {
        let instance = attempt["nfInstanceId"].as_str().map(|id| format!(" ({id})"));
        let through = attempt["through"].as_str().map(|hop| format!(" through {hop}"));
        format!(
            "attempt {number}: {}{}{}: {}",
            text(&attempt["target"]),
            instance.unwrap_or_default(),
            through.unwrap_or_default(),
            text(&attempt["verdict"])
        )
    });
    steps.extend(attempts);
    let candidate = |one: &Value| {
        json!({
            "who": format!("{} {} at {}", text(&one["nfType"]), text(&one["nfInstanceId"]), text(&one["endpoint"])),
            "detail": format!(
                "{}, {}, priority {}, capacity {}, load {}",
                text(&one["status"]), text(&one["distance"]), one["priority"], one["capacity"], one["load"]
            ),
            // An earlier release says only how each stands.
            "outcome": one["outcome"].as_str().unwrap_or(text(&one["standing"])),
            "chosen": one["outcome"] == "chosen",
        })
    };
    let candidates = rows(&said["candidates"]).map(candidate).collect();
    (text(&said["decision"]).to_owned(), steps, candidates)
}

fn of_dsr(said: &Value) -> Explanation {
    let mut steps: Vec<String> = rows(&said["mediation"])
        .map(|one| {
            format!(
                "Mediation rule {} at {}: {}.",
                text(&one["rule"]),
                plain(&one["position"]),
                text(&one["outcome"])
            )
        })
        .collect();
    let application = &said["application"];
    if application.is_object() {
        steps.push(format!(
            "Application rule {}: {}.",
            text(&application["rule"]),
            text(&application["outcome"])
        ));
        steps.extend(rows(&application["findings"]).map(|finding| text(finding).to_owned()));
    }
    let route = &said["route"];
    if let Some(rule) = route["rule"].as_str() {
        steps.push(format!("Peer route rule {rule}."));
    }
    let decision = match route["outcome"].as_str() {
        Some(outcome) => format!("The router: {outcome}."),
        None => "The router sends the answer to the peer whose request it answers.".to_owned(),
    };
    let candidate = |one: &Value| {
        let (is_active, state) = (one["active"] == true, text(&one["state"]));
        let outcome = match (is_active, state) {
            (true, "available") => "in the group in use: one of its available peers gets the request",
            (true, _) => "in the group in use, and not available",
            (false, "available") => "available, and its group is not in use: an earlier one is",
            (false, _) => "not available, and its group is not in use",
        };
        json!({
            "who": text(&one["host"]),
            "detail": format!("group {}, {state}", text(&one["group"])),
            "outcome": outcome,
            "chosen": is_active && state == "available",
        })
    };
    (decision, steps, rows(&route["peers"]).map(candidate).collect())
}

fn of_nrf(said: &Value) -> Explanation {
    let member = |(name, value): (&String, &Value)| format!("{name}: {}", plain(value));
    let small = |(_, value): &(&String, &Value)| !value.is_array() && !value.is_object();
    let steps = said
        .as_object()
        .into_iter()
        .flatten()
        .filter(small)
        .map(member)
        .collect();
    let candidate = |one: &Value| {
        json!({
            "who": format!("{} {}", text(&one["nfInstanceId"]), text(&one["nfInstanceName"])),
            "detail": text(&one["nfStatus"]),
            "outcome": format!("dropped by {}: {}", text(&one["by"]), text(&one["why"])),
            "chosen": false,
        })
    };
    let lists = said
        .as_object()
        .into_iter()
        .flatten()
        .flat_map(|(_, value)| rows(value));
    let dropped = lists.filter(|row| row["by"].is_string());
    (
        "The NRF answers a discovery with these parameters as follows.".to_owned(),
        steps,
        dropped.map(candidate).collect(),
    )
}

/// A value as a word.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(text: &str) -> Result<Question, String> {
        let form = Form {
            text: text.to_owned(),
            ..Form::default()
        };
        Question::new(&form)
    }

    #[test]
    fn a_request_is_asked_with_all_its_headers_and_its_body() {
        let pasted = "POST /nudm-sdm/v2/imsi-1/x?y=1&z=2 HTTP/1.1\n3gpp-Sbi-Target-apiRoot: http://udm:80\nX-Own: a; b=c\n\n{\"a\": 1}";
        let asked = question(pasted).unwrap();
        assert_eq!(asked.about, "POST /nudm-sdm/v2/imsi-1/x?y=1&z=2");
        assert_eq!(asked.asked.len(), 1);
        assert_eq!((asked.asked[0].kind, asked.asked[0].path), ("scp", "/scp/why"));
        assert_eq!(
            asked.asked[0].query,
            "method=POST&path=%2Fnudm-sdm%2Fv2%2Fimsi-1%2Fx%3Fy%3D1%26z%3D2&header=3gpp-Sbi-Target-apiRoot%3A%20http%3A%2F%2Fudm%3A80&header=X-Own%3A%20a%3B%20b%3Dc&body=%7B%22a%22%3A%201%7D"
        );
        assert_eq!(asked.notes, [""; 0]);
    }

    #[test]
    fn a_discovery_is_asked_at_the_nrf_too_and_long_bodies_are_left_out() {
        let asked =
            question("GET /nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type=AMF").unwrap();
        let of_nrf = asked.asked.iter().find(|one| one.kind == "nrf").unwrap();
        assert_eq!(of_nrf.query, "target-nf-type=UDM&requester-nf-type=AMF");
        let long = question(&format!("POST /x HTTP/1.1\n\n{}", "x".repeat(20_000))).unwrap();
        assert!(
            long.notes[0].contains("too long") && !long.asked[0].query.contains("body="),
            "{long:?}"
        );
        let refused = question(&format!("GET /{} HTTP/1.1", "x".repeat(20_000))).unwrap_err();
        assert!(refused.contains("too long"), "{refused}");
    }

    #[test]
    fn answers_become_sentences_and_candidates_with_reasons() {
        let said = json!({
            "decision": "The request goes to http://a.", "why": ["planner: s."],
            "candidates": [
                {"nfType": "UDM", "nfInstanceId": "1", "endpoint": "http://a", "status": "REGISTERED", "distance": "site", "priority": 1, "capacity": 2, "load": 3, "standing": "may serve", "outcome": "chosen"},
                {"nfType": "UDM", "nfInstanceId": "2", "endpoint": "http://b", "standing": "may serve"},
            ],
            "attempts": [{"target": "http://a", "nfInstanceId": "1", "through": null, "verdict": "would be sent"}],
        });
        let (decision, steps, candidates) = of_scp(&said);
        assert_eq!(decision, "The request goes to http://a.");
        assert_eq!(steps, ["planner: s.", "attempt 1: http://a (1): would be sent"]);
        assert_eq!(candidates[0]["who"], "UDM 1 at http://a");
        assert_eq!(
            (&candidates[0]["chosen"], &candidates[1]["chosen"]),
            (&json!(true), &json!(false))
        );
        assert_eq!(candidates[1]["outcome"], "may serve");
        let said = json!({
            "mediation": [{"rule": "m", "position": "requests", "outcome": "changes the message"}],
            "application": {"rule": "a", "outcome": "rbar: goes on as it is", "findings": ["f"]},
            "route": {"rule": "r", "outcome": "route list all", "peers": [
                {"host": "hss1", "group": "g", "active": true, "state": "available"},
                {"host": "hss2", "group": "h", "active": false, "state": "available"},
            ]},
        });
        let (decision, steps, candidates) = of_dsr(&said);
        assert_eq!(decision, "The router: route list all.");
        assert_eq!(steps.len(), 4, "{steps:?}");
        assert_eq!(
            (&candidates[0]["chosen"], &candidates[1]["chosen"]),
            (&json!(true), &json!(false))
        );
        // A page of another shape makes an empty explanation, and no panic.
        for odd in [
            json!(null),
            json!([1]),
            json!({"why": 1, "route": [], "candidates": {"a": 1}}),
        ] {
            let _ = (of_scp(&odd), of_dsr(&odd), of_nrf(&odd));
        }
    }
}
