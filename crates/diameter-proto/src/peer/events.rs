//! Inputs, outputs and settings of a peer machine.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::capabilities::Capabilities;
use super::table::Side;
use super::watchdog::{Health, Reopen};
use crate::message::{MessageMut, MessageRef};

/// Policy for a second connection of a peer that is connected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Duplicate {
    /// Refuse the new connection, as the RFC's table does, and send a DWR on the old one at once.
    Reject,
    /// Let the new connection replace the old one when the peer made both, from the same address: it has restarted, and
    /// the end of the old connection has not reached this node. Else as [`Duplicate::Reject`].
    #[default]
    ReplaceSameAddress,
    /// Let the new connection replace the old one.
    Replace,
}

/// Settings of a peer.
#[derive(Clone, Debug)]
pub struct PeerSettings {
    /// The Origin-Host that the peer must have, when it is configured.
    pub host: Option<String>,
    /// Whether this node connects and reconnects.
    pub initiate: bool,
    /// Watchdog interval (RFC 3539 `Twinit`).
    pub watchdog: Duration,
    /// When a new connection is in state REOPEN.
    pub reopen: Reopen,
    /// How long the peer may take to accept a connection.
    pub connect_timeout: Duration,
    /// How long the peer may take to send CEA.
    pub capabilities_timeout: Duration,
    /// How long the peer may take to send DPA, or to close after ours.
    pub disconnect_timeout: Duration,
    /// Pause before the first new attempt to connect; doubled for each further one …
    pub reconnect_min: Duration,
    /// … up to this.
    pub reconnect_max: Duration,
    /// Policy for a second connection of a peer that is connected.
    pub duplicate: Duplicate,
}

impl Default for PeerSettings {
    fn default() -> Self {
        Self {
            host: None,
            initiate: false,
            watchdog: Duration::from_secs(30),
            reopen: Reopen::default(),
            connect_timeout: Duration::from_secs(10),
            capabilities_timeout: Duration::from_secs(10),
            disconnect_timeout: Duration::from_secs(5),
            reconnect_min: Duration::from_secs(1),
            reconnect_max: Duration::from_secs(30),
            duplicate: Duplicate::default(),
        }
    }
}

/// Inputs of the machine.
#[derive(Debug)]
pub enum Input<'a> {
    /// A connection is wanted now, whatever the back-off.
    Start,
    /// The connection attempt has succeeded.
    Connected {
        /// Our address on it.
        local: IpAddr,
    },
    /// The connection attempt has failed.
    ConnectFailed,
    /// The peer connected and sent this CER. Answer by [`Output::Accept`] or [`Output::Reject`].
    ConnectedBy {
        /// The CER.
        cer: MessageRef<'a>,
        /// Its capabilities, as read by [`Capabilities::read`].
        remote: Capabilities,
        /// Our address on the new connection.
        local: IpAddr,
        /// Whether it comes from the address that the present connection goes to.
        same_address: bool,
    },
    /// A message of the base protocol (CER, DWR, DPR and their answers) came.
    Received(Side, MessageRef<'a>),
    /// A connection broke or was closed by the peer.
    Disconnected(Side),
    /// A timer may be due.
    Timer,
    /// A request to the peer went unanswered.
    Unanswered,
    /// No connection is wanted any more; the cause goes into the DPR.
    Stop(i32),
}

/// What the driver has to do, in this order.
#[derive(Debug)]
pub enum Output {
    /// Open a connection to the peer; report [`Input::Connected`] or [`Input::ConnectFailed`].
    Connect,
    /// The connection on which the CER arrived is from now on the responder's.
    Accept,
    /// Send this on the connection on which the CER arrived, then close it. It never becomes the responder's.
    Reject(MessageMut),
    /// Send this.
    Send(Side, MessageMut),
    /// Close this connection (or end the attempt), after what is queued on it was sent. Its end is not to
    /// be reported.
    Close(Side),
    /// The peer is open on this side. When `secure`, both have announced TLS in Inband-Security-Id: the
    /// handshake comes before anything else (the initiator is its client).
    Up {
        /// The connection to use.
        side: Side,
        /// The capabilities of the peer.
        remote: Arc<Capabilities>,
        /// Application ids in common.
        common: Vec<u32>,
        /// Whether a TLS handshake has to come first.
        secure: bool,
    },
    /// Requests may be sent to the peer ([`Health::Okay`]) or should not be (any other).
    Health(Health),
    /// The peer is not open any more.
    Down(DownReason),
}

/// Why a peer is not open any more.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DownReason {
    /// The connection broke.
    Lost,
    /// The watchdog went unanswered.
    Silent,
    /// The peer sent a DPR with this Disconnect-Cause.
    PeerSaid(i32),
    /// This node sent a DPR.
    WeSaid,
    /// The peer has reconnected.
    Replaced,
}
