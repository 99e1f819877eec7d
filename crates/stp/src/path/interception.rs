//! Transparent interception: IAMs that pass through get the routing number of a ported number, or end. No exchange has to
//! query, and no state is kept.

use ss7_proto::isup::{Cause as Reason, Iam, write_release};
use ss7_proto::m3ua::{Data, ServiceIndicator};

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
    let iam = match Iam::parse(data.user_data) {
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
        (Step::Number(nature, digits), Some(called)) => {
            let next = with_digits(called, nature, digits);
            let grown = 2 + next.digits.packed().len();
            let was = 2 + called.digits.packed().len();
            if !fits_msu(&tables.points, data.user_data.len() - was + grown) {
                trace
                    .add(|| "interception: the MSU has no room for the routing number: it passes".to_owned());
                return Some(with(CallOutcome::Oversize, as_it_is(trace)));
            }
            trace.add(|| format!("interception: called number {}, nature {nature}", next.digits));
            let ported = outcome == CallOutcome::Routed;
            let mut room = true;
            let decision = pass(ingress, data, trace, |out| {
                room = iam.write_with_called(&next, ported, out).is_ok();
                room
            });
            if !room {
                return Some(with(CallOutcome::Oversize, as_it_is(trace)));
            }
            decision
        }
        (Step::Release, _) => release(ingress, data, &iam, trace),
        (Step::Continue | Step::Number(..), _) => as_it_is(trace),
    };
    Some(with(outcome, decision))
}

/// REL to the exchange that has sent the IAM, in the name of the one that does not get it. Its RLC reaches that one for an idle
/// circuit, where it is discarded (Q.764 §2.9.5.1).
fn release(ingress: &Ingress<'_>, data: &Data<'_>, iam: &Iam<'_>, trace: &mut Trace) -> Decision {
    trace.add(|| "interception: REL with cause 1, unallocated number".to_owned());
    let back = Data {
        opc: data.dpc,
        dpc: data.opc,
        ..*data
    };
    let sent = transfer(ingress.state, None, &back, trace, |out| {
        write_release(iam.circuit(), Reason::UNALLOCATED, out);
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
