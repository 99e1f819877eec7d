//! How messages come in and go out.

mod batch;
mod places;
mod rate;
mod tcp;
mod udp;

use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::Arc;

use function::live::Live;

use crate::config::Config;
use crate::message::{Responder, Transport};
use crate::metrics::{Meters, Outcome};
use crate::tables::Tables;

pub(crate) use tcp::accept;
pub(crate) use udp::{bind, serve};

/// What the sockets of a worker share.
pub(crate) struct Desk {
    live: Arc<Live<Config, Arc<Tables>>>,
    pub(crate) meters: Arc<Meters>,
    responder: RefCell<Responder>,
}

impl Desk {
    pub(crate) fn new(live: Arc<Live<Config, Arc<Tables>>>, meters: Arc<Meters>) -> Self {
        Self {
            live,
            meters,
            responder: RefCell::default(),
        }
    }

    /// Answers a message by `send`, which gets no octets where nothing is to be sent.
    fn answer<T>(
        &self,
        octets: &[u8],
        client: SocketAddr,
        transport: Transport,
        send: impl FnOnce(&[u8]) -> T,
    ) -> T {
        let now = self.live.load();
        let mut responder = self.responder.borrow_mut();
        let (handled, answer) = responder.answer(&now.derived, octets, client.ip(), transport);
        let queries = match transport {
            Transport::Udp => &self.meters.udp,
            Transport::Tcp => &self.meters.tcp,
        };
        queries.count(handled.kind);
        self.meters.count(handled.outcome);
        if handled.is_truncated {
            self.meters.truncated.inc();
        }
        send(answer)
    }

    /// Answers a query over the rate by `send`, truncated.
    fn slip<T>(&self, octets: &[u8], send: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let now = self.live.load();
        let mut responder = self.responder.borrow_mut();
        let answer = responder.slip(&now.derived, octets);
        self.meters
            .count(answer.map_or(Outcome::Limited, |_| Outcome::Slipped));
        answer.map(send)
    }
}
