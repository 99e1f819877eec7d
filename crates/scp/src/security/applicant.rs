//! Properties of a consumer that `allowed…` of profiles tests.

use ::discovery::Requester;
use model::{NfInstanceId, NfType, PlmnId};
use percent_encoding::percent_decode_str;
use routing::network::Applicant;
use sbi::Fields;
use sbi::headers::{AccessScope, OriginatingNetworkId, SbiHeader};

use super::access::listed;

/// Returns the applicant of a request: by `nf_type` and `instance`, else by the discovery parameters. Invalid parameters
/// count as absent.
pub(crate) fn applicant(nf_type: Option<&str>, instance: Option<&str>, headers: &Fields) -> Applicant {
    let header = |name: &str| {
        let value = headers.get(name)?.to_str().ok()?;
        Some(percent_decode_str(value.trim()).decode_utf8_lossy().into_owned())
    };
    let nf_type = nf_type
        .map(str::to_owned)
        .or_else(|| header("3gpp-sbi-discovery-requester-nf-type"));
    let instance = instance
        .map(str::to_owned)
        .or_else(|| header("3gpp-sbi-discovery-requester-nf-instance-id"));
    let mut plmns: Vec<PlmnId> = listed(headers, "3gpp-sbi-discovery-requester-plmn-list");
    if plmns.is_empty()
        && let Ok(Some(origin)) = OriginatingNetworkId::of(headers)
    {
        let plmn = serde_json::json!({"mcc": origin.mcc, "mnc": origin.mnc});
        plmns.extend(serde_json::from_value::<PlmnId>(plmn).ok());
    }
    let scopes = AccessScope::of(headers).ok().flatten();
    Applicant {
        requester: Requester {
            nf_type: nf_type.map(NfType::from),
            instance: instance.and_then(|id| NfInstanceId::parse(&id).ok()),
            fqdn: header("3gpp-sbi-discovery-requester-nf-instance-fqdn"),
            plmns,
            slices: listed(headers, "3gpp-sbi-discovery-requester-snssais"),
            ..Requester::default()
        },
        scopes: scopes.map(|scopes| scopes.0).unwrap_or_default(),
    }
}
