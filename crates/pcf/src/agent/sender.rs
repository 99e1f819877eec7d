//! Who sends a request: a node speaks for itself, an agent of the operator's for others.
//!
//! RFC 6733 has no proof of Origin-Host beyond the capabilities exchange of the connection. So a peer acts under its own name alone,
//! unless it is an agent (relay, proxy, the BSF) by the settings; each interface then demands that Origin-Host is that of the
//! session.

use diameter::endpoint::Request;
use diameter::proto::known;
use diameter::proto::{Fault, ResultCode, encode_one};

use super::destination::is_one_of;
use crate::config::Diameter;

/// Longest Session-Id: three times a DiameterIdentity of 255 octets is beyond what peers make by RFC 6733 §8.8.
const LONGEST_SESSION_ID: usize = 1_024;

/// Why the sender of a request may not act under its Origin-Host.
pub(super) fn forged(request: &Request, settings: &Diameter) -> Option<Fault> {
    let origin = match request.message.require(known::ORIGIN_HOST) {
        Ok(origin) => origin,
        Err(fault) => return Some(fault),
    };
    let peer = request.from.peer();
    let peer = peer.as_ref().map_or("", |up| up.remote.origin.host.as_str());
    if peer.eq_ignore_ascii_case(origin) || is_agent(peer, settings) {
        return None;
    }
    Some(Fault::new(
        ResultCode::UNKNOWN_SESSION_ID,
        "Origin-Host is not the peer of this connection, which is not among diameter.agents and diameter.peers",
    ))
}

/// Whether a peer relays requests of others.
fn is_agent(peer: &str, settings: &Diameter) -> bool {
    let mut connected = settings.peers.iter();
    !peer.is_empty()
        && (is_one_of(peer, "", &settings.agents)
            || connected.any(|agent| agent.host.eq_ignore_ascii_case(peer)))
}

/// Why the Session-Id of a request is not kept: it becomes part of records and messages.
pub(super) fn unnameable(request: &Request) -> Option<Fault> {
    let session = match request.message.get(known::SESSION_ID) {
        Ok(session) => session.unwrap_or_default(),
        Err(fault) => return Some(fault),
    };
    let is_long = session.len() > LONGEST_SESSION_ID;
    if !is_long && !session.chars().any(char::is_control) {
        return None;
    }
    // The beginning is enough: the answer does not grow with the request.
    let beginning = session.get(..session.floor_char_boundary(LONGEST_SESSION_ID));
    let avp = encode_one(known::SESSION_ID, beginning.unwrap_or_default());
    let reason = match is_long {
        true => "Session-Id is longer than 1024 octets",
        false => "Session-Id has control characters",
    };
    Some(Fault::new(ResultCode::INVALID_AVP_VALUE, reason).about(avp))
}
