//! The demand of siblings on throttle groups that are shared with them, queried at their admin endpoints.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use tokio::task::JoinHandle;

use crate::remote;
use crate::rows::ThrottleRow;
use crate::shared::Dsr;

/// Queries that run, and siblings that gave no answer the last time.
#[derive(Debug, Default)]
pub(super) struct Siblings {
    query: Option<JoinHandle<BTreeSet<String>>>,
    silent: BTreeSet<String>,
}

impl Siblings {
    /// Queries each sibling, where there is something to share, unless the last query still runs.
    pub(super) async fn follow(&mut self, dsr: &Arc<Dsr>) {
        if self.query.as_ref().is_some_and(|query| !query.is_finished()) {
            return;
        }
        if let Some(query) = self.query.take() {
            // A query that panicked has found nothing.
            self.log(query.await.unwrap_or_default());
        }
        let config = dsr.live.load().config.clone();
        let is_sibling = |host: &str| {
            let mut peers = config.peers.iter();
            peers.any(|peer| peer.sibling && peer.host.eq_ignore_ascii_case(host))
        };
        let has_group = |name: &str| config.throttle_groups.iter().any(|group| group.name == name);
        dsr.tools.demands.retain(has_group, is_sibling);
        if !config
            .throttle_groups
            .iter()
            .any(|group| group.shared_with_siblings)
        {
            return;
        }
        let peers = config.peers.iter().filter(|peer| peer.sibling);
        let siblings = peers.filter_map(|peer| Some((peer.host.clone(), peer.admin?)));
        let siblings: Vec<_> = siblings.collect();
        if siblings.is_empty() {
            return;
        }
        let demands = dsr.tools.demands.clone();
        self.query = Some(tokio::spawn(async move {
            let mut silent = BTreeSet::new();
            let asked = siblings.into_iter().map(|(host, admin)| {
                let asking = async move { remote::rows::<ThrottleRow>(admin, "/dsr/throttles").await };
                (host, tokio::spawn(asking))
            });
            for (host, asking) in asked.collect::<Vec<_>>() {
                match asking.await {
                    Ok(Ok(rows)) => {
                        let rows = rows.into_iter().map(|row| (row.name, row.demand));
                        demands.report(&host, rows, Instant::now());
                    }
                    Ok(Err(_)) | Err(_) => {
                        silent.insert(host);
                    }
                }
            }
            silent
        }));
    }

    /// Logs changes only.
    fn log(&mut self, silent: BTreeSet<String>) {
        for sibling in silent.difference(&self.silent) {
            tracing::warn!(
                sibling,
                "a sibling does not report its demand on throttle groups; it has an equal part of their rates"
            );
        }
        for sibling in self.silent.difference(&silent) {
            tracing::info!(sibling, "a sibling reports its demand on throttle groups");
        }
        self.silent = silent;
    }
}
