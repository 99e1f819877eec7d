//! What can change while the SCP runs. Whoever uses it looks whether it has changed before each piece of work.

use std::sync::Arc;

use ahash::{AHashMap, AHashSet};
use sbi::headers::{SbiHeader, TargetApiRoot};
use sbi::oauth::AssertionAuthorities;

use crate::config::Config;
use crate::feed::Running as Feed;
use crate::mediation::Engine;
use crate::protection::Rates;
use crate::routing::{Distances, PolicyTable};
use crate::security::{Access, TokenStore};
use crate::target::Bounds;

/// Settings in effect, and what is made of them. Immutable: a change makes another.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) config: Arc<Config>,
    pub(crate) engine: Engine,
    pub(crate) policies: PolicyTable,
    /// Whether requests may be for resources of producers that are told to be at this SCP.
    pub(crate) reverse_proxy: bool,
    pub(crate) distances: Distances,
    /// The SCPs of a region, by the localities in it; none for the own region.
    pub(crate) next_hops: AHashMap<String, Arc<[TargetApiRoot]>>,
    pub(crate) rates: Arc<Rates>,
    pub(crate) access: Access,
    /// Where requests may go.
    pub(crate) bounds: Bounds,
    /// API names that settings name.
    pub(crate) services: AHashSet<String>,
    pub(crate) authorities: Arc<AssertionAuthorities>,
    pub(crate) tokens: Arc<TokenStore>,
    /// The copy of messages, if it is switched on.
    pub(crate) feed: Option<Arc<Feed>>,
}

/// The keys of [`Config`] that take effect while running, each with all below it.
pub const KEYS: &[&str] = &[
    "allowedNetworks",
    "clientTls",
    "discovery",
    "feed",
    "followRedirects",
    "forwardToUnknown",
    "lateRequests",
    "maxForwardHops",
    "mediation",
    "nextHops",
    "nfStatus",
    "nrf",
    "places",
    "policies",
    "producers",
    "protection",
    "security",
    "tls",
];

impl Live {
    /// What is made of settings; `feed` is the one that runs by them.
    pub(crate) fn new(config: Arc<Config>, feed: Option<Arc<Feed>>) -> Result<Self, String> {
        let engine = Engine::compile(&config.mediation).map_err(|faults| {
            let told = faults
                .iter()
                .map(|fault| format!("{}: {}", fault.path, fault.message));
            told.collect::<Vec<_>>().join("; ")
        })?;
        let mut next_hops = AHashMap::new();
        for (region, localities) in &config.places.regions {
            let Some(roots) = config.next_hops.get(region).filter(|roots| !roots.is_empty()) else {
                continue;
            };
            if localities.contains(&config.places.locality) {
                continue;
            }
            let roots: Result<Vec<TargetApiRoot>, _> =
                roots.iter().map(|root| TargetApiRoot::parse(root)).collect();
            let roots: Arc<[TargetApiRoot]> = roots.map_err(|error| error.to_string())?.into();
            next_hops.extend(
                localities
                    .iter()
                    .map(|locality| (locality.clone(), roots.clone())),
            );
        }
        let policies = PolicyTable::new(&config.policies);
        Ok(Self {
            engine,
            reverse_proxy: policies.any_reverse_proxy(),
            policies,
            distances: config.places.distances(),
            next_hops,
            rates: Arc::new(Rates::new(config.workers)),
            access: Access::new(&config.security.access),
            services: services(&config),
            bounds: Bounds::new(&config),
            authorities: Arc::new(
                AssertionAuthorities::read(&config.security.assertions)
                    .map_err(|fault| format!("security.{fault}"))?,
            ),
            tokens: Arc::new(TokenStore::new(
                config.security.tokens.cache_size,
                config.security.tokens.remember_refusal.duration(),
            )),
            feed,
            config,
        })
    }
}

/// The API names by which settings tell requests apart.
fn services(config: &Config) -> AHashSet<String> {
    let protection = &config.protection;
    let policies = config.policies.iter().flat_map(|one| &one.services);
    let access = config.security.access.iter().flat_map(|one| &one.services);
    let egress = protection.egress.iter().flat_map(|one| &one.services);
    let priorities = protection.priorities.rules.iter().flat_map(|one| &one.services);
    let mediation = config.mediation.groups.iter().flat_map(|one| &one.services);
    let named = policies
        .chain(access)
        .chain(egress)
        .chain(priorities)
        .chain(mediation);
    named.map(|name| name.to_ascii_lowercase()).collect()
}
