//! What would become of a request, and why: `signalbox dsr why`.

use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use diameter::proto::known;
use diameter::proto::overload::priority;
use diameter::proto::{Dictionary, Fault, Message, MessageMut, Origin, Routing, text};
use dsr_app::{Explained, Flow, Installed, Memo, Out, Request, Ticket, Turn, View};
use serde_json::{Value, json};

use crate::config::Messages;
use crate::edit::readdress;
use crate::mediation::Outcome;
use crate::shared::Dsr;
use crate::snapshot::{Action, ApplicationStep, Snapshot};

/// Bound on the text of a message.
const MAX_TEXT: usize = 64 * 1024;

impl Dsr {
    /// What would become of a message of that peer, in text form or in hexadecimal digits; nothing is sent, nothing
    /// counted. Configured peers are known by name; others count as peers without settings of their own. Without a
    /// name, the peer is the Origin-Host of the message.
    #[must_use]
    pub fn why(&self, peer: &str, message: &str) -> Value {
        if message.len() > MAX_TEXT {
            return json!({"error": format!("the message is longer than {MAX_TEXT} bytes of text")});
        }
        let octets = match hexadecimal(message) {
            Some(octets) => Ok(BytesMut::from(&octets[..])),
            None => text::parse(message, Dictionary::standard())
                .map(|message| BytesMut::from(message.as_bytes()))
                .map_err(|error| error.to_string()),
        };
        let parsed = octets.and_then(|octets| Message::parse(octets).map_err(|error| error.to_string()));
        let peer_of = |message: &MessageMut| match peer {
            "" => message
                .get(known::ORIGIN_HOST)
                .ok()
                .flatten()
                .unwrap_or_default()
                .to_owned(),
            peer => peer.to_owned(),
        };
        match parsed {
            Ok(message) if message.is_request() => {
                let peer = peer_of(&message);
                request(&self.snapshot(), &peer, message)
            }
            Ok(message) => {
                let peer = peer_of(&message);
                answer(&self.snapshot(), &peer, message)
            }
            Err(error) => json!({"error": error, "expected": "peer=HOST&message=ULR app=16777251 { … }"}),
        }
    }
}

/// The octets of a text that is hexadecimal digits and space alone, two digits for each.
fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    if digits.is_empty() || !digits.len().is_multiple_of(2) {
        return None;
    }
    let octet = |pair: &[u8]| {
        let is_digits = pair.iter().all(u8::is_ascii_hexdigit);
        let pair = std::str::from_utf8(pair).ok().filter(|_| is_digits)?;
        u8::from_str_radix(pair, 16).ok()
    };
    digits.chunks(2).map(octet).collect()
}

fn outcomes(outcomes: &[Outcome<'_>]) -> Value {
    let row = |outcome: &Outcome<'_>| {
        let what = match outcome.misfit {
            None => "changes the message".to_owned(),
            Some(misfit) => misfit.to_string(),
        };
        json!({"rule": outcome.rule, "position": outcome.position, "outcome": what})
    };
    outcomes.iter().map(row).collect()
}

fn answer(snapshot: &Snapshot, peer: &str, message: MessageMut) -> Value {
    let (met, changed) = snapshot.mediation.explain(Messages::Answers, &message, peer);
    let message = changed.and_then(Result::ok).unwrap_or(message);
    json!({
        "mediation": outcomes(&met),
        "message": text::print(&message, Dictionary::standard()).to_string(),
    })
}

fn fault(fault: &Fault) -> String {
    match fault.vendor {
        0 => format!("answer {}: {}", fault.code, fault.reason),
        vendor => format!("answer {vendor}:{}: {}", fault.code.0, fault.reason),
    }
}

