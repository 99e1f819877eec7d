//! MMEs at their S6a end (TS 29.272): ULR, AIR and PUR towards HSSs behind a Diameter router. At their S13 end: ECR to the
//! equipment identity register of the router. MMEs of foreign networks, with attackers among them, before its security application.

mod attacks;
mod equipment;
mod mme;
mod roaming;

pub use callmodel::subscribers::FIRST_SUBSCRIBER;
pub use equipment::{Checkers, Checks, mme as checker};
pub use mme::{DAMAGED, Mmes, Plan, mme};
pub use roaming::{FOUND, HONEST, Roamers, Roams, network_of, roaming_mme};
pub use simulators::network::{REALM, SESSION_BYTES};
