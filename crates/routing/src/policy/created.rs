//! Collections whose resources producers create by `POST` and name themselves (201 with `Location`), as the OpenAPI files
//! of Release 18 define them. A request for one of these resources is a subsequent request of its conversation.

use crate::path::path_of;

/// Collections of each API as paths after its version; `*` stands for one segment.
const COLLECTIONS: &[(&str, &[&str])] = &[
    (
        "nadrf-datamanagement",
        &["data-retrieval-subscriptions", "data-store-records"],
    ),
    ("naf-eventexposure", &["subscriptions"]),
    (
        "namf-comm",
        &[
            "non-ue-n2-messages/subscriptions",
            "subscriptions",
            "ue-contexts/*/n1-n2-messages/subscriptions",
        ],
    ),
    ("namf-evts", &["subscriptions"]),
    ("namf-mbs-bc", &["mbs-contexts"]),
    (
        "nausf-auth",
        &[
            "prose-authentications",
            "rg-authentications",
            "ue-authentications",
        ],
    ),
    (
        "nbsf-management",
        &[
            "pcf-mbs-bindings",
            "pcf-ue-bindings",
            "pcfBindings",
            "subscriptions",
        ],
    ),
    ("nchf-convergedcharging", &["chargingdata"]),
    ("nchf-offlineonlycharging", &["offlinechargingdata"]),
    ("nchf-spendinglimitcontrol", &["subscriptions"]),
    (
        "ndccf-datamanagement",
        &["analytics-subscriptions", "data-subscriptions"],
    ),
    ("nnef-eas-deployment", &["subscriptions"]),
    ("nnef-eventexposure", &["subscriptions"]),
    ("nnef-pfdmanagement", &["subscriptions"]),
    ("nnrf-disc", &["scp-domain-routing-info-subs"]),
    ("nnrf-nfm", &["subscriptions"]),
    ("nnsacf-slice-ee", &["subscriptions"]),
    ("nnssaaf-aiw", &["authentications"]),
    ("nnssaaf-nssaa", &["slice-authentications"]),
    ("nnssf-nssaiavailability", &["nssai-availability/subscriptions"]),
    ("nnwdaf-eventssubscription", &["subscriptions", "transfers"]),
    ("nnwdaf-mlmodelprovision", &["subscriptions"]),
    ("npcf-am-policy-control", &["policies"]),
    ("npcf-am-policyauthorization", &["app-am-contexts"]),
    ("npcf-bdtpolicycontrol", &["bdtpolicies"]),
    ("npcf-eventexposure", &["subscriptions"]),
    ("npcf-mbspolicyauth", &["contexts"]),
    ("npcf-mbspolicycontrol", &["mbs-policies"]),
    ("npcf-policyauthorization", &["app-sessions"]),
    ("npcf-smpolicycontrol", &["sm-policies"]),
    ("npcf-ue-policy-control", &["policies"]),
    ("nsmf-event-exposure", &["subscriptions"]),
    ("nsmf-pdusession", &["pdu-sessions", "sm-contexts"]),
    ("nudm-ee", &["*/ee-subscriptions"]),
    ("nudm-sdm", &["*/sdm-subscriptions", "shared-data-subscriptions"]),
    ("nudm-ueau", &["*/auth-events"]),
    (
        "nudr-dr",
        &[
            "application-data/influenceData/subs-to-notify",
            "application-data/subs-to-notify",
            "exposure-data/subs-to-notify",
            "policy-data/subs-to-notify",
            "subscription-data/*/context-data/ee-subscriptions",
            "subscription-data/*/context-data/sdm-subscriptions",
            "subscription-data/subs-to-notify",
        ],
    ),
];

/// Kind of resource that a path names, as far as its API is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// A resource that a producer has created, or a sub-resource of it.
    Created,
    /// Another resource of a 3GPP API: a collection, or a resource that consumers name.
    Other,
    /// A resource of an API outside 3GPP, with this number of segments.
    Unknown(usize),
}

impl Resource {
    /// The resource of a path `/{apiName}/{version}/…`.
    pub fn of(path: &str) -> Self {
        // Called for every request: a split by bytes is cheaper than one by `char`.
        let split = |text: &'static str| text.as_bytes().split(|byte| *byte == b'/');
        let segments = || {
            let segments = path_of(path).as_bytes().split(|byte| *byte == b'/');
            segments.filter(|segment| !segment.is_empty())
        };
        let api = segments().next().unwrap_or_default();
        let known = COLLECTIONS.binary_search_by_key(&api, |(name, _)| name.as_bytes());
        let Ok(position) = known else {
            return match api.starts_with(b"n") && api.contains(&b'-') {
                true => Self::Other,
                false => Self::Unknown(segments().count()),
            };
        };
        let is_below = |collection: &'static str| {
            let mut behind = segments().skip(2);
            let mut fits = split(collection).map(|wanted| {
                behind
                    .next()
                    .is_some_and(|found| wanted == b"*" || wanted == found)
            });
            fits.all(|fits| fits) && behind.next().is_some()
        };
        let collections = COLLECTIONS
            .get(position)
            .map_or(&[][..], |(_, collections)| collections);
        match collections.iter().any(|collection| is_below(collection)) {
            true => Self::Created,
            false => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order() {
        assert!(COLLECTIONS.is_sorted_by(|one, other| one.0 < other.0));
    }

    #[test]
    fn resources_below_a_collection_are_those_of_its_producer() {
        for (path, expected) in [
            ("/npcf-smpolicycontrol/v1/sm-policies", Resource::Other),
            ("/npcf-smpolicycontrol/v1/sm-policies/7", Resource::Created),
            (
                "/npcf-smpolicycontrol/v1/sm-policies/7/update?a=b",
                Resource::Created,
            ),
            ("/nudm-sdm/v2/imsi-1/sdm-subscriptions", Resource::Other),
            ("/nudm-sdm/v2/imsi-1/sdm-subscriptions/5", Resource::Created),
            ("/nudm-sdm/v2/imsi-1/am-data", Resource::Other),
            (
                "/nudm-ueau/v1/suci-1/security-information/generate-auth-data",
                Resource::Other,
            ),
            ("/namf-comm/v1/ue-contexts/imsi-1/n1-n2-messages", Resource::Other),
            (
                "/namf-comm/v1/ue-contexts/imsi-1/n1-n2-messages/subscriptions/1",
                Resource::Created,
            ),
            (
                "/nudm-uecm/v1/imsi-1/registrations/amf-3gpp-access",
                Resource::Other,
            ),
            ("/nnssf-nsselection/v2/network-slice-information", Resource::Other),
            ("/x/v1/things/7", Resource::Unknown(4)),
            ("/", Resource::Unknown(0)),
        ] {
            assert_eq!(Resource::of(path), expected, "{path}");
        }
    }
}
