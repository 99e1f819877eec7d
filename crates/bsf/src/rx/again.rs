//! Another way for a request whose next hop was lost before it answered (RFC 6733 §5.5.4), and another PCF for a session
//! whose PCF is lost (TS 29.513 §8.2, bindings of `bindLevel` `NF_SET`).

use bytes::{Bytes, BytesMut};
use diameter::proto::{CommandFlags, Fault, MessageBuilder, MessageMut, ResultCode, encode_one, known};
use diameter::{Kept, Node, Unanswered, UnansweredReason};

use super::answer::{Effect, Transit};
use super::post::{Crossing, Packet};
use super::request::{DESTINATION_HOST, without};
use super::{Agent, PeerState};
use crate::events::Event;

impl Agent {
    /// The first of a host and the relays that is connected, and its worker; not the one that was lost.
    pub(super) fn next_hop(&self, host: &str, lost: Option<&str>) -> Option<(String, usize)> {
        let worker = self.front.worker();
        let relays = worker.config().rx.relays.iter().map(String::as_str);
        std::iter::once(host)
            .chain(relays)
            .filter(|hop| lost.is_none_or(|lost| !lost.eq_ignore_ascii_case(hop)))
            .find_map(|hop| Some((hop.to_owned(), self.places.home(hop)?)))
    }

    /// Another PCF of a set that can be reached; `None` also when no NRF knows any.
    pub(super) async fn sibling(&self, set: &str, lost: &str) -> Option<String> {
        let hosts = self.front.function().sets.diameter_hosts(set).await;
        let others = hosts.iter().filter(|host| !host.eq_ignore_ascii_case(lost));
        let others: Vec<&str> = others
            .filter(|host| self.next_hop(host, Some(lost)).is_some())
            .map(String::as_str)
            .collect();
        self.lightest(&others).map(str::to_owned)
    }

    /// A request got no answer.
    pub(super) fn lost(&self, node: &Node<Self>, lost: Unanswered<Transit, PeerState>) {
        let Unanswered {
            context: transit,
            connection,
            why,
            kept,
        } = lost;
        let attempts = self.front.worker().config().rx.attempts;
        let hop = connection.peer().map(|up| up.remote.origin.host.clone());
        if let (UnansweredReason::ConnectionLost, Some(kept), Some(hop)) = (why, kept, hop)
            && transit.sent < attempts
            && let Some(message) = whole(&kept)
        {
            return self.again(node, transit, message, &hop);
        }
        self.unanswered(node, transit);
    }

    /// Sends a request again, as one that another node may have carried out.
    fn again(&self, node: &Node<Self>, mut transit: Transit, message: MessageMut, lost: &str) {
        // A relay may have been chosen for the realm alone.
        let host = message
            .get(known::DESTINATION_HOST)
            .ok()
            .flatten()
            .unwrap_or_default();
        if let Some((hop, home)) = self.next_hop(host, Some(lost)) {
            let crossing = Crossing {
                hop: hop.into(),
                message,
                append: Bytes::new(),
                transit,
            };
            return self.send_again(node, home, crossing);
        }
        let (set, failed) = match &mut transit.effect {
            Effect::Begins { set, pcf, .. } => (set.take(), pcf.clone()),
            _ => (None, Box::default()),
        };
        let Some(set) = set else {
            return self.unanswered(node, transit);
        };
        let node = node.clone();
        tokio::task::spawn_local(async move {
            let agent = node.app();
            let other = agent.sibling(&set, &failed).await;
            node.refresh();
            let way = other.and_then(|other| Some((agent.next_hop(&other, Some(&failed))?, other)));
            let unnamed = without(&message, &[DESTINATION_HOST]);
            let (Some(((hop, home), other)), Some(message)) = (way, unnamed) else {
                return agent.unanswered(&node, transit);
            };
            agent.counters.count(Event::RxOtherPcf);
            let append = encode_one(known::DESTINATION_HOST, other.as_str());
            if let Effect::Begins { pcf, .. } = &mut transit.effect {
                *pcf = other.into();
                transit.moved = true;
            }
            let crossing = Crossing {
                hop: hop.into(),
                message,
                append,
                transit,
            };
            agent.send_again(&node, home, crossing);
        });
    }

    fn send_again(&self, node: &Node<Self>, home: usize, crossing: Crossing) {
        self.counters.count(Event::RxRetried);
        if home == self.worker {
            self.send_here(node, crossing);
        } else if let Err(Packet::Request(crossing)) = self.post.send(home, Packet::Request(crossing)) {
            let fault = Fault::new(ResultCode::TOO_BUSY, "too many requests wait for a worker");
            self.fail(node, crossing.transit, &fault);
        }
    }

    fn unanswered(&self, node: &Node<Self>, mut transit: Transit) {
        self.counters.count(Event::RxUnanswered);
        transit.failed = true;
        let fault = Fault::new(ResultCode::UNABLE_TO_DELIVER, "the next hop did not answer");
        let answer = MessageBuilder::error_answer(&transit.request, &self.origin, &fault);
        self.deliver(node, transit, answer);
    }
}

/// A request as it was sent, with what was appended, and the T flag.
fn whole(kept: &Kept) -> Option<MessageMut> {
    let bytes = [kept.message().as_bytes(), kept.appended()].concat();
    let mut message = MessageMut::parse(BytesMut::from(&bytes[..])).ok()?;
    message.set_flags(message.flags().with(CommandFlags::RETRANSMITTED));
    Some(message)
}
