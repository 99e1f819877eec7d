//! What servers report of their load: overload reports (RFC 7683) are obeyed, loads (RFC 8583) are weights.
//!
//! A report comes to the worker that has the server's connection, and goes from there to all others, once: each
//! worker keeps its own books. Clients that support overload control themselves are asked to send less by the
//! report in their answers, so their requests are only led elsewhere, never discarded here.

use std::rc::Rc;
use std::sync::Arc;

use diameter::Connection;
use diameter::proto::overload::doic::{Decision as Heed, Report};
use diameter::proto::overload::load::{Load, LoadType};
use diameter::proto::{Fault, MessageMut, ResultCode, Routing, known};
use smallvec::SmallVec;

use super::mailbox::Packet;
use super::{Core, Link, Marks, Origin, Transit};
use crate::edit::{Edit, edit};
use crate::events::Event;
use crate::registry::Hop;
use crate::routing::{Choice, RouteList, View};
use crate::snapshot::Snapshot;

/// Peers of a route list that are asked before a request counts as one that nobody wants.
const MOST_ASKED: usize = 8;

/// An overload report on its way to the other workers.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    application: u32,
    host: Arc<str>,
    realm: Arc<str>,
    report: Report,
}

impl Core {
    /// An answer says something of its server's load. What of it ends here is taken out.
    #[cold]
    pub(super) fn heed(
        &self,
        from: &Rc<Connection<Link>>,
        transit: &Transit,
        routing: &Routing<'_>,
        message: &MessageMut,
    ) -> Option<MessageMut> {
        let settings = self.snapshot.borrow().config.overload.heed.clone();
        if routing.overload_report && settings.reports {
            let name = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
            let (host, realm) = (name(routing.origin_host), name(routing.origin_realm));
            for report in Report::all(message) {
                self.learn_and_tell(transit.application, &host, &realm, report);
            }
        }
        let mut of_peer = false;
        if routing.load {
            let link = from.state()?;
            for load in Load::all(message) {
                of_peer |= load.kind == LoadType::Peer;
                if settings.loads && load.source.eq_ignore_ascii_case(&link.hop().host) {
                    self.count(Event::LoadHeard);
                    link.hop().set_load(load.value, self.now());
                }
            }
        }
        // A load of a neighbour ends with it (RFC 8583 §5); what we asked for ends with us (RFC 7683 §5.1).
        let asked = transit.origin.marks.has(Marks::ASKED);
        if !of_peer && !asked {
            return None;
        }
        let decide = |avp: &diameter::proto::Avp<'_>| {
            let load =
                avp.is(known::LOAD) && Load::read(avp.group()).is_ok_and(|load| load.kind == LoadType::Peer);
            let ours = asked && (avp.is(known::OC_OLR) || avp.is(known::OC_SUPPORTED_FEATURES));
            if load || ours {
                Edit::Drop
            } else {
                Edit::<'_>::Keep
            }
        };
        edit(message, decide, &[]).ok()
    }

    fn learn_and_tell(&self, application: u32, host: &str, realm: &str, report: Report) {
        if !self
            .heeds
            .borrow_mut()
            .learn(self.now(), application, host, realm, report)
        {
            return;
        }
        self.count(Event::ReportHeard);
        tracing::info!(host, realm, application, ?report, "overload report");
        let heard = Heard {
            application,
            host: host.into(),
            realm: realm.into(),
            report,
        };
        for worker in (0..self.tools.gauges.len()).filter(|worker| *worker != self.worker) {
            // One that has no room now hears of the next report.
            let _ = self.post.send(worker, Packet::Heard(heard.clone()));
        }
    }

    /// Another worker has heard a report.
    pub(super) fn hear(&self, heard: &Heard) {
        let Heard {
            application,
            host,
            realm,
            report,
        } = heard;
        self.heeds
            .borrow_mut()
            .learn(self.now(), *application, host, realm, *report);
    }

    /// Whether a new request is not to be sent at all: for its host, or for no host in particular of its realm,
    /// less was asked for.
    #[inline]
    pub(super) fn abates(&self, view: &View<'_>, transit: &Transit) -> Option<Fault> {
        if self.heeds.borrow().is_empty()
            || !transit.tried.is_empty()
            || transit.origin.marks.has(Marks::DOIC)
        {
            return None;
        }
        let text = |bytes: &'_ [u8]| String::from_utf8_lossy(bytes).into_owned();
        let host = view.routing.destination_host.map(text);
        let realm = view.routing.destination_realm.map(text).unwrap_or_default();
        self.asked_less(view, transit.priority, host.as_deref(), &realm)
            .then(|| self.abated())
    }

    fn asked_less(&self, view: &View<'_>, priority: u8, host: Option<&str>, realm: &str) -> bool {
        let decision =
            self.heeds
                .borrow_mut()
                .decide(self.now(), view.application, host, realm, priority, self.dice());
        decision == Heed::Abate
    }

    fn abated(&self) -> Fault {
        self.count(Event::Abated);
        let answer = &self.snapshot.borrow().config.overload.heed.answer;
        Fault::new(ResultCode(answer.result_code), answer.message.clone())
    }

    /// A hop of a list, of those that want the request.
    #[inline]
    pub(super) fn choose<'l>(
        &self,
        list: &'l RouteList,
        choice: &Choice<'_>,
        view: &View<'_>,
        transit: &Transit,
    ) -> Result<Option<&'l Arc<Hop>>, Fault> {
        // Who names a host has it decided by `abates`.
        if self.heeds.borrow().is_empty() || view.routing.destination_host.is_some() {
            return Ok(list.choose(choice));
        }
        let mut barred: SmallVec<[u32; 8]> = SmallVec::from_slice(choice.barred);
        for round in 0..MOST_ASKED {
            let choice = Choice {
                barred: &barred,
                dice: if round == 0 { choice.dice } else { self.dice() },
                ..*choice
            };
            match list.choose(&choice) {
                Some(hop) if self.asked_less(view, transit.priority, Some(&hop.host), "") => {
                    self.count(Event::Diverted);
                    barred.push(hop.id);
                }
                None if round > 0 => break,
                found => return Ok(found),
            }
        }
        Err(self.abated())
    }

    /// What is appended to a request of this connection, with what asks the server for overload reports where
    /// the client does not.
    #[inline]
    pub(super) fn appended<'c>(
        &self,
        snapshot: &Snapshot,
        from: &'c Connection<Link>,
        origin: &mut Origin,
    ) -> &'c bytes::Bytes {
        let heed = &snapshot.config.overload.heed;
        if !heed.ask || origin.marks.has(Marks::DOIC) {
            return from.route_record();
        }
        match from.state() {
            Some(link) => {
                origin.marks.set(Marks::ASKED, true);
                link.asking(from.route_record())
            }
            None => from.route_record(),
        }
    }

    /// Loads that nobody has renewed are forgotten.
    pub(super) fn forget_loads(&self) {
        let now = self.now();
        self.each_hop(|hop| hop.forget_load(now));
        self.heeds.borrow_mut().expire(now);
    }
}
