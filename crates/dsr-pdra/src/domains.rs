//! IP domains: within one of them an IPv4 address is that of one session (IP-Domain-Id, TS 29.214 §5.3.35). A gateway does not name
//! its own, so the settings do.

use sbr::Session;

use crate::config::IpDomain;
use crate::facts::network_identifier;

/// The domains, ready for lookup.
#[derive(Debug, Default)]
pub(crate) struct Domains(Vec<IpDomain>);

impl Domains {
    pub(crate) fn new(domains: &[IpDomain]) -> Self {
        let network = |apn: &String| network_identifier(apn.as_bytes());
        let domain = |domain: &IpDomain| IpDomain {
            apns: domain.apns.iter().map(network).collect(),
            ..domain.clone()
        };
        Self(domains.iter().map(domain).collect())
    }

    /// The domain of a session: the first one that has its gateway and its APN.
    pub(crate) fn of(&self, session: &Session) -> Option<&str> {
        let has = |names: &[String], name: &str| {
            names.is_empty() || names.iter().any(|one| one.eq_ignore_ascii_case(name))
        };
        let mut domains = self.0.iter();
        let domain = domains
            .find(|domain| has(&domain.gateways, &session.client.host) && has(&domain.apns, &session.apn));
        domain.map(|domain| domain.id.as_str())
    }
}
