//! What the data types of Nbsf_Management must look like (TS 29.521 §5.6.2).

use std::borrow::Cow;

use model::shape::Shape::{Integer, List, Of, Rule, Text};
use model::shape::{Member, Object, Shape, opt, req, rules, soft};
use model::tolerance::{Dropped, Stead, settle_with};
use serde_json::{Map, Value};

use super::{DocumentFault, Place};

type Verdict = Result<(), Cow<'static, str>>;
type Blame = Result<(), (&'static str, &'static str)>;

/// Longest text of an identity, a DNN or a domain.
const LONGEST: usize = 255;

fn when(good: bool, expected: &'static str) -> Verdict {
    if good { Ok(()) } else { Err(expected.into()) }
}

fn name(text: &str) -> Verdict {
    when(
        (1..=LONGEST).contains(&text.len()) && !text.chars().any(char::is_control),
        "expected 1 to 255 bytes of text without control characters",
    )
}

fn mac48(text: &str) -> Verdict {
    when(
        Place::mac(text).is_some(),
        "expected a MAC address such as 00-1b-21-3c-9d-f0",
    )
}

fn route4(text: &str) -> Verdict {
    when(
        Place::route4(text).is_some(),
        "expected an IPv4 route such as 198.51.100.0/24",
    )
}

static NAME: Shape = Rule(name);
static MAC: Shape = Rule(mac48);
static PREFIX: Shape = Rule(rules::ipv6_prefix);
static ROUTE4: Shape = Rule(route4);