fn request(snapshot: &Snapshot, peer: &str, message: MessageMut) -> Value {
    let (met, changed) = snapshot.mediation.explain(Messages::Requests, &message, peer);
    let met = outcomes(&met);
    let mut message = match changed {
        Some(Err(error)) => return json!({"mediation": met, "route": {"outcome": error.to_string()}}),
        Some(Ok(changed)) => changed,
        None => message,
    };
    let profile = snapshot.profile(peer);
    let mut application = json!(null);
    let mut ends = None;
    let mut readdressed = None;
    let mut findings = Vec::new();
    if let Ok(routing) = Routing::scan_as(&message, |_| false) {
        let of_request = routing.priority.or(profile.priority).unwrap_or(priority::DEFAULT);
        let view = View::new(message.application(), message.command(), of_request, &routing);
        if let Some((step, count)) = snapshot.application_step(&profile, &view) {
            let what = match step {
                ApplicationStep::Route => "goes on to peer route rules".to_owned(),
                ApplicationStep::Answer(answer) => {
                    ends = Some(fault(answer));
                    fault(answer)
                }
                ApplicationStep::Abandon => {
                    ends = Some("abandoned".to_owned());
                    "abandoned".to_owned()
                }
                ApplicationStep::Applications(chain) => {
                    let installed = chain.iter().filter_map(|at| snapshot.installed(*at));
                    let met = meet_all(installed, &message, of_request, peer, &names(snapshot));
                    (ends, readdressed, findings) = (met.ends, met.readdressed, met.findings);
                    met.what
                }
            };
            application = json!({"rule": snapshot.measured.name(*count), "outcome": what});
            if !findings.is_empty() {
                application["findings"] = findings.into();
            }
        }
    }
    message = readdressed.unwrap_or(message);
    let route = match &ends {
        Some(ends) => json!({"outcome": ends}),
        None => route(snapshot, peer, &message),
    };
    json!({
        "mediation": met,
        "application": application,
        "route": route,
        "message": text::print(&message, Dictionary::standard()).to_string(),
    })
}

/// What applications do with a request.
#[derive(Default)]
struct Met {
    what: String,
    /// How the request ends there.
    ends: Option<String>,
    readdressed: Option<MessageMut>,
    /// What applications that explain themselves found wrong with it.
    findings: Vec<String>,
}

/// Shows a request to applications in a row. Their counters and their state on workers are not touched: each is asked as on a
/// worker that has seen no request yet.
fn meet_all<'i>(
    chain: impl Iterator<Item = &'i Arc<dyn Installed>>,
    message: &MessageMut,
    priority: u8,
    peer: &str,
    names: &Origin,
) -> Met {
    let (mut all, mut words) = (Met::default(), Vec::new());
    for application in chain {
        let changed = meet(
            application,
            all.readdressed.as_ref().unwrap_or(message),
            priority,
            peer,
            names,
        );
        all.findings.extend(changed.findings);
        words.push(changed.what);
        all.ends = changed.ends;
        all.readdressed = changed.readdressed.or(all.readdressed);
        if all.ends.is_some() {
            break;
        }
    }
    all.what = match words.is_empty() {
        true => "an application without a kind: goes on".to_owned(),
        false => words.join(", then "),
    };
    all
}

fn meet(
    application: &Arc<dyn Installed>,
    message: &MessageMut,
    priority: u8,
    peer: &str,
    names: &Origin,
) -> Met {
    let kind = application.kind();
    let Ok(routing) = Routing::scan_as(message, |_| false) else {
        return Met::default();
    };
    let request = Request {
        message,
        view: &View::new(message.application(), message.command(), priority, &routing),
        peer,
        names,
    };
    if let Some(Explained { flow, reasons }) = application.explain(&request) {
        return Met {
            findings: reasons,
            ..outcome(kind, message, flow)
        };
    }
    let turn = Turn {
        now: Instant::now(),
        ticket: Ticket::default(),
        memo: &mut Memo::default(),
        out: &mut Out::default(),
        is_congested: false,
    };
    let seat = dsr_app::seat(application.clone());
    outcome(kind, message, seat.request(turn, &request))
}

