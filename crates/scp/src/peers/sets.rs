//! The sets of NRFs, and which of them a question is for.

use std::cell::Cell;

use sbi::headers::{SbiHeader, TargetApiRoot};
use serde::Deserialize;

use crate::config::Nrf;

/// NRFs that know the same: whoever answers is asked until it fails.
pub(crate) struct Turns {
    nrfs: Vec<TargetApiRoot>,
    turn: Cell<usize>,
}

impl Turns {
    pub(crate) fn new(roots: &[String]) -> Self {
        Self {
            nrfs: roots
                .iter()
                .filter_map(|root| TargetApiRoot::parse(root).ok())
                .collect(),
            turn: Cell::new(0),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.nrfs.len()
    }

    /// All of them, beginning with the one whose turn it is.
    pub(crate) fn in_turn(&self) -> impl Iterator<Item = &TargetApiRoot> {
        let first = self.turn.get();
        (0..self.nrfs.len()).map(move |step| &self.nrfs[(first + step) % self.nrfs.len()])
    }

    /// The one whose turn it was does not help: the next one is first from now on.
    pub(crate) fn next(&self, failed: &TargetApiRoot) {
        if self.in_turn().next() == Some(failed) {
            self.turn.set((self.turn.get() + 1) % self.nrfs.len().max(1));
        }
    }
}

/// All sets: `nrf.roots`, then those of `nrf.sets`.
pub(crate) struct Sets {
    usual: Turns,
    others: Vec<(Vec<String>, Turns)>,
}

#[derive(Deserialize)]
struct Plmn {
    mcc: String,
    mnc: String,
}

impl Sets {
    pub(crate) fn new(settings: &Nrf) -> Self {
        let others = settings.sets.iter();
        Self {
            usual: Turns::new(&settings.roots),
            others: others
                .map(|set| (set.plmns.clone(), Turns::new(&set.roots)))
                .collect(),
        }
    }

    /// The set that knows the producers of these networks (JSON: a `PlmnId`, or a list of them).
    pub(crate) fn of(&self, target_plmns: Option<&str>) -> &Turns {
        let Some(wanted) = target_plmns.filter(|_| !self.others.is_empty()) else {
            return &self.usual;
        };
        let wanted: Vec<Plmn> = match wanted.trim_start().starts_with('[') {
            true => serde_json::from_str(wanted).unwrap_or_default(),
            false => serde_json::from_str(wanted).into_iter().collect(),
        };
        let names = |plmns: &[String]| {
            let mut wanted = wanted.iter().map(|plmn| format!("{}-{}", plmn.mcc, plmn.mnc));
            wanted.any(|plmn| plmns.contains(&plmn))
        };
        let named = self.others.iter().find(|(plmns, _)| names(plmns));
        named.map_or(&self.usual, |(_, turns)| turns)
    }

    /// NRFs of the largest set: how many may take their time, one after the other.
    pub(crate) fn most(&self) -> usize {
        let others = self.others.iter().map(|(_, turns)| turns.len());
        others.chain([self.usual.len()]).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::NrfSet;

    #[test]
    fn networks_have_their_sets_and_failures_move_on() {
        let roots = |name: &str| vec![format!("http://{name}1:1"), format!("http://{name}2:1")];
        let sets = Sets::new(&Nrf {
            roots: roots("own"),
            sets: vec![NrfSet {
                roots: roots("partner"),
                plmns: vec!["262-01".into(), "310-410".into()],
                nf_types: Vec::new(),
            }],
            ..Nrf::default()
        });
        let first = |plmns: Option<&str>| {
            let first = sets.of(plmns).in_turn().next();
            first.unwrap().origin.host().to_owned()
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
        let failed = sets.of(Some(partner)).in_turn().next().unwrap();
        sets.of(Some(partner)).next(failed);
        assert_eq!(first(Some(partner)), "partner2");
        // A late failure of the same says nothing of the next.
        sets.of(Some(partner)).next(failed);
        assert_eq!(first(Some(partner)), "partner2");
        assert_eq!((first(None), sets.most()), ("own1".into(), 2));
    }
}
