//! Addresses that a gateway reports for a session that exists: an AF finds the session by these (TS 29.212 §5.3.7,
//! UE_IP_ADDRESS_ALLOCATE and UE_IP_ADDRESS_RELEASE).

use diameter_proto::known::{self, application};
use diameter_proto::{Avps, Message};
use dsr_app::session::result;
use dsr_app::{Answered, Flow, On, Request};
use sbr::{Addresses, Begun};

use crate::facts::Facts;
use crate::note::{Note, Stage};
use crate::{Found, Pdra};

/// Values of Event-Trigger (TS 29.212 §5.3.7).
const UE_IP_ADDRESS_ALLOCATE: i32 = 18;
const UE_IP_ADDRESS_RELEASE: i32 = 19;

impl Pdra {
    /// The answer to a request that reports addresses: where the PCRF has taken them, they are written before it goes on.
    pub(crate) fn reported<'a>(&'a self, on: &mut On<'_, Self>, answered: &Answered<'_>) -> Flow<'a> {
        if !result(answered.answer).is_some_and(|code| code.is_success()) {
            return self.passed(on, Stage::Reports, answered);
        }
        let Some(facts) = Facts::read_sent(answered.request) else {
            return Flow::Next;
        };
        let reported = Addresses {
            ipv4: facts.ipv4,
            prefixes: facts.prefixes,
            are_released: are_released(answered.request),
        };
        let repository = self.shared.opened.repository().clone();
        let (id, application, client) = (facts.session, facts.application, facts.sender);
        let work = async move { repository.report(&id, application, &client, &reported).await };
        let note = Note {
            stage: Stage::Writes,
            ..Note::default()
        };
        note.write(on.memo);
        let then = on.worker.resume.with(on.ticket, Found::Written);
        // Mostly it is a read that shows the addresses to be those of the session.
        match self.shared.opened.begin(work, then) {
            Begun::Done(written) => Self::written(on, written),
            Begun::GoesOn => Flow::Later(self.settings.repository.reservation.duration()),
            Begun::Refused => Self::failed(on),
        }
    }
}

/// Whether a request of a session may report addresses. Sessions of a TDF are not found by theirs.
pub(crate) fn is_report(request: &Request<'_>, is_other: bool) -> bool {
    let routing = request.view.routing;
    let has_address = routing.framed_ip.is_some() || routing.framed_ipv6_prefix.is_some();
    let is_bound = !matches!(request.message.application(), application::RX | application::SD);
    has_address && is_bound && !is_other
}

/// Whether the addresses of a request are those that the session has no more. With UE_IP_ADDRESS_ALLOCATE as well, they are
/// the new ones.
fn are_released<B: AsRef<[u8]>>(request: &Message<B>) -> bool {
    let has = |event| {
        request.avps().map_while(Result::ok).any(|avp| {
            let in_report = avp.is(known::EVENT_REPORT_INDICATION) && has_event(avp.group(), event);
            in_report || (avp.is(known::EVENT_TRIGGER) && avp.data == event.to_be_bytes())
        })
    };
    has(UE_IP_ADDRESS_RELEASE) && !has(UE_IP_ADDRESS_ALLOCATE)
}

fn has_event(avps: Avps<'_>, event: i32) -> bool {
    let mut avps = avps.map_while(Result::ok);
    avps.any(|avp| avp.is(known::EVENT_TRIGGER) && avp.data == event.to_be_bytes())
}
