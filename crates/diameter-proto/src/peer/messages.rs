//! The messages a peer machine sends: CER and CEA, DWR and DWA, DPR and DPA.

use std::net::IpAddr;

use super::events::Output;
use super::machine::Machine;
use super::rules;
use super::table::Side;
use crate::build::MessageBuilder;
use crate::fault::{Fault, ResultCode};
use crate::header::CommandFlags;
use crate::known::{self, command};
use crate::message::{MessageMut, MessageRef};

impl Machine {
    fn request(&mut self, code: u32) -> MessageBuilder {
        let mut builder = MessageBuilder::request(code, known::application::COMMON);
        *builder.flags_mut() = CommandFlags::REQUEST;
        self.next_id = self.next_id.wrapping_add(1);
        builder.identifiers(self.next_id, self.next_id);
        builder
    }

    fn push(&mut self, side: Side, builder: MessageBuilder) {
        // Base messages are built from our own capabilities and stay far below 24 bits of length.
        if let Ok(message) = builder.finish() {
            self.outputs.push_back(Output::Send(side, message));
        }
    }

    fn write_capabilities(&self, builder: &mut MessageBuilder, local: Option<IpAddr>) {
        if self.local.addresses.is_empty() {
            let mut own = (*self.local).clone();
            own.addresses.extend(local);
            own.write(builder);
        } else {
            self.local.write(builder);
        }
    }

    pub(super) fn send_cer(&mut self) {
        let mut builder = self.request(command::CAPABILITIES_EXCHANGE);
        self.write_capabilities(&mut builder, self.addresses[Side::Initiator as usize]);
        self.push(Side::Initiator, builder);
    }

    pub(super) fn send_cea(&mut self) {
        if let Some(cer) = self.cer.take() {
            let local = self.addresses[Side::Responder as usize];
            let answer = self.capabilities_answer(cer.view(), local, Ok(()));
            self.outputs.push_back(Output::Send(Side::Responder, answer));
        }
    }

    pub(super) fn capabilities_answer(
        &self,
        cer: MessageRef<'_>,
        local: Option<IpAddr>,
        outcome: Result<(), &Fault>,
    ) -> MessageMut {
        let mut builder = MessageBuilder::answer(&cer);
        let code = outcome.err().map_or(ResultCode::SUCCESS, |fault| fault.code);
        if code.is_protocol_error() {
            *builder.flags_mut() = builder.flags_mut().with(CommandFlags::ERROR);
        }
        builder.put(known::RESULT_CODE, code.0);
        self.write_capabilities(&mut builder, local);
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
            MessageBuilder::error_answer_to_header(&cer.header(), &self.local.origin, &fault)
        })
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
        let mut builder = MessageBuilder::answer(&request);
        builder.result(ResultCode::SUCCESS, &self.local.origin);
        if request.command() == command::DEVICE_WATCHDOG {
            builder.maybe(known::ORIGIN_STATE_ID, self.local.origin_state_id);
        }
        self.push(side, builder);
    }
}
