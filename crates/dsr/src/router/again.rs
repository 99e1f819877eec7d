//! A request that goes elsewhere: its connection was lost, it timed out, or its answer asks for it.

use diameter::Kept;
use diameter::proto::{CommandFlags, Message, MessageMut, Routing};
use dsr_app::View;
use smallvec::SmallVec;

use super::mailbox::Packet;
use super::request::{Decision, reason};
use super::{Core, Link, RequestFlags, Target, Transit};
use crate::config::Exception;
use crate::edit::readdress;
use crate::events::Event;
use crate::redirects::{CachedRoute, redirect_hosts};
use crate::routing::Choice;
use crate::snapshot::Snapshot;

/// Bound on the hops that are tried, those that took nothing included.
const MAX_TRIED: usize = 64;

/// The request for the host that it was redirected to.
pub(super) fn renamed<B: AsRef<[u8]>>(message: &Message<B>, host: &[u8]) -> Option<MessageMut> {
    readdress(message, "", std::str::from_utf8(host).ok()?).ok()
}

impl Core {
    /// Tries a request elsewhere; when nothing is left, answers it.
    pub(super) fn elsewhere(&self, kept: Kept, flags: CommandFlags, transit: Transit, why: Exception) {
        if let Err((kept, transit)) = self.try_again(kept, flags, transit) {
            self.fail(transit, kept, why);
        }
    }

    /// Whether a request may be sent once more.
    fn has_another_try(&self, transit: &Transit) -> bool {
        transit.sent < self.snapshot.borrow().attempts
            && transit.tried.len() < MAX_TRIED
            && self.now() < transit.until
    }

    /// Whether a request whose peer is in doubt may be sent elsewhere now.
    #[cold]
    pub(super) fn has_alternative(&self, kept: &Kept, transit: &Transit) -> bool {
        let message = transit
            .original
            .as_ref()
            .map_or(kept, |original| &**original)
            .message();
        let is_copy = transit.origin.flags.has(RequestFlags::COPY);
        let Some(routing) = Routing::scan_as(message, |_| false).ok().filter(|_| !is_copy) else {
            return false;
        };
        let view = View::new(
            message.application(),
            message.command(),
            transit.priority,
            &routing,
        );
        self.has_another_try(transit)
            && matches!(self.route(&self.snapshot(), &view, transit), Decision::Send(..))
    }

    /// Tries a request elsewhere, with these flags added to its own. Gives it back when nothing is left: no
    /// attempt, no time, no hop.
    #[allow(clippy::result_large_err)]
    pub(super) fn try_again(
        &self,
        kept: Kept,
        flags: CommandFlags,
        mut transit: Transit,
    ) -> Result<(), (Kept, Transit)> {
        // Names were hidden for the hop it went to; the next one may be trusted.
        let kept = transit.original.take().map_or(kept, |original| *original);
        if !self.has_another_try(&transit) {
            return Err((kept, transit));
        }
        let target = {
            let message = kept.message();
            // It was scanned when it came.
            let Ok(routing) = Routing::scan_as(message, |_| false) else {
                return Err((kept, transit));
            };
            let view = View::new(
                message.application(),
                message.command(),
                transit.priority,
                &routing,
            );
            match self.route(&self.snapshot(), &view, &transit) {
                Decision::Send(target, ..) => target,
                _ => return Err((kept, transit)),
            }
        };
        self.dispatch_kept(target, kept, flags, transit)
    }

    /// Follows a redirect to a host that is connected (RFC 6733 §6.1.8). Gives the request back when there is
    /// none.
    #[cold]
    #[allow(clippy::result_large_err)]
    pub(super) fn redirect(
        &self,
        kept: Kept,
        mut transit: Transit,
        answer: &MessageMut,
    ) -> Result<(), (Kept, Transit)> {
        let kept = transit.original.take().map_or(kept, |original| *original);
        if !self.has_another_try(&transit) {
            return Err((kept, transit));
        }
        let snapshot = self.snapshot();
        let target = {
            let message = kept.message();
            // It was scanned when it came.
            let Ok(routing) = Routing::scan_as(message, |_| false) else {
                return Err((kept, transit));
            };
            let view = View::new(
                message.application(),
                message.command(),
                transit.priority,
                &routing,
            );
            let mut passed = SmallVec::new();
            let choice = self.choice(&snapshot, &transit, &view, &mut passed);
            let found = redirect_hosts(answer)
                .find_map(|host| Some((self.implicit(&snapshot, host, &choice)?, host)));
            // A server that checks its own name would refuse that of the one which redirects.
            let names_host = routing.destination_host.is_some();
            found.map(|(target, host)| {
                let renamed = names_host.then(|| renamed(message, host)).flatten();
                (target, renamed)
            })
        };
        match target {
            Some((target, renamed)) => {
                self.count(Event::Redirected);
                let kept = match renamed {
                    Some(message) => Kept::new(message.freeze(), kept.appended().to_vec().into()),
                    None => kept,
                };
                self.dispatch_kept(target, kept, CommandFlags::default(), transit)
            }
            None => Err((kept, transit)),
        }
    }

