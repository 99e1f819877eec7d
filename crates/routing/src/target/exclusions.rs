//! Producers that a request excludes, and whether the SCP may reselect (`3gpp-Sbi-Selection-Info`, TS 29.500
//! §5.2.3.3.10).

use sbi_proto::Fields;
use sbi_proto::headers::{SbiHeader as _, SelectionInfo};

use crate::network::ServiceRef;

/// Restrictions of a request on the selection of its producer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exclusions {
    no_reselection: bool,
    /// Criterion and value of each excluded entity.
    excluded: Vec<(Criterion, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Criterion {
    Service,
    ServiceSet,
    Instance,
    Set,
}

impl Exclusions {
    /// Returns the exclusions of a request; an invalid header excludes no producer.
    pub fn of(headers: &Fields) -> Option<Self> {
        let info = SelectionInfo::of(headers).ok().flatten()?;
        let mut found = Self::default();
        for (name, value) in info.0.into_iter().flatten() {
            let criterion = match name.as_str() {
                "reselection" => {
                    found.no_reselection |= value.eq_ignore_ascii_case("false");
                    continue;
                }
                "not-select-nfservinst" => Criterion::Service,
                "not-select-nfserviceset" => Criterion::ServiceSet,
                "not-select-nfinst" => Criterion::Instance,
                "not-select-nfset" => Criterion::Set,
                _ => continue,
            };
            found.excluded.push((criterion, value));
        }
        Some(found)
    }

    /// Whether the SCP must not select another producer when the first one fails.
    pub fn forbids_reselection(&self) -> bool {
        self.no_reselection
    }

    /// Whether a service instance is excluded.
    pub fn exclude(&self, one: &ServiceRef) -> bool {
        let (producer, service) = (&one.producer, one.service());
        self.excluded.iter().any(|(criterion, value)| match criterion {
            Criterion::Service => *service.instance == **value,
            Criterion::ServiceSet => service.sets.iter().any(|set| **set == **value),
            Criterion::Instance => producer.id.eq_ignore_ascii_case(value),
            Criterion::Set => producer.sets.iter().any(|set| **set == **value),
        })
    }
}
