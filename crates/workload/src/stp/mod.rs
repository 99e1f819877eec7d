//! Traffic around a signal transfer point: MSCs that send to global titles, IMSIs and ported numbers and ask for IMEIs, HLRs
//! and SMSCs that receive, and send by point code.
//!
//! | file | what it has |
//! |---|---|
//! | `network` | nodes with their point codes, numbers and who serves them; what the STP has to know of them |
//! | `content` | the data of SCCP: MAP in TCAP |
//! | `call` | messages of calls: CAP, ISUP |
//! | `traffic` | what is sent |
//! | `judge` | the check of what arrives |
//! | `units` | units of IPA in pairs |

mod call;
mod content;
mod judge;
mod network;
mod traffic;
mod units;

pub use call::PREPAID_KEY;
pub use network::{CAP, MATES, Network, OWN, OWN_GROUP, Party, Role, SCREENED_CALLING, Share, Shift, TITLES};
pub use traffic::Calls;
pub use units::{Pairs, Unit};
