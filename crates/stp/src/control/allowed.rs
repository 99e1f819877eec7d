//! DAVA of several destinations in one.

use std::time::{Duration, Instant};

use ahash::AHashSet;

use super::Inner;
use super::ssnm::{Known, available, notices, with_narrower};
use crate::state::State;
use crate::tables::{Cluster, Destination};

/// After a DAVA further ones are collected for this time: application servers that become active one after another would make
/// each of them send one to all others.
const COLLECTION: Duration = Duration::from_millis(200);

/// Destinations that have become available since the last DAVA.
#[derive(Default)]
pub(super) struct Allowed {
    clusters: AHashSet<Cluster>,
    /// When they are sent.
    due: Option<Instant>,
}

impl Allowed {
    /// When [`Inner::announce`] has something to do.
    pub(super) fn wake(&self) -> Option<Instant> {
        self.due.filter(|_| !self.clusters.is_empty())
    }

    /// Keeps what is available for later, if a DAVA was sent a moment ago; returns what peers are notified of now. DUNA never
    /// waits.
    pub(super) fn collect<'a>(
        &mut self,
        next: &State,
        changed: Vec<Known<'a>>,
        now: Instant,
    ) -> Vec<Known<'a>> {
        for one in changed.iter().filter(|one| !one.available) {
            self.clusters.remove(&one.cluster);
        }
        if self.due.is_none_or(|due| due <= now) && self.clusters.is_empty() {
            if changed.iter().any(|one| one.available) {
                self.due = Some(now + COLLECTION);
            }
            return changed;
        }
        let waits = |one: &Known<'_>| one.available && next.tables.routes.has(one.cluster);
        let (later, at_once): (Vec<_>, Vec<_>) = changed.into_iter().partition(waits);
        self.clusters.extend(later.iter().map(|one| one.cluster));
        at_once
    }
}

impl Inner {
    /// Sends the DAVA that were collected, when it is time.
    pub(super) fn announce(&mut self, now: Instant) {
        if self.allowed.due.is_none_or(|due| due > now) {
            return;
        }
        self.allowed.due = None;
        let clusters = std::mem::take(&mut self.allowed.clusters);
        if clusters.is_empty() {
            return;
        }
        self.allowed.due = Some(now + COLLECTION);
        let state = self.state();
        let destinations = state.tables.routes.destinations.iter().enumerate();
        let known = destinations
            .filter(|(at, one)| clusters.contains(&one.cluster) && available(&state, *at))
            .map(|(_, Destination { cluster, via })| Known {
                cluster: *cluster,
                via,
                available: true,
            });
        let named = with_narrower(&state, known.collect());
        let sends = notices(&state, named);
        self.sends.extend(sends);
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Arc;

    use ss7_proto::m3ua::{AffectedPointCode, Builder, Message, MessageType, Tag};
    use telemetry::{Alarms, Registry};

    use super::*;
    use crate::config::{ApplicationServer, Config, Link};
    use crate::control::{Control, Mailbox};
    use crate::tables::Tables;

    const SERVERS: usize = 30;

    /// Application servers, each with a link of its own.
    fn control() -> Control {
        let mut config = Config::default();
        config.point_codes.own = "1".to_owned();
        let names = || (0..SERVERS).map(|at| format!("link-{at}"));
        let link = |name| Link {
            name,
            peer: vec![[127, 0, 0, 2].into()],
            ..Link::default()
        };
        config.links = names().map(link).collect();
        let server = |(at, name): (usize, String)| ApplicationServer {
            routing_context: at as u32,
            point_codes: vec![(2 + at).to_string()],
            links: vec![name.clone()],
            name,
            ..ApplicationServer::default()
        };
        config.application_servers = names().enumerate().map(server).collect();
        for (at, link) in config.links.iter_mut().enumerate() {
            link.port = Some(3_000 + at as u16);
        }
        let registry = Registry::new();
        let tables = Arc::new(Tables::load(&config).unwrap());
        Control::new(&config, tables, &registry, &Alarms::new(&registry))
    }

    /// What DAVA and DUNA each link has got: the numbers of point codes of each message.
    fn received(control: &Control) -> Vec<Vec<(MessageType, usize)>> {
        let one = |mailbox: &Mailbox| {
            let mut receiver = mailbox.take().unwrap();
            let mut found = Vec::new();
            while let Ok(frame) = receiver.try_recv() {
                let message = Message::parse(&frame.octets).unwrap();
                let kind = message.message_type();
                if matches!(kind, MessageType::Dava | MessageType::Duna) {
                    let codes = message.get(Tag::AFFECTED_POINT_CODE).unwrap();
                    found.push((kind, AffectedPointCode::list(codes).count()));
                }
            }
            mailbox.give_back(receiver);
            found
        };
        control.mailboxes.iter().map(one).collect()
    }

    #[test]
    fn application_servers_that_come_one_after_another_are_announced_together() {
        let control = control();
        let far = Instant::now() + Duration::from_secs(3_600);
        control.inner.lock().allowed.due = Some(far);
        let receive = |link, kind| {
            let mut octets = Vec::new();
            Builder::new(kind, &mut octets).finish();
            control.received(link, 0, &Message::parse(&octets).unwrap());
        };
        for link in 0..SERVERS {
            control.associated(link, SocketAddr::from(([127, 0, 0, 2], 2905)));
            receive(link, MessageType::Aspup);
            receive(link, MessageType::Aspac);
        }
        assert!(received(&control).iter().all(Vec::is_empty));
        // One that is lost meanwhile (T(r) ends) is not announced.
        receive(0, MessageType::Aspdn);
        control.tick(far);
        let all = received(&control);
        assert!(all[0].is_empty());
        for (link, messages) in all.iter().enumerate().skip(1) {
            let wanted = [(MessageType::Dava, SERVERS - 2), (MessageType::Duna, 1)];
            assert_eq!(*messages, wanted, "link {link}");
        }
        assert_eq!(control.wake(), None);
    }
}
