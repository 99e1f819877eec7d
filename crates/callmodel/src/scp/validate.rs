//! Checks of a model beyond its schema.

use settings::{Faults, Validate};

use super::{Drill, ScpModel};
use crate::priorities;

impl Validate for ScpModel {
    fn validate(&self, faults: &mut Faults) {
        if !(self.mps.is_finite() && self.mps > 0.0) {
            faults
                .at("mps")
                .say("is not a rate", "messages per second, more than 0");
        }
        let total: f64 = self.interfaces.iter().map(|one| one.weight).sum();
        if !(total.is_finite() && total > 0.0) {
            faults
                .at("interfaces")
                .say("have no weight", "at least one with a weight above 0");
        }
        if self.mediated.fraction() > 0.0 && self.mediation_rules == 0 {
            faults
                .at("mediationRules")
                .say("is 0 although requests are mediated", "at least 1");
        }
        if let Some(inter) = &self.inter_scp {
            if let Some(unknown) = inter
                .types
                .iter()
                .find(|one| !self.producers().iter().any(|(known, _)| known == one))
            {
                faults.at("interScp.types").say(
                    format!("{unknown} is not a producer"),
                    "types of producers of `interfaces`",
                );
            }
            if inter.share.fraction() >= 1.0 {
                faults
                    .at("interScp.share")
                    .say("leaves the own region no requests", "less than 100%");
            }
            if self.drill.is_some() || self.delegated.fraction() > 0.0 {
                faults.at("interScp").say(
                    "does not go with a drill or delegated discoveries",
                    "requests that all name their producer",
                );
            }
        }
        self.validate_sites(faults);
        let methods: f64 = self.methods.values().sum();
        let weighed = methods.is_finite() && methods > 0.0;
        if !self.methods.is_empty() && !weighed {
            faults
                .at("methods")
                .say("have no weight", "at least one with a weight above 0");
        }
        let overloads = self.drill == Some(Drill::Overload);
        priorities::validate(&self.priorities, overloads, faults);
        let counted: u32 = self.nf_counts.values().sum();
        if !self.nf_counts.is_empty() && counted != self.profiles {
            faults.at("nfCounts").say(
                format!("add up to {counted}"),
                format!("as many as `profiles`: {}", self.profiles),
            );
        }
        if let Some(few) = self
            .population()
            .iter()
            .find(|one| !one.services.is_empty() && one.count < 2)
            && !self.nf_counts.is_empty()
        {
            faults.at("nfCounts").say(
                format!("has too few of {}", few.nf_type),
                "at least two of each type of producer",
            );
        }
        if let Some(changes) = &self.notifications
            && !std::iter::once(&changes.per_second)
                .chain(&changes.bursts)
                .all(|rate| rate.is_finite() && (0.0..=10_000.0).contains(rate))
        {
            faults
                .at("notifications")
                .say("are not rates", "changes per second, 0 to 10000");
        }
        if (self.profiles as usize) < 2 * self.producers().len() {
            faults
                .at("profiles")
                .say("is too few for the types of producers", "at least two of each");
        }
    }
}

impl ScpModel {
    fn validate_sites(&self, faults: &mut Faults) {
        let Some(sites) = self.sites else {
            if self.drill == Some(Drill::LoseSite) {
                faults
                    .at("sites")
                    .say("are missing", "`regions` and `each` of them");
            }
            return;
        };
        if self.inter_scp.is_some() {
            faults
                .at("sites")
                .say("do not go with interScp", "one of the two");
        }
        if sites.count() != self.set_size {
            faults.at("setSize").say(
                format!("is {}", self.set_size),
                format!("one member for each of the {} sites", sites.count()),
            );
        }
        if self
            .population()
            .iter()
            .any(|one| !one.count.is_multiple_of(sites.count()))
        {
            faults.at("profiles").say(
                "do not fill all sets",
                format!("a multiple of {} for each type of producer", sites.count()),
            );
        }
    }
}
