//! SCCP messages to this node: translation, management of subsystems, return on error (Q.714 §2, §4, §5).

use ss7_proto::PointCode;
use ss7_proto::gtt::{Circumstances, Content, Group, Match, Member, Mode, Modification, Table};
use ss7_proto::m3ua::Data;
use ss7_proto::sccp::{
    Address, AddressBuf, Management, ManagementType, Message, MessageType, ReturnCause, Unitdata,
};

use super::equipment::{Reply, serve};
use super::number::by_number;
use super::query;
use super::{Decision, Ingress, Send, Trace, Work, transactions, transfer, unchanged};
use crate::cause::Cause;
use crate::tables::{EIR, MANAGEMENT};

/// Decides on an SCCP message whose destination is this node.
pub(super) fn local(ingress: &Ingress<'_>, data: &Data<'_>, work: &mut Work, trace: &mut Trace) -> Decision {
    let format = ingress.state.tables.format();
    let unitdata = match Message::parse(data.user_data) {
        Ok(Message::Unitdata(unitdata)) => unitdata,
        Ok(Message::Connection(_)) => {
            trace.add(|| "SCCP: connections end at no subsystem of this STP".to_owned());
            return Decision::drop(Cause::Connection);
        }
        Err(fault) => {
            // No node can be informed of it (Q.714 §2.4).
            trace.add(|| format!("SCCP: {fault}"));
            return Decision::drop(Cause::Syntax);
        }
    };
    let called = match Address::parse(unitdata.called, format) {
        Ok(called) => called,
        Err(fault) => {
            trace.add(|| format!("SCCP: called party address: {fault}"));
            return Decision::drop(Cause::Syntax);
        }
    };
    let relay = Relay {
        ingress,
        data,
        unitdata,
        as_received: unitdata.called,
    };
    if called.route_on_title {
        return by_number(&relay, &called, work, trace);
    }
    match called.point_code {
        Some(code) if !ingress.state.tables.points.are(code) => {
            if called
                .ssn
                .is_some_and(|ssn| ingress.state.is_prohibited(code, ssn))
            {
                trace.add(|| "SCCP: the subsystem is prohibited at its node".to_owned());
                let returned = ReturnCause::SUBSYSTEM_FAILURE;
                return relay.give_back(Cause::Subsystem, returned, work, trace);
            }
            relay.forward(code, relay.unitdata, None, work, trace)
        }
        _ => relay.subsystem(called.ssn, work, trace),
    }
}

/// Returns a message that screening refuses, if it is one that may return.
pub(super) fn return_unparsed(
    ingress: &Ingress<'_>,
    data: &Data<'_>,
    work: &mut Work,
    trace: &mut Trace,
) -> Decision {
    match Message::parse(data.user_data) {
        Ok(Message::Unitdata(unitdata)) if data.si == ss7_proto::m3ua::ServiceIndicator::SCCP => {
            let relay = Relay {
                ingress,
                data,
                unitdata,
                as_received: unitdata.called,
            };
            relay.give_back(Cause::Screened, ReturnCause::UNQUALIFIED, work, trace)
        }
        _ => Decision::drop(Cause::Screened),
    }
}

/// A message without connection, on its way.
#[derive(Clone, Copy)]
pub(super) struct Relay<'a> {
    pub(super) ingress: &'a Ingress<'a>,
    pub(super) data: &'a Data<'a>,
    pub(super) unitdata: Unitdata<'a>,
    /// The called party as the sender knows it: what returns names it.
    pub(super) as_received: &'a [u8],
}

