//! Routes of requests to the NRF of the home network, or to that of a rule. No IO.

use std::sync::Arc;

use model::{NfType, PlmnId, ServiceName};
use sbi::Fields;
use sbi::headers::{SbiHeader, TargetApiRoot};
use sbi::name::VIA;

use crate::config::{self, ForwardedOperation};

/// Routes of forwarded requests.
pub struct Routes {
    rules: Vec<Rule>,
    roaming: bool,
    own_plmns: Vec<PlmnId>,
    homes: Vec<(Vec<PlmnId>, Arc<[TargetApiRoot]>)>,
    derives_home: bool,
    /// The SEPP for other networks.
    sepp: Option<TargetApiRoot>,
    max_hops: usize,
    /// What this NRF calls itself in `Via`.
    name: String,
}

struct Rule {
    operations: Vec<ForwardedOperation>,
    nf_types: Vec<NfType>,
    services: Vec<ServiceName>,
    targets: Arc<[TargetApiRoot]>,
    when_empty: bool,
}

/// Destination of a forwarded request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Roots of the other NRFs' APIs, in order of preference.
    pub targets: Arc<[TargetApiRoot]>,
    /// The SEPP before them, if any.
    pub through: Option<TargetApiRoot>,
    /// Whether the NRF forwards only if it has no match itself.
    pub only_when_empty: bool,
    /// Whether it is the NRF of another network.
    pub is_home: bool,
}

/// The attributes of a request that decide its route.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The operation.
    pub operation: ForwardedOperation,
    /// The NF type it is about, if it names one.
    pub target: Option<&'a NfType>,
    /// The services it is about.
    pub services: &'a [ServiceName],
    /// `hnrf-uri`: another network's NRF, named by the consumer.
    pub home_nrf: Option<&'a str>,
    /// The networks it is about.
    pub target_plmns: &'a [PlmnId],
}

impl Routes {
    /// The routes that settings ask for, which were validated.
    #[must_use]
    pub fn new(settings: &config::Forwarding, instance: &str) -> Self {
        let roots = |list: &[String]| -> Arc<[TargetApiRoot]> {
            let parsed = list.iter().filter_map(|root| TargetApiRoot::parse(root).ok());
            parsed.collect()
        };
        let rules = settings.rules.iter().map(|rule| Rule {
            operations: rule.operations.clone(),
            nf_types: rule
                .nf_types
                .iter()
                .map(|text| NfType::from(text.as_str()))
                .collect(),
            services: rule
                .services
                .iter()
                .map(|text| ServiceName::from(text.as_str()))
                .collect(),
            targets: roots(&rule.targets),
            when_empty: rule.when_empty,
        });
        let homes = settings.home_networks.iter().map(|home| {
            let plmns = home.plmns.iter().filter_map(|plmn| plmn.parse().ok());
            (plmns.collect(), roots(&home.nrfs))
        });
        Self {
            rules: rules.collect(),
            roaming: settings.roaming,
            own_plmns: settings.plmns(),
            homes: homes.collect(),
            derives_home: settings.derive_home_nrf,
            sepp: settings
                .sepp
                .as_deref()
                .and_then(|root| TargetApiRoot::parse(root).ok()),
            max_hops: usize::from(settings.max_hops),
            name: format!("NRF-{instance}"),
        }
    }

    /// What this NRF calls itself in `Via`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the destination of a request; `None`: this NRF answers it. `Via` counts as well: an NRF does not forward a
    /// request that it has forwarded before.
    #[must_use]
    pub fn destination(&self, question: &Question<'_>, headers: &Fields) -> Option<Destination> {
        let foreign = self.is_foreign(question);
        if (self.rules.is_empty() && !foreign) || !self.may_go_on(headers) {
            return None;
        }
        if foreign {
            return Some(Destination {
                targets: self.home_of(question)?,
                through: self.sepp.clone(),
                only_when_empty: false,
                is_home: true,
            });
        }
        let rule = self.rules.iter().find(|rule| rule.fits(question))?;
        Some(Destination {
            targets: rule.targets.clone(),
            through: None,
            only_when_empty: rule.when_empty,
            is_home: false,
        })
    }

    /// The NRF of another network that an earlier answer of this NRF has named.
    #[must_use]
    pub fn home(&self, root: TargetApiRoot, headers: &Fields) -> Option<Destination> {
        (self.roaming && self.may_go_on(headers)).then(|| Destination {
            targets: Arc::new([root]),
            through: self.sepp.clone(),
            only_when_empty: false,
            is_home: true,
        })
    }

    /// Whether a request with these `Via` headers may go to one more NRF.
    #[must_use]
    pub fn may_go_on(&self, headers: &Fields) -> bool {
        let passed = headers.get_all(VIA).filter_map(|value| value.to_str().ok());
        let mut hops = 0;
        for hop in passed.flat_map(|value| value.split(',')).map(str::trim) {
            hops += 1;
            if hop.ends_with(&self.name) {
                return false;
            }
        }
        hops < self.max_hops
    }

