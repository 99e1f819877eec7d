//! Every setting of an ENUM server.

mod limits;
mod profile;
mod tree;
mod tsig;

use std::net::SocketAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::Listen;

pub use limits::{Rate, Tcp};
pub use profile::{Profile, Record};
pub use tree::{NumberRange, Tree};
pub use tsig::{Algorithm, TsigKey};

/// Settings of an ENUM server. Without trees it refuses every query.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Config {
    /// Address of the admin endpoint (`/livez /readyz /metrics /config`).
    #[schemars(extend("format" = "socket-address"))]
    pub admin: SocketAddr,
    /// Worker threads; each has sockets of its own. 0: one per core.
    pub workers: usize,
    /// Where clients send queries, over UDP and TCP; the port of DNS is 53. Empty: nowhere.
    pub listen: Listen,
    /// The trees of names that this server answers for.
    #[schemars(extend("x-reload" = true))]
    pub trees: Vec<Tree>,
    /// What numbers resolve to: records with the number and its parameters put in.
    #[schemars(extend("x-reload" = true))]
    pub profiles: Vec<Profile>,
    /// The file of numbers (`signalbox numbers import`), of which those of kind `msisdn` count. A reload reads it again. Absent:
    /// ranges of the trees and numbers of the admin endpoint alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-reload" = true))]
    pub numbers: Option<PathBuf>,
    /// Directory of the numbers that were changed at the admin endpoint. Absent: they cannot be changed there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// Networks whose clients are answered; others get REFUSED. Empty: all.
    #[schemars(extend("x-reload" = true))]
    pub clients: Vec<IpNet>,
    /// Keys of signed queries (TSIG, RFC 8945), whose answers are signed as well.
    #[schemars(extend("x-reload" = true))]
    pub tsig: Vec<TsigKey>,
    /// Whether queries without a signature are refused.
    #[schemars(extend("x-reload" = true))]
    pub require_tsig: bool,
    /// Most octets of an answer over UDP, whatever the client allows. What does not fit is truncated, and the client asks again
    /// over TCP.
    #[schemars(range(min = 512, max = 4_096), extend("x-reload" = true))]
    pub udp_bytes: u16,
    /// Bound of answers over UDP for each client.
    #[schemars(extend("x-reload" = true))]
    pub rate: Rate,
    /// Bounds of connections.
    #[schemars(extend("x-reload" = true))]
    pub tcp: Tcp,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            admin: SocketAddr::from(([127, 0, 0, 1], 9080)),
            workers: 0,
            listen: Listen(Vec::new()),
            trees: Vec::new(),
            profiles: Vec::new(),
            numbers: None,
            directory: None,
            clients: Vec::new(),
            tsig: Vec::new(),
            require_tsig: false,
            udp_bytes: 1_232,
            rate: Rate::default(),
            tcp: Tcp::default(),
        }
    }
}
