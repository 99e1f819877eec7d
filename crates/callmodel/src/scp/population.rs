//! Figures that follow from a model: its profiles, their regions, the latency to each.

use std::time::Duration;

use settings::Period;

use super::{DnsSrv, InterScp, MESSAGES_PER_REQUEST, ScpModel};

/// Services that producers of a type offer besides the requested ones (tables 3-3 and 4-3 of the guide).
fn supported(nf_type: &str) -> &'static [&'static str] {
    match nf_type {
        "AMF" => &["namf-comm", "namf-loc"],
        "AUSF" => &["nausf-auth", "nausf-sorprotection", "nausf-upuprotection"],
        "BSF" => &["nbsf-management"],
        "CHF" => &["nchf-spendinglimitcontrol", "nchf-convergedcharging"],
        "NSSF" => &["nnssf-nssaiavailability", "nnssf-nsselection"],
        "PCF" => &[
            "npcf-am-policy-control",
            "npcf-smpolicycontrol",
            "npcf-policyauthorization",
            "npcf-bdtpolicycontrol",
            "npcf-ue-policy-control",
        ],
        "SMF" => &["nsmf-pdusession", "nsmf-event-exposure"],
        "UDM" => &["nudm-ueau", "nudm-uecm", "nudm-sdm", "nudm-ee", "nudm-pp"],
        "UDR" => &["nudr-dr", "nudr-group-id-map"],
        _ => &[],
    }
}

/// Profiles of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfType {
    /// The type.
    pub nf_type: String,
    /// The services of each, the requested one first.
    pub services: Vec<String>,
    /// How many.
    pub count: u32,
}

impl ScpModel {
    /// The model with its latencies multiplied by a factor.
    #[must_use]
    pub fn with_latencies(&self, times: f64) -> Self {
        let scaled = |period: Period| {
            Period::from_millis((period.duration().as_secs_f64() * 1000.0 * times).round() as u64)
        };
        Self {
            producer_latency: scaled(self.producer_latency),
            lan_latency: scaled(self.lan_latency),
            wan_latency: scaled(self.wan_latency),
            nrf_latency: scaled(self.nrf_latency),
            dns_srv: self.dns_srv.map(|dns| DnsSrv {
                latency: scaled(dns.latency),
                ..dns
            }),
            ..self.clone()
        }
    }

    /// Latency of a request to a producer of the own region, and to one of another region.
    #[must_use]
    pub fn ways(&self) -> [Duration; 2] {
        let producer = self.producer_latency.duration();
        [self.lan_latency, self.wan_latency].map(|way| producer + way.duration())
    }

    /// The region of each producer, by its number: 0 is the SCP's own. A set is in one region; the number of sets in
    /// other regions is such that every producer of a type gets the same rate.
    #[must_use]
    pub fn regions(&self) -> Vec<u32> {
        let mut regions = Vec::new();
        // Sets of all types are dealt to the other regions in turn.
        let mut dealt = 0;
        for one in self.population() {
            let inter = self.inter_scp.as_ref();
            let share = inter.filter(|inter| !one.services.is_empty() && inter.concerns(&one.nf_type));
            let share = share.map_or(0.0, |inter| inter.share.fraction());
            let others = inter.map_or(1, |inter| inter.regions.saturating_sub(1)).max(1);
            let sets = one.count.div_ceil(self.set_size);
            let far_of = |sets: u32| (f64::from(sets) * share) as u32;
            for set in 0..sets {
                // Of a small number of sets the last one, so that there is one.
                let only = share > 0.0 && far_of(sets) == 0 && sets > 1 && set + 1 == sets;
                let region = match far_of(set + 1) > far_of(set) || only {
                    true => {
                        dealt += 1;
                        1 + (dealt - 1) % others
                    }
                    false => 0,
                };
                let left = one.count - set * self.set_size;
                regions.extend((0..left.min(self.set_size)).map(|_| region));
            }
        }
        regions
    }

    /// Share of the requests that go to other regions.
    #[must_use]
    pub fn crossing(&self) -> f64 {
        let Some(inter) = &self.inter_scp else { return 0.0 };
        let whole: f64 = self.interfaces.iter().map(|one| one.weight).sum();
        let population = self.population();
        // A single set is in one region.
        let is_far = |nf_type: &str| {
            let of = population.iter().find(|one| one.nf_type == nf_type);
            inter.concerns(nf_type) && of.is_some_and(|of| of.count > self.set_size)
        };
        let concerned = self.interfaces.iter().filter(|one| is_far(&one.producer));
        let concerned: f64 = concerned.map(|one| one.weight).sum();
        inter.share.fraction() * concerned / whole.max(1e-9)
    }

    /// The profiles at the NRF by type: those of producers in the order in which they come first, then the others.
    #[must_use]
    pub fn population(&self) -> Vec<OfType> {
        let asked = self.producers();
        let of = |nf_type: &str, asked: &[&str], count| {
            let mut services: Vec<String> = asked.iter().map(|one| (*one).to_owned()).collect();
            for service in supported(nf_type) {
                if self.drill.is_none() && !asked.contains(service) {
                    services.push((*service).to_owned());
                }
            }
            OfType {
                nf_type: nf_type.to_owned(),
                services,
                count,
            }
        };
        let types = u32::try_from(asked.len()).unwrap_or(1).max(1);
        let even = |at: usize| self.profiles / types + u32::from((at as u32) < self.profiles % types);
        let mut all: Vec<OfType> = asked
            .iter()
            .enumerate()
            .map(|(at, (nf_type, services))| {
                let count = match self.nf_counts.is_empty() {
                    true => even(at),
                    false => self.nf_counts.get(*nf_type).copied().unwrap_or(0),
                };
                of(nf_type, services, count)
            })
            .collect();
        for (nf_type, count) in &self.nf_counts {
            if !asked.iter().any(|(known, _)| known == nf_type) {
                all.push(of(nf_type, &[], *count));
            }
        }
        all
    }

    /// Requests per second at the full rate.
    #[must_use]
    pub fn requests(&self) -> f64 {
        self.mps / MESSAGES_PER_REQUEST
    }

    /// The types of producers and the services each offers, in the order in which they come first.
    #[must_use]
    pub fn producers(&self) -> Vec<(&str, Vec<&str>)> {
        let mut types: Vec<(&str, Vec<&str>)> = Vec::new();
        for one in &self.interfaces {
            let at = match types.iter().position(|(known, _)| *known == one.producer) {
                Some(at) => at,
                None => {
                    types.push((&one.producer, Vec::new()));
                    types.len() - 1
                }
            };
            if !types[at].1.contains(&one.service.as_str()) {
                types[at].1.push(&one.service);
            }
        }
        types
    }
}

impl InterScp {
    /// Whether producers of a type are in other regions too.
    #[must_use]
    pub fn concerns(&self, nf_type: &str) -> bool {
        self.types.is_empty() || self.types.iter().any(|one| one == nf_type)
    }
}
