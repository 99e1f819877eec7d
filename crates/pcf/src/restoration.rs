//! P-CSCF restoration (TS 23.380 §5.4, §5.8): a P-CSCF asks over N5 (TS 29.514 §5.3.2.4.2) or Rx (TS 29.214 §4.4.7) that a UE
//! gets another P-CSCF, and the PCF notifies the SMF or PCEF of its session (TS 29.512 §4.2.3, TS 29.212 §4.5.2).

use pcc::gx;
use serde_json::Value;

use crate::association::gx::PcefSession;
use crate::association::{Association, Kind};
use crate::binding::{self, Unbound};
use crate::events::Event;
use crate::pushes;
use crate::worker::Worker;

/// `PCSCF-Restoration-Enhancement` (TS 29.512 §5.8).
pub(crate) const FEATURE: usize = 9;

/// Has the consumer of the session that a request is about (`PcscfRestorationRequestData`) restore its P-CSCF. One that does
/// not have the feature gets nothing, which the P-CSCF does not learn: its request is acknowledged for each session there is.
///
/// # Errors
/// The session is unknown, or the store failed.
pub(crate) async fn restore(worker: &Worker, request: &Value) -> Result<(), Unbound> {
    let association = binding::find(worker, request).await?;
    if !is_supported(&association) {
        tracing::debug!(id = %association.id, "the consumer of a session has no P-CSCF restoration");
        worker.count(Event::PcscfNotRestored);
        return Ok(());
    }
    worker.count(Event::PcscfRestored);
    match association.kind {
        Kind::Gx => pushes::gx_restore(worker, &association, 0),
        _ => worker.notices().restored(&association),
    }
    Ok(())
}

/// Whether the SMF or PCEF of a session has negotiated P-CSCF restoration.
fn is_supported(association: &Association) -> bool {
    match association.kind {
        Kind::Gx => PcefSession::get(association).is_some_and(|session| session.restores),
        _ => association
            .text_of("suppFeat")
            .and_then(|features| model::SupportedFeatures::parse(features).ok())
            .is_some_and(|features| features.has(FEATURE)),
    }
}

/// Whether these features of Gx have it.
pub(crate) fn of_gx(features: gx::Features) -> bool {
    features.first & gx::Features::PCSCF_RESTORATION != 0
}
