//! MMEs at their S6a end (TS 29.272): ULR, AIR and PUR towards HSSs behind a Diameter router.

mod mme;

pub use callmodel::subscribers::FIRST_SUBSCRIBER;
pub use mme::{Mmes, Plan, mme};
pub use simulators::network::{REALM, SESSION_BYTES};