/// What a verdict means, in words.
fn outcome(kind: &str, message: &MessageMut, flow: Flow<'_>) -> Met {
    let (what, ends) = match &flow {
        Flow::Next => ("goes on as it is".to_owned(), None),
        Flow::To(to) => (format!("to host `{}`, realm `{}`", to.host, to.realm), None),
        Flow::Changed(_) => ("changes the request".to_owned(), None),
        Flow::Later(wait) => (format!("is parked for up to {wait:?}"), Some("parked".to_owned())),
        Flow::Answer(refused) => (fault(refused), Some(fault(refused))),
        Flow::Drop => ("abandoned".to_owned(), Some("abandoned".to_owned())),
        Flow::Reply(reply) => {
            let shown = text::print(&reply.message, Dictionary::standard());
            let what = format!("answered here: {shown}");
            (what.clone(), Some(what))
        }
    };
    let readdressed = match flow {
        Flow::To(to) => readdress(message, &to.realm, &to.host).ok(),
        Flow::Changed(changed) => Some(changed),
        _ => None,
    };
    Met {
        what: format!("{kind}: {what}"),
        ends,
        readdressed,
        findings: Vec::new(),
    }
}

/// Our names at the first local node.
fn names(snapshot: &Snapshot) -> Origin {
    let node = snapshot.config.local_nodes.first();
    node.map_or_else(
        || Origin::new("", ""),
        |node| Origin::new(node.host.clone(), node.realm.clone()),
    )
}

fn route(snapshot: &Snapshot, peer: &str, message: &MessageMut) -> Value {
    let Ok(routing) = Routing::scan_as(message, |name| snapshot.is_own(name)) else {
        return json!({"outcome": "answer 5014: an AVP is framed wrong"});
    };
    if routing.loops {
        return json!({"outcome": "answered by exceptions.loopDetected: a Route-Record is ours"});
    }
    let profile = snapshot.profile(peer);
    let of_request = routing.priority.or(profile.priority).unwrap_or(priority::DEFAULT);
    let view = View::new(message.application(), message.command(), of_request, &routing);
    let leads = snapshot.action(snapshot.table(&profile, message.application()), &view);
    let rule = snapshot.measured.name(leads.count);
    let mut peers = Vec::new();
    let outcome = match &leads.action {
        Action::Answer(answer) => fault(answer),
        Action::Abandon => "abandoned".to_owned(),
        Action::List(_) | Action::Implicit | Action::Table(_) if !snapshot.relays(&view) => {
            "answered by exceptions.noRoute: it is for this node, or has no Destination-Realm".to_owned()
        }
        Action::List(at) => list(snapshot, *at, &mut peers),
        Action::Implicit | Action::Table(_) => {
            match (routing.destination_host, snapshot.realm_route(&view)) {
                (Some(host), None) => format!("the peer {}", String::from_utf8_lossy(host)),
                (None, None) => {
                    "answered by exceptions.noRoute: no rule matches, and the request has no Destination-Host"
                        .to_owned()
                }
                (None, Some((at, _))) => format!("realm route, {}", list(snapshot, at, &mut peers)),
                (Some(host), Some((at, _))) => {
                    let (host, list) = (String::from_utf8_lossy(host), list(snapshot, at, &mut peers));
                    format!("the peer {host}; where no peer has that name, realm route, {list}")
                }
            }
        }
    };
    json!({"rule": rule, "outcome": outcome, "peers": peers})
}

/// The list at this position, and rows of its peers.
fn list(snapshot: &Snapshot, at: usize, peers: &mut Vec<Value>) -> String {
    let Some(list) = snapshot.list(at) else {
        return "a route list that is gone".to_owned();
    };
    let active = list.active();
    for (index, group) in list.groups().iter().enumerate() {
        peers.extend(group.hops().map(|hop| {
            json!({
                "host": &*hop.host,
                "group": group.name,
                "active": active == Some(index),
                "state": hop.state().as_str(),
            })
        }));
    }
    format!("route list {}", list.name)
}
