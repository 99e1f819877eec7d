//! What an association carries where it is a link of IPA: the exchange of identities, and SCCP without a routing label.
//!
//! For the control side the peer is an ASP: once the identities are exchanged, ASPUP and ASPAC are handled in its name. What would go to
//! it in messages of M3UA beside DATA has no form in IPA, and is not sent.

use std::rc::Rc;

use ss7_proto::ipa::{Control, Frame as Octets, length, unit_name, write_identity, write_sccp};
use ss7_proto::m3ua::{Builder, Data, ErrorCode, Fault, Message, MessageType, ServiceIndicator, Tag};

use super::Desk;
use super::framing::{Framing, LONGEST};
use super::inbound::Inbound;
use crate::cause::Cause;
use crate::config::Role;
use crate::control::Frame;
use crate::tables::Label;

/// A link of IPA.
pub(super) struct IpaLink {
    desk: Rc<Desk>,
    number: usize,
    /// By which the STP names itself where it connects.
    name: String,
    context: u32,
    label: Label,
    exchange: Exchange,
    /// What is answered in M3UA: it has no form in IPA.
    answers: Vec<u8>,
}

/// How far the exchange of identities is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Exchange {
    /// The peer connects: it names itself and acknowledges, in either order.
    Accepting {
        is_named: bool,
        has_acknowledged: bool,
    },
    /// This STP connects: it is asked for its name and acknowledged.
    Connecting,
    Done,
}

impl IpaLink {
    /// The link of an association, if it is one of IPA.
    pub(super) fn new(desk: &Rc<Desk>, number: usize) -> Option<Self> {
        let state = desk.control.state.load();
        let link = state
            .tables
            .links
            .get(number)
            .filter(|link| link.role == Role::Ipa)?;
        let (_, hop) = state.tables.hops_of(number).next()?;
        let exchange = if link.connect {
            Exchange::Connecting
        } else {
            Exchange::Accepting {
                is_named: false,
                has_acknowledged: false,
            }
        };
        Some(Self {
            desk: desk.clone(),
            number,
            name: link.name.clone(),
            context: hop.context?,
            label: hop.label?,
            exchange,
            answers: Vec::new(),
        })
    }

    pub(super) fn begin(&self, out: &mut Vec<u8>) {
        self.desk
            .control
            .stage(self.number, "which has not exchanged identities (CCM)");
        if self.exchange != Exchange::Connecting {
            Control::Get.write(out);
        }
    }

    /// Appends a message; returns whether it is one that the peer gets.
    pub(super) fn send(&self, frame: &Frame, out: &mut Vec<u8>) -> bool {
        if !frame.is_data {
            return false;
        }
        let message = Message::parse(&frame.octets).ok();
        let data = message.and_then(|message| message.data());
        let is_written = match data {
            Some(data) if data.si == ServiceIndicator::SCCP => write_sccp(data.user_data, out),
            _ => false,
        };
        if !is_written {
            // IPA carries no other user part.
            self.desk
                .with_state(|state| state.meters.dropped(Cause::UserPart));
        }
        is_written
    }

    /// Handles a frame of the peer.
    pub(super) fn handle(&mut self, octets: &[u8], inbound: &mut Inbound, out: &mut Vec<u8>) {
        inbound.count_octets(octets.len());
        match Octets::read(octets) {
            Octets::Sccp(message) => self.sccp(message, inbound),
            Octets::Control(control) => self.control(control, out),
            Octets::Unknown => tracing::debug!(link = self.number, "IPA stream or message unknown"),
        }
    }

    fn sccp(&mut self, user_data: &[u8], inbound: &mut Inbound) {
        let Label { origin, destination } = self.label;
        let desk = self.desk.clone();
        desk.with_state(|state| {
            // One link selection, so that all messages of the peer stay in their order.
            let network = state.tables.points.network_indicator;
            let data = Data::sccp(origin, destination, network, user_data);
            inbound.unlabelled(state, &data, &mut self.answers);
        });
        self.answers.clear();
    }

    fn control(&mut self, control: Control<'_>, out: &mut Vec<u8>) {
        match (control, self.exchange) {
            (Control::Ping, _) => Control::Pong.write(out),
            (Control::Get, _) => write_identity(&self.name, out),
            (Control::Response(elements), Exchange::Accepting { has_acknowledged, .. }) => {
                // The peer is known by its address; libosmocore 1.7 sends its name under another tag.
                let name = unit_name(elements).map(String::from_utf8_lossy);
                tracing::debug!(link = self.number, ?name, "identity of an IPA peer");
                Control::Ack.write(out);
                self.advance(true, has_acknowledged);
            }
            (Control::Ack, Exchange::Accepting { is_named, .. }) => self.advance(is_named, true),
            (Control::Ack, Exchange::Connecting) => {
                Control::Ack.write(out);
                self.activate();
            }
            (Control::Pong | Control::Response(_) | Control::Ack, _) => {}
        }
    }

    fn advance(&mut self, is_named: bool, has_acknowledged: bool) {
        self.exchange = Exchange::Accepting {
            is_named,
            has_acknowledged,
        };
        if is_named && has_acknowledged {
            self.activate();
        }
    }

    fn activate(&mut self) {
        self.exchange = Exchange::Done;
        for kind in [MessageType::Aspup, MessageType::Aspac] {
            let mut octets = Vec::new();
            let mut builder = Builder::new(kind, &mut octets);
            if kind == MessageType::Aspac {
                builder.word(Tag::ROUTING_CONTEXT, self.context);
            }
            builder.finish();
            if let Ok(message) = Message::parse(&octets) {
                self.desk.control.received(self.number, 0, &message);
            }
        }
    }
}

impl Framing {
    /// As [`Self::each`], of frames of IPA.
    ///
    /// # Errors
    /// When a frame is too long.
    pub(super) fn each_of_ipa(&mut self, mut handle: impl FnMut(&[u8]) -> bool) -> Result<bool, Fault> {
        let mut at = 0;
        let outcome = loop {
            let rest = self.octets.get(at..).unwrap_or_default();
            match length(rest) {
                Some(length) if length > LONGEST => {
                    let reason = "an IPA frame is above 16,384 octets";
                    break Err(Fault::new(ErrorCode::ProtocolError, reason));
                }
                Some(length) if length <= rest.len() => {
                    let goes_on = handle(rest.get(..length).unwrap_or_default());
                    at += length;
                    if !goes_on {
                        break Ok(false);
                    }
                }
                _ => break Ok(true),
            }
        };
        self.consume(at);
        outcome
    }
}
