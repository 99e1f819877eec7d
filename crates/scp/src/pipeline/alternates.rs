//! Alternates of a producer that DNS names: the targets of the SRV records of its FQDN (RFC 2782), for networks
//! whose producers are in no NF set or have no profile here.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use sbi::client::{Origin, Scheme};
use sbi::dns::{Dns, DnsError, Srv, in_order};
use sbi::headers::TargetApiRoot;

use super::message::Target;
use super::planner::Planner;
use crate::events::Metrics;

/// Alternates of one request at most: a DNS zone of another operator decides how many there are.
const MOST: usize = 32;

/// Resolver of alternates.
pub(super) struct Alternates {
    pub(super) names: Option<Dns>,
    pub(super) metrics: Metrics,
}

/// The alternates of one request; queried once, when no other candidate is left.
#[derive(Default)]
pub(super) struct InDns {
    asked: bool,
    left: VecDeque<Rc<Target>>,
}

impl Alternates {
    /// Queries the alternates of a producer within `time`, unless that was done before.
    pub(super) async fn look(&self, found: &mut InDns, planner: &Planner, sought: &Target, time: Duration) {
        let Some(names) = self.names.as_ref().filter(|_| !found.asked) else {
            return;
        };
        found.asked = true;
        let scheme = sought.root.origin.scheme();
        let Some(name) = fqdn(sought) else { return };
        let counters = &self.metrics;
        match tokio::time::timeout(time, names.services(scheme, name)).await {
            Ok(Ok(records)) => {
                counters.alternates_found.inc();
                let targets = in_order(&records, rand::random)
                    .into_iter()
                    .take(MOST)
                    .filter_map(|one| target(&one, scheme, sought, planner));
                found.left.extend(targets);
            }
            Ok(Err(DnsError::NoRecords)) => counters.alternates_none.inc(),
            Ok(Err(error)) => {
                counters.alternates_failed.inc();
                tracing::debug!(name, %error, "DNS lookup of alternates failed");
            }
            Err(_) => counters.alternates_failed.inc(),
        }
    }
}

impl InDns {
    /// Whether there is an alternate that has not been tried.
    pub(super) fn has(&self, tried: &[Arc<str>]) -> bool {
        self.left.iter().any(|one| !tried.contains(&one.peer.authority))
    }

    /// The next alternate that has not been tried.
    pub(super) fn take(&mut self, tried: &[Arc<str>]) -> Option<Rc<Target>> {
        self.left.retain(|one| !tried.contains(&one.peer.authority));
        self.left.pop_front()
    }
}

/// The FQDN of a producer: of its service or profile, else as the request names it.
fn fqdn(target: &Target) -> Option<&str> {
    let known = target.service.as_ref().and_then(|one| one.fqdn());
    known.or_else(|| {
        let host = target.root.origin.host();
        host.parse::<IpAddr>().is_err().then_some(host)
    })
}

/// The target of a record, with the prefix of the producer that it replaces.
fn target(record: &Srv, scheme: Scheme, sought: &Target, planner: &Planner) -> Option<Rc<Target>> {
    let origin = Origin::new(scheme, &format!("{}:{}", record.host, record.port)).ok()?;
    let service = sought.service.as_ref().and_then(|one| {
        let network = planner.view.network();
        network.at(&origin, &one.service().name).cloned()
    });
    let root = TargetApiRoot {
        origin,
        prefix: sought.root.prefix.clone(),
    };
    Some(Rc::new(planner.targets.at(root, service, sought.unknown)))
}
