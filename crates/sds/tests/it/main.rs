//! The SDS over real sockets, as provisioning systems and database processors meet it.

mod bad_input;
mod bulk;
mod checkpoint;
#[allow(dead_code, reason = "this program needs one of the kinds of clusters")]
#[path = "../../../store/tests/it/clusters.rs"]
mod clusters;
mod crash;
#[allow(dead_code, reason = "this program needs one of the kinds of servers")]
#[path = "../../../store/tests/it/databases.rs"]
mod databases;
mod groups;
mod journal;
mod pair;
mod process;
mod records;
mod support;
mod tokens;
