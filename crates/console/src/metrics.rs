//! What the console counts.

use telemetry::{Counter, Registry};

telemetry::declare! {
    /// Everything a console counts.
    pub(crate) METRICS;
    counter SIGN_INS = "signalbox_console_sign_ins_total" ["outcome"]: "Sign-ins, by outcome: accepted, refused (name or password is wrong), waiting (after too many failures of the account or the address), busy (as many passwords are hashed as may be at one time).";
    counter CONNECTIONS = "signalbox_console_refused_connections_total" ["why"]: "Connections of browsers that were closed: bound (all may have 512, an address 128), handshake (TLS failed).";
}

/// The counters, resolved.
#[derive(Debug)]
pub(crate) struct Meters {
    pub(crate) accepted: Counter,
    pub(crate) refused: Counter,
    pub(crate) waiting: Counter,
    pub(crate) busy: Counter,
    pub(crate) refused_connections: Counter,
    pub(crate) failed_handshakes: Counter,
}

impl Meters {
    pub(crate) fn new(registry: &Registry) -> Self {
        let (sign_ins, connections) = (registry.counters(&SIGN_INS), registry.counters(&CONNECTIONS));
        Self {
            accepted: sign_ins.get(&["accepted"]),
            refused: sign_ins.get(&["refused"]),
            waiting: sign_ins.get(&["waiting"]),
            busy: sign_ins.get(&["busy"]),
            refused_connections: connections.get(&["bound"]),
            failed_handshakes: connections.get(&["handshake"]),
        }
    }
}
