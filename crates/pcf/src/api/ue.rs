//! Npcf_UEPolicyControl: `/policies` (TS 29.525 §5.3).

use super::policies::Service;
use crate::association::{Kind, triggers};
use crate::events::Event;
use crate::shape::{UE_REQUEST, UE_UPDATE};

/// The service.
pub(crate) static UE: Service = Service {
    kind: Kind::Ue,
    request: &UE_REQUEST,
    update: &UE_UPDATE,
    features: &[],
    triggers: triggers::UE,
    reports: &[
        "triggers",
        "praStatuses",
        "uePolDelResult",
        "uePolTransFailNotif",
        "uePolReq",
    ],
    events: [Event::UeCreated, Event::UeUpdated, Event::UeDeleted],
};
