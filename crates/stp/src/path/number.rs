//! Number services of a message that is routed by title: the HLR of its number, or the network that it was ported to
//! (TS 23.066 §4: the signalling relay function).

use numbers::Kind;
use ss7_proto::Digits;
use ss7_proto::gtt::{Change, Modification};
use ss7_proto::isup::nature;
use ss7_proto::map::{Fields, operation};
use ss7_proto::sccp::{Address, ReturnCause, Unitdata};
use ss7_proto::tcap::{OperationCode, Outcome, element};

use super::request::{self, Request};
use super::sccp::Relay;
use super::{Decision, Trace, Work};
use crate::cause::{Cause, NumberOutcome};
use crate::config::{CallRelated, NextRouting};
use crate::tables::{Number, NumberServices, Whereabouts};

/// The application context of sendRoutingInfo, locationInfoRetrieval (TS 29.002 §17.3.2.13).
const LOCATION_INFO: u8 = 5;
/// Nature and plan of an address of MAP: international, E.164 (TS 29.002 §17.7.8).
const ISDN: u8 = 0x91;
/// Digits of an ISDN-AddressString: nine octets, of which the first is nature and plan.
const MOST_ROAMING: usize = 16;

/// Decides by the number of the called party.
pub(super) fn by_number(
    relay: &Relay<'_>,
    called: &Address<'_>,
    work: &mut Work,
    trace: &mut Trace,
) -> Decision {
    let with = |outcome, decision| Decision {
        number: Some(outcome),
        ..decision
    };
    let state = relay.ingress.state;
    let Some(services) = state
        .tables
        .numbers
        .as_ref()
        .filter(|all| all.concerns(called.ssn))
    else {
        return relay.translate(called, work, trace);
    };
    let Some(number) = called.title.as_ref().and_then(|title| services.number(title)) else {
        trace.add(|| "number: the title has none of 5 to 15 digits that could be looked up".to_owned());
        let decision = relay.translate(called, work, trace);
        return with(NumberOutcome::Unconditioned, decision);
    };
    let found = services.find(&number);
    trace.add(|| {
        format!(
            "number: {} {}: {}",
            number.kind,
            number.digits,
            shown(found.as_ref().ok())
        )
    });
    match found {
        Err(_) => {
            let cause = ReturnCause::ERROR_IN_LOCAL_PROCESSING;
            let decision = relay.give_back(Cause::NoTranslation, cause, work, trace);
            with(NumberOutcome::Damaged, decision)
        }
        Ok(Whereabouts::Home(group)) => {
            let decision = home(relay, called, services, &number, group, work, trace);
            with(NumberOutcome::Home, decision)
        }
        // Our own routing number led here, and the number is not ours: it would circle.
        Ok(_) if number.was_routed => {
            trace.add(|| "number: it came with a routing number of this network, and is not here".to_owned());
            let cause = ReturnCause::NO_TRANSLATION_FOR_ADDRESS;
            let decision = relay.give_back(Cause::NoTranslation, cause, work, trace);
            with(NumberOutcome::Circular, decision)
        }
        Ok(Whereabouts::Away {
            routing_number,
            network,
        }) if number.kind == Kind::Msisdn => {
            let ported = Ported {
                services,
                number: number.digits,
                routing_number,
                network,
            };
            if let Some(octets) = ported.answer(relay.unitdata) {
                trace.add(|| "number: sendRoutingInfo is answered with the routing number".to_owned());
                let decision = relay.answer(&octets, work, trace);
                return with(NumberOutcome::Answered, decision);
            }
            let decision = ported.relay(relay, called, work, trace);
            with(NumberOutcome::Relayed, decision)
        }
        Ok(_) => with(NumberOutcome::Unlisted, relay.translate(called, work, trace)),
    }
}

/// What the file says, for an explanation.
pub(super) fn shown(found: Option<&Whereabouts>) -> String {
    match found {
        None => "its part of the file is damaged".to_owned(),
        Some(Whereabouts::Unlisted) => "not listed".to_owned(),
        Some(Whereabouts::Home(_)) => "served by this network".to_owned(),
        Some(Whereabouts::Away { routing_number, .. }) => {
            format!("ported, routing number {routing_number}")
        }
    }
}

/// Sends a message to the HLR of its number.
fn home(
    relay: &Relay<'_>,
    called: &Address<'_>,
    services: &NumberServices,
    number: &Number,
    group: u32,
    work: &mut Work,
    trace: &mut Trace,
) -> Decision {
    let translations = &relay.ingress.state.tables.translations;
    let Some(group) = translations.table.group(group) else {
        return Decision::drop(Cause::NoTranslation);
    };
    let mut modification = Modification {
        route_on_ssn: services.routing == NextRouting::Subsystem,
        ..Modification::default()
    };
    // The HLR knows the number without our own routing number.
    if number.was_routed {
        let digits = called.title.and_then(|title| title.digits());
        modification.remove_prefix = digits.map_or(0, |digits| digits.len() as u8);
        modification.prefix = number.digits;
        modification.nature = Some(nature::INTERNATIONAL);
    }
    if modification.route_on_ssn {
        modification.ssn = called.ssn.map_or(Change::Keep, Change::Set);
    }
    let is_nothing = !modification.route_on_ssn && !number.was_routed;
    let modification = if is_nothing {
        Modification::default()
    } else {
        modification
    };
    relay.deliver(called, group, &modification, work, trace)
}

