//! Bodies of Npcf_PolicyAuthorization (TS 29.514 §5.6.2). `pcc::media` judges media components, which Rx has too.

use model::shape::Shape::{self, List, Map, Of, Rule, Text};
use model::shape::{ObjectRule, opt, req, rules};

use super::common::{ANY_OBJECT, NAME, SNSSAI, callback, mac48, name};
use super::object;

/// `oneOf` in the OpenAPI file.
const ONE_ADDRESS: ObjectRule = |members| {
    let addresses = ["ueIpv4", "ueIpv6", "ueMac"];
    match addresses
        .iter()
        .filter(|member| members.contains_key(**member))
        .count()
    {
        0 => Err(("ueIpv4", "expected one of ueIpv4, ueIpv6, ueMac")),
        1 => Ok(()),
        _ => Err(("ueIpv4", "expected one of ueIpv4, ueIpv6, ueMac, not several")),
    }
};

static COMPONENT: Shape = Of(&ANY_OBJECT);
static EVENT_ITEM: Shape = Of(&EVENT);

object! {
    EVENT = [req("event", Rule(rules::token)), opt("notifMethod", Rule(rules::token))];
    /// `EventsSubscReqData`.
    pub(crate) AF_EVENTS = [
        req("events", List(&EVENT_ITEM)),
        opt("notifUri", Rule(callback)),
        opt("reqAnis", List(&NAME)),
        opt("usgThres", Of(&ANY_OBJECT)),
        opt("notifCorreId", Text),
    ];
    /// `AppSessionContextReqData`.
    AF_REQUEST = [
        req("notifUri", Rule(callback)),
        req("suppFeat", Rule(rules::features)),
        opt("ueIpv4", Rule(rules::ipv4)),
        opt("ueIpv6", Rule(rules::ipv6)),
        opt("ueMac", Rule(mac48)),
        opt("ipDomain", Text),
        opt("dnn", Rule(name)),
        opt("sliceInfo", Of(&SNSSAI)),
        opt("supi", Rule(name)),
        opt("gpsi", Rule(name)),
        opt("afAppId", Text),
        opt("afChargId", Text),
        opt("sponId", Text),
        opt("aspId", Text),
        opt("evSubsc", Of(&AF_EVENTS)),
        opt("medComponents", Map(&COMPONENT)),
    ] where ONE_ADDRESS;
    /// `AppSessionContext` of a POST.
    pub(crate) AF_SESSION = [req("ascReqData", Of(&AF_REQUEST))];
    /// `AppSessionContextUpdateDataPatch`. Members that are null are removed.
    pub(crate) AF_PATCH = [opt("ascReqData", Of(&ANY_OBJECT))];
}
