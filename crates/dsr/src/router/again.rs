//! A request that goes elsewhere: its connection was lost, nobody answered in time, or an answer says so.

use diameter::Kept;
use diameter::proto::{CommandFlags, Message, MessageMut, Routing, known};

use super::mailbox::Packet;
use super::request::{Decision, reason};
use super::{Core, Target, Transit};
use crate::config::Exception;
use crate::events::Event;
use crate::routing::View;

/// Redirect-Hosts that are looked at.
const MOST_REDIRECTS: usize = 8;

impl Core {
    /// Tries a request elsewhere; when nothing is left, answers it.
    pub(super) fn elsewhere(&self, kept: Kept, flags: CommandFlags, transit: Transit, why: Exception) {
        if let Err((kept, transit)) = self.try_again(kept, flags, transit) {
            self.except(transit.origin, kept.message(), why);
        }
    }

    /// Whether a request may be sent once more.
    fn has_another_try(&self, transit: &Transit) -> bool {
        transit.tried.len() < usize::from(self.snapshot.borrow().attempts) && self.now() < transit.until
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
                Decision::Send(target, _) => target,
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
            let choice = self.choice(&snapshot, &transit);
            redirect_hosts(answer).find_map(|host| self.implicit(&snapshot, host, &choice))
        };
        match target {
            Some(target) => {
                self.count(Event::Redirected);
                self.dispatch_kept(target, kept, CommandFlags::default(), transit)
            }
            None => Err((kept, transit)),
        }
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
        self.count(Event::Rerouted);
        self.count(Event::Message);
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
            Some(hidden) => {
                transit.original = Some(Box::new(kept));
                Kept::new(hidden.freeze(), bytes::Bytes::new())
            }
            None => kept,
        };
        if transit.origin.trace > 0 {
            let pieces = [kept.message().as_bytes(), kept.appended()];
            self.trace(transit.origin.trace, "request out", &connection, pieces);
        }
        let deadline = self.deadline(&connection, &transit);
        match node.forward_kept(&connection, kept, deadline, flags, transit) {
            Ok(()) => self.count(Event::RequestSent),
            Err((why, kept, transit)) => self.elsewhere(kept, flags, transit, reason(why)),
        }
    }
}

/// The hosts that an answer redirects to: `aaa://host:port;transport=…` (RFC 6733 §4.3.1).
fn redirect_hosts<B: AsRef<[u8]>>(answer: &Message<B>) -> impl Iterator<Item = &[u8]> {
    answer
        .avps()
        .map_while(Result::ok)
        .filter(|avp| avp.is(known::REDIRECT_HOST))
        .take(MOST_REDIRECTS)
        .filter_map(|avp| {
            let uri = avp.data;
            let host = uri
                .strip_prefix(b"aaa://")
                .or_else(|| uri.strip_prefix(b"aaas://"))?;
            host.split(|byte| matches!(byte, b':' | b';')).next()
        })
}
