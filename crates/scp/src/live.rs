//! Settings that can be reloaded at run time, with what is derived from them. Workers load the snapshot before each
//! request.

use std::net::SocketAddr;
use std::sync::Arc;

use ahash::{AHashMap, AHashSet};
use function::sbi::OwnLoad;
use mediation::{Action, Engine};
use routing::policy::{Distances, PolicyTable};
use routing::target::{Bounds, OwnNetworks, Reach};
use sbi::headers::{SbiHeader, Scope, TargetApiRoot};
use sbi::oauth::AssertionAuthorities;
use telemetry::Registry;

use crate::config::Config;
use crate::feed::Running as Feed;
use crate::protection::Rates;
use crate::security::{Access, TokenLimits, TokenStore};

/// State derived from settings. Immutable: a reload makes another.
#[derive(Clone, Debug)]
pub struct Derived {
    /// Where the feed counts; there is one when the SCP is open.
    registry: Option<Registry>,
    /// Admin endpoints of other functions in this process.
    other_admins: Vec<SocketAddr>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) policies: PolicyTable,
    /// Whether this SCP is a reverse proxy for any service.
    pub(crate) reverse_proxy: bool,
    pub(crate) distances: Distances,
    /// The SCPs of a region, by the localities in it; none for the own region.
    pub(crate) next_hops: AHashMap<String, Arc<[TargetApiRoot]>>,
    /// The own networks, and the SEPPs to others.
    pub(crate) networks: OwnNetworks,
    pub(crate) sepps: Arc<[TargetApiRoot]>,
    pub(crate) rates: Arc<Rates>,
    /// Load and overload of this SCP.
    pub(crate) own_load: Arc<OwnLoad>,
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

/// The settings in effect, with what is derived from them.
pub(crate) type Live = function::live::Effective<Config, Derived>;
/// Holds what is in effect.
pub(crate) type Current = function::live::Live<Config, Derived>;

impl Derived {
    /// Derives it from settings. The state of `before` stays as far as the settings do not invalidate it: counts of
    /// rules, rates, tokens, the feed.
    pub(crate) fn new(config: &Config, before: Option<&Live>) -> Result<Self, String> {
        let engine = match before.filter(|before| before.config.mediation == config.mediation) {
            Some(before) => before.engine.clone(),
            None => Arc::new(Engine::compile(&config.mediation).map_err(|faults| {
                let faults = faults
                    .iter()
                    .map(|fault| format!("{}: {}", fault.path, fault.message));
                faults.collect::<Vec<_>>().join("; ")
            })?),
        };
        let rates = before.map_or_else(
            || Arc::new(Rates::new(config.workers)),
            |before| {
                let protection = &before.config.protection;
                before.rates.reconfigured(protection, &config.protection)
            },
        );
        let own_load = before
            .filter(|before| before.config.protection.conveying() == config.protection.conveying())
            .map_or_else(
                || {
                    let scope = Scope::Scp(config.fqdn.clone());
                    Arc::new(OwnLoad::new(
                        &config.protection.conveying(),
                        scope,
                        config.workers,
                    ))
                },
                |before| before.own_load.clone(),
            );
        let tokens = &config.security.tokens;
        let tokens = before
            .filter(|before| before.config.same_nrfs(config))
            .map_or_else(
                || Arc::new(TokenStore::new(TokenLimits::of(tokens))),
                |before| before.tokens.clone(),
            );
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
        let other_admins = before.map_or_else(
            || config.other_admins.clone(),
            |before| before.other_admins.clone(),
        );
        let registry = before.and_then(|before| before.registry.clone());
        let feed = match (before, &registry) {
            (Some(before), _) if before.config.feed == config.feed => before.feed.clone(),
            (_, Some(registry)) => feed_of(config, registry)?,
            // The first one starts when the SCP opens.
            (_, None) => None,
        };
        Ok(Self {
            engine,
            reverse_proxy: policies.any_reverse_proxy(),
            policies,
            distances: config.places.distances(),
            next_hops,
            networks: OwnNetworks::new(&config.networks.plmns),
            sepps: config
                .networks
                .sepps
                .iter()
                .filter_map(|root| TargetApiRoot::parse(root).ok())
                .collect(),
            rates,
            own_load,
            access: Access::new(&config.security.access),
            services: services(config),
            bounds: Bounds::new(reach(config, &other_admins)),
            other_admins,
            authorities: Arc::new(
                AssertionAuthorities::read(&config.security.assertions)
                    .map_err(|fault| format!("security.{fault}"))?,
            ),
            tokens,
            feed,
            registry,
        })
    }

    /// What is in effect in an SCP that opens: the same with its feed.
    pub(crate) fn opened(before: &Live, registry: &Registry) -> Result<Self, String> {
        Ok(Self {
            feed: feed_of(&before.config, registry)?,
            registry: Some(registry.clone()),
            ..before.derived.clone()
        })
    }
}

/// The feed of these settings, started.
fn feed_of(config: &Config, registry: &Registry) -> Result<Option<Arc<Feed>>, String> {
    let feed = crate::feed::start(config, config.workers, registry);
    Ok(feed.map_err(|error| error.to_string())?.map(Arc::new))
}

/// The API names that settings distinguish.
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

/// Settings about the destinations that requests may name.
fn reach<'a>(config: &'a Config, other_admins: &[SocketAddr]) -> Reach<'a> {
    let nrf = &config.nrf;
    let nrfs = nrf.sets.iter().flat_map(|set| &set.roots);
    let nrfs = nrf.roots.iter().chain(&nrf.named.roots).chain(nrfs);
    let rules = config.mediation.groups.iter().flat_map(|group| &group.rules);
    let steered = rules
        .flat_map(|rule| &rule.then)
        .filter_map(|action| match action {
            Action::Route(steering) => steering.api_root.as_ref(),
            _ => None,
        });
    let hops = config.next_hops.values().flatten().chain(&config.networks.sepps);
    let roots = nrfs.chain(hops).chain(steered);
    Reach {
        everywhere: config.forward_to_unknown,
        networks: &config.allowed_networks,
        roots: roots.map(String::as_str).collect(),
        admin: std::iter::once(config.admin)
            .chain(other_admins.iter().copied())
            .collect(),
    }
}
