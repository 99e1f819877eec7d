//! Answers that depend on settings alone; a link gives them without the control side, so that a flood of such requests
//! disturbs its sender only.

use ss7_proto::m3ua::{Builder, Message, MessageType, RegistrationStatus, RoutingKey, Tag};

use crate::state::State;

/// Deregistration status (RFC 4666 §3.6.4): invalid routing context, permission denied.
const INVALID_CONTEXT: u32 = 2;
const DENIED: u32 = 3;

/// BEAT ACK with the data of BEAT (RFC 4666 §3.5.6).
pub(crate) fn beat(message: &Message<'_>, out: &mut Vec<u8>) {
    let mut builder = Builder::new(MessageType::BeatAck, out);
    if let Some(data) = message.get(Tag::HEARTBEAT_DATA) {
        builder.parameter(Tag::HEARTBEAT_DATA, data);
    }
    builder.finish();
}

/// Answers a registration by what is configured: a key that is exactly one point code of an application server of the link is
/// registered, others are not provisioned (RFC 4666 §3.6.2, §4.4.1). Returns `false` for other messages.
pub(crate) fn registration(state: &State, link: usize, message: &Message<'_>, out: &mut Vec<u8>) -> bool {
    match message.message_type() {
        MessageType::RegReq => register(state, link, message, out),
        MessageType::DeregReq => deregister(state, link, message, out),
        _ => return false,
    }
    true
}

fn register(state: &State, link: usize, message: &Message<'_>, out: &mut Vec<u8>) {
    let mut builder = Builder::new(MessageType::RegRsp, out);
    let keys = message
        .parameters()
        .flatten()
        .filter(|one| one.tag == Tag::ROUTING_KEY);
    for key in keys {
        let key = RoutingKey::new(key.value);
        let (status, context) = match outcome(state, link, &key) {
            Ok(context) => (RegistrationStatus::Success, context),
            Err(status) => (status, 0),
        };
        builder.group(Tag::REGISTRATION_RESULT, |result| {
            result
                .word(Tag::LOCAL_ROUTING_KEY_IDENTIFIER, key.local_identifier())
                .word(Tag::REGISTRATION_STATUS, status as u32)
                .word(Tag::ROUTING_CONTEXT, context);
        });
    }
    builder.finish();
}

fn outcome(state: &State, link: usize, key: &RoutingKey<'_>) -> Result<u32, RegistrationStatus> {
    let tables = &state.tables;
    let code = key.destination();
    let network = key
        .members()
        .flatten()
        .find(|one| one.tag == Tag::NETWORK_APPEARANCE);
    let network = network.and_then(|one| Some(u32::from_be_bytes(one.value.try_into().ok()?)));
    if state.network(network).is_err() {
        return Err(RegistrationStatus::InvalidNetworkAppearance);
    }
    if !tables.points.plan.contains(code) {
        return Err(RegistrationStatus::InvalidDpc);
    }
    // No configured key has several: its other point codes would be promised, and lead elsewhere.
    if key.destinations().nth(1).is_some() {
        return Err(RegistrationStatus::NotProvisioned);
    }
    let mut hops = tables.hops.iter().enumerate();
    let destination = tables
        .routes
        .find(code)
        .and_then(|at| tables.routes.destinations.get(at));
    let serves = |at: usize| {
        destination.is_some_and(|one| one.cluster.wild == 0 && one.via.iter().any(|via| via.hop == at))
    };
    let mine = hops.find(|(at, hop)| hop.is_server && hop.links.contains(&link) && serves(*at));
    let Some((_, hop)) = mine else {
        return Err(RegistrationStatus::NotProvisioned);
    };
    if key
        .routing_context()
        .is_some_and(|wanted| Some(wanted) != hop.context)
    {
        return Err(RegistrationStatus::ChangeRefused);
    }
    if key.traffic_mode().is_some_and(|mode| mode != hop.mode) {
        return Err(RegistrationStatus::UnsupportedTrafficMode);
    }
    // A narrower key would leave part of the point code's traffic without an application server.
    let narrows = key.members().flatten().any(|member| {
        matches!(
            member.tag,
            Tag::SERVICE_INDICATORS | Tag::ORIGINATING_POINT_CODE_LIST
        )
    });
    if narrows {
        return Err(RegistrationStatus::UnsupportedField);
    }
    hop.context.ok_or(RegistrationStatus::NotProvisioned)
}

fn deregister(state: &State, link: usize, message: &Message<'_>, out: &mut Vec<u8>) {
    let mut builder = Builder::new(MessageType::DeregRsp, out);
    for context in message.routing_contexts() {
        let mut hops = state.tables.hops.iter();
        let known = hops.any(|hop| hop.context == Some(context) && hop.links.contains(&link));
        let status = if known { DENIED } else { INVALID_CONTEXT };
        builder.group(Tag::DEREGISTRATION_RESULT, |result| {
            result
                .word(Tag::ROUTING_CONTEXT, context)
                .word(Tag::DEREGISTRATION_STATUS, status);
        });
    }
    builder.finish();
}
