//! How the rules of a model lie in groups, and the groups at trigger points.

use super::ScpModel;

/// A place on the way of a message, by the SCP's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerPoint {
    /// A request as it came.
    RequestIngress,
    /// A request as it leaves for the producer.
    RequestEgress,
    /// An answer as it came.
    ResponseIngress,
    /// An answer as it leaves for the consumer.
    ResponseEgress,
}

impl TriggerPoint {
    /// What groups are dealt to, in turn: those of requests come first.
    const ALL: [Self; 4] = [
        Self::RequestEgress,
        Self::RequestIngress,
        Self::ResponseIngress,
        Self::ResponseEgress,
    ];

    /// Its name in the settings of the SCP.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RequestIngress => "requestIngress",
            Self::RequestEgress => "requestEgress",
            Self::ResponseIngress => "responseIngress",
            Self::ResponseEgress => "responseEgress",
        }
    }

    fn is_request(self) -> bool {
        matches!(self, Self::RequestIngress | Self::RequestEgress)
    }
}

/// Rules that are tried at one point for some services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediationGroup {
    /// The point.
    pub point: TriggerPoint,
    /// The services; with the point each is a trigger point.
    pub services: Vec<String>,
    /// Numbers of its rules.
    pub rules: Vec<u32>,
}

impl ScpModel {
    /// The groups of rules.
    #[must_use]
    pub fn mediation(&self) -> Vec<MediationGroup> {
        if self.mediation_rules == 0 {
            return Vec::new();
        }
        let groups = self.mediation_groups.max(1);
        let mut services: Vec<String> = self
            .producers()
            .into_iter()
            .flat_map(|(_, services)| services.into_iter().map(str::to_owned))
            .collect();
        // What is asked for first, then what is offered beside it.
        for service in self.population().into_iter().flat_map(|one| one.services) {
            if !services.contains(&service) {
                services.push(service);
            }
        }
        let count = services.len().max(1);
        let points = self.mediation_trigger_points;
        (0..groups)
            .map(|group| {
                let at = group as usize;
                // Of few trigger points each has several groups, of many each group has several.
                let (point, first, each) = match points {
                    None => (TriggerPoint::RequestEgress, at, 1),
                    Some(points) if points < groups => {
                        let at = (group % points.max(1)) as usize;
                        (TriggerPoint::RequestEgress, at, 1)
                    }
                    Some(points) => {
                        let each = points / groups + u32::from(group < points % groups);
                        (TriggerPoint::ALL[at % 4], at / 2, (each as usize).min(count))
                    }
                };
                let services = (first..first + each).map(|number| services[number % count].clone());
                MediationGroup {
                    point,
                    services: services.collect(),
                    rules: (group..self.mediation_rules).step_by(groups as usize).collect(),
                }
            })
            .collect()
    }

    /// The rules that can apply to requests for a service.
    #[must_use]
    pub fn rules_of(&self, service: &str) -> Vec<u32> {
        let groups = self.mediation();
        let of = groups
            .iter()
            .filter(|group| group.point.is_request() && group.services.iter().any(|one| one == service));
        of.flat_map(|group| group.rules.iter().copied()).collect()
    }

    /// Whether a rule changes the JSON body; the others change headers.
    #[must_use]
    pub fn is_json_rule(&self, rule: u32) -> bool {
        let tenths = (self.mediation_json.fraction() * 10.0).round() as u32;
        rule % 10 >= 10 - tenths.min(10)
    }

    /// Share of the requests that are for services that have rules of requests.
    fn ruled(&self) -> f64 {
        let whole: f64 = self.interfaces.iter().map(|one| one.weight).sum();
        let ruled = self
            .interfaces
            .iter()
            .filter(|one| !self.rules_of(&one.service).is_empty());
        let ruled: f64 = ruled.map(|one| one.weight).sum();
        ruled / whole.max(1e-9)
    }

    /// Share of all requests that a rule applies to.
    #[must_use]
    pub fn applied(&self) -> f64 {
        self.mediated.fraction().min(self.ruled())
    }

    /// Share of the requests for a service with rules that a rule applies to.
    #[must_use]
    pub fn applied_of_ruled(&self) -> f64 {
        (self.mediated.fraction() / self.ruled().max(1e-9)).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use crate::find;

    #[test]
    fn trigger_points_add_up_and_each_rule_is_in_one_group() {
        for (name, points) in [
            ("scp/model-d-3", 367),
            ("scp/model-d-6", 367),
            ("scp/model-d-7", 367),
            ("scp/model-d-4", 3),
            ("scp/model-d-10", 3),
        ] {
            let model = find(name).unwrap().model.scp.unwrap();
            let groups = model.mediation();
            let mut at: Vec<_> = groups
                .iter()
                .flat_map(|group| {
                    group
                        .services
                        .iter()
                        .map(|service| (group.point.name(), service.clone()))
                })
                .collect();
            if points < groups.len() {
                at.sort_unstable();
                at.dedup();
            }
            assert_eq!(at.len(), points, "{name}");
            let mut rules: Vec<u32> = groups.iter().flat_map(|group| group.rules.clone()).collect();
            rules.sort_unstable();
            assert_eq!(rules, (0..630).collect::<Vec<_>>(), "{name}");
            let mediated = model.mediated.fraction();
            assert!(
                (model.applied() - mediated).abs() < 1e-9,
                "{name}: {}",
                model.applied()
            );
        }
    }
}
