//! The admin pages of an STP.

use std::sync::{Arc, Weak};

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::routing::{MethodRouter, get, post};
use function::Page;
use serde_json::{Value, json};
use ss7_proto::m2pa::{self, Content};
use ss7_proto::m3ua::{Data, ErrorCode, Message};
use ss7_proto::mtp3::LinkSet;

use crate::control::{Control, Request};
use crate::path::{Ingress, Notice, Trace, Work, decide, read_msu};
use crate::state::State;
use crate::tables::Hop;

pub(crate) const PAGES: &[Page] = &[
    Page {
        name: "links",
        about: "Associations with peers, their state and why one carries no traffic",
        path: "/stp/links",
        argument: None,
        columns: &[
            ("link", "/name"),
            ("state", "/state"),
            ("peer", "/peer"),
            ("active for", "/active"),
            ("received", "/received"),
            ("sent", "/sent"),
            ("queued", "/queued"),
            ("reason", "/reason"),
        ],
    },
    Page {
        name: "hops",
        about: "Application servers and link sets, and their state",
        path: "/stp/hops",
        argument: None,
        columns: &[
            ("name", "/name"),
            ("kind", "/kind"),
            ("state", "/state"),
            ("routing context", "/routingContext"),
            ("links", "/links"),
            ("received", "/received"),
            ("sent", "/sent"),
        ],
    },
    Page {
        name: "routes",
        about: "Destinations by point code, and which application server or link set takes their messages",
        path: "/stp/routes",
        argument: None,
        columns: &[
            ("destination", "/destination"),
            ("state", "/state"),
            ("taken by", "/takenBy"),
            ("routes (priority)", "/routes"),
        ],
    },
    Page {
        name: "translations",
        about: "Sets of global title translations, and how often each was used",
        path: "/stp/translations",
        argument: None,
        columns: &[
            ("set", "/name"),
            ("translations", "/entries"),
            ("messages", "/messages"),
        ],
    },
    Page {
        name: "screening",
        about: "Screening rules, and how often each has decided",
        path: "/stp/screening",
        argument: None,
        columns: &[("list", "/list"), ("rule", "/rule"), ("messages", "/messages")],
    },
    Page {
        name: "inhibit",
        about: "Ask the peer to inhibit a link of M2PA: it stays in service and carries no traffic (Q.704 §10)",
        path: "/stp/links/{}/inhibit",
        argument: Some("LINK"),
        columns: &[],
    },
    Page {
        name: "uninhibit",
        about: "End the inhibition of a link",
        path: "/stp/links/{}/uninhibit",
        argument: Some("LINK"),
        columns: &[],
    },
    Page {
        name: "why",
        about: "What would become of an MSU, step by step: screening, translation, route. The MSU is DATA of M3UA, user data of M2PA, or an MSU of MTP3 (service information octet first), in hexadecimal digits; NAME, in front of them is the application server or link set that it comes from",
        path: "/stp/why/{}",
        argument: Some("[NAME,]HEX"),
        columns: &[],
    },
];

/// Serves [`PAGES`], through a weak handle: a page must not keep the STP from ending.
pub(crate) fn routes(control: &Arc<Control>) -> Router {
    let page = |make: fn(&Control) -> Value| {
        let control: Weak<Control> = Arc::downgrade(control);
        get(
            move || async move { axum::Json(control.upgrade().map_or(Value::Null, |control| make(&control))) },
        )
    };
    let explaining = Arc::downgrade(control);
    let why = get(move |Path(hex): Path<String>| async move {
        axum::Json(
            explaining
                .upgrade()
                .map_or(Value::Null, |control| why(&control.state.load(), &hex)),
        )
    });
    Router::new()
        .route("/stp/links", page(|control| json!(control.links())))
        .route("/stp/hops", page(|control| json!(control.hops())))
        .route("/stp/routes", page(|control| json!(control.routes())))
        .route(
            "/stp/translations",
            page(|control| translations(&control.state.load())),
        )
        .route("/stp/screening", page(|control| screening(&control.state.load())))
        .route("/stp/why/{hex}", why)
        .route("/stp/links/{link}/inhibit", inhibit(control, LinkSet::inhibit))
        .route(
            "/stp/links/{link}/uninhibit",
            inhibit(control, LinkSet::uninhibit),
        )
}

/// Makes a request for a link.
fn inhibit(control: &Arc<Control>, request: Request) -> MethodRouter {
    let control = Arc::downgrade(control);
    post(async move |Path(link): Path<String>| {
        match control.upgrade().map(|control| control.inhibit(&link, request)) {
            Some(Ok(())) => (StatusCode::OK, format!("{link}: the peer was asked\n")),
            Some(Err(wrong)) => (StatusCode::CONFLICT, format!("{link}: {wrong}\n")),
            None => (
                StatusCode::SERVICE_UNAVAILABLE,
                "the STP is stopping\n".to_owned(),
            ),
        }
    })
}

fn translations(state: &State) -> Value {
    let all = &state.tables.translations;
    let rows = all.sets.iter().zip(&all.entries).zip(&state.meters.translated);
    rows.map(
        |((name, entries), messages)| json!({"name": name, "entries": entries, "messages": messages.value()}),
    )
    .collect()
}

