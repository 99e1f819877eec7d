//! NF screening: lists that a profile must pass to be registered.

use std::collections::BTreeMap;
use std::net::IpAddr;

use model::{NfInstanceId, NfProfile, Pattern, PlmnId};

use crate::config;

/// Screening rules, compiled.
#[derive(Debug, Default)]
pub struct Screening {
    rules: config::Screening,
    allowed_fqdns: Vec<Pattern>,
    denied_fqdns: Vec<Pattern>,
    allowed_plmns: Vec<PlmnId>,
    types: BTreeMap<NfInstanceId, Vec<String>>,
}

impl Screening {
    /// Compiles the rules.
    ///
    /// # Errors
    /// The expression or PLMN that cannot be used.
    pub fn new(rules: &config::Screening) -> Result<Self, String> {
        let patterns = |list: &[String]| -> Result<Vec<Pattern>, String> {
            list.iter()
                .map(|text| Pattern::new(text).map_err(|why| format!("screening: `{text}`: {why}")))
                .collect()
        };
        let plmns = rules.allowed_plmns.iter().map(|text| {
            text.parse()
                .map_err(|_| format!("screening: `{text}` is not a PLMN such as 001-01"))
        });
        Ok(Self {
            allowed_fqdns: patterns(&rules.allowed_fqdns)?,
            denied_fqdns: patterns(&rules.denied_fqdns)?,
            allowed_plmns: plmns.collect::<Result<_, _>>()?,
            types: rules
                .nf_types_by_instance
                .iter()
                .filter_map(|(id, types)| Some((NfInstanceId::parse(id).ok()?, types.clone())))
                .collect(),
            rules: rules.clone(),
        })
    }

    /// Checks whether the profile passes.
    ///
    /// # Errors
    /// JSON pointer of the refused member, and the reason.
    pub fn check(&self, profile: &NfProfile) -> Result<(), (&'static str, String)> {
        let nf_type = profile.nf_type.as_str();
        let named = |list: &[String]| list.iter().any(|one| one == nf_type);
        if named(&self.rules.denied_nf_types)
            || (!self.rules.allowed_nf_types.is_empty() && !named(&self.rules.allowed_nf_types))
        {
            return Err(("/nfType", format!("{nf_type} may not register here")));
        }
        if let Some(types) = self.types.get(&profile.nf_instance_id)
            && !types.iter().any(|one| one == nf_type)
        {
            return Err(("/nfType", format!("this instance may not register as {nf_type}")));
        }
        let service_names = profile.services().filter_map(|service| service.fqdn.as_deref());
        for fqdn in profile.fqdn.as_deref().into_iter().chain(service_names) {
            let listed = |list: &[Pattern]| list.iter().any(|pattern| pattern.matches(fqdn));
            if listed(&self.denied_fqdns) || (!self.allowed_fqdns.is_empty() && !listed(&self.allowed_fqdns))
            {
                return Err(("/fqdn", format!("{fqdn} may not register here")));
            }
        }
        let end_points = profile.services().flat_map(|service| &service.ip_end_points);
        let mut ports = ports_of(profile);
        if let Some((place, port)) = ports.find(|(_, port)| self.rules.denied_ports.contains(port)) {
            return Err((
                place,
                format!("end points with port {port} may not register here"),
            ));
        }
        let own = profile.ipv4_addresses.iter().chain(&profile.ipv6_addresses);
        let addresses =
            own.chain(end_points.flat_map(|point| point.ipv4_address.iter().chain(&point.ipv6_address)));
        for address in addresses.filter_map(|text| text.parse::<IpAddr>().ok()) {
            let listed = |list: &[ipnet::IpNet]| list.iter().any(|network| network.contains(&address));
            let denied = listed(&self.rules.denied_networks)
                || (!self.rules.allowed_networks.is_empty() && !listed(&self.rules.allowed_networks));
            if denied {
                return Err(("/ipv4Addresses", format!("{address} may not register here")));
            }
        }
        let plmns_fit = self.allowed_plmns.is_empty()
            || profile
                .plmn_list
                .iter()
                .all(|plmn| self.allowed_plmns.contains(plmn));
        if plmns_fit {
            Ok(())
        } else {
            Err((
                "/plmnList",
                "expected only PLMNs of screening.allowedPlmns".to_owned(),
            ))
        }
    }
}

/// Every port of a profile to which others would send requests, with the member that has it.
fn ports_of(profile: &NfProfile) -> impl Iterator<Item = (&'static str, u16)> {
    let services = profile.services().flat_map(|service| {
        let usual = match service.scheme.as_str() {
            "https" => 443,
            _ => 80,
        };
        // Absent, the port is the scheme's (TS 29.510 table 6.1.6.2.4-1), also of a service that has no end points.
        let none = service.ip_end_points.is_empty().then_some(usual);
        let points = service
            .ip_end_points
            .iter()
            .map(move |point| point.port.unwrap_or(usual));
        // Some projects write a whole root where a prefix belongs.
        let root = service.api_prefix.as_deref().and_then(port_of_uri);
        points.chain(none).chain(root).map(|port| ("/nfServices", port))
    });
    let own = profile.default_notification_subscriptions.iter();
    let of_services = profile
        .services()
        .flat_map(|service| &service.default_notification_subscriptions);
    let callbacks = own
        .chain(of_services)
        .filter_map(|one| port_of_uri(&one.callback_uri));
    let callbacks = callbacks.map(|port| ("/defaultNotificationSubscriptions", port));
    let scp = profile.scp_info.iter().flat_map(|info| {
        let domains = info.scp_domain_info_list.values();
        let of_domains = domains.flat_map(|domain| {
            let points = domain.scp_ip_end_points.iter().filter_map(|point| point.port);
            points.chain(domain.scp_ports.values().copied())
        });
        of_domains.chain(info.scp_ports.values().copied())
    });
    let sepp = profile
        .sepp_info
        .iter()
        .flat_map(|info| info.sepp_ports.values().copied());
    let infos = scp
        .map(|port| ("/scpInfo", port))
        .chain(sepp.map(|port| ("/seppInfo", port)));
    services.chain(callbacks).chain(infos)
}

/// The port of a URI; none where it is not an absolute HTTP URI.
fn port_of_uri(uri: &str) -> Option<u16> {
    uri.parse::<sbi::client::Origin>()
        .ok()
        .map(|origin| origin.port())
}
