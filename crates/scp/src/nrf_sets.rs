//! The sets of NRFs, and the set for each query; used by `peers` and `security`.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use http::uri::PathAndQuery;
use http::{StatusCode, Uri};
use nrf_client::Turns;
use routing::policy::Places;
use sbi::Response;
use sbi::client::Origin;
use sbi::headers::TargetApiRoot;
use sbi::name::LOCATION;
use serde::Deserialize;

use crate::config::{AcceptNrfs, Nrf, NrfSet};

/// All sets: `nrf.roots`, then those of `nrf.sets`, and the NRFs that requests may name.
pub(crate) struct Sets {
    usual: Rc<Turns>,
    others: Vec<Set>,
    /// NRFs of `nrf.named.roots`, each by itself.
    named: Vec<Rc<Turns>>,
    accept: AcceptNrfs,
    /// Unknown NRFs that requests have named, with the time of their last use.
    strangers: RefCell<AHashMap<TargetApiRoot, (Rc<Turns>, Instant)>>,
    most_strangers: usize,
}

struct Set {
    plmns: Vec<String>,
    localities: Vec<String>,
    turns: Rc<Turns>,
}

/// Sets for a query.
pub(crate) struct Choice {
    pub(crate) first: Rc<Turns>,
    /// Set that the SCP queries when the first, selected by a preference, finds no producer or does not answer.
    pub(crate) then: Option<Rc<Turns>>,
}

/// Why the SCP does not query an NRF that a request names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotNamed {
    /// The settings do not allow it.
    Refused,
    /// Too many unknown NRFs are in use.
    Full,
}

/// Time without a query after which an unknown NRF may be evicted.
const REMEMBERED: Duration = Duration::from_secs(60);

/// Redirections of NRFs that the SCP follows for one query.
pub(crate) const REDIRECTIONS: usize = 3;

/// Returns the target of a redirection: an NRF of a hierarchy, or an overloaded one, redirects to another (307 and 308,
/// TS 29.510 §5.3.2.2.2 and §5.4.2.2.2). `None`: the answer is not a redirection, or has no valid `Location`.
pub(crate) fn elsewhere(response: &Response, origin: &Origin) -> Option<(Origin, PathAndQuery)> {
    let redirects = matches!(
        response.status(),
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    );
    let location = response.headers().get(LOCATION).filter(|_| redirects)?;
    let uri: Uri = location.to_str().ok()?.parse().ok()?;
    let origin = match uri.authority() {
        Some(_) => Origin::of_uri(&uri).ok()?,
        None => origin.clone(),
    };
    Some((origin, uri.path_and_query()?.clone()))
}

#[derive(Deserialize)]
struct Plmn {
    mcc: String,
    mnc: String,
}

impl Sets {
    pub(crate) fn new(settings: &Nrf, places: &Places) -> Self {
        let of_regions = |set: &NrfSet| {
            let regions = set.regions.iter().filter_map(|name| places.regions.get(name));
            let localities = regions.flatten().chain(&set.localities);
            localities.cloned().collect()
        };
        let others = settings.sets.iter().map(|set| Set {
            plmns: set.plmns.clone(),
            localities: of_regions(set),
            turns: Rc::new(Turns::new(&set.roots)),
        });
        let alone = |root: &String| Rc::new(Turns::new(std::slice::from_ref(root)));
        Self {
            usual: Rc::new(Turns::new(&settings.roots)),
            others: others.collect(),
            named: settings.named.roots.iter().map(alone).collect(),
            accept: settings.named.accept,
            strangers: RefCell::default(),
            most_strangers: settings.named.max,
        }
    }

    /// Whether the SCP queries NRFs that requests name.
    pub(crate) fn heeds_names(&self) -> bool {
        self.accept != AcceptNrfs::Ignore
    }

    /// Whether any set is for this locality.
    pub(crate) fn serves(&self, locality: &str) -> bool {
        self.others.iter().any(|set| set.is_near(locality))
    }