    /// Whether the request concerns only other networks: by `hnrf-uri`, or by PLMNs if this NRF knows its own.
    fn is_foreign(&self, question: &Question<'_>) -> bool {
        let plmns = question.target_plmns;
        let own = || plmns.iter().any(|plmn| self.own_plmns.contains(plmn));
        let named = question.home_nrf.is_some() && (plmns.is_empty() || !own());
        let derived = || !plmns.is_empty() && !self.own_plmns.is_empty() && !own();
        self.roaming && (named || (derived() && self.home_of(question).is_some()))
    }

    /// The NRF of the home network: that which the consumer names, that of the settings, or that of the name that
    /// TS 23.003 §28.3.2.3.2 gives it.
    fn home_of(&self, question: &Question<'_>) -> Option<Arc<[TargetApiRoot]>> {
        if let Some(uri) = question.home_nrf {
            return Some(Arc::new([root_of(uri)?]));
        }
        let known = |plmn| self.homes.iter().find(|(plmns, _)| plmns.contains(plmn));
        if let Some((_, nrfs)) = question.target_plmns.iter().find_map(known) {
            return Some(nrfs.clone());
        }
        let plmn = question.target_plmns.first().filter(|_| self.derives_home)?;
        let root = TargetApiRoot::parse(&derived_root(plmn)).ok()?;
        Some(Arc::new([root]))
    }
}

impl Rule {
    fn fits(&self, question: &Question<'_>) -> bool {
        self.operations.contains(&question.operation)
            && (self.nf_types.is_empty()
                || question
                    .target
                    .is_some_and(|target| self.nf_types.contains(target)))
            && (self.services.is_empty() || question.services.iter().any(|name| self.services.contains(name)))
    }
}

/// The API root of the NRF of a network (TS 23.003 §28.3.2.3.2): an MNC of two digits gets a zero in front.
fn derived_root(plmn: &PlmnId) -> String {
    let (mcc, mnc) = (plmn.mcc(), plmn.mnc());
    format!("https://nrf.5gc.mnc{mnc:0>3}.mcc{mcc}.3gppnetwork.org")
}

/// The API root of the NRF that a URI names.
pub fn root_of(uri: &str) -> Option<TargetApiRoot> {
    // The URI may name an API (`…/nnrf-disc/v1`, `…/oauth2/token`); its root is what comes before.
    let apis = ["/nnrf-disc", "/nnrf-nfm", "/oauth2", "/bootstrapping"];
    let end = apis.iter().filter_map(|api| uri.find(api)).min();
    TargetApiRoot::parse(&uri[..end.unwrap_or(uri.len())]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(change: impl FnOnce(&mut config::Forwarding)) -> Routes {
        let mut settings = config::Forwarding {
            own_plmns: vec!["001-01".into()],
            ..config::Forwarding::default()
        };
        change(&mut settings);
        Routes::new(&settings, "x")
    }

    fn home(routes: &Routes, plmns: &[&str], uri: Option<&str>) -> Option<String> {
        let plmns: Vec<PlmnId> = plmns.iter().map(|plmn| plmn.parse().unwrap()).collect();
        let question = Question {
            operation: ForwardedOperation::Discovery,
            target: None,
            services: &[],
            home_nrf: uri,
            target_plmns: &plmns,
        };
        let destination = routes.destination(&question, &Fields::default())?;
        destination.targets.first().map(ToString::to_string)
    }

    #[test]
    fn the_home_nrf_follows_from_the_plmn() {
        let by_name = routes(|_| ());
        assert_eq!(
            home(&by_name, &["262-02"], None).as_deref(),
            Some("https://nrf.5gc.mnc002.mcc262.3gppnetwork.org")
        );
        assert_eq!(
            home(&by_name, &["310-410"], None).as_deref(),
            Some("https://nrf.5gc.mnc410.mcc310.3gppnetwork.org")
        );
        assert_eq!(home(&by_name, &["262-02", "001-01"], None), None, "one is ours");
        assert_eq!(home(&by_name, &[], None), None);
        assert_eq!(
            home(&by_name, &["262-02"], Some("http://h:1/nnrf-disc/v1")).as_deref(),
            Some("http://h:1")
        );
        let configured = routes(|settings| {
            settings.home_networks = vec![config::HomeNetwork {
                plmns: vec!["262-02".into()],
                nrfs: vec!["http://10.0.0.9:80".into()],
            }];
            settings.derive_home_nrf = false;
        });
        assert_eq!(
            home(&configured, &["262-02"], None).as_deref(),
            Some("http://10.0.0.9:80")
        );
        assert_eq!(home(&configured, &["262-03"], None), None, "answered here");
        // An NRF without `ownPlmns` treats every PLMN as its own.
        assert_eq!(
            home(&routes(|settings| settings.own_plmns.clear()), &["262-02"], None),
            None
        );
        assert_eq!(
            home(&routes(|settings| settings.roaming = false), &["262-02"], None),
            None
        );
    }
}