/// A number that was ported to another network.
struct Ported<'a> {
    services: &'a NumberServices,
    number: Digits,
    routing_number: Digits,
    network: Option<Digits>,
}

impl Ported<'_> {
    /// Sends a message towards the other network: routing number and number (TS 23.066 §B.4.2), then translation.
    fn relay(&self, relay: &Relay<'_>, called: &Address<'_>, work: &mut Work, trace: &mut Trace) -> Decision {
        let format = relay.ingress.state.tables.format();
        let mut next = called.to_buf();
        let mut octets = std::mem::take(&mut work.ported);
        octets.clear();
        let digits = self.routing_number.join(&self.number);
        let written = next.title.as_mut().zip(digits).map(|(title, digits)| {
            title.digits = digits;
            title.nature = nature::INTERNATIONAL;
        });
        let read = written
            .and_then(|()| next.write(format, &mut octets).ok())
            .and_then(|()| Address::parse(&octets, format).ok());
        let Some(address) = read else {
            let cause = ReturnCause::ERROR_IN_LOCAL_PROCESSING;
            return relay.give_back(Cause::Encoding, cause, work, trace);
        };
        let unitdata = Unitdata {
            called: &octets,
            ..relay.unitdata
        };
        // What returns names the address as it was received: `as_received` stays.
        let decision = Relay { unitdata, ..*relay }.translate(&address, work, trace);
        work.ported = octets;
        decision
    }

    /// The End that answers sendRoutingInfo for the number, if the message is that and this STP may answer.
    fn answer(&self, unitdata: Unitdata<'_>) -> Option<Vec<u8>> {
        if self.services.call_related != CallRelated::Answer {
            return None;
        }
        // What a service message returns is not a request (Q.714 §4).
        if unitdata.message_type.is_service() || !unitdata.is_whole() {
            return None;
        }
        let Request::Invoke(invoke) = request::read(unitdata.data, |_| Ok(())) else {
            return None;
        };
        if invoke.component.operation != Some(OperationCode::Local(operation::SEND_ROUTING_INFO)) {
            return None;
        }
        let version = match invoke.context {
            // Version 1 has no dialogue.
            None => 1,
            Some(context) => match context.map()? {
                (LOCATION_INFO, version @ 1..=3) => version,
                _ => return None,
            },
        };
        let asked = Fields::read(operation::SEND_ROUTING_INFO, invoke.component.parameter?).msisdn?;
        let asked = self.services.of_argument(asked.nature, &asked.number.digits()?);
        if asked != Some(self.number) {
            return None;
        }
        let result = self.result(version)?;
        Some(invoke.answer(Outcome::Result(operation::SEND_ROUTING_INFO as u8, &result)))
    }

    /// SendRoutingInfoRes (TS 29.002 §17.7.3): a generic IMSI of the other network, the routing number before the number as
    /// roaming number (TS 23.066 §C.4.2). `None` where a version has no room for it.
    fn result(&self, version: u8) -> Option<Vec<u8>> {
        let imsi = self.network.map(generic_imsi);
        let whole = self.routing_number.join(&self.number);
        let whole = whole.filter(|digits| digits.len() <= MOST_ROAMING);
        if version < 3 && (imsi.is_none() || whole.is_none()) {
            return None;
        }
        let roaming = whole.unwrap_or(self.routing_number);
        let isdn = |digits: &Digits| [&[ISDN][..], &tbcd(digits)].concat();
        let put =
            |tag, value: &[u8], out: &mut Vec<u8>| element(tag, out, |out| out.extend_from_slice(value));
        let mut out = Vec::with_capacity(48);
        if version < 3 {
            element(0x30, &mut out, |out| {
                put(0x04, &tbcd(&imsi.unwrap_or(Digits::EMPTY)), out);
                put(0x04, &isdn(&roaming), out);
            });
            return Some(out);
        }
        // Own number ported out, or foreign number ported to another foreign network (NumberPortabilityStatus).
        let status = if self.services.is_own(&self.number) { 1 } else { 2 };
        element(0xa3, &mut out, |out| {
            if let Some(imsi) = imsi {
                put(0x89, &tbcd(&imsi), out);
            }
            put(0x04, &isdn(&roaming), out);
            if whole.is_none() {
                put(0x8c, &isdn(&self.number), out);
            }
            put(0x8d, &[status], out);
        });
        Some(out)
    }
}

/// An IMSI that names a network and no subscriber.
fn generic_imsi(network: Digits) -> Digits {
    let mut imsi = network;
    while imsi.len() < 15 && imsi.push(0).is_some() {}
    imsi
}

/// Digits of MAP: the filler of an odd count is 15.
fn tbcd(digits: &Digits) -> Vec<u8> {
    let mut octets = digits.packed().to_vec();
    if !digits.len().is_multiple_of(2)
        && let Some(last) = octets.last_mut()
    {
        *last |= 0xf0;
    }
    octets
}