    /// Returns the NRF that a request names, with the others of its set, which hold the same profiles.
    pub(crate) fn named(&self, root: &TargetApiRoot, now: Instant) -> Result<Rc<Turns>, NotNamed> {
        let sets = self.others.iter().map(|set| &set.turns);
        let mut known = std::iter::once(&self.usual).chain(sets).chain(&self.named);
        if let Some(turns) = known.find(|turns| turns.contains(root)) {
            return Ok(turns.clone());
        }
        if self.accept != AcceptNrfs::Any {
            return Err(NotNamed::Refused);
        }
        let mut strangers = self.strangers.borrow_mut();
        if let Some((turns, named)) = strangers.get_mut(root) {
            *named = now;
            return Ok(turns.clone());
        }
        if strangers.len() >= self.most_strangers {
            strangers.retain(|_, (_, named)| now.saturating_duration_since(*named) < REMEMBERED);
            if strangers.len() >= self.most_strangers {
                return Err(NotNamed::Full);
            }
        }
        let turns = Rc::new(Turns::one(root.clone()));
        strangers.insert(root.clone(), (turns.clone(), now));
        Ok(turns)
    }

    /// Returns the set for the producers of these networks (JSON: a `PlmnId`, or a list of them), among the sets of the
    /// network the one for this locality.
    pub(crate) fn of(&self, target_plmns: Option<&str>, locality: Option<&str>) -> Choice {
        let usual = || Choice {
            first: self.usual.clone(),
            then: None,
        };
        if self.others.is_empty() || (target_plmns.is_none() && locality.is_none()) {
            return usual();
        }
        let wanted: Vec<Plmn> = match target_plmns {
            None => Vec::new(),
            Some(list) if list.trim_start().starts_with('[') => {
                serde_json::from_str(list).unwrap_or_default()
            }
            Some(one) => serde_json::from_str(one).into_iter().collect(),
        };
        let wanted: Vec<String> = wanted
            .iter()
            .map(|plmn| format!("{}-{}", plmn.mcc, plmn.mnc))
            .collect();
        let of_networks = |set: &&Set| set.plmns.iter().any(|plmn| wanted.contains(plmn));
        let mut sets: Vec<&Set> = self.others.iter().filter(of_networks).collect();
        let otherwise = match sets.first() {
            None => &self.usual,
            Some(first) => {
                let anywhere = sets.iter().find(|set| set.localities.is_empty());
                &anywhere.unwrap_or(first).turns
            }
        };
        if sets.is_empty() {
            sets.extend(self.others.iter().filter(|set| set.plmns.is_empty()));
        }
        let near = locality.and_then(|locality| sets.iter().find(|set| set.is_near(locality)));
        match near {
            Some(near) => Choice {
                first: near.turns.clone(),
                then: (!Rc::ptr_eq(&near.turns, otherwise)).then(|| otherwise.clone()),
            },
            None => Choice {
                first: otherwise.clone(),
                then: None,
            },
        }
    }

    /// Number of NRFs that one query may try in turn at most.
    pub(crate) fn most(&self) -> usize {
        let others = self.others.iter().map(|set| set.turns.len());
        let most = others.chain([self.usual.len()]).max().unwrap_or(0);
        // The preferred set, and the other one if the first does not answer.
        match self.others.iter().any(|set| !set.localities.is_empty()) {
            true => most * 2,
            false => most,
        }
    }
}

impl Set {
    fn is_near(&self, locality: &str) -> bool {
        self.localities.iter().any(|one| one == locality)
    }
}

#[cfg(test)]
mod tests {
    use sbi::headers::SbiHeader as _;

    use super::*;
    use crate::config::NrfSet;

    fn roots(name: &str) -> Vec<String> {
        vec![format!("http://{name}1:1"), format!("http://{name}2:1")]
    }

    fn host(turns: &Turns) -> String {
        turns.in_turn().next().unwrap().origin.host().to_owned()
    }

