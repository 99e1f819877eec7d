//! The end of a worker: a request may be in flight at another worker or local node than the one that has its client, so that
//! they stop together.

use std::rc::Rc;
use std::time::Duration;

use diameter::Node;
use diameter::proto::known::disconnect_cause;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::guard::Gauges;
use super::{Core, Router};

/// Interval at which a stopping worker checks what is in flight.
const STEP: Duration = Duration::from_millis(10);
/// Bound on the time until the answers of the router to what stays in flight have reached their clients.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

impl Core {
    /// Stops the nodes of this worker once no worker has anything in flight, at the latest after `grace`. What is in flight by
    /// then is answered by the router, and no client is disconnected before.
    pub(crate) async fn stop(self: &Rc<Self>, grace: Duration) {
        let reports = tokio::task::spawn_local(self.clone().report_idle());
        self.all_idle(grace).await;
        self.give_up_parked();
        let stop = |node: Node<Router>| {
            let core = self.clone();
            tokio::task::spawn_local(async move {
                if node.pending() == 0 {
                    core.all_idle(LAST_ANSWERS).await;
                }
                node.stop(Duration::ZERO, disconnect_cause::REBOOTING).await;
            })
        };
        let stops: Vec<JoinHandle<()>> = self.nodes().into_iter().map(stop).collect();
        for stop in stops {
            // A panic is logged by its hook; the worker ends all the same.
            let _ = stop.await;
        }
        reports.abort();
    }

    /// Reports whether something is in flight here, until it is aborted. Idle is who was so a step before: what it had to hand
    /// to another worker is handed over.
    async fn report_idle(self: Rc<Self>) {
        let mut was_idle = false;
        loop {
            let is_idle = self.is_idle();
            self.gauges().report_idle(is_idle && was_idle);
            was_idle = is_idle;
            tokio::time::sleep(STEP).await;
        }
    }

    fn is_idle(&self) -> bool {
        self.parked.any().is_none() && self.nodes.borrow().iter().all(|node| node.pending() == 0)
    }

    /// Waits until no worker has anything in flight, and what others have handed over is sent; at most for this time.
    async fn all_idle(&self, most: Duration) {
        let deadline = Instant::now() + most;
        let mut were_idle = false;
        loop {
            let are_idle = self.tools.gauges.iter().all(Gauges::is_idle);
            if are_idle && were_idle || Instant::now() >= deadline {
                return;
            }
            were_idle = are_idle;
            tokio::time::sleep(STEP).await;
        }
    }
}
