//! The messages a peer machine sends: CER and CEA, DWR and DWA, DPR and DPA.

use std::borrow::Cow;
use std::net::IpAddr;

use super::capabilities::Capabilities;
use super::events::Output;
use super::machine::Machine;
use super::rules;
use super::table::Side;
use crate::build::MessageBuilder;
use crate::fault::{Fault, ResultCode};
use crate::header::CommandFlags;
use crate::known::{self, command};
use crate::message::{Message, MessageMut, MessageRef};

impl Machine {
    fn request(&mut self, code: u32) -> MessageBuilder {
        let mut builder = MessageBuilder::request(code, known::application::COMMON);
        *builder.flags_mut() = CommandFlags::REQUEST;
        self.next_id = self.next_id.wrapping_add(1);
        self.sent_ids.sent(code, self.next_id);
        builder.identifiers(self.next_id, self.next_id);
        builder
    }

    fn push(&mut self, side: Side, builder: MessageBuilder) {
        // Base messages are built from our own capabilities and stay far below 24 bits of length.
        if let Ok(message) = builder.finish() {
            self.outputs.push_back(Output::Send(side, message));
        }
    }

    pub(super) fn send_cer(&mut self) {
        let mut builder = self.request(command::CAPABILITIES_EXCHANGE);
        write_capabilities(
            &self.offered(Side::Initiator),
            &mut builder,
            self.addresses[Side::Initiator as usize],
        );
        self.push(Side::Initiator, builder);
    }

    pub(super) fn send_cea(&mut self) {
        if let Some(cer) = self.cer.take() {
            let local = self.addresses[Side::Responder as usize];
            let answer = self.capabilities_answer(cer.view(), Side::Responder, local, Ok(()));
            self.outputs.push_back(Output::Send(Side::Responder, answer));
        }
    }

    pub(super) fn capabilities_answer(
        &self,
        cer: MessageRef<'_>,
        side: Side,
        address: Option<IpAddr>,
        outcome: Result<(), &Fault>,
    ) -> MessageMut {
        capabilities_answer(&self.offered(side), &cer, address, outcome)
    }

    /// Our capabilities on a connection of this side.
    fn offered(&self, side: Side) -> Cow<'_, Capabilities> {
        self.local.offering_tls(self.inband[side as usize])
    }

    pub(super) fn send_watchdog(&mut self) {
        let Some(side) = self.open_side() else { return };
        let mut builder = self.request(command::DEVICE_WATCHDOG);
        builder
            .put(known::ORIGIN_HOST, &self.local.origin.host)
            .put(known::ORIGIN_REALM, &self.local.origin.realm)
            .maybe(known::ORIGIN_STATE_ID, self.local.origin_state_id);
        self.push(side, builder);
    }

    pub(super) fn send_dpr(&mut self, side: Side) {
        let cause = self.stop_cause;
        let mut builder = self.request(command::DISCONNECT_PEER);
        builder
            .put(known::ORIGIN_HOST, &self.local.origin.host)
            .put(known::ORIGIN_REALM, &self.local.origin.realm)
            .put(known::DISCONNECT_CAUSE, cause);
        self.push(side, builder);
    }

    /// DWA or DPA.
    pub(super) fn answer(&mut self, side: Side, request: MessageRef<'_>) {
        // A wrong one still proves that the peer is alive, or that it leaves.
        if let Err(fault) = rules::check_base(&request) {
            let answer = MessageBuilder::error_answer(&request, &self.local.origin, &fault);
            return self.outputs.push_back(Output::Send(side, answer));
        }
        let is_disconnect = request.command() == command::DISCONNECT_PEER;
        if is_disconnect && std::mem::take(&mut self.in_flight) {
            let reason = "requests to or from this peer are in flight: answers to them count until the connection closes";
            let fault = Fault::new(ResultCode::UNABLE_TO_COMPLY, reason);
            let answer = MessageBuilder::error_answer(&request, &self.local.origin, &fault);
            return self.outputs.push_back(Output::Send(side, answer));
        }
        let mut builder = MessageBuilder::answer(&request);
        builder.result(ResultCode::SUCCESS, &self.local.origin);
        if request.command() == command::DEVICE_WATCHDOG {
            builder.maybe(known::ORIGIN_STATE_ID, self.local.origin_state_id);
        }
        self.push(side, builder);
    }
}

/// The CEA to a CER: its capabilities, and what is wrong where the exchange is refused. It has what its grammar requires
/// whatever the result (RFC 6733 §5.3.2). `address` is ours on that connection, for a node that names none.
#[must_use]
pub fn capabilities_answer<B: AsRef<[u8]>>(
    local: &Capabilities,
    cer: &Message<B>,
    address: Option<IpAddr>,
    outcome: Result<(), &Fault>,
) -> MessageMut {
    let mut builder = MessageBuilder::answer(cer);
    *builder.flags_mut() = CommandFlags::default();
    let code = outcome.err().map_or(ResultCode::SUCCESS, |fault| fault.code);
    if code.is_protocol_error() {
        *builder.flags_mut() = CommandFlags::ERROR;
    }
    builder.put(known::RESULT_CODE, code.0);
    write_capabilities(local, &mut builder, address);
    if let Err(fault) = outcome {
        builder.put(known::ERROR_MESSAGE, &fault.reason);
        if let Some(failed) = &fault.failed_avp {
            builder.group(known::FAILED_AVP, |group| {
                group.append_encoded(failed);
            });
        }
    }
    builder.finish().unwrap_or_else(|_| {
        let fault = Fault::new(code, "");
        MessageBuilder::error_answer_to_header(&cer.header(), &local.origin, &fault)
    })
}

fn write_capabilities(local: &Capabilities, builder: &mut MessageBuilder, address: Option<IpAddr>) {
    if local.addresses.is_empty() {
        let mut own = local.clone();
        own.addresses.extend(address);
        own.write(builder);
    } else {
        local.write(builder);
    }
}

/// The Hop-by-Hop Identifiers of the last CER, DWR and DPR.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SentIds {
    cer: Option<u32>,
    dwr: Option<u32>,
    dpr: Option<u32>,
}

impl SentIds {
    fn of(&mut self, command: u32) -> Option<&mut Option<u32>> {
        match command {
            command::CAPABILITIES_EXCHANGE => Some(&mut self.cer),
            command::DEVICE_WATCHDOG => Some(&mut self.dwr),
            command::DISCONNECT_PEER => Some(&mut self.dpr),
            _ => None,
        }
    }

    /// A request is sent.
    pub(super) fn sent(&mut self, command: u32, id: u32) {
        if let Some(of_command) = self.of(command) {
            *of_command = Some(id);
        }
    }

    /// Whether an answer of this command is one to none of these requests: it "MUST be discarded" (RFC 6733 §3).
    pub(super) fn is_unknown(mut self, command: u32, id: u32) -> bool {
        self.of(command).is_some_and(|of_command| *of_command != Some(id))
    }
}