impl Relay<'_> {
    /// Translates the title of the called party.
    pub(super) fn translate(&self, called: &Address<'_>, work: &mut Work, trace: &mut Trace) -> Decision {
        let state = self.ingress.state;
        let translations = &state.tables.translations;
        let message = Circumstances {
            opc: Some(self.data.opc),
            content: Some(Content::new(&self.unitdata, state.tables.format())),
        };
        let Some(found) = translations.table.translate_within(called, &message) else {
            let known = translations.table.has_set_for(called, &message);
            let cause = if known {
                ReturnCause::NO_TRANSLATION_FOR_ADDRESS
            } else {
                ReturnCause::NO_TRANSLATION_FOR_NATURE
            };
            trace.add(|| format!("translation: {cause}{}", shown(&translations.table, &message)));
            return self.give_back(Cause::NoTranslation, cause, work, trace);
        };
        let set = usize::from(found.set.0);
        trace.add(|| {
            let name = translations.sets.get(set).map_or("", String::as_str);
            let (decided, seen) = (decided(&found), shown(&translations.table, &message));
            let count = found.group.members.len();
            format!("translation: set `{name}`, {decided} decided, {count} nodes{seen}")
        });
        let decision = self.deliver(called, found.group, found.modification, work, trace);
        Decision {
            set: Some(set),
            ..decision
        }
    }

    /// Sends a message on that was translated.
    pub(super) fn deliver(
        &self,
        called: &Address<'_>,
        group: &Group,
        modification: &Modification,
        work: &mut Work,
        trace: &mut Trace,
    ) -> Decision {
        let state = self.ingress.state;
        // Each translation decrements the counter (Q.714 §2.3.1).
        let Ok(hop) = self.unitdata.next_hop() else {
            trace.add(|| "SCCP: the hop counter is spent".to_owned());
            return self.give_back(Cause::HopCounter, ReturnCause::HOP_COUNTER_VIOLATION, work, trace);
        };
        let is_own = |code| state.tables.points.are(code);
        let reaches = |member: &Member| is_own(member.point_code) || state.is_reachable(member.point_code);
        let allowed = |member: &Member| {
            !member
                .ssn
                .is_some_and(|ssn| state.is_prohibited(member.point_code, ssn))
        };
        // Messages of one origin with one link selection keep their order.
        let key = self.data.opc.0 << 8 | u32::from(self.data.sls);
        let available = |member: &Member| reaches(member) && allowed(member);
        let (member, shared) = match group.mode {
            Mode::Transaction => {
                let (member, shared) =
                    transactions::choose(self.ingress, self.data, &self.unitdata, group, key, available);
                trace.add(|| format!("translation: the group shares by transaction: {}", shared.label()));
                (member, Some(shared))
            }
            _ => (group.choose(key, available), None),
        };
        let decision = match member {
            Some(member) => self.deliver_to(member.point_code, hop, (called, modification), work, trace),
            None => self.no_node(group.candidates().iter().any(reaches), work, trace),
        };
        if shared.is_some() {
            return Decision { shared, ..decision };
        }
        decision
    }

    /// No node of a group is available; `is_prohibited`: one is reachable.
    fn no_node(&self, is_prohibited: bool, work: &mut Work, trace: &mut Trace) -> Decision {
        // A node that is reachable has lost its subsystem (Q.714 §2.2.2.3, Q.713 §3.12).
        let (cause, returned) = if is_prohibited {
            (Cause::Subsystem, ReturnCause::SUBSYSTEM_FAILURE)
        } else {
            (Cause::Unreachable, ReturnCause::MTP_FAILURE)
        };
        trace.add(|| format!("translation: no node of the group is available: {returned}"));
        self.give_back(cause, returned, work, trace)
    }

    /// Sends a message to the node that its translation leads to.
    fn deliver_to(
        &self,
        code: PointCode,
        hop: Unitdata<'_>,
        (called, modification): (&Address<'_>, &Modification),
        work: &mut Work,
        trace: &mut Trace,
    ) -> Decision {
        let tables = &self.ingress.state.tables;
        let is_own = tables.points.are(code);
        trace.add(|| format!("translation: leads to {}", tables.show(code)));
        if modification.is_nothing() && called.point_code.is_none() {
            if is_own {
                return self.subsystem(called.ssn, work, trace);
            }
            return self.forward(code, hop, None, work, trace);
        }
        let Some(mut next) = modification.apply(called.to_buf()) else {
            trace.add(|| "translation: more than 40 digits result".to_owned());
            return self.give_back(
                Cause::Encoding,
                ReturnCause::ERROR_IN_LOCAL_PROCESSING,
                work,
                trace,
            );
        };
        if is_own {
            return self.subsystem(next.ssn, work, trace);
        }
        // A point code in the address is that of the next node.
        next.point_code = next.point_code.map(|_| code);
        self.forward(code, hop, Some(next), work, trace)
    }

    /// Relays the message to another node.
    fn forward(
        &self,
        code: PointCode,
        unitdata: Unitdata<'_>,
        called: Option<AddressBuf>,
        work: &mut Work,
        trace: &mut Trace,
    ) -> Decision {
        let state = self.ingress.state;
        let mut next = unitdata;
        let mut buffers = std::mem::take(work);
        let Work {
            called: into,
            calling,
            ..
        } = &mut buffers;
        if let Some(address) = called {
            into.clear();
            if address.write(state.tables.format(), into).is_err() {
                return self.give_back(
                    Cause::Encoding,
                    ReturnCause::ERROR_IN_LOCAL_PROCESSING,
                    work,
                    trace,
                );
            }
            next.called = into.as_slice();
        }
        if self.complete_calling(calling) {
            next.calling = calling.as_slice();
        }
        let sent = self.send(code, &next, trace);
        *work = buffers;
        match sent {
            Ok(send) => Decision {
                send: Some(send),
                ..Decision::default()
            },
            Err(cause) => {
                let returned = match cause {
                    Cause::Encoding => ReturnCause::ERROR_IN_LOCAL_PROCESSING,
                    _ => ReturnCause::MTP_FAILURE,
                };
                self.give_back(cause, returned, work, trace)
            }
        }
    }

    /// A calling party that is routed by subsystem and names no point code is known by the origin, which changes here: the
    /// point code goes into the address (Q.714 §2.7.5.1), or answers would return to this node.
    fn complete_calling(&self, into: &mut Vec<u8>) -> bool {
        let format = self.ingress.state.tables.format();
        let Ok(calling) = Address::parse(self.unitdata.calling, format) else {
            return false;
        };
        if calling.route_on_title || calling.ssn.is_none() {
            return false;
        }
        into.clear();
        // What else is in the address stays octet for octet.
        format.insert_point_code(self.unitdata.calling, self.data.opc, into)
    }

    fn send(&self, code: PointCode, unitdata: &Unitdata<'_>, trace: &mut Trace) -> Result<Send, Cause> {
        let state = self.ingress.state;
        let label = Data {
            opc: state.tables.points.own,
            dpc: code,
            ..*self.data
        };
        // A translated message may leave by the link set that it came by.
        transfer(state, None, &label, trace, |out| unitdata.write(out).is_ok())
    }

    /// The message is for a subsystem of this node.
    fn subsystem(&self, ssn: Option<u8>, work: &mut Work, trace: &mut Trace) -> Decision {
        let format = self.ingress.state.tables.format();
        // A service message brings back what a user of this node has sent: it asks for nothing, and no message answers it
        // (Q.714 §4).
        if self.unitdata.message_type.is_service() {
            trace.add(|| "SCCP: a service message ends here".to_owned());
            return Decision::drop(Cause::Subsystem);
        }
        if ssn == Some(MANAGEMENT) {
            let Some(management) = Management::read(self.unitdata.data, format) else {
                trace.add(|| "SCCP management: not a message of Q.713 §5".to_owned());
                return Decision::drop(Cause::Syntax);
            };
            trace.add(|| {
                let (kind, ssn) = (management.management_type.name(), management.ssn);
                format!("SCCP management: {kind} of subsystem {ssn}")
            });
            return self.manage(management, trace);
        }
        let Some(ssn) = ssn else {
            trace.add(|| "SCCP: the address names no subsystem".to_owned());
            return self.give_back(Cause::Subsystem, ReturnCause::UNEQUIPPED_USER, work, trace);
        };
        if self.ingress.state.tables.has_user(ssn) && !self.unitdata.is_whole() {
            return self.segment(ssn, work, trace);
        }
        self.serve(ssn, work, trace)
    }

    /// A whole message to a subsystem of this node.
    pub(super) fn serve(&self, ssn: u8, work: &mut Work, trace: &mut Trace) -> Decision {
        let tables = &self.ingress.state.tables;
        if ssn == EIR
            && let Some(lists) = &tables.equipment
        {
            return self.equipment(lists, work, trace);
        }
        if let Some(services) = &tables.numbers
            && services.calls.serves(ssn)
        {
            return query::serve(self, services, ssn, work, trace);
        }
        trace.add(|| format!("SCCP: subsystem {ssn} is not at this STP"));
        self.give_back(Cause::Subsystem, ReturnCause::UNEQUIPPED_USER, work, trace)
    }

    /// A message to the equipment identity register.
    fn equipment(&self, lists: &dsr_eir::Eir, work: &mut Work, trace: &mut Trace) -> Decision {
        match serve(lists, self.unitdata.data) {
            // The message has reached its user: what is wrong with it is between users, not for SCCP (Q.714 §4).
            Reply::None => {
                trace.add(|| "equipment: not a message that is answered".to_owned());
                Decision::drop(Cause::Syntax)
            }
            Reply::Refusal(octets) => {
                trace.add(|| "equipment: not a checkIMEI that can be served: Reject or Abort".to_owned());
                self.answer(&octets, work, trace)
            }
            Reply::Checked(octets, found) => {
                trace.add(|| format!("equipment: checkIMEI: {}", found.label()));
                Decision {
                    equipment: Some(found),
                    ..self.answer(&octets, work, trace)
                }
            }
        }
    }

    fn manage(&self, management: Management, trace: &mut Trace) -> Decision {
        let tables = &self.ingress.state.tables;
        if management.management_type != ManagementType::Sst {
            return Decision {
                management: Some((self.data.opc, management)),
                ..Decision::default()
            };
        }
        let here = tables.points.are(management.point_code);
        let available = management.ssn == MANAGEMENT
            || management.ssn == EIR && tables.equipment.is_some()
            || tables.subsystems.contains(&management.ssn);
        if !here || !available {
            // A test of what is unavailable has no answer (Q.714 §5.3.4.3).
            trace.add(|| "SCCP management: the subsystem is not available here: no answer".to_owned());
            return Decision::default();
        }
        let allowed = Management {
            management_type: ManagementType::Ssa,
            ..management
        };
        match self.management(allowed, self.data.opc, trace) {
            Ok(send) => Decision {
                send: Some(send),
                ..Decision::default()
            },
            Err(cause) => Decision::drop(cause),
        }
    }

    fn management(&self, message: Management, to: PointCode, trace: &mut Trace) -> Result<Send, Cause> {
        let octets = management_unitdata(message, to, &self.ingress.state.tables);
        let own = self.ingress.state.tables.points.own;
        let label = Data {
            opc: own,
            dpc: to,
            ..*self.data
        };
        transfer(self.ingress.state, None, &label, trace, unchanged(&octets))
    }

    /// Returns the data to the sender, if it wants them (Q.714 §4.2).
    pub(super) fn give_back(
        &self,
        cause: Cause,
        returned: ReturnCause,
        work: &mut Work,
        trace: &mut Trace,
    ) -> Decision {
        let received = Unitdata {
            called: self.as_received,
            ..self.unitdata
        };
        let Some(service) = received.returned(returned) else {
            trace.add(|| "return: the sender does not ask for it".to_owned());
            return Decision::drop(cause);
        };
        trace.add(|| format!("return: {returned}"));
        Decision {
            send: self.send_back(service, work, trace).ok(),
            cause: Some(cause),
            ..Decision::default()
        }
    }

    /// Answers the sender with data of a user of this node.
    pub(super) fn answer(&self, data: &[u8], work: &mut Work, trace: &mut Trace) -> Decision {
        let answer = Unitdata {
            // The class of the request, without return on error.
            class_or_cause: self.unitdata.class_or_cause & 0x0f,
            hop_counter: 15,
            called: self.unitdata.calling,
            calling: self.unitdata.called,
            data,
            optional: &[],
            ..self.unitdata
        };
        match self.send_back(answer, work, trace) {
            Ok(send) => Decision {
                send: Some(send),
                ..Decision::default()
            },
            Err(cause) => Decision::drop(cause),
        }
    }

    /// Sends a message to the calling party of the present one, which is the called party of the message.
    fn send_back(&self, message: Unitdata<'_>, work: &mut Work, trace: &mut Trace) -> Result<Send, Cause> {
        let state = self.ingress.state;
        let format = state.tables.format();
        let mut message = message;
        let mut to = self.data.opc;
        let mut octets = std::mem::take(&mut work.called);
        let party = Address::parse(message.called, format).ok();
        // It goes to the calling party (Q.714 §4.2), by its point code where it is routed by one. The node before is the next
        // best.
        if let Some(party) = party
            && !party.route_on_title
            && let Some(code) = party.point_code
            && !state.tables.points.are(code)
            && state.is_reachable(code)
        {
            to = code;
        }
        // Its title leads further than the node before, where this STP translates it.
        if let Some(party) = party
            && party.route_on_title
            && let Some(found) = state.tables.translations.table.translate(&party)
            && let Some(member) = found.group.choose(u32::from(self.data.sls), |member| {
                state.is_reachable(member.point_code)
            })
            && let Some(next) = found.apply(&party)
        {
            octets.clear();
            if next.write(format, &mut octets).is_ok() {
                to = member.point_code;
                message.called = octets.as_slice();
            }
        }
        trace.add(|| {
            let name = message.message_type.name();
            format!("back: {name} to {}", state.tables.show(to))
        });
        let sent = self.send(to, &message, trace);
        work.called = octets;
        sent
    }
}