    #[test]
    fn networks_have_their_sets_and_failures_move_on() {
        let settings = Nrf {
            roots: roots("own"),
            sets: vec![NrfSet {
                roots: roots("partner"),
                plmns: vec!["262-01".into(), "310-410".into()],
                ..NrfSet::default()
            }],
            ..Nrf::default()
        };
        let sets = Sets::new(&settings, &Places::default());
        let first = |plmns: Option<&str>| {
            let choice = sets.of(plmns, Some("anywhere"));
            assert!(choice.then.is_none());
            host(&choice.first)
        };
        assert_eq!(first(None), "own1");
        assert_eq!(first(Some(r#"[{"mcc":"001","mnc":"01"}]"#)), "own1");
        assert_eq!(
            first(Some(r#"[{"mcc":"001","mnc":"01"},{"mcc":"262","mnc":"01"}]"#)),
            "partner1"
        );
        let partner = r#"{"mcc":"310","mnc":"410"}"#;
        assert_eq!(first(Some(partner)), "partner1");
        assert_eq!(first(Some("garbage")), "own1");
        let theirs = sets.of(Some(partner), None).first;
        let failed = theirs.in_turn().next().unwrap();
        theirs.next(failed);
        assert_eq!(first(Some(partner)), "partner2");
        // A late failure of the same NRF does not change the turn.
        theirs.next(failed);
        assert_eq!(first(Some(partner)), "partner2");
        assert_eq!((first(None), sets.most()), ("own1".into(), 2));
    }

    #[test]
    fn places_have_their_sets_and_another_stands_in() {
        let set = |name: &str, plmns: &[&str], localities: &[&str], regions: &[&str]| NrfSet {
            roots: roots(name),
            plmns: plmns.iter().map(ToString::to_string).collect(),
            localities: localities.iter().map(ToString::to_string).collect(),
            regions: regions.iter().map(ToString::to_string).collect(),
            ..NrfSet::default()
        };
        let settings = Nrf {
            roots: roots("own"),
            sets: vec![
                set("west", &[], &["island"], &["west"]),
                set("theirs-north", &["262-01"], &["north"], &[]),
                set("theirs", &["262-01"], &[], &[]),
            ],
            ..Nrf::default()
        };
        let places = serde_json::from_str(r#"{"regions": {"west": ["west1", "west2"]}}"#).unwrap();
        let sets = Sets::new(&settings, &places);
        let of = |plmns: Option<&str>, locality: &str| {
            let choice = sets.of(plmns, Some(locality));
            (host(&choice.first), choice.then.as_deref().map(host))
        };
        let then = |first: &str, then: &str| (first.to_owned(), Some(then.to_owned()));
        let only = |first: &str| (first.to_owned(), None);
        assert_eq!(of(None, "west2"), then("west1", "own1"));
        assert_eq!(of(None, "island"), then("west1", "own1"));
        assert_eq!(of(None, "north"), only("own1"), "that is another network's");
        let theirs = Some(r#"[{"mcc":"262","mnc":"01"}]"#);
        assert_eq!(of(theirs, "north"), then("theirs-north1", "theirs1"));
        assert_eq!(of(theirs, "west2"), only("theirs1"));
        assert_eq!(
            of(Some(r#"{"mcc":"001","mnc":"01"}"#), "west1"),
            then("west1", "own1")
        );
        assert!(sets.serves("west1") && !sets.serves("west"));
        assert_eq!(sets.most(), 4);
    }

    #[test]
    fn strangers_are_asked_only_where_all_may_be_named_and_are_bounded() {
        let mut settings = Nrf {
            roots: roots("own"),
            ..Nrf::default()
        };
        settings.named.roots = vec!["http://slice:1/a".into()];
        settings.named.max = 2;
        let root = |text: &str| TargetApiRoot::parse(text).unwrap();
        let now = Instant::now();
        let sets = Sets::new(&settings, &Places::default());
        let named = |sets: &Sets, text: &str, now: Instant| {
            sets.named(&root(text), now)
                .map(|turns| (host(&turns), turns.len()))
        };
        assert_eq!(
            named(&sets, "http://own2:1", now),
            Ok(("own1".into(), 2)),
            "its set"
        );
        assert_eq!(named(&sets, "http://slice:1/a", now), Ok(("slice".into(), 1)));
        assert_eq!(named(&sets, "http://slice:1", now), Err(NotNamed::Refused));
        settings.named.accept = AcceptNrfs::Any;
        let sets = Sets::new(&settings, &Places::default());
        for text in ["http://a:1", "http://b:1", "http://a:1"] {
            assert!(named(&sets, text, now).is_ok());
        }
        assert_eq!(named(&sets, "http://c:1", now), Err(NotNamed::Full));
        assert!(named(&sets, "http://own1:1", now).is_ok());
        assert!(named(&sets, "http://c:1", now + REMEMBERED).is_ok());
    }
}
