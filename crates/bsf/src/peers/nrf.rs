//! What the BSF asks of NRFs (TS 29.510).

use nrf_client::Nrfs;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// Hosts at which instances of an NF set can be reached, as the NRF orders them; empty when it knows none or does not
/// answer.
pub(crate) async fn hosts_of_set(nrfs: &Nrfs, set: &str) -> Vec<String> {
    // TS 23.003 §28.12: set12.amfset.5gc.mnc001.mcc001
    let nf_type = set.split('.').nth(1).and_then(|label| label.strip_suffix("set"));
    let Some(nf_type) = nf_type.filter(|nf_type| !nf_type.is_empty()) else {
        return Vec::new();
    };
    let path = format!(
        "/nnrf-disc/v1/nf-instances?target-nf-type={}&requester-nf-type=BSF&target-nf-set-id={}",
        utf8_percent_encode(&nf_type.to_ascii_uppercase(), NON_ALPHANUMERIC),
        utf8_percent_encode(set, NON_ALPHANUMERIC)
    );
    let Some(body) = nrfs.get(&path).await else {
        return Vec::new();
    };
    let found: Value = serde_json::from_slice(&body).unwrap_or_default();
    let instances = found.get("nfInstances").and_then(Value::as_array);
    instances.into_iter().flatten().filter_map(host_of).collect()
}

/// Where an NF instance is, as an authority has it.
fn host_of(profile: &Value) -> Option<String> {
    let first = |name: &str| profile.get(name)?.get(0)?.as_str();
    let own = profile.get("fqdn").and_then(Value::as_str);
    own.or_else(|| first("ipv4Addresses"))
        .map(str::to_owned)
        .or_else(|| Some(format!("[{}]", first("ipv6Addresses")?)))
}
