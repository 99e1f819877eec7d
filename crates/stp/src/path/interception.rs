//! Transparent interception: IAMs that pass through get the routing number of a ported number, or end. No exchange has to
//! query, and no state is kept.

use ss7_proto::isup::{AnsiIam, Cause as Reason, Fault, Iam, Number, TooLong, nature, write_release};
use ss7_proto::m3ua::{Data, ServiceIndicator};
use ss7_proto::sccp::Format;

use super::call::{Step, judge, with_digits};
use super::{Decision, Ingress, Trace, pass, transfer, unchanged};
use crate::cause::{CallOutcome, CallService};
use crate::tables::fits_msu;

/// Decides on an IAM for another node; `None` when the message passes as it is and nothing is to be counted.
pub(super) fn intercept(ingress: &Ingress<'_>, data: &Data<'_>, trace: &mut Trace) -> Option<Decision> {
    let tables = &ingress.state.tables;
    let services = tables.numbers.as_ref()?;
    if data.si != ServiceIndicator::ISUP || !services.calls.intercepts(ingress.hop) {
        return None;
    }
    let iam = match Call::parse(data.user_data, tables.points.format) {
        Ok(iam) => iam,
        Err(fault) => {
            trace.add(|| format!("interception: {fault}: it passes"));
            return None;
        }
    };
    let with = |outcome, decision| Decision {
        call: Some((CallService::Interception, outcome)),
        ..decision
    };
    let as_it_is = |trace: &mut Trace| pass(ingress, data, trace, unchanged(data.user_data));
    // Q.769.1: an exchange before has queried the number; another answer would not be heard.
    if iam.is_queried() {
        trace.add(|| "interception: the number was queried before: it passes".to_owned());
        return Some(with(CallOutcome::Queried, as_it_is(trace)));
    }
    let called = iam.called();
    let number = called.and_then(|called| services.of_party(&called));
    let (outcome, step) = judge(services, number, trace);
    let decision = match (step, called) {
        (step @ Step::Number { .. }, Some(called)) => {
            let next = iam.edited(called, step);
            if !fits_msu(&tables.points, next.length) {
                trace
                    .add(|| "interception: the MSU has no room for the routing number: it passes".to_owned());
                return Some(with(CallOutcome::Oversize, as_it_is(trace)));
            }
            trace.add(|| {
                let Number { nature, digits, .. } = next.called;
                format!("interception: called number {digits}, nature {nature}")
            });
            let mut room = true;
            let decision = pass(ingress, data, trace, |out| {
                room = iam.write(&next, out).is_ok();
                room
            });
            if !room {
                return Some(with(CallOutcome::Oversize, as_it_is(trace)));
            }
            decision
        }
        (Step::Release, _) => release(ingress, data, iam.circuit(), trace),
        (Step::Continue | Step::Number { .. }, _) => as_it_is(trace),
    };
    Some(with(outcome, decision))
}

/// An IAM in the form of its network.
enum Call<'a> {
    Itu(Iam<'a>),
    Ansi(AnsiIam<'a>),
}

/// How an IAM goes on.
struct Edited {
    called: Number,
    /// Whether the called number is one that was ported.
    is_ported: bool,
    /// The number beside a location routing number, of ANSI.
    dialled: Option<Number>,
    /// Octets of the message then.
    length: usize,
}

impl<'a> Call<'a> {
    fn parse(octets: &'a [u8], format: Format) -> Result<Self, Fault> {
        match format {
            Format::Ansi => AnsiIam::parse(octets).map(Self::Ansi),
            Format::Itu | Format::China | Format::Japan => Iam::parse(octets).map(Self::Itu),
        }
    }

    fn is_queried(&self) -> bool {
        match self {
            Self::Itu(iam) => iam.is_queried(),
            Self::Ansi(iam) => iam.is_queried(),
        }
    }

    fn called(&self) -> Option<Number> {
        match self {
            Self::Itu(iam) => iam.called(),
            Self::Ansi(iam) => iam.called(),
        }
    }

    fn circuit(&self) -> [u8; 2] {
        match self {
            Self::Itu(iam) => iam.circuit(),
            Self::Ansi(iam) => iam.circuit(),
        }
    }

    /// With ITU the routing number stands before the number, with ANSI in its place.
    fn edited(&self, called: Number, step: Step) -> Edited {
        let (next, routing_number) = match step {
            Step::Number {
                nature,
                digits,
                routing_number,
            } => (with_digits(called, nature, digits), routing_number),
            Step::Continue | Step::Release => (called, None),
        };
        let is_ported = routing_number.is_some();
        match (self, routing_number) {
            (Self::Itu(iam), _) => Edited {
                length: iam.len_with_called(&next),
                called: next,
                is_ported,
                dialled: None,
            },
            (Self::Ansi(iam), None) => Edited {
                length: iam.queried_len(&next, None),
                called: next,
                is_ported,
                dialled: None,
            },
            (Self::Ansi(iam), Some(routing_number)) => {
                let next = with_digits(called, nature::NATIONAL, routing_number);
                // Presentation is allowed; what else the second octet has is the called number's alone.
                let dialled = Number {
                    indicators: called.indicators & 0x70,
                    ..called
                };
                Edited {
                    length: iam.queried_len(&next, Some(&dialled)),
                    called: next,
                    is_ported,
                    dialled: Some(dialled),
                }
            }
        }
    }

    fn write(&self, next: &Edited, out: &mut Vec<u8>) -> Result<(), TooLong> {
        match self {
            Self::Itu(iam) => iam.write_with_called(&next.called, next.is_ported, out),
            Self::Ansi(iam) => iam.write_queried(&next.called, next.dialled.as_ref(), out),
        }
    }
}

/// REL to the exchange that has sent the IAM, in the name of the one that does not get it. Its RLC reaches that one for an idle
/// circuit, where it is discarded (Q.764 §2.9.5.1).
fn release(ingress: &Ingress<'_>, data: &Data<'_>, circuit: [u8; 2], trace: &mut Trace) -> Decision {
    trace.add(|| "interception: REL with cause 1, unallocated number".to_owned());
    let back = Data {
        opc: data.dpc,
        dpc: data.opc,
        ..*data
    };
    let sent = transfer(ingress.state, None, &back, trace, |out| {
        write_release(circuit, Reason::UNALLOCATED, out);
        true
    });
    match sent {
        Ok(send) => Decision {
            send: Some(send),
            ..Decision::default()
        },
        Err(cause) => Decision::drop(cause),
    }
}
