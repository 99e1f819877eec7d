//! Creations and deletions of policy associations, half of each.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use callmodel::policy::{PolicyModel, Rates, Source};
use loadgen::Workload;
use workload::policy::{Documents, Kind, Part, PolicyWorkload, Service};

use crate::bench::contest;

/// Numbers of associations between the beginnings of two loads: more than a load creates, so that no subscriber has an
/// association of an earlier load, and a divisor of none of the address space that numbers are mapped to.
const APART: u32 = 150_001;
/// Half of the requests are creations, half deletions.
const EACH: f64 = 1.0;
/// The data network of SM policies.
const DNN: &str = "internet";

/// The peers of all PCFs: a UDR and a BSF that answer at once, no CHF.
pub(super) fn model() -> PolicyModel {
    PolicyModel {
        // All PCFs decide by what they have built in or configured.
        project: callmodel::policy::Complexity::Low,
        sm: Vec::new(),
        am: Rates::default(),
        ue: Rates::default(),
        gx: None,
        rx: Rates::default(),
        egress: 0.0,
        associations: 1,
        subscribers: u64::from(u32::MAX),
        sites: 1,
        sites_with_traffic: 1,
        udr: Some(Source::default()),
        chf: None,
        bsf: true,
        pdra: false,
        drill: None,
    }
}

/// The associations of a service at one PCF.
#[derive(Debug)]
pub(super) struct Associations {
    pub(super) documents: Arc<Documents>,
    pub(super) kind: Kind,
    /// Number of the first association of the next load.
    first: AtomicU32,
}

impl Associations {
    pub(super) fn new(documents: Arc<Documents>, service: Service) -> Self {
        Self {
            documents,
            kind: Kind {
                service,
                dnn: DNN.to_owned(),
                rates: Rates {
                    create: EACH,
                    update: 0.0,
                    delete: EACH,
                },
            },
            first: AtomicU32::new(APART),
        }
    }

    /// A number that no load uses.
    pub(super) fn probe(attempt: u32) -> u32 {
        attempt % APART
    }
}

impl contest::Source for Associations {
    fn workload(&self) -> Box<dyn Workload> {
        let first = self.first.fetch_add(APART, Ordering::Relaxed);
        let part = Part { first, step: 1 };
        let kinds = vec![(self.kind.clone(), Vec::new())];
        Box::new(PolicyWorkload::new(self.documents.clone(), kinds, part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::contest::Source as _;
    use loadgen::Draft;
    use rand::SeedableRng as _;

    #[test]
    fn each_load_has_subscribers_of_its_own() {
        let documents = Arc::new(Documents::new(&model(), "http://127.0.0.1:1").of_any_policy());
        let source = Associations::new(documents, Service::Sm);
        let mut random = rand::rngs::SmallRng::seed_from_u64(1);
        let mut first = || {
            let mut draft = Draft::default();
            source.workload().next(&mut random, &mut draft);
            String::from_utf8_lossy(&draft.body).into_owned()
        };
        let (one, other) = (first(), first());
        assert!(one.contains(&source.documents.supi(APART)), "{one}");
        assert!(other.contains(&source.documents.supi(2 * APART)), "{other}");
    }
}
