//! The session and binding repository: which server has a session, and which server a subscriber is bound to.
//!
//! A [`Session`] is any Diameter session by its Session-Id, with the client and the server between which it runs. One that
//! binds its subscriber can also be found by the subscriber in a pool of servers, by IMSI, MSISDN, IPv4 address and IPv6
//! prefix. A binding is not a record of its own: it is what the sessions of the subscriber say, begins with the first and
//! ends with the last, so that no count of sessions can go wrong, and one lookup by any key gives the server.
//!
//! Records are those of a `store`: what [`Repository::keep`] acknowledges survives the process. Of a database, several
//! routers share it.
//!
//! | file | what is there |
//! |---|---|
//! | `session` | the record and its keys |
//! | `prefix` | IPv6 prefixes as keys: an address finds the prefix that holds it |
//! | `desk` | first requests of a subscriber that come at once: one chooses, the others wait for it or follow |
//! | `reservation` | the same between routers that share a database |
//! | `repository` | what is asked and written |
//! | `conflict` | several bindings of one subscriber, of sites that were cut off: the older one wins |
//! | `settle` | the same, of records that have come from other sites |
//! | `owed`, `ends` | ends of sessions that servers have begun and clients do not have |
//! | `recent` | sessions whose use needs no look |
//! | `upkeep` | sessions that end, are in use, or are stale |
//! | `pool` | servers, and which one a subscriber without a session gets |
//! | `opened` | the thread that does what takes time |
//! | `task` | work that goes on without that thread |
//! | `charging` | sessions of online charging, which bind no subscriber: a table of their own, counted apart |
//! | `shards` | a map that workers share |
//! | `config` | settings |

mod charging;
pub mod config;
mod conflict;
mod desk;
mod ends;
mod opened;
mod owed;
pub mod pool;
mod prefix;
mod recent;
mod repository;
mod reservation;
mod session;
mod settle;
mod shards;
mod task;
mod upkeep;

pub use charging::{Change, ChargingSession, ChargingSessions};
pub use conflict::Counts;
pub use desk::{Claim, Desk, Outcome, Turn};
pub use ends::Due;
pub use opened::{Begun, Congestion, Contents, Opened};
pub use owed::{DueEnd, Owed, OwedEnd, Owing};
pub use prefix::{KeyLength, MAX_LENGTH, MIN_LENGTH};
pub use repository::{Kept, Repository, Reserved};
pub use reservation::Reservation;
pub use session::{Addresses, Binding, Found, MAX_SESSION_ID, Party, Session, binding_key};
pub use shards::Shards;

/// Every table of a repository.
#[must_use]
pub fn tables() -> Vec<store::TableDef> {
    vec![
        store::TableDef::of::<Session>(),
        store::TableDef::of::<Found>(),
        store::TableDef::of::<Reservation>(),
        store::TableDef::of::<KeyLength>(),
        store::TableDef::of::<OwedEnd>(),
    ]
}
