//! This SCP's own profile at the NRF (TS 29.510 §6.1.6.2.65, `ScpInfo`).

use serde_json::{Value, json};

use crate::config::Config;

/// The profile, with a load in percent.
pub(super) fn profile(config: &Config, load: u8) -> Value {
    let root = config.root();
    let origin: Option<sbi::client::Origin> = root.parse().ok();
    let scheme = if root.starts_with("https") {
        "https"
    } else {
        "http"
    };
    let mut profile = json!({
        "nfInstanceId": config.nf_instance_id,
        "nfType": "SCP",
        "nfStatus": "REGISTERED",
        "heartBeatTimer": config.nrf.heart_beat.as_secs().max(1),
        "load": load,
        "scpInfo": {},
    });
    if let Some(fqdn) = config.public_fqdn() {
        profile["fqdn"] = json!(fqdn);
    }
    if let Some(origin) = origin {
        profile["scpInfo"]["scpPorts"] = json!({scheme: origin.port()});
        match origin.host().parse::<std::net::IpAddr>() {
            Ok(std::net::IpAddr::V4(address)) => profile["ipv4Addresses"] = json!([address]),
            Ok(std::net::IpAddr::V6(address)) => profile["ipv6Addresses"] = json!([address]),
            Err(_) => profile["fqdn"] = json!(origin.host()),
        }
    }
    if !config.nrf.scp_domains.is_empty() {
        profile["scpDomains"] = json!(config.nrf.scp_domains);
    }
    if !config.places.locality.is_empty() {
        profile["locality"] = json!(config.places.locality);
    }
    profile
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_setting_gives_is_not_registered() {
        let mut config = Config {
            api_root: "http://127.0.0.1:8020".into(),
            ..Config::default()
        };
        let registered = profile(&config, 0);
        assert_eq!(
            (&registered["fqdn"], &registered["ipv4Addresses"]),
            (&Value::Null, &json!(["127.0.0.1"]))
        );
        config.fqdn = "scp1.example.org".into();
        assert_eq!(profile(&config, 0)["fqdn"], "scp1.example.org");
    }
}
