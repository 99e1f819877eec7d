//! What `check` says of the settings.

use std::net::SocketAddr;
use std::ops::RangeInclusive;

use settings::{Faults, Validate};

use super::Tables;
use crate::config::{Config, Link, Transport};

/// Identifiers of transactions that a table may have.
const TRANSACTIONS: RangeInclusive<usize> = 16..=10_000_000;

impl Validate for Config {
    fn validate(&self, faults: &mut Faults) {
        // What compiles has no mistakes, but for files, which the machine that runs the STP has.
        Tables::compile(self, faults);
        if self.reconnect.is_zero() {
            faults.at("reconnect").say("is 0", "a period such as 2s");
        }
        if !TRANSACTIONS.contains(&self.transactions.number) {
            let right = format!("{} to {}", TRANSACTIONS.start(), TRANSACTIONS.end());
            faults.at("transactions.number").say("is out of its range", right);
        }
        if self.transactions.timeout.is_zero() {
            faults
                .at("transactions.timeout")
                .say("is 0", "a period such as 120s");
        }
        for (transport, listen, key) in [
            (Transport::Tcp, &self.listen, "listen"),
            (Transport::Sctp, &self.sctp_listen, "sctpListen"),
        ] {
            let accepts = |link: &Link| !link.connect && link.transport == transport;
            if listen.first().is_none()
                && let Some(index) = self.links.iter().position(accepts)
            {
                faults.at(format!("links[{index}]")).say(
                    format!("waits for a peer to connect, and `{key}` is empty"),
                    format!("an address in `{key}`, or `connect: true`, or another `transport`"),
                );
            }
        }
        let first = self.sctp_listen.first();
        let same = |one: SocketAddr| {
            first.is_some_and(|first| (first.port(), first.is_ipv4()) == (one.port(), one.is_ipv4()))
        };
        if !self.sctp_listen.iter().all(same) {
            let what = "has addresses with several ports, or of both families";
            faults
                .at("sctpListen")
                .say(what, "the addresses of one end point");
        }
    }
}
