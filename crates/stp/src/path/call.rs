//! What the file of numbers means for a call, by INAP, CAP or ISUP.

use ss7_proto::Digits;
use ss7_proto::isup;

use super::Trace;
use super::number::shown;
use crate::cause::CallOutcome;
use crate::tables::{Number, NumberServices, Whereabouts};

/// End of pulsing: the number is complete (Q.763 §3.9).
const ST: u8 = 0x0f;

/// How a call goes on.
pub(super) enum Step {
    /// As it was.
    Continue,
    /// To another number: nature of address and digits, with the routing number among them of a ported number.
    Number {
        nature: u8,
        digits: Digits,
        routing_number: Option<Digits>,
    },
    /// It ends: the number is not allocated.
    Release,
}

/// Decides by the called number of a call; `None`: it has none that could be looked up.
pub(super) fn judge(
    services: &NumberServices,
    called: Option<Number>,
    trace: &mut Trace,
) -> (CallOutcome, Step) {
    let Some(number) = called else {
        trace.add(|| "call: no called number of 5 to 15 digits that could be looked up".to_owned());
        return (CallOutcome::Unconditioned, Step::Continue);
    };
    let found = services.find(&number);
    trace.add(|| {
        let found = shown(found.as_ref().ok());
        format!("call: called number {}: {found}", number.digits)
    });
    let unallocated = |otherwise| {
        if services.calls.releases {
            (CallOutcome::Released, Step::Release)
        } else {
            (otherwise, Step::Continue)
        }
    };
    match found {
        Err(_) => (CallOutcome::Damaged, Step::Continue),
        Ok(Whereabouts::Home(_)) if number.was_routed => {
            let (nature, digits) = services.for_call(&number);
            let step = Step::Number {
                nature,
                digits,
                routing_number: None,
            };
            (CallOutcome::Home, step)
        }
        Ok(Whereabouts::Home(_)) => (CallOutcome::Home, Step::Continue),
        // A routing number of this network led here, and the number is not here: the call would circle.
        Ok(_) if number.was_routed => unallocated(CallOutcome::Circular),
        Ok(Whereabouts::Away { routing_number, .. }) => {
            let (_, digits) = services.for_call(&number);
            // Both are shorter than 40 digits together.
            match routing_number.join(&digits) {
                Some(digits) => {
                    let step = Step::Number {
                        nature: services.calls.routed_nature,
                        digits,
                        routing_number: Some(routing_number),
                    };
                    (CallOutcome::Routed, step)
                }
                None => (CallOutcome::Oversize, Step::Continue),
            }
        }
        Ok(Whereabouts::Unlisted) if services.is_own(&number.digits) => unallocated(CallOutcome::Unlisted),
        Ok(Whereabouts::Unlisted) => (CallOutcome::Unlisted, Step::Continue),
    }
}

/// A called party number with another nature and other digits; indicators and an ST at the end stay.
pub(super) fn with_digits(called: isup::Number, nature: u8, digits: Digits) -> isup::Number {
    let mut digits = digits;
    let has_st = called.digits.without_st().len() < called.digits.len();
    if has_st {
        // No number here has 40 digits.
        let _ = digits.push(ST);
    }
    isup::Number {
        nature,
        digits,
        ..called
    }
}
