//! Npcf_AMPolicyControl: `/policies` (TS 29.507 §5.3).

use super::policies::Service;
use crate::association::{Kind, triggers};
use crate::events::Event;
use crate::shape::{AM_REQUEST, AM_UPDATE};

/// The service. Features (TS 29.507 §5.8): `SliceSupport`, `PendingTransaction` … are negotiated away, but for
/// `UE-AMBR_Authorization`, `UE-Slice-MBR_Authorization` and `DNNReplacementControl`, which projects may decide.
pub(crate) static AM: Service = Service {
    kind: Kind::Am,
    request: &AM_REQUEST,
    update: &AM_UPDATE,
    features: &[1, 3, 4, 5, 9],
    triggers: triggers::AM,
    reports: &["triggers", "smfSelInfo", "praStatuses"],
    events: [Event::AmCreated, Event::AmUpdated, Event::AmDeleted],
};
