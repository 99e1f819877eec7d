//! Blocks of the functions that carry messages for others: SCP and SEPP.

use std::net::Ipv4Addr;

use serde::Deserialize;

use super::InfoList;
use super::core::IpEndPoint;
use super::identity::block;
use crate::address::{Ipv4Range, Ipv6Prefix, Ipv6PrefixRange};
use crate::pattern::Pattern;
use crate::plmn::{PlmnId, PlmnIdNid};

/// Domains of addresses that are reached through an SCP, as an expression (TS 29.510 §6.1.6.2.65); a name that is
/// none, such as `*.example.org`, stands for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressDomain {
    text: String,
    pattern: Option<Pattern>,
}

impl AddressDomain {
    /// Whether a domain is one of these.
    #[must_use]
    pub fn matches(&self, domain: &str) -> bool {
        self.text == domain
            || self
                .pattern
                .as_ref()
                .is_some_and(|pattern| pattern.matches(domain))
    }
}

impl<'de> Deserialize<'de> for AddressDomain {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let pattern = Pattern::new(&text).ok();
        Ok(Self { text, pattern })
    }
}

block! {
    /// TS 29.510 §6.1.6.2.65.
    ScpInfo {
        scp_domain_info_list: InfoList<ScpDomainInfo>,
        scp_prefix: Option<String>,
        scp_ports: InfoList<u16>,
        address_domains: Vec<AddressDomain>,
        ipv4_addresses: Vec<Ipv4Addr>,
        ipv6_prefixes: Vec<Ipv6Prefix>,
        ipv4_addr_ranges: Vec<Ipv4Range>,
        ipv6_prefix_ranges: Vec<Ipv6PrefixRange>,
        served_nf_set_id_list: Vec<String>,
        remote_plmn_list: Vec<PlmnId>,
        remote_snpn_list: Vec<PlmnIdNid>,
        ip_reachability: Option<String>,
        scp_capabilities: Option<Vec<String>>,
    }
}

impl ScpInfo {
    /// Whether the address is reachable through the SCP; an SCP that names no addresses reaches all.
    #[must_use]
    pub fn reaches_ipv4(&self, address: Ipv4Addr) -> bool {
        (self.ipv4_addresses.is_empty() && self.ipv4_addr_ranges.is_empty())
            || self.ipv4_addresses.contains(&address)
            || self.ipv4_addr_ranges.iter().any(|range| range.contains(address))
    }

    /// Whether the prefix is reachable through the SCP; an SCP that names no prefixes reaches all.
    #[must_use]
    pub fn reaches_ipv6(&self, prefix: &Ipv6Prefix) -> bool {
        (self.ipv6_prefixes.is_empty() && self.ipv6_prefix_ranges.is_empty())
            || self.ipv6_prefixes.iter().any(|own| own.covers(prefix))
            || self.ipv6_prefix_ranges.iter().any(|range| range.contains(prefix))
    }
}

block! {
    /// TS 29.510 §6.1.6.2.66.
    ScpDomainInfo {
        scp_fqdn: Option<String>,
        scp_ip_end_points: Vec<IpEndPoint>,
        scp_prefix: Option<String>,
        scp_ports: InfoList<u16>,
    }
}

block! {
    /// TS 29.510 §6.1.6.2.72.
    SeppInfo {
        sepp_prefix: Option<String>,
        sepp_ports: InfoList<u16>,
        remote_plmn_list: Vec<PlmnId>,
        remote_snpn_list: Vec<PlmnIdNid>,
    }
}
