//! What would become of a request, and why: `signalbox dsr why`.

use bytes::BytesMut;
use diameter::proto::overload::priority;
use diameter::proto::{Dictionary, Fault, Message, MessageMut, Origin, Routing, text};
use serde_json::{Value, json};

use crate::application::{Application, Given, Outcome as Served};
use crate::config::Messages;
use crate::edit::readdress;
use crate::mediation::Outcome;
use crate::routing::View;
use crate::shared::Dsr;
use crate::snapshot::{Action, ApplicationStep, Snapshot};

/// Bound on the text of a message.
const MAX_TEXT: usize = 64 * 1024;

impl Dsr {
    /// What would become of a message, in text form, of that peer; nothing is sent, nothing counted. Configured
    /// peers are known by name; others count as peers without settings of their own.
    #[must_use]
    pub fn why(&self, peer: &str, message: &str) -> Value {
        if message.len() > MAX_TEXT {
            return json!({"error": format!("the message is longer than {MAX_TEXT} bytes of text")});
        }
        let parsed = text::parse(message, Dictionary::standard()).map_err(|error| error.to_string());
        let parsed = parsed.and_then(|message| {
            Message::parse(BytesMut::from(message.as_bytes())).map_err(|error| error.to_string())
        });
        match parsed {
            Ok(message) if message.is_request() => request(&self.snapshot(), peer, message),
            Ok(message) => answer(&self.snapshot(), peer, message),
            Err(error) => json!({"error": error, "expected": "peer=HOST&message=ULR app=16777251 { … }"}),
        }
    }
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
                ApplicationStep::Application(at) => match snapshot.installed(*at) {
                    None => "an application without a kind: goes on".to_owned(),
                    Some(installed) => {
                        let given = Given {
                            message: &message,
                            view: &view,
                            names: &names(snapshot),
                            count: &|_| (),
                        };
                        let met = meet(installed, &given);
                        (ends, readdressed) = (met.ends, met.readdressed);
                        met.what
                    }
                },
            };
            application = json!({"rule": snapshot.measured.name(*count), "outcome": what});
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

/// What an application does with a request.
struct Met {
    what: String,
    /// How the request ends there.
    ends: Option<String>,
    readdressed: Option<MessageMut>,
}

fn meet(application: &dyn Application, given: &Given<'_>) -> Met {
    let kind = application.kind();
    let (outcome, mut readdressed) = (application.request(given), None);
    let ends = match &outcome {
        Served::Forward => None,
        Served::To(to) => {
            readdressed = readdress(given.message, &to.realm, &to.host).ok();
            None
        }
        Served::Answer(answer) => Some(fault(answer)),
        Served::Refuse(refused) => Some(fault(refused)),
        Served::Reply(reply) => {
            let shown = text::print(&reply.message, Dictionary::standard());
            Some(format!("answered here: {shown}"))
        }
        Served::Abandon => Some("abandoned".to_owned()),
    };
    let what = match (&outcome, &ends) {
        (Served::To(to), _) => format!("{kind}: to host `{}`, realm `{}`", to.host, to.realm),
        (_, Some(ends)) => format!("{kind}: {ends}"),
        (_, None) => format!("{kind}: goes on as it is"),
    };
    Met {
        what,
        ends,
        readdressed,
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
