//! Queries of calls at a subsystem of this node: InitialDP of INAP and CAP is answered with the routing number of a ported number
//! (Connect), with Continue or ReleaseCall, or relayed to the service control point of a prepaid subscriber.

use numbers::Kind;
use ss7_proto::cap::{self, Calling, InitialDp, operation};
use ss7_proto::gtt::{Change, Modification};
use ss7_proto::isup::{self, Cause as Reason};
use ss7_proto::sccp::Address;
use ss7_proto::tcap::{ApplicationContext, OperationCode, Outcome, Problem, Reason as Refusal};

use super::call::{Step, judge, with_digits};
use super::request::{self, Invoke, Request};
use super::sccp::Relay;
use super::{Decision, Trace, Work};
use crate::cause::{CallOutcome, CallService, Cause};
use crate::config::{NextRouting, Subscriber};
use crate::tables::{Number, NumberServices};

/// The application context of CAP among those of MAP (TS 29.078 §5.6).
const CAP: u8 = 50;

/// Serves a message to a subsystem of number services.
pub(super) fn serve(
    relay: &Relay<'_>,
    services: &NumberServices,
    ssn: u8,
    work: &mut Work,
    trace: &mut Trace,
) -> Decision {
    let with = |outcome, decision| Decision {
        call: Some((CallService::Query, outcome)),
        ..decision
    };
    let invoke = match request::read(relay.unitdata.data, accepts) {
        Request::Invoke(invoke) => invoke,
        Request::Refused(octets) => {
            trace.add(|| "query: not an InitialDP that can be served: Reject or Abort".to_owned());
            return with(CallOutcome::Refused, relay.answer(&octets, work, trace));
        }
        Request::None => {
            trace.add(|| "query: not a message that is answered".to_owned());
            return Decision::drop(Cause::Syntax);
        }
    };
    let fields = match (invoke.component.operation, invoke.component.parameter) {
        (
            Some(OperationCode::Local(code @ (operation::INITIAL_DP | operation::INITIAL_DP_SMS))),
            Some(argument),
        ) => InitialDp::read(code, argument),
        _ => InitialDp::default(),
    };
    if let Some(group) = prepaid(services, &fields, trace) {
        return with(
            CallOutcome::Prepaid,
            send_on(relay, services, ssn, group, work, trace),
        );
    }
    let (outcome, octets) = answer(services, &invoke, &fields, trace);
    with(outcome, relay.answer(&octets, work, trace))
}

/// INAP has contexts of many networks; those of MAP have no InitialDP.
fn accepts(context: ApplicationContext<'_>) -> Result<(), Refusal<'_>> {
    match context.map() {
        Some((number, _)) if number != CAP => Err(Refusal::Context(context)),
        _ => Ok(()),
    }
}

/// The group of the first rule that has the service key and leads to one.
fn prepaid(services: &NumberServices, fields: &InitialDp<'_>, trace: &mut Trace) -> Option<u32> {
    let key = fields.service_key?;
    let mut rules = services.calls.rules(key);
    let group = rules.find_map(|rule| {
        let number = match rule.number {
            Subscriber::Calling => calling(services, fields),
            Subscriber::Called => called(services, fields),
            Subscriber::Imsi => imsi(fields),
        };
        // A damaged part of the file says nothing of a number.
        let listed = number.and_then(|number| services.service_control(&number).ok().flatten());
        listed.or(rule.group)
    });
    trace.add(|| match group {
        Some(_) => format!("query: a rule relays InitialDP with service key {key}"),
        None => format!("query: service key {key}, and no rule relays it"),
    });
    group
}

fn called(services: &NumberServices, fields: &InitialDp<'_>) -> Option<Number> {
    match (fields.called, fields.dialled) {
        (Some(number), _) => services.of_party(&number),
        (None, Some(dialled)) => services.of_mobile(&dialled),
        (None, None) => None,
    }
}

fn calling(services: &NumberServices, fields: &InitialDp<'_>) -> Option<Number> {
    match fields.calling? {
        Calling::Number(number) => services.of_party(&number),
        Calling::Address(address) => services.of_mobile(&address),
    }
}

fn imsi(fields: &InitialDp<'_>) -> Option<Number> {
    Number::new(Kind::Imsi, fields.imsi?.digits()?, false)
}

/// Sends the message to a service control point. What follows in the dialogue goes to that directly: its answer names it.
fn send_on(
    relay: &Relay<'_>,
    services: &NumberServices,
    ssn: u8,
    group: u32,
    work: &mut Work,
    trace: &mut Trace,
) -> Decision {
    let state = relay.ingress.state;
    let called = Address::parse(relay.unitdata.called, state.tables.format()).ok();
    let group = state.tables.translations.table.group(group);
    let (Some(called), Some(group)) = (called, group) else {
        return Decision::drop(Cause::NoTranslation);
    };
    let modification = if services.routing == NextRouting::Subsystem {
        Modification {
            route_on_ssn: true,
            ssn: Change::Set(ssn),
            ..Modification::default()
        }
    } else {
        Modification::default()
    };
    relay.deliver(&called, group, &modification, work, trace)
}

/// The End that answers an InitialDP.
fn answer(
    services: &NumberServices,
    invoke: &Invoke<'_>,
    fields: &InitialDp<'_>,
    trace: &mut Trace,
) -> (CallOutcome, Vec<u8>) {
    let refused = |outcome: Outcome<'_>| (CallOutcome::Refused, invoke.answer(outcome));
    if invoke.component.operation != Some(OperationCode::Local(operation::INITIAL_DP)) {
        trace.add(|| "query: not InitialDP: Reject".to_owned());
        return refused(Outcome::Reject(Problem::UnrecognizedOperation));
    }
    if fields.called.is_none() && fields.dialled.is_none() {
        trace.add(|| "query: InitialDP without a called number: missingParameter".to_owned());
        return refused(Outcome::Error(cap::error::MISSING_PARAMETER));
    }
    let (outcome, step) = judge(services, called(services, fields), trace);
    let mut argument = Vec::with_capacity(32);
    let operation = match step {
        Step::Continue if outcome == CallOutcome::Damaged => {
            return (outcome, invoke.answer(Outcome::Error(cap::error::SYSTEM_FAILURE)));
        }
        Step::Continue => operation::CONTINUE,
        Step::Number { nature, digits, .. } => {
            let as_dialled = isup::Number {
                nature,
                indicators: isup::Number::E164,
                digits: ss7_proto::Digits::EMPTY,
            };
            let number = with_digits(fields.called.unwrap_or(as_dialled), nature, digits);
            trace.add(|| format!("query: Connect to {}, nature {nature}", number.digits));
            cap::connect(&number, &mut argument);
            operation::CONNECT
        }
        Step::Release => {
            trace.add(|| "query: ReleaseCall with cause 1, unallocated number".to_owned());
            cap::release_call(Reason::UNALLOCATED, &mut argument);
            operation::RELEASE_CALL
        }
    };
    (outcome, invoke.answer(Outcome::Invoke(operation, &argument)))
}
