//! PCEFs that have restarted: the sessions that they had before are lost (Origin-State-Id, RFC 6733 §8.16).

use std::rc::Rc;
use std::time::Duration;

use ahash::AHashMap;
use diameter::endpoint::Request;
use diameter::proto::known;
use store::{Scan, Stored};

use crate::association::gx::PcefSession;
use crate::association::{Association, Kind};
use crate::change;
use crate::events::Event;
use crate::reassessment;
use crate::worker::{Front, Worker};

/// Time in which restarts are collected for one pass over all sessions.
const PAUSE: Duration = Duration::from_secs(1);
/// Sessions that a pass reads at a time.
const PAGE: usize = 256;

/// The Origin-State-Id of a request, or of the capabilities exchange with the PCEF itself; 0 means that nothing follows from it.
pub(super) fn state_of(request: &Request) -> Option<u32> {
    let state = request.message.get(known::ORIGIN_STATE_ID).ok().flatten();
    let of_peer = || {
        let origin = request.message.get(known::ORIGIN_HOST).ok().flatten()?;
        let peer = request.from.peer()?;
        let is_own = peer.remote.origin.host.eq_ignore_ascii_case(origin);
        peer.remote.origin_state_id.filter(|_| is_own)
    };
    state.or_else(of_peer).filter(|state| *state > 0)
}

/// Notes the Origin-State-Id of a PCEF.
pub(super) fn note(worker: &Worker, request: &Request) {
    let host = request.message.get(known::ORIGIN_HOST).ok().flatten();
    if let (Some(host), Some(state)) = (host, state_of(request)) {
        worker.restarts().note(host, state);
    }
}

/// Ends sessions that PCEFs have lost, until the worker ends; the first worker does.
pub(crate) async fn run(front: Rc<Front>) {
    if front.seat().context.index != 0 {
        return;
    }
    loop {
        front.function().restarts.noted().await;
        tokio::time::sleep(PAUSE).await;
        let pending = front.function().restarts.take();
        if let Err(error) = pass(&front.worker(), &pending).await {
            tracing::warn!(%error, "sessions of PCEFs that have restarted could not be looked for, which is tried again");
            front.function().restarts.put_back(pending);
        }
    }
}

async fn pass(worker: &Rc<Worker>, restarted: &AHashMap<String, u32>) -> Result<(), store::Error> {
    let table = worker.repository().associations().clone();
    let mut scan = Scan::all(PAGE);
    loop {
        let page = table.scan(&scan).await?;
        for stored in &page.records {
            if is_lost(&stored.record, restarted) {
                end(worker, stored).await;
            }
        }
        let Some(next) = page.next else { return Ok(()) };
        scan = next;
    }
}

/// Whether a PCEF has lost a session: it has a higher Origin-State-Id now.
fn is_lost(association: &Association, restarted: &AHashMap<String, u32>) -> bool {
    let session = PcefSession::get(association).filter(|_| association.kind == Kind::Gx);
    session.is_some_and(|session| {
        let now = restarted.get(&session.host.to_ascii_lowercase());
        let before = session.origin_state;
        before.is_some_and(|before| now.is_some_and(|now| before < *now))
    })
}

async fn end(worker: &Rc<Worker>, stored: &Stored<Association>) {
    let id = stored.record.id;
    match change::remove_version(worker, id, stored.version).await {
        Ok(Some((association, draft))) => {
            worker.count(Event::GxLost);
            tracing::info!(%id, "a session has ended whose PCEF has restarted");
            reassessment::after(worker, id, &draft);
            super::close(worker, &association).await;
        }
        // It was written meanwhile, so that its PCEF has it.
        Ok(None) => {}
        Err(error) => tracing::warn!(%id, ?error, "a session of a PCEF that has restarted was not ended"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::restarts::Restarts;
    use serde_json::json;

    #[test]
    fn a_higher_state_ends_sessions_of_lower_ones_and_no_others() {
        let restarts = Restarts::default();
        for state in [2_000, 1_000, 2_000] {
            restarts.note("PGW.example", state);
        }
        let pending = restarts.take();
        assert_eq!(pending.get("pgw.example"), Some(&2_000));
        for (host, state, expected) in [
            ("pgw.example", json!(1_000), true),
            ("pgw.example", json!(2_000), false),
            ("pgw.example", serde_json::Value::Null, false),
            ("other.example", json!(1_000), false),
        ] {
            let mut association = Association::new(Kind::Gx, json!({}));
            let room =
                json!({"sessionId": "a", "host": host, "realm": "r", "peer": host, "originState": state});
            association.rooms.insert("gx".to_owned(), room);
            assert_eq!(is_lost(&association, &pending), expected, "{host} {state}");
        }
    }
}
