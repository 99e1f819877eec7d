//! The journal of subscriber database servers: transactions in the order of their offsets.
//!
//! | file | what is there |
//! |---|---|
//! | `transaction` | a line of the journal |
//! | `directory` | what is kept on the disk: the data as of an offset, and the transactions since |
//! | `taking` | all subscribers of a server, taken part by part |
//! | `keeper` | the data in effect together with the directory |
//! | `poll` | requests to the servers |

mod directory;
mod keeper;
mod poll;
mod taking;
mod transaction;

pub(crate) use keeper::Keeper;
pub(crate) use poll::{client, follow};