macro_rules! object {
    ($($(#[$meta:meta])* $vis:vis $name:ident = [$($member:expr),* $(,)?] $(where $rule:expr)?;)+) => {
        $($(#[$meta])* $vis static $name: Shape = Shape::Object(&Object {
            members: &[$($member),*],
            rule: object!(@rule $($rule)?),
        });)+
    };
    (@rule) => { None };
    (@rule $rule:expr) => { Some($rule) };
}

/// Something the session can be found by, and somewhere to go (TS 29.521 table 5.6.2.2-1, its notes).
fn session(members: &Map<String, Value>) -> Blame {
    let any = |names: &[&str]| names.iter().any(|name| members.contains_key(*name));
    if !any(&[
        "ipv4Addr",
        "ipv6Prefix",
        "addIpv6Prefixes",
        "macAddr48",
        "addMacAddrs",
        "ipv4FrameRouteList",
        "ipv6FrameRouteList",
        "supi",
        "gpsi",
    ]) {
        return Err((
            "ipv4Addr",
            "expected an address of the UE (or ipv6Prefix, macAddr48), its supi or its gpsi",
        ));
    }
    if !any(&[
        "pcfFqdn",
        "pcfIpEndPoints",
        "pcfDiamHost",
        "pcfDiamRealm",
        "pcfSmFqdn",
        "pcfSmIpEndPoints",
    ]) {
        return Err((
            "pcfFqdn",
            "expected an address of the PCF: pcfFqdn, pcfIpEndPoints or pcfDiamHost",
        ));
    }
    Ok(())
}

fn ue(members: &Map<String, Value>) -> Blame {
    if members.contains_key("pcfForUeFqdn") || members.contains_key("pcfForUeIpEndPoints") {
        return Ok(());
    }
    Err(("pcfForUeFqdn", "expected pcfForUeFqdn or pcfForUeIpEndPoints"))
}

fn mbs_session(members: &Map<String, Value>) -> Blame {
    if members.contains_key("tmgi") || members.contains_key("ssm") {
        return Ok(());
    }
    Err(("tmgi", "expected tmgi or ssm"))
}

fn one_address(members: &Map<String, Value>) -> Blame {
    match ["ipv4Addr", "ipv6Addr", "ipv6Prefix"]
        .iter()
        .filter(|name| members.contains_key(**name))
        .count()
    {
        1 => Ok(()),
        _ => Err(("", "expected exactly one of ipv4Addr, ipv6Addr, ipv6Prefix")),
    }
}

fn pairs(members: &Map<String, Value>) -> Blame {
    let events = members.get("events").and_then(Value::as_array);
    let wants_pairs = events
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .any(|event| event.starts_with("SNSSAI_DNN_"));
    if wants_pairs && !members.contains_key("snssaiDnnPairs") {
        return Err((
            "snssaiDnnPairs",
            "expected a slice and DNN for the events of a slice and DNN",
        ));
    }
    Ok(())
}

object! {
    END_POINT = [
        opt("ipv4Address", Rule(rules::ipv4)),
        opt("ipv6Address", Rule(rules::ipv6)),
        opt("transport", Text),
        opt("port", Integer(0, 65_535)),
    ];
    /// A slice (TS 29.571 §5.4.4.2).
    pub SNSSAI = [req("sst", Integer(0, 255)), opt("sd", Rule(rules::hex6))];
    COMBINATION = [opt("supi", Rule(name)), opt("dnn", Rule(name)), opt("snssai", Of(&SNSSAI))];
    /// `PcfBinding` (§5.6.2.2).
    pub PCF_BINDING = [
        opt("supi", Rule(name)),
        opt("gpsi", Rule(name)),
        opt("ipv4Addr", Rule(rules::ipv4)),
        opt("ipv6Prefix", Rule(rules::ipv6_prefix)),
        opt("addIpv6Prefixes", List(&PREFIX)),
        opt("ipDomain", Rule(name)),
        opt("macAddr48", Rule(mac48)),
        opt("addMacAddrs", List(&MAC)),
        req("dnn", Rule(name)),
        opt("pcfFqdn", Rule(rules::fqdn)),
        opt("pcfIpEndPoints", List(&END_POINT)),
        opt("pcfDiamHost", Rule(rules::fqdn)),
        opt("pcfDiamRealm", Rule(rules::fqdn)),
        opt("pcfSmFqdn", Rule(rules::fqdn)),
        opt("pcfSmIpEndPoints", List(&END_POINT)),
        req("snssai", Of(&SNSSAI)),
        opt("suppFeat", Rule(rules::features)),
        opt("pcfId", Rule(rules::uuid)),
        opt("pcfSetId", Rule(rules::not_empty)),
        soft("recoveryTime", Rule(rules::date_time)),
        opt("paraCom", Of(&COMBINATION)),
        opt("bindLevel", Text),
        opt("ipv4FrameRouteList", List(&ROUTE4)),
        opt("ipv6FrameRouteList", List(&PREFIX)),
    ] where session;
    /// `PcfForUeBinding` (§5.6.2.9).
    pub UE_BINDING = [
        req("supi", Rule(name)),
        opt("gpsi", Rule(name)),
        opt("pcfForUeFqdn", Rule(rules::fqdn)),
        opt("pcfForUeIpEndPoints", List(&END_POINT)),
        opt("pcfId", Rule(rules::uuid)),
        opt("pcfSetId", Rule(rules::not_empty)),
        opt("bindLevel", Text),
        opt("suppFeat", Rule(rules::features)),
    ] where ue;
    ADDRESS = [
        opt("ipv4Addr", Rule(rules::ipv4)),
        opt("ipv6Addr", Rule(rules::ipv6)),
        opt("ipv6Prefix", Rule(rules::ipv6_prefix)),
    ] where one_address;
    PLMN = [req("mcc", Rule(rules::mcc)), req("mnc", Rule(rules::mnc))];
    TMGI = [req("mbsServiceId", Rule(rules::hex6)), req("plmnId", Of(&PLMN))];
    SSM = [req("sourceIpAddr", Of(&ADDRESS)), req("destIpAddr", Of(&ADDRESS))];
    /// `MbsSessionId` (TS 29.571 §5.9.4.1).
    pub MBS_SESSION = [opt("tmgi", Of(&TMGI)), opt("ssm", Of(&SSM)), opt("nid", Rule(rules::nid))] where mbs_session;
    /// `PcfMbsBinding` (§5.6.2.12).
    pub MBS_BINDING = [
        req("mbsSessionId", Of(&MBS_SESSION)),
        opt("pcfFqdn", Rule(rules::fqdn)),
        opt("pcfIpEndPoints", List(&END_POINT)),
        opt("pcfId", Rule(rules::uuid)),
        opt("pcfSetId", Rule(rules::not_empty)),
        opt("bindLevel", Text),
        soft("recoveryTime", Rule(rules::date_time)),
        opt("suppFeat", Rule(rules::features)),
    ];
    PAIR = [req("snssai", Of(&SNSSAI)), req("dnn", Rule(name))];
    /// `BsfSubscription` (§5.6.2.4).
    pub SUBSCRIPTION = [
        req("events", List(&NAME)),
        req("notifUri", Rule(rules::uri)),
        req("notifCorreId", Text),
        req("supi", Rule(name)),
        opt("gpsi", Rule(name)),
        opt("snssaiDnnPairs", Of(&PAIR)),
        opt("addSnssaiDnnPairs", List(&PAIR)),
        opt("suppFeat", Rule(rules::features)),
    ] where pairs;
}

/// Members that a patch of a session's binding may change (§5.6.2.3); a null removes those that it may.
pub const SESSION_PATCH: &[&str] = &[
    "ipv4Addr",
    "ipDomain",
    "ipv6Prefix",
    "addIpv6Prefixes",
    "macAddr48",
    "addMacAddrs",
    "pcfId",
    "pcfFqdn",
    "pcfIpEndPoints",
    "pcfDiamHost",
    "pcfDiamRealm",
];
/// Members that a patch of a UE's binding may change (§5.6.2.10).
pub const UE_PATCH: &[&str] = &["pcfForUeFqdn", "pcfForUeIpEndPoints", "pcfId"];
/// Members that a patch of an MBS session's binding may change (§5.6.2.13).
pub const MBS_PATCH: &[&str] = &["pcfFqdn", "pcfIpEndPoints", "pcfId"];
/// Members that a null in a patch removes; the others cannot be null.
const REMOVABLE: &[&str] = &[
    "ipv4Addr",
    "ipDomain",
    "ipv6Prefix",
    "addIpv6Prefixes",
    "macAddr48",
    "addMacAddrs",
];

/// Checks a body against its shape.
///
/// # Errors
/// Everything that is wrong with it.
pub fn check(shape: &Shape, value: &Value) -> Result<(), DocumentFault> {
    let faults = shape.check(value);
    if faults.is_empty() {
        Ok(())
    } else {
        Err(DocumentFault::Shape(faults))
    }
}

/// Texts that stand for nothing where they are empty.
const BLANK: [&str; 2] = ["gpsi", "ipDomain"];

/// Checks a body against its shape, and takes out of it what counts as absent ([`model::tolerance`]); with `strict` nothing does.
/// `host_names`: whether names of hosts need not be fully qualified.
///
/// # Errors
/// Everything that is wrong with it beyond that.
pub fn settle(
    shape: &Shape,
    value: &mut Value,
    strict: bool,
    host_names: bool,
) -> Result<Vec<Dropped>, DocumentFault> {
    let settled = rules::with_host_names(host_names, || settle_with(shape, value, strict, blank));
    settled.map_err(DocumentFault::Shape)
}

fn blank(member: &Member, value: &Value) -> Option<(Stead, Cow<'static, str>)> {
    let is_blank = !member.required && BLANK.contains(&member.name) && value == "";
    is_blank.then(|| (Stead::Absent, "expected some text".into()))
}

/// Merges a patch (RFC 7396) into a value: only members that the standard allows a patch to change, and the result must
/// still be of the shape, without what counts as absent ([`settle`]).
///
/// # Errors
/// The first fault; the value is not to be used then.
pub fn merge(
    value: &mut Value,
    patch: &Value,
    allowed: &[&str],
    shape: &Shape,
    size: usize,
    strict: bool,
) -> Result<Vec<Dropped>, DocumentFault> {
    let members = patch.as_object().ok_or(DocumentFault::NotAnObject)?;
    for (name, given) in members {
        // Members of later releases pass; those that identify the session do not change.
        let known =
            matches!(shape, Shape::Object(object) if object.members.iter().any(|member| member.name == name));
        if known && !allowed.contains(&name.as_str()) {
            return Err(DocumentFault::Fixed(name.clone()));
        }
        if known && given.is_null() && !REMOVABLE.contains(&name.as_str()) {
            return Err(DocumentFault::Mandatory(name.clone()));
        }
    }
    // Unknown members survive, so that patches could add to them without end.
    sbi_proto::json::merge(value, patch, size).map_err(|_| DocumentFault::TooLarge(size))?;
    settle_with(shape, value, strict, blank).map_err(DocumentFault::Shape)
}
