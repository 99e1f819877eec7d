//! Database processors that follow a subscriber database server, and what is provisioned at it beside a load.
//!
//! | part | what it has |
//! |---|---|
//! | `nodes` | the processes |
//! | `client` | look-ups at a processor, one bundle after the other |
//! | `provisioning` | writes at the server, as a rate |
//! | `watch` | when a processor answers what was acknowledged |
//! | `outcome` | what came of the writes, and the final comparison |

mod client;
mod nodes;
mod outcome;
mod provisioning;
mod watch;

use std::sync::Arc;

use dp_proto::Kind;

pub(crate) use nodes::{Database, Node};
pub(crate) use outcome::Outcome;
pub(crate) use provisioning::{Provisioning, WRITERS};

/// What is written: a number or a name, and its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) kind: Kind,
    pub(crate) value: String,
    pub(crate) destination: String,
}

impl Record {
    /// Where the server has it.
    fn path(&self) -> String {
        format!("/subscribers/{}/{}", self.kind.as_str(), self.value)
    }
}

/// The record of each write, by its number.
pub(crate) type Records = Arc<dyn Fn(u64) -> Record + Send + Sync>;
