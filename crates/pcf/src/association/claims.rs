//! Claims: what at most one living session may have, so that a session which is established again is found to collide with the
//! one before, at whatever instance. They are kept with the association, in a unique index.
//!
//! Session-Ids of Gx and Rx are always claimed: of two copies of a request in flight one makes the session. So is the PDU session of a
//! subscriber in a DNN and slice at its SMF, which has lost it when it establishes it again (TS 29.512 §4.2.2.2). The other claims are for
//! `collisionDetection`: networks may reuse addresses, but no UE has two PDU sessions of one identity.

use std::borrow::Cow;

use model::Ipv6Prefix;
use serde_json::Value;

pub(crate) use pcc::usage::network;

use super::gx::{self, PcefSession};
use super::{Association, Kind, af, consumer};

/// The room of an association that has its claims.
const ROOM: &str = "claims";

/// Makes the claims of a session that begins: the Session-Id of its PCEF, or its PDU session (SUPI and `pduSessionId`) within DNN and
/// slice; where sessions `collide` its PDU session in any of them and each of its addresses within domain, DNN and slice.
pub(crate) fn make(association: &mut Association, collide: bool) {
    let identity = match association.kind {
        Kind::Sm => pdu_session(association),
        Kind::Gx => PcefSession::get(association).map(|session| gx::name(&session.session_id)),
        Kind::Am | Kind::Ue | Kind::Tdf => return,
    };
    let everywhere = identity
        .as_ref()
        .filter(|_| association.kind == Kind::Sm && collide);
    let everywhere = everywhere.map(|session| format!("sm:{session}"));
    let identity = identity.map(|identity| match association.kind {
        Kind::Sm => format!("pdu:{}:{identity}:{}", smf(association), within(association)),
        _ => identity,
    });
    let addresses = collide.then(|| addresses(association));
    let own = everywhere
        .into_iter()
        .chain(identity)
        .chain(addresses.into_iter().flatten());
    let claims: Vec<Value> = own.map(Value::from).collect();
    association.rooms.insert(ROOM.to_owned(), Value::Array(claims));
}

/// Gives up the claims on addresses that a session does not have any more.
pub(crate) fn retain(association: &mut Association) {
    let Some(Value::Array(claims)) = association.rooms.get(ROOM) else {
        return;
    };
    let is_address = |claim: &Value| claim.as_str().is_some_and(|claim| claim.starts_with("ip:"));
    if !claims.iter().any(is_address) {
        return;
    }
    let has: Vec<String> = addresses(association).collect();
    let is_held = |claim: &Value| !is_address(claim) || has.iter().any(|own| claim == own);
    let left: Vec<Value> = claims.iter().filter(|claim| is_held(claim)).cloned().collect();
    if left.len() < claims.len() {
        association.rooms.insert(ROOM.to_owned(), Value::Array(left));
    }
}

/// The claims of an association, with the Session-Ids of its AF sessions over Rx.
pub(crate) fn of(association: &Association) -> impl Iterator<Item = Cow<'_, str>> {
    let claims = association.rooms.get(ROOM).and_then(Value::as_array);
    let own = claims.into_iter().flatten().filter_map(Value::as_str);
    let rx = af::sessions(association).filter_map(|session| session.rx);
    // Sessions of before have claimed nothing.
    let rx = rx.filter(|rx| rx.claimed).map(|rx| af::rx_name(&rx.session));
    own.map(Cow::Borrowed).chain(rx.map(Cow::Owned))
}

/// Whether both have the same Session-Id of Gx.
pub(crate) fn share_name(one: &Association, other: &Association) -> bool {
    let session = |association: &Association| PcefSession::get(association).map(|session| session.session_id);
    let own = session(one);
    own.is_some() && own == session(other)
}

/// Whether both are sessions of the same PCEF.
pub(crate) fn share_host(one: &Association, other: &Association) -> bool {
    let host = |association: &Association| PcefSession::get(association).map(|session| session.host);
    match (host(one), host(other)) {
        (Some(one), Some(other)) => one.eq_ignore_ascii_case(&other),
        _ => false,
    }
}

fn pdu_session(association: &Association) -> Option<String> {
    // A SUPI that is not authenticated may be another's, whose session must not end for it.
    let supi = association
        .text_of("supi")
        .filter(|_| !association.has_invalid_supi());
    let supi = supi.filter(|supi| !supi.is_empty())?;
    let number = association.context.get("pduSessionId")?.as_u64()?;
    Some(format!("{supi}:{number}"))
}

/// The SMF of a session: the instance that it has proved to be, else where it is notified. Another one ends no session of its.
fn smf(association: &Association) -> String {
    let notified = || {
        let uri: http::Uri = association.text_of("notificationUri")?.parse().ok()?;
        Some(uri.authority()?.as_str().to_ascii_lowercase())
    };
    let instance = consumer::of(association).map(str::to_owned);
    instance.or_else(notified).unwrap_or_default()
}

/// The DNN and slice of a session, as part of a claim.
fn within(association: &Association) -> String {
    let dnn = network(association.text_of("dnn").unwrap_or_default()).to_ascii_lowercase();
    let slice = association.context.get("sliceInfo");
    let sst = slice.and_then(|slice| slice.get("sst")?.as_u64());
    let sst = sst.map(|sst| sst.to_string()).unwrap_or_default();
    let sd = slice.and_then(|slice| slice.get("sd")?.as_str());
    let sd = sd.unwrap_or_default().to_ascii_lowercase();
    format!("{dnn}:{sst}-{sd}")
}

fn addresses(association: &Association) -> impl Iterator<Item = String> {
    let text = |name| association.text_of(name);
    let within = within(association);
    let domain = text("ipDomain").unwrap_or_default();
    let v4 = text("ipv4Address").and_then(|text| text.parse::<std::net::Ipv4Addr>().ok());
    let v6 = text("ipv6AddressPrefix").and_then(|text| text.parse::<Ipv6Prefix>().ok());
    let v4 = v4.map(|address| format!("ip:{within}:{domain}:{address}"));
    let v6 = v6.map(|prefix| format!("ip:{within}::{}/{}", prefix.address(), prefix.length()));
    v4.into_iter().chain(v6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_session_claims_its_identity_and_its_addresses_until_it_releases_them() {
        let context = json!({"supi": "imsi-1", "pduSessionId": 5, "dnn": "Internet.mnc001.mcc001.gprs",
            "sliceInfo": {"sst": 1, "sd": "00000A"}, "ipv4Address": "10.0.0.1", "ipv6AddressPrefix": "2001:db8::/64"});
        let mut association = Association::new(Kind::Sm, context);
        assert_eq!(of(&association).count(), 0);
        make(&mut association, false);
        assert_eq!(
            of(&association).collect::<Vec<_>>(),
            ["pdu::imsi-1:5:internet:1-00000a"]
        );
        make(&mut association, true);
        let claims: Vec<String> = of(&association).map(Cow::into_owned).collect();
        let expected = [
            "sm:imsi-1:5",
            "pdu::imsi-1:5:internet:1-00000a",
            "ip:internet:1-00000a::10.0.0.1",
            "ip:internet:1-00000a::2001:db8::/64",
        ];
        assert_eq!(claims, expected);
        if let Value::Object(members) = &mut association.context {
            members.shift_remove("ipv4Address");
        }
        retain(&mut association);
        assert_eq!(
            of(&association).collect::<Vec<_>>(),
            [expected[0], expected[1], expected[3]]
        );
    }
}
