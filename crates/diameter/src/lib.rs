//! The driver of `diameter-proto`: sockets, TLS, timers, pending requests.
//!
//! # Which interface to use
//!
//! | you want to … | use |
//! |---|---|
//! | send requests, answer requests | [`endpoint`]: `async` calls with deadlines, sessions |
//! | pass messages on | [`Application`] and [`Node`]: every message as it was read, [`Node::forward`] |
//!
//! Both run on one worker and are not `Send`. A function with several workers makes a node on each, gives
//! them the seats of one [`Directory`], and lets each listen on the same address ([`BoundListener`] sets
//! `SO_REUSEPORT`): a peer then lives on one worker, wherever its connection was accepted.
//!
//! # The path of a relayed message
//!
//! ```text
//!  socket ─► read into a large buffer ─► next_frame: the message takes its bytes, nothing is copied
//!              │                            │
//!              │                            ▼
//!              │                 Application::request(node, from, message)
//!              │                   Routing::scan: one pass over the AVPs; decide where to
//!              │                   Node::forward(to, message, {deadline, append: from.route_record()}, context)
//!              │                            │  pending table: context under a new Hop-by-Hop Identifier,
//!              │                            │  which is patched into the header where it lies
//!              │                            ▼
//!  socket ◄─ one vectored write ◄─ queue of `to`: [message][Route-Record] by reference
//!
//!  the answer: pending table by Hop-by-Hop Identifier ─► Application::answer(node, from, context, message)
//!              ─► Node::answer(client, message, the client's Hop-by-Hop Identifier)
//! ```
//!
//! A relay's context should hold the [`ConnectionId`] and the Hop-by-Hop Identifier of the request's origin. If that
//! connection is closed when the answer arrives, [`Node::open_connection`] finds the one that the peer has made since.
//!
//! # Bounds
//!
//! Every bound is a field of [`Limits`], and each one that is reached is an event ([`NodeEvent`]) or a figure

pub mod capture;
pub mod config;
pub mod connection;
mod directory;
pub mod endpoint;
mod node;
mod peer;
mod queue;
pub mod session;
pub mod spans;
mod transport;

pub use config::{
    DynamicPeers, Found, Limits, ListenConfig, Lookup, NodeConfig, PORT, PeerConfig, Security, TLS_PORT,
    TlsConfig, Transport,
};
pub use connection::{Connection, ConnectionId, Totals};
pub use diameter_proto as proto;
pub use directory::{Directory, Seat};
pub use node::{
    AddPeerError, Application, Forward, Kept, Node, NodeEvent, PeerStatus, Refused, RefusedReason,
    Unanswered, UnansweredReason,
};
pub use peer::{PeerId, PeerUp};
pub use transport::{BoundListener, end_points};