/// The digits that a translation has compared.
fn decided(found: &Match<'_>) -> String {
    let digits = found.digits;
    found.number.map_or_else(
        || format!("{digits} digits"),
        |number| format!("{digits} digits of {number}"),
    )
}

/// What selectors see of a message, where some look at it.
fn shown(table: &Table, message: &Circumstances<'_>) -> String {
    match &message.content {
        Some(content) if table.selects_by_content() => format!("; selectors see {content}"),
        _ => String::new(),
    }
}

/// A UDT from the management of this node to that of another (Q.714 §5.1).
pub(crate) fn management_unitdata(
    message: Management,
    to: PointCode,
    tables: &crate::tables::Tables,
) -> Vec<u8> {
    let format = tables.format();
    let address = |code| {
        let address = AddressBuf {
            point_code: Some(code),
            ssn: Some(MANAGEMENT),
            national: tables.points.format == ss7_proto::sccp::Format::Ansi,
            ..AddressBuf::default()
        };
        let mut octets = Vec::new();
        // An address without a title can be written always.
        let _ = address.write(format, &mut octets);
        octets
    };
    let mut content = Vec::new();
    message.write(format, &mut content);
    let mut out = Vec::new();
    let unitdata = Unitdata {
        message_type: MessageType::Udt,
        class_or_cause: 0,
        hop_counter: 0,
        called: &address(to),
        calling: &address(tables.points.own),
        data: &content,
        optional: &[],
    };
    // The parts are a few octets long.
    let _ = unitdata.write(&mut out);
    out
}
