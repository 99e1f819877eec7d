//! Alternates of a producer that DNS names: the targets of the SRV records of its FQDN (RFC 2782), for networks
//! whose producers are in no NF set or have no profile here.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use sbi::client::{Origin, Scheme};
use sbi::dns::{DnsError, Srv, in_order};
use sbi::headers::TargetApiRoot;

use super::route::Target;
use super::worker::Worker;

/// Alternates at most for one request: what a stranger's zone may make this SCP try.
const MOST: usize = 32;

/// What DNS says for a request; it is asked once, when nobody else is left.
#[derive(Default)]
pub(super) struct InDns {
    asked: bool,
    left: VecDeque<Rc<Target>>,
}

impl InDns {
    /// Asks for the alternates of a producer, no longer than `patience`, unless it was asked before.
    pub(super) async fn look(&mut self, worker: &Worker, sought: &Target, patience: Duration) {
        let Some(names) = worker.names.as_ref().filter(|_| !self.asked) else {
            return;
        };
        self.asked = true;
        let scheme = sought.root.origin.scheme();
        let Some(name) = fqdn(sought) else { return };
        let found = tokio::time::timeout(patience, names.services(scheme, name)).await;
        let counters = &worker.metrics;
        match found {
            Ok(Ok(records)) => {
                counters.alternates_found.inc();
                let ordered = in_order(&records, || worker.random());
                let targets = ordered
                    .into_iter()
                    .take(MOST)
                    .filter_map(|one| target(&one, scheme, sought, worker));
                self.left.extend(targets);
            }
            Ok(Err(DnsError::NoRecords)) => counters.alternates_none.inc(),
            Ok(Err(error)) => {
                counters.alternates_failed.inc();
                tracing::debug!(name, %error, "no alternates");
            }
            Err(_) => counters.alternates_failed.inc(),
        }
    }

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

/// The place that a record names, behind the prefix of the producer it stands in for.
fn target(record: &Srv, scheme: Scheme, sought: &Target, worker: &Worker) -> Option<Rc<Target>> {
    let origin = Origin::new(scheme, &format!("{}:{}", record.host, record.port)).ok()?;
    let named = sought.service.as_ref().map(|one| one.service().name.clone());
    let service = named.and_then(|name| worker.network().at(&origin, &name).cloned());
    let root = TargetApiRoot {
        origin,
        prefix: sought.root.prefix.clone(),
    };
    Some(Rc::new(worker.redirected_to(root, service, sought.unknown)))
}