    /// Caches the route of a redirect indication where it says so, on every worker. RFC 6733 §13: what foreign networks
    /// say of routes holds for the one request.
    #[cold]
    pub(super) fn cache_redirect(
        &self,
        from: &Link,
        kept: &Kept,
        transit: &Transit,
        indication: &MessageMut,
    ) {
        if from.profile().untrusted {
            return;
        }
        let message = transit
            .original
            .as_ref()
            .map_or(kept, |original| &**original)
            .message();
        let Ok(request) = Routing::scan_as(message, |_| false) else {
            return;
        };
        let route = CachedRoute::new(
            indication,
            &request,
            transit.application,
            &from.hop().host,
            self.now(),
        );
        let Some(route) = route else { return };
        for worker in (0..self.tools.gauges.len()).filter(|worker| *worker != self.worker) {
            // A worker whose mailbox is full asks the redirecting host itself.
            let _ = self.post.send(worker, Packet::Redirect(route.clone()));
        }
        self.learn_redirect(route);
    }

    /// Caches a route that this or another worker was given.
    pub(super) fn learn_redirect(&self, route: CachedRoute) {
        let evicted = self.redirects.borrow_mut().learn(route);
        self.count(Event::RedirectCached);
        self.counters.add(Event::RedirectEvicted, evicted);
    }

    /// A hop for a new request by a cached route, in place of the one that routing has found.
    #[cold]
    pub(super) fn cached_redirect(
        &self,
        snapshot: &Snapshot,
        view: &View<'_>,
        choice: &Choice<'_>,
        found: Option<Target>,
    ) -> Option<(Target, Box<[u8]>)> {
        let now = self.now();
        let redirects = self.redirects.borrow();
        let by_request = match view.routing.destination_host {
            None => redirects.find(view.application, view.routing, now),
            Some(_) => None,
        };
        let hosts = match by_request {
            Some(hosts) => hosts,
            None => {
                let hop = found?.hop;
                let mut hops = self.hops.borrow_mut();
                let host = hops.all().find(|known| known.id == hop)?.host.clone();
                redirects.instead_of(&host, now)?
            }
        };
        let found = hosts
            .iter()
            .find_map(|host| Some((self.implicit(snapshot, host, choice)?, host.clone())))?;
        self.count(Event::RedirectReused);
        Some(found)
    }

    #[allow(clippy::result_large_err)]
    fn dispatch_kept(
        &self,
        target: Target,
        kept: Kept,
        flags: CommandFlags,
        mut transit: Transit,
    ) -> Result<(), (Kept, Transit)> {
        transit.tried.push(target.hop);
        if target.worker == self.worker {
            self.send_kept(target.hop, kept, flags, transit);
            return Ok(());
        }
        let packet = Packet::Again {
            hop: target.hop,
            kept,
            flags,
            transit,
        };
        self.count(Event::HandedOver);
        match self.post.send(target.worker, packet) {
            Err(Packet::Again { kept, transit, .. }) => Err((kept, transit)),
            _ => Ok(()),
        }
    }

    /// Sends a kept request to a hop that lives here.
    pub(super) fn send_kept(&self, hop: u32, kept: Kept, flags: CommandFlags, mut transit: Transit) {
        let (node, connection) = match self.permit(hop, &transit) {
            Ok(link) => link,
            Err(why) => return self.elsewhere(kept, flags, transit, why),
        };
        let kept = match self.hide_request(&connection, kept.message(), kept.appended()) {
            Ok(Some(hidden)) => {
                transit.original = Some(Box::new(kept));
                Kept::new(hidden.freeze(), bytes::Bytes::new())
            }
            Ok(None) => kept,
            Err(_) => return self.elsewhere(kept, flags, transit, Exception::Exhausted),
        };
        if transit.origin.trace > 0 {
            let pieces = [kept.message().as_bytes(), kept.appended()];
            self.trace(transit.origin.trace, "request out", &connection, pieces);
        }
        let deadline = self.deadline(&connection, &transit);
        let flags = match transit.origin.flags.has(RequestFlags::LOST) {
            true => flags.with(CommandFlags::RETRANSMITTED),
            false => flags,
        };
        let again = transit.sent > 0;
        transit.sent = transit.sent.saturating_add(1);
        match node.forward_kept(&connection, kept, deadline, flags, transit) {
            Ok(()) => {
                self.count(Event::RequestSent);
                if again {
                    self.count(Event::Rerouted);
                    self.count(Event::Message);
                }
            }
            Err((why, kept, mut transit)) => {
                // Nothing of it was sent.
                transit.sent = transit.sent.saturating_sub(1);
                self.elsewhere(kept, flags, transit, reason(why));
            }
        }
    }
}
