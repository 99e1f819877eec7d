//! Reports of servers: overload reports (RFC 7683) reduce what is sent to them, loads (RFC 8583) are weights.
//!
//! The worker that has the server's connection receives a report and forwards it to all other workers, once: each
//! worker keeps its own table. A client that supports overload control gets the report in its answers, so its requests
//! are only diverted, never refused here.

use std::rc::Rc;
use std::sync::Arc;

use diameter::Connection;
use diameter::proto::overload::doic::{Decision, Report};
use diameter::proto::overload::load::{Load, LoadType};
use diameter::proto::{Fault, MessageMut, ResultCode, Routing, known};
use dsr_app::View;
use smallvec::SmallVec;

use super::mailbox::Packet;
use super::{Core, Link, Origin, RequestFlags, Transit};
use crate::edit::{Edit, edit};
use crate::events::Event;
use crate::registry::Hop;
use crate::routing::{Choice, RouteList};
use crate::snapshot::Snapshot;

/// Peers of a route list that are tried before a request is refused because of reports.
const MAX_TRIED: usize = 8;

/// An overload report on its way to the other workers.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedReport {
    application: u32,
    host: Arc<str>,
    realm: Arc<str>,
    report: Report,
}

impl Core {
    /// Takes the reports of an answer. Returns the answer without those that end here (RFC 8583 §5, RFC 7683 §5.1).
    #[cold]
    pub(super) fn take_reports(
        &self,
        from: &Rc<Connection<Link>>,
        transit: &Transit,
        routing: &Routing<'_>,
        message: &MessageMut,
    ) -> Option<MessageMut> {
        let settings = self.snapshot.borrow().config.overload.server_reports.clone();
        // RFC 7683 §10.2, §10.4: reports count from those who are authorized to send them, and go no further from
        // others; nor do they leave the network.
        let believed = from.state().is_some_and(|link| link.profile().trusts_reports);
        if routing.overload_report && settings.reports && believed {
            let name = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
            let (host, realm) = (name(routing.origin_host), name(routing.origin_realm));
            for report in Report::all(message) {
                self.learn_and_forward(transit.application, &host, &realm, report);
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
        let asked = transit.origin.flags.has(RequestFlags::ASKED);
        if !of_peer && !asked && believed {
            return None;
        }
        let decide = |avp: &diameter::proto::Avp<'_>| {
            let load =
                avp.is(known::LOAD) && Load::read(avp.group()).is_ok_and(|load| load.kind == LoadType::Peer);
            let ours =
                (asked || !believed) && (avp.is(known::OC_OLR) || avp.is(known::OC_SUPPORTED_FEATURES));
            if load || ours {
                Edit::Drop
            } else {
                Edit::<'_>::Keep
            }
        };
        edit(message, decide, &[]).ok()
    }

    fn learn_and_forward(&self, application: u32, host: &str, realm: &str, report: Report) {
        if !self
            .reactions
            .borrow_mut()
            .learn(self.now(), application, host, realm, report)
        {
            return;
        }
        self.count(Event::ReportHeard);
        tracing::info!(host, realm, application, ?report, "overload report");
        let received = ReceivedReport {
            application,
            host: host.into(),
            realm: realm.into(),
            report,
        };
        for worker in (0..self.tools.gauges.len()).filter(|worker| *worker != self.worker) {
            // A worker whose mailbox is full gets the next report.
            let _ = self.post.send(worker, Packet::Report(received.clone()));
        }
    }

    /// Learns a report that another worker received.
    pub(super) fn learn_forwarded(&self, received: &ReceivedReport) {
        let ReceivedReport {
            application,
            host,
            realm,
            report,
        } = received;
        self.reactions
            .borrow_mut()
            .learn(self.now(), *application, host, realm, *report);
    }

    /// The answer to a new request that an overload report of its host or realm holds back; none: it is sent.
    #[inline]
    pub(super) fn abates(&self, view: &View<'_>, transit: &Transit) -> Option<Fault> {
        if self.reactions.borrow().is_empty()
            || !transit.tried.is_empty()
            || transit.origin.flags.has(RequestFlags::DOIC)
        {
            return None;
        }
        let host = view.routing.destination_host;
        let realm = view.routing.destination_realm.unwrap_or_default();
        self.asked_less(view, transit.priority, host, realm)
            .then(|| self.abated())
    }

    fn asked_less(&self, view: &View<'_>, priority: u8, host: Option<&[u8]>, realm: &[u8]) -> bool {
        let decision = self.reactions.borrow_mut().decide(
            self.now(),
            view.application,
            host,
            realm,
            priority,
            self.dice(),
        );
        decision == Decision::Abate
    }

    fn abated(&self) -> Fault {
        self.count(Event::Abated);
        let answer = &self.snapshot.borrow().config.overload.server_reports.answer;
        Fault::new(ResultCode(answer.result_code), answer.message.clone()).of_vendor(answer.vendor_id)
    }

    /// A hop of a list, of those whose overload reports admit the request.
    #[inline]
    pub(super) fn choose<'l>(
        &self,
        list: &'l RouteList,
        choice: &Choice<'_>,
        view: &View<'_>,
        transit: &Transit,
    ) -> Result<Option<&'l Arc<Hop>>, Fault> {
        // A request that names a host was decided on by `abates`.
        if self.reactions.borrow().is_empty() || view.routing.destination_host.is_some() {
            return Ok(list.choose(choice));
        }
        let mut barred: SmallVec<[u32; 8]> = SmallVec::from_slice(choice.barred);
        for round in 0..MAX_TRIED {
            let choice = Choice {
                barred: &barred,
                dice: if round == 0 { choice.dice } else { self.dice() },
                ..*choice
            };
            match list.choose(&choice) {
                Some(hop) if self.asked_less(view, transit.priority, Some(hop.host.as_bytes()), b"") => {
                    self.count(Event::Diverted);
                    barred.push(hop.id);
                }
                None if round > 0 => break,
                found => return Ok(found),
            }
        }
        Err(self.abated())
    }

    /// The AVPs appended to a request of this connection; they ask the server for overload reports where the client
    /// does not.
    #[inline]
    pub(super) fn appended<'c>(
        &self,
        snapshot: &Snapshot,
        from: &'c Connection<Link>,
        origin: &mut Origin,
    ) -> &'c bytes::Bytes {
        let settings = &snapshot.config.overload.server_reports;
        if !settings.ask || origin.flags.has(RequestFlags::DOIC) {
            return from.route_record();
        }
        match from.state() {
            Some(link) => {
                origin.flags.set(RequestFlags::ASKED, true);
                link.asking(from.route_record())
            }
            None => from.route_record(),
        }
    }

    /// Expires loads, reports and routes that were not renewed.
    pub(super) fn forget_loads(&self) {
        let now = self.now();
        self.each_hop(|hop| hop.forget_load(now));
        self.reactions.borrow_mut().expire(now);
        self.redirects.borrow_mut().expire(now);
    }
}
