//! Whom a request does not want, and whether another may be selected for it (`3gpp-Sbi-Selection-Info`, TS 29.500
//! §5.2.3.3.10).

use sbi_proto::Fields;
use sbi_proto::headers::{SbiHeader as _, SelectionInfo};

use crate::network::ServiceRef;

/// What a request says of the selection of its producer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exclusions {
    no_reselection: bool,
    /// Each by the criterion and its value.
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
    /// Those of a request; what cannot be read says nothing.
    pub fn of(headers: &Fields) -> Option<Self> {
        let info = SelectionInfo::of(headers).ok().flatten()?;
        let mut found = Self::default();
        for (name, value) in info.0.into_iter().flatten() {
            let criterion = match name.as_str() {
                "reselection" => {
                    found.no_reselection |= value == "false";
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

    /// Whether no other producer may be selected when the first one fails.
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
