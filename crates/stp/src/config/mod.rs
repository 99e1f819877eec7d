//! Every setting of an STP.

mod calls;
mod mtp;
mod network;
mod numbers;
mod screening;
mod segments;
mod transactions;
mod translation;

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Listen, Period};

pub use calls::{CallServices, NumberForm, Prepaid, Subscriber, Unallocated};
pub use mtp::{M2pa, Mtp};
pub use network::{
    ApplicationServer, Link, LinkSet, NumberingPlan, PointCodes, Role, Route, Traffic, Transport,
};
pub use numbers::{CallRelated, MobileTitle, NumberServices};
pub use screening::{Action, Party, Rule, ScreeningList};
pub use segments::Segments;
pub use transactions::Transactions;
pub use translation::{
    Entry, Group, GroupMember, GroupMode, NextRouting, TranslatedNumber, Translation, TranslationSet,
};

/// Settings of a signal transfer point. Without links it connects nothing.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Config {
    /// Address of the admin endpoint (`/livez /readyz /metrics /config`).
    #[schemars(extend("format" = "socket-address"))]
    pub admin: SocketAddr,
    /// Worker threads; each has links of its own. 0: one per core.
    pub workers: usize,
    /// Where links with `transport: tcp` connect to this STP. Empty: nowhere. M3UA over TCP is for laboratories: it has
    /// neither streams nor several addresses.
    pub listen: Listen,
    /// Where links with `transport: sctp` connect to this STP: the addresses of one end point, all with the same port (2905).
    /// Empty: nowhere. It needs a kernel that has SCTP.
    pub sctp_listen: Listen,
    /// Whether DATA on stream 0 of SCTP, where RFC 4666 §1.4.7 forbids it, is refused (ERR, *Invalid Stream Identifier*); otherwise it
    /// is taken. It is counted in either case.
    #[schemars(extend("x-reload" = true))]
    pub strict_streams: bool,
    /// The point codes of this STP.
    pub point_codes: PointCodes,
    /// Network appearance in DATA and SSNM (RFC 4666 §3.3.1), where peers need it. A peer that sends another one is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_appearance: Option<u32>,
    /// Associations with peers. Names and roles change with a restart.
    pub links: Vec<Link>,
    /// Application servers: peers that are served by this STP as signalling gateway. They change with a restart.
    pub application_servers: Vec<ApplicationServer>,
    /// Link sets to other STPs and signalling gateways, and to IPSPs. They change with a restart.
    pub link_sets: Vec<LinkSet>,
    /// Routes to destinations by point code.
    #[schemars(extend("x-reload" = true))]
    pub routes: Vec<Route>,
    /// Screening lists, which application servers and link sets name.
    #[schemars(extend("x-reload" = true))]
    pub screening: Vec<ScreeningList>,
    /// Global title translation (Q.714 §2.4).
    #[schemars(extend("x-reload" = true))]
    pub translation: Translation,
    /// Number portability and the HLRs of numbers.
    #[schemars(extend("x-reload" = true))]
    pub number_services: NumberServices,
    /// Lists of equipment, by which this STP answers checkIMEI at its subsystem 9 (EIR): the file of the Diameter equipment
    /// identity register. A reload reads it again.
    #[schemars(extend("x-reload" = true))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equipment: Option<dsr_eir::config::Eir>,
    /// Subsystems of this STP that status tests (SST) find available, beside 1 (SCCP management).
    #[schemars(extend("x-reload" = true))]
    pub subsystems: Vec<u8>,
    /// A peer that has sent nothing for this time gets a heartbeat (BEAT); after twice the time its association ends.
    /// 0: never.
    #[schemars(extend("x-reload" = true))]
    pub heartbeat: Period,
    /// Timers of links of role `m2pa`.
    #[schemars(extend("x-reload" = true))]
    pub m2pa: M2pa,
    /// Timers of link sets of such links. They change with a restart.
    pub mtp: Mtp,
    /// Messages in segments to subsystems of this STP. They change with a restart.
    pub segments: Segments,
    /// Transactions that keep their node. They change with a restart.
    pub transactions: Transactions,
    /// How long a link that connects waits after a failure before it tries again.
    #[schemars(extend("x-reload" = true))]
    pub reconnect: Period,
    /// Messages queued for a link that does not take them as fast as they come. Further ones are dropped, and their senders
    /// notified (SCON).
    #[schemars(range(min = 16, max = 1_000_000))]
    pub queue: usize,
    /// Messages queued for an application server between its last active ASP and the next one, for at most `recovery`, and messages
    /// held for link sets during changeover and changeback, for the timers of `mtp`.
    #[schemars(range(max = 1_000_000))]
    pub pending: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            admin: SocketAddr::from(([127, 0, 0, 1], 9070)),
            workers: 0,
            listen: Listen(Vec::new()),
            sctp_listen: Listen(Vec::new()),
            strict_streams: false,
            point_codes: PointCodes::default(),
            network_appearance: None,
            links: Vec::new(),
            application_servers: Vec::new(),
            link_sets: Vec::new(),
            routes: Vec::new(),
            screening: Vec::new(),
            translation: Translation::default(),
            number_services: NumberServices::default(),
            equipment: None,
            subsystems: Vec::new(),
            heartbeat: Period::from_secs(30),
            m2pa: M2pa::default(),
            mtp: Mtp::default(),
            segments: Segments::default(),
            transactions: Transactions::default(),
            reconnect: Period::from_secs(2),
            queue: 4_096,
            pending: 32_768,
        }
    }
}