fn screening(state: &State) -> Value {
    let lists = state.tables.screens.iter().zip(&state.meters.screened);
    let rows = lists.flat_map(|(screen, counters)| {
        let rules = screen.rules().zip(counters);
        rules.map(|(rule, messages)| json!({"list": screen.name, "rule": rule, "messages": messages.value()}))
    });
    rows.collect()
}

/// Explains what would become of a message. It does not count, and nothing is sent.
fn why(state: &State, text: &str) -> Value {
    let hops = &state.tables.hops;
    let (from, hex) = match text.split_once(',') {
        None => (None, text),
        Some((name, hex)) => match hops.iter().position(|hop| hop.name == name.trim()) {
            None => {
                return json!({"error": format!("`{name}` is neither an application server nor a link set")});
            }
            from => (from, hex),
        },
    };
    let Some(octets) = octets(hex) else {
        let expected =
            "hexadecimal digits, two an octet: M3UA DATA, or MTP3 from the service information octet";
        return json!({"error": format!("`{hex}` is not an MSU"), "expected": expected});
    };
    let data = match read(state, &octets) {
        Ok(data) => data,
        Err(error) => return json!({"error": error}),
    };
    let is_meant = |(at, hop): &(usize, &Hop)| match from {
        Some(from) => *at == from,
        None => data.routing_context.is_some() && hop.context == data.routing_context,
    };
    let mut meant = hops.iter().enumerate().filter(is_meant);
    let hop = meant.next().map(|(at, _)| at);
    if let (Some(context), None) = (data.routing_context, hop) {
        return json!({
            "steps": [format!("ingress: routing context {context} is that of no application server or link set")],
            "outcome": "refused",
            "notice": ErrorCode::InvalidRoutingContext.name(),
        });
    }
    let others: Vec<&str> = meant.map(|(_, hop)| hop.name.as_str()).collect();
    let mut trace = Trace::recording();
    trace.add(|| match hop.and_then(|at| hops.get(at)) {
        Some(hop) if from.is_some() => format!("ingress: `{}`", hop.name),
        Some(hop) => format!("ingress: `{}`, by its routing context", hop.name),
        None => {
            "ingress: unknown without a routing context or a name in front; screening is left out".to_owned()
        }
    });
    if !others.is_empty() {
        let others = others.join(", ");
        trace.add(|| {
            format!("the link would decide: {others} has the same routing context, and its own screening")
        });
    }
    let ingress = Ingress {
        state,
        hop,
        segments: None,
        transactions: None,
    };
    let decision = decide(&ingress, &data, &mut Work::default(), &mut trace);
    let notice = decision.notice.map(|notice| match notice {
        Notice::Unreachable(_) => "DUNA",
        Notice::NoUser(..) => "DUPU",
        Notice::Congested(..) => "SCON",
    });
    let sent = decision.send.as_ref();
    json!({
        "steps": trace.steps(),
        "outcome": match (&decision.cause, sent) {
            (None, Some(_)) => "sent",
            (Some(_), Some(_)) => "returned",
            (Some(_), None) => "dropped",
            (None, None) => "ends here",
        },
        "cause": decision.cause.map(crate::cause::Cause::label),
        "notice": notice,
        "by": sent.and_then(|send| hops.get(send.hop)).map(|hop| hop.name.as_str()),
        "destination": sent.map(|send| state.tables.show(send.dpc)),
        "sent": sent.map(|send| send.octets.iter().map(|octet| format!("{octet:02x}")).collect::<String>()),
    })
}

fn octets(hex: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = hex
        .chars()
        .filter_map(|one| one.to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    let only = hex
        .chars()
        .all(|one| one.is_ascii_hexdigit() || one == ':' || one == ' ');
    (only && !digits.is_empty() && digits.len().is_multiple_of(2)).then(|| {
        digits
            .chunks_exact(2)
            .map(|pair| pair.iter().fold(0, |octet, digit| octet << 4 | digit))
            .collect()
    })
}

/// Reads M3UA DATA, user data of M2PA, or an MSU of MTP3.
///
/// # Errors
/// What it is instead.
fn read<'a>(state: &State, octets: &'a [u8]) -> Result<Data<'a>, String> {
    let plan = state.tables.points.plan;
    if let [1, 0, 11, ..] = octets {
        let message = m2pa::Message::parse(octets).map_err(|fault| format!("this is not M2PA: {fault}"))?;
        return match message.content {
            Content::UserData { msu, .. } => read_msu(msu, plan),
            Content::Acknowledgement | Content::LinkStatus(_) => None,
        }
        .ok_or_else(|| "this is M2PA without an MSU that can be read".to_owned());
    }
    // The version and the spare octet of M3UA (RFC 4666 §3.1): no MSU of a user part begins so.
    if let [1, 0, ..] = octets {
        let message = Message::parse(octets).map_err(|fault| format!("this is not M3UA: {fault}"))?;
        let name = message.message_type().name();
        return message
            .data()
            .ok_or_else(|| format!("this is M3UA {name}, and not DATA that can be read"));
    }
    read_msu(octets, plan).ok_or_else(|| "this is neither M3UA DATA nor an MSU of MTP3".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_in_the_forms_of_captures() {
        for text in ["0a1B", "0a 1b", "0a:1b"] {
            assert_eq!(octets(text), Some(vec![0x0a, 0x1b]));
        }
        for text in ["", "0", "0x12", "zz", "12 3"] {
            assert_eq!(octets(text), None, "{text}");
        }
    }
}
