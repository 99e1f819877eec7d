//! Sessions that are decided by local policy, as if they had no subscriber.

use crate::association::ledger::Ledger;
use crate::association::{Association, Kind};
use crate::worker::Worker;

/// Whether neither data nor quotas of a subscriber apply to an association: an emergency session, which needs no subscription
/// (TS 23.503 §6.1.1.3, TS 23.203 §6.1.10), or one whose SUPI the SMF could not have authenticated (`invalidSupi`, TS 29.512
/// §5.6.2.3), so that it may be another's.
pub(crate) fn is_local(worker: &Worker, association: &Association) -> bool {
    let is_session = matches!(association.kind, Kind::Sm | Kind::Gx | Kind::Tdf);
    let dnn = association.text_of("dnn").filter(|_| is_session);
    association.has_invalid_supi() || dnn.is_some_and(|dnn| worker.config().emergency.has(dnn))
}

/// The subscriber whose quotas and state variables count for an association; `None`: there is none.
pub(crate) fn subscriber_of<'a>(worker: &Worker, association: &'a Association) -> Option<&'a str> {
    Ledger::subscriber_of(association).filter(|_| !is_local(worker, association))
}
