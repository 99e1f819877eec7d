//! State machines of M3UA: an ASP and a gateway joined in memory, failures at any moment.

use std::time::{Duration, Instant};

use fuzz_support::Random;
use ss7_proto::asp::{
    AsId, AsSettings, AsState, Asp, AspEvent, AspId, AspSettings, AspState, Distribution, Gateway,
    GatewayEvent,
};
use ss7_proto::m3ua::{Builder, ErrorCode, Message, MessageType, Status, Tag, TrafficMode};

const A: AspId = AspId(1);
const B: AspId = AspId(2);
const AS: AsId = AsId(0);
const CONTEXT: u32 = 77;
const RECOVERY: Duration = Duration::from_secs(2);

/// A gateway with one application server of two ASPs.
struct World {
    now: Instant,
    gateway: Gateway,
}

/// Type, status or error code of what an ASP received.
type Received = (AspId, MessageType, u32);

impl World {
    fn new(mode: Option<TrafficMode>, wanted: usize) -> Self {
        let gateway = Gateway::new(vec![AsSettings {
            routing_context: CONTEXT,
            traffic_mode: mode,
            wanted,
            recovery: RECOVERY,
            asps: vec![A, B],
        }]);
        Self {
            now: Instant::now(),
            gateway,
        }
    }

    fn state(&self) -> AsState {
        self.gateway.server(AS).unwrap().state()
    }

    fn send(&mut self, asp: AspId, kind: MessageType) -> Vec<Received> {
        self.send_with(asp, kind, 0, |_| {})
    }

    fn send_with(
        &mut self,
        asp: AspId,
        kind: MessageType,
        stream: u16,
        parameters: impl FnOnce(&mut Builder<'_>),
    ) -> Vec<Received> {
        let mut octets = Vec::new();
        let mut builder = Builder::new(kind, &mut octets);
        parameters(&mut builder);
        builder.finish();
        self.gateway
            .received(asp, stream, &Message::parse(&octets).unwrap(), self.now);
        self.received()
    }

    fn received(&mut self) -> Vec<Received> {
        let events = self.gateway.events().into_iter();
        let sent = events.filter_map(|event| match event {
            GatewayEvent::Send(asp, octets) => {
                let message = Message::parse(&octets).unwrap();
                let word = message.word(Tag::STATUS).or(message.word(Tag::ERROR_CODE));
                Some((asp, message.message_type(), word.unwrap_or_default()))
            }
            GatewayEvent::State(..) | GatewayEvent::Refused(..) => None,
        });
        sent.collect()
    }

    /// Brings both up, then active.
    fn both(mode: TrafficMode, wanted: usize) -> Self {
        let mut world = Self::new(Some(mode), wanted);
        for asp in [A, B] {
            world.gateway.associated(asp);
            world.send(asp, MessageType::Aspup);
        }
        for asp in [A, B] {
            world.send(asp, MessageType::Aspac);
        }
        world
    }
}

const fn notify(asp: AspId, status: Status) -> Received {
    (asp, MessageType::Ntfy, status.number())
}

#[test]
fn an_application_server_comes_up() {
    let mut world = World::new(Some(TrafficMode::Override), 1);
    world.gateway.associated(A);
    assert_eq!(world.state(), AsState::Down);
    assert_eq!(
        world.send(A, MessageType::Aspup),
        [(A, MessageType::AspupAck, 0), notify(A, Status::AsInactive)]
    );
    assert_eq!(
        world.gateway.server(AS).unwrap().distribute(0),
        Distribution::Drop
    );
    assert_eq!(
        world.send(A, MessageType::Aspac),
        [(A, MessageType::AspacAck, 0), notify(A, Status::AsActive)]
    );
    assert_eq!(
        world.gateway.server(AS).unwrap().distribute(9),
        Distribution::One(A)
    );
    // The second learns of the state, and takes over by override.
    world.gateway.associated(B);
    assert_eq!(
        world.send(B, MessageType::Aspup),
        [(B, MessageType::AspupAck, 0), notify(B, Status::AsActive)]
    );
    assert_eq!(
        world.send(B, MessageType::Aspac),
        [
            (B, MessageType::AspacAck, 0),
            notify(A, Status::AlternateAspActive)
        ]
    );
    assert_eq!(world.gateway.server(AS).unwrap().active(), [B]);
    assert!(world.gateway.may_send(B, Some(CONTEXT)) && !world.gateway.may_send(A, Some(CONTEXT)));
    assert!(!world.gateway.may_send(B, Some(78)));
}

#[test]
fn the_last_active_asp_leaves_and_returns_within_recovery() {
    let mut world = World::both(TrafficMode::Override, 1);
    assert_eq!(
        world.send(B, MessageType::Aspia),
        [
            (B, MessageType::AspiaAck, 0),
            notify(A, Status::AsPending),
            notify(B, Status::AsPending)
        ]
    );
    assert_eq!(
        world.gateway.server(AS).unwrap().distribute(0),
        Distribution::Queue
    );
    assert_eq!(world.gateway.wake(), Some(world.now + RECOVERY));
    world.send(A, MessageType::Aspac);
    assert_eq!(world.state(), AsState::Active);
    assert_eq!(world.gateway.wake(), None);
    // Now it does not return.
    world.send(A, MessageType::Aspia);
    world.now += RECOVERY;
    world.gateway.tick(world.now);
    assert_eq!(
        world.received(),
        [notify(A, Status::AsInactive), notify(B, Status::AsInactive)]
    );
    assert_eq!(
        world.gateway.server(AS).unwrap().distribute(0),
        Distribution::Drop
    );
}

#[test]
fn a_lost_association_is_an_asp_failure() {
    let mut world = World::both(TrafficMode::Loadshare, 2);
    world.gateway.disassociated(A, world.now);
    assert_eq!(world.received()[..1], [notify(B, Status::AspFailure)]);
    assert_eq!(world.state(), AsState::Active);
    world.gateway.disassociated(B, world.now);
    assert_eq!(world.state(), AsState::Pending);
    world.now += RECOVERY;
    world.gateway.tick(world.now);
    assert_eq!(world.state(), AsState::Down);
}

#[test]
fn traffic_modes_distribute() {
    let world = World::both(TrafficMode::Loadshare, 1);
    let server = world.gateway.server(AS).unwrap();
    assert_eq!(server.distribute(0), Distribution::One(A));
    assert_eq!(server.distribute(1), Distribution::One(B));
    assert_eq!(server.distribute(1), Distribution::One(B));
    let world = World::both(TrafficMode::Broadcast, 1);
    assert_eq!(
        world.gateway.server(AS).unwrap().distribute(3),
        Distribution::Each(&[A, B])
    );
}

#[test]
fn a_shared_server_waits_for_as_many_as_it_wants() {
    let mut world = World::new(Some(TrafficMode::Loadshare), 2);
    for asp in [A, B] {
        world.gateway.associated(asp);
        world.send(asp, MessageType::Aspup);
    }
    world.send(A, MessageType::Aspac);
    assert_eq!(world.state(), AsState::Inactive);
    world.send(B, MessageType::Aspac);
    assert_eq!(world.state(), AsState::Active);
    let notified = world.send(B, MessageType::Aspia);
    assert_eq!(notified[1..], [notify(B, Status::InsufficientAspResources)]);
    assert_eq!(world.state(), AsState::Active);
}

#[test]
fn messages_that_the_state_does_not_expect() {
    let mut world = World::new(Some(TrafficMode::Override), 1);
    world.gateway.associated(A);
    let error = |code: ErrorCode| [(A, MessageType::Err, code as u32)];
    assert_eq!(
        world.send(A, MessageType::Aspac),
        error(ErrorCode::UnexpectedMessage)
    );
    world.send(A, MessageType::Aspup);
    let data = [0; 13];
    let sent = world.send_with(A, MessageType::Data, 1, |b| {
        b.parameter(Tag::PROTOCOL_DATA, &data);
    });
    assert_eq!(sent, error(ErrorCode::UnexpectedMessage));
    let sent = world.send_with(A, MessageType::Aspac, 0, |b| {
        b.word(Tag::TRAFFIC_MODE_TYPE, 3);
    });
    assert_eq!(sent, error(ErrorCode::UnsupportedTrafficModeType));
    let sent = world.send_with(A, MessageType::Aspac, 0, |b| {
        b.words(Tag::ROUTING_CONTEXT, &[CONTEXT + 1, 5]);
    });
    assert_eq!(sent, error(ErrorCode::InvalidRoutingContext));
    assert_eq!(world.state(), AsState::Inactive);
    world.send(A, MessageType::Aspac);
    let sent = world.send_with(A, MessageType::Data, 0, |b| {
        b.parameter(Tag::PROTOCOL_DATA, &data);
    });
    assert_eq!(sent, error(ErrorCode::InvalidStreamIdentifier));
    let sent = world.send_with(A, MessageType::Aspdn, 3, |_| {});
    assert_eq!(sent, error(ErrorCode::InvalidStreamIdentifier));
    // ASPUP of an active ASP: acknowledged, an error, and it is inactive.
    let sent = world.send(A, MessageType::Aspup);
    assert_eq!(
        sent[..2],
        [(A, MessageType::AspupAck, 0), (A, MessageType::Err, 6)]
    );
    assert_eq!(world.state(), AsState::Pending);
    // An ASP of no application server.
    let other = AspId(9);
    world.gateway.associated(other);
    world.send(other, MessageType::Aspup);
    let sent = world.send(other, MessageType::Aspac);
    assert_eq!(
        sent,
        [(other, MessageType::Err, ErrorCode::NoConfiguredAsForAsp as u32)]
    );
}

#[test]
fn identifiers_are_unique() {
    let mut world = World::new(None, 1);
    for asp in [A, B] {
        world.gateway.associated(asp);
    }
    world.send_with(A, MessageType::Aspup, 0, |b| {
        b.word(Tag::ASP_IDENTIFIER, 4);
    });
    let sent = world.send_with(B, MessageType::Aspup, 0, |b| {
        b.word(Tag::ASP_IDENTIFIER, 4);
    });
    assert_eq!(
        sent,
        [(B, MessageType::Err, ErrorCode::InvalidAspIdentifier as u32)]
    );
}

/// Messages with their routing contexts; a message without them has none.
fn contexts(events: Vec<GatewayEvent>) -> Vec<(MessageType, u32, Vec<u32>)> {
    let sent = events.into_iter().filter_map(|event| match event {
        GatewayEvent::Send(_, octets) => {
            let message = Message::parse(&octets).unwrap();
            let code = message.word(Tag::ERROR_CODE).unwrap_or_default();
            let shown = matches!(
                message.message_type(),
                MessageType::AspacAck | MessageType::AspiaAck | MessageType::Err
            );
            shown.then(|| (message.message_type(), code, message.routing_contexts().collect()))
        }
        GatewayEvent::State(..) | GatewayEvent::Refused(..) => None,
    });
    sent.collect()
}

/// Three application servers of A: 1 and 2 share load, 3 overrides. B has 4.
fn several() -> World {
    let server = |routing_context, mode, asp| AsSettings {
        routing_context,
        traffic_mode: Some(mode),
        wanted: 1,
        recovery: RECOVERY,
        asps: vec![asp],
    };
    let mut gateway = Gateway::new(vec![
        server(1, TrafficMode::Loadshare, A),
        server(2, TrafficMode::Loadshare, A),
        server(3, TrafficMode::Override, A),
        server(4, TrafficMode::Loadshare, B),
    ]);
    gateway.associated(A);
    let mut world = World {
        now: Instant::now(),
        gateway,
    };
    world.send(A, MessageType::Aspup);
    world
}

fn ask(world: &mut World, kind: MessageType, mode: Option<TrafficMode>, wanted: &[u32]) -> Vec<GatewayEvent> {
    let mut octets = Vec::new();
    let mut builder = Builder::new(kind, &mut octets);
    if let Some(mode) = mode {
        builder.word(Tag::TRAFFIC_MODE_TYPE, mode as u32);
    }
    if !wanted.is_empty() {
        builder.words(Tag::ROUTING_CONTEXT, wanted);
    }
    builder.finish();
    world
        .gateway
        .received(A, 0, &Message::parse(&octets).unwrap(), world.now);
    world.gateway.events()
}

/// RFC 4666 §4.3.4.3, §3.8.1: what is right is acknowledged, and what is wrong is refused by kind, each with its contexts.
#[test]
fn contexts_of_one_request_succeed_and_fail_on_their_own() {
    let invalid = ErrorCode::InvalidRoutingContext as u32;
    let mode = ErrorCode::UnsupportedTrafficModeType as u32;
    let ack = (MessageType::AspacAck, 0);
    let err = |code, contexts: &[u32]| (MessageType::Err, code, contexts.to_vec());
    let mut world = several();
    let events = ask(
        &mut world,
        MessageType::Aspac,
        Some(TrafficMode::Loadshare),
        &[9, 2, 3, 4, 9, 2],
    );
    let refused = events
        .iter()
        .filter(|event| matches!(event, GatewayEvent::Refused(A, _)));
    assert_eq!(refused.count(), 2);
    assert_eq!(
        contexts(events),
        [(ack.0, ack.1, vec![2]), err(invalid, &[9, 4]), err(mode, &[3])]
    );
    assert!(world.gateway.may_send(A, Some(2)) && !world.gateway.may_send(A, Some(1)));
    // All wrong: no acknowledgement. Without contexts: those of the mode, by name.
    let events = ask(&mut world, MessageType::Aspac, None, &[4, 5]);
    assert_eq!(contexts(events), [err(invalid, &[4, 5])]);
    let events = ask(&mut world, MessageType::Aspac, Some(TrafficMode::Override), &[]);
    assert_eq!(contexts(events), [(ack.0, ack.1, vec![3]), err(mode, &[1, 2])]);
    let events = ask(&mut world, MessageType::Aspia, None, &[5, 2]);
    assert_eq!(
        contexts(events),
        [(MessageType::AspiaAck, 0, vec![2]), err(invalid, &[5])]
    );
    assert!(world.gateway.may_send(A, Some(3)) && !world.gateway.may_send(A, Some(2)));
}

#[test]
fn an_asp_is_active_for_what_the_gateway_grants() {
    let now = Instant::now();
    let settings = AspSettings {
        routing_contexts: vec![1, 2, 9],
        ..AspSettings::default()
    };
    let active = |asp: &Asp| [1, 2, 9].map(|context| asp.is_active_for(Some(context)));
    let receive = |asp: &mut Asp, out: &mut Vec<Vec<u8>>, kind, code: Option<ErrorCode>, contexts: &[u32]| {
        let mut octets = Vec::new();
        let mut builder = Builder::new(kind, &mut octets);
        if let Some(code) = code {
            builder.word(Tag::ERROR_CODE, code as u32);
        }
        if !contexts.is_empty() {
            builder.words(Tag::ROUTING_CONTEXT, contexts);
        }
        builder.finish();
        asp.received(&Message::parse(&octets).unwrap(), now, out, &mut Vec::new());
    };
    for refusal_first in [false, true] {
        let mut asp = Asp::new(settings.clone());
        let mut out = Vec::new();
        asp.associated(now, &mut out);
        receive(&mut asp, &mut out, MessageType::AspupAck, None, &[]);
        let refusal = Some(ErrorCode::InvalidRoutingContext);
        if refusal_first {
            receive(&mut asp, &mut out, MessageType::Err, refusal, &[9]);
        }
        receive(&mut asp, &mut out, MessageType::AspacAck, None, &[2]);
        if !refusal_first {
            receive(&mut asp, &mut out, MessageType::Err, refusal, &[9]);
        }
        assert_eq!(active(&asp), [false, true, false]);
        receive(&mut asp, &mut out, MessageType::AspacAck, None, &[1]);
        assert_eq!(active(&asp), [true, true, false]);
        assert_eq!(kinds(&out), [MessageType::Aspup, MessageType::Aspac]);
        // The gateway takes one away, then the other.
        receive(&mut asp, &mut out, MessageType::AspiaAck, None, &[1]);
        assert_eq!(active(&asp), [false, true, false]);
        receive(&mut asp, &mut out, MessageType::AspiaAck, None, &[2]);
        assert_eq!((active(&asp), asp.state()), ([false; 3], AspState::Inactive));
    }
    // Refused without an acknowledgement: the next request is for the rest.
    let mut asp = Asp::new(settings);
    let mut out = Vec::new();
    asp.associated(now, &mut out);
    receive(&mut asp, &mut out, MessageType::AspupAck, None, &[]);
    let refusal = Some(ErrorCode::InvalidRoutingContext);
    receive(&mut asp, &mut out, MessageType::Err, refusal, &[9]);
    asp.tick(now + Duration::from_secs(3), &mut out, &mut Vec::new());
    let last = Message::parse(out.last().unwrap()).unwrap();
    assert_eq!(last.routing_contexts().collect::<Vec<_>>(), [1, 2]);
    receive(&mut asp, &mut out, MessageType::Err, refusal, &[1, 2]);
    assert_eq!((asp.state(), asp.wake().is_some()), (AspState::Inactive, true));
}

#[test]
fn heartbeats_return_their_data() {
    let mut world = World::new(None, 1);
    let mut octets = Vec::new();
    let mut beat = Builder::new(MessageType::Beat, &mut octets);
    beat.parameter(Tag::HEARTBEAT_DATA, b"12345");
    beat.finish();
    world
        .gateway
        .received(A, 3, &Message::parse(&octets).unwrap(), world.now);
    let [GatewayEvent::Send(_, answer)] = &world.gateway.events()[..] else {
        panic!()
    };
    assert_eq!(
        Message::parse(answer).unwrap().get(Tag::HEARTBEAT_DATA),
        Some(&b"12345"[..])
    );
}

fn asp() -> Asp {
    Asp::new(AspSettings {
        routing_contexts: vec![CONTEXT],
        traffic_mode: Some(TrafficMode::Override),
        ..AspSettings::default()
    })
}

fn kinds(out: &[Vec<u8>]) -> Vec<MessageType> {
    out.iter()
        .map(|octets| Message::parse(octets).unwrap().message_type())
        .collect()
}

#[test]
fn an_asp_repeats_what_is_not_acknowledged() {
    let (mut asp, mut out, mut events) = (asp(), Vec::new(), Vec::new());
    let now = Instant::now();
    asp.associated(now, &mut out);
    asp.tick(now + Duration::from_secs(1), &mut out, &mut events);
    asp.tick(now + Duration::from_secs(2), &mut out, &mut events);
    assert_eq!(kinds(&out), [MessageType::Aspup, MessageType::Aspup]);
    assert_eq!(events, []);
}

#[test]
fn a_silent_peer_is_reported() {
    let (mut asp, mut out, mut events) = (asp(), Vec::new(), Vec::new());
    let now = Instant::now();
    asp.take_down(now, &mut out);
    asp.associated(now, &mut out);
    asp.tick(now + Duration::from_secs(30), &mut out, &mut events);
    assert_eq!(kinds(&out), [MessageType::Beat]);
    asp.tick(now + Duration::from_secs(60), &mut out, &mut events);
    assert_eq!(events, [AspEvent::PeerSilent]);
}

#[test]
fn an_overridden_or_refused_asp_does_not_fight() {
    let received = |asp: &mut Asp, kind: MessageType, tag: Tag, word: u32| {
        let mut octets = Vec::new();
        let mut builder = Builder::new(kind, &mut octets);
        if tag != Tag::INFO_STRING {
            builder.word(tag, word);
        }
        builder.finish();
        let (mut out, mut events) = (Vec::new(), Vec::new());
        let message = Message::parse(&octets).unwrap();
        asp.received(&message, Instant::now(), &mut out, &mut events);
        kinds(&out)
    };
    let mut asp = asp();
    asp.associated(Instant::now(), &mut Vec::new());
    let none = Tag::INFO_STRING;
    assert_eq!(
        received(&mut asp, MessageType::AspupAck, none, 0),
        [MessageType::Aspac]
    );
    assert_eq!(received(&mut asp, MessageType::AspacAck, none, 0), []);
    assert_eq!(asp.state(), AspState::Active);
    let alternate = Status::AlternateAspActive.number();
    assert_eq!(received(&mut asp, MessageType::Ntfy, Tag::STATUS, alternate), []);
    assert_eq!(asp.state(), AspState::Inactive);
    let mut out = Vec::new();
    asp.activate(Instant::now(), &mut out);
    assert_eq!(kinds(&out), [MessageType::Aspac]);
    received(
        &mut asp,
        MessageType::Err,
        Tag::ERROR_CODE,
        ErrorCode::InvalidRoutingContext as u32,
    );
    out.clear();
    asp.tick(
        Instant::now() + Duration::from_secs(20),
        &mut out,
        &mut Vec::new(),
    );
    assert_eq!(kinds(&out), []);
    // A new association begins with what management wants.
    asp.disassociated(&mut Vec::new());
    asp.associated(Instant::now(), &mut out);
    assert_eq!(kinds(&out), [MessageType::Aspup]);
    assert_eq!(
        received(&mut asp, MessageType::AspupAck, none, 0),
        [MessageType::Aspac]
    );
}

/// Messages are lost, associations fail, management changes its mind; when quiet comes, both agree.
#[test]
fn events_in_any_order_end_in_agreement() {
    let mut random = Random::new(0x55a7);
    for round in 0..2_000 {
        let mut world = World::new(None, 1);
        let (mut asp, mut events) = (asp(), Vec::new());
        let mut associated = false;
        for step in 0..60 {
            let quiet = step >= 40;
            let mut out = Vec::new();
            match random.below(if quiet { 1 } else { 8 }) {
                1 if associated => {
                    associated = false;
                    asp.disassociated(&mut events);
                    world.gateway.disassociated(A, world.now);
                }
                2 => asp.deactivate(world.now, &mut out),
                3 => asp.take_down(world.now, &mut out),
                4 => asp.activate(world.now, &mut out),
                _ => {
                    world.now += Duration::from_secs(1);
                    asp.tick(world.now, &mut out, &mut events);
                    world.gateway.tick(world.now);
                }
            }
            if !associated && (quiet || random.below(3) == 0) {
                associated = true;
                world.gateway.associated(A);
                asp.associated(world.now, &mut out);
            }
            if step == 40 {
                asp.activate(world.now, &mut out);
            }
            while !out.is_empty() {
                for octets in std::mem::take(&mut out) {
                    if associated && (quiet || random.below(4) != 0) {
                        world
                            .gateway
                            .received(A, 0, &Message::parse(&octets).unwrap(), world.now);
                    }
                }
                for event in world.gateway.events() {
                    if let GatewayEvent::Send(_, octets) = event
                        && associated
                        && (quiet || random.below(4) != 0)
                    {
                        asp.received(
                            &Message::parse(&octets).unwrap(),
                            world.now,
                            &mut out,
                            &mut events,
                        );
                    }
                }
            }
        }
        assert_eq!(
            asp.state(),
            AspState::Active,
            "round {round} {asp:?} {associated} {:?}",
            world.gateway
        );
        assert_eq!(world.state(), AsState::Active, "round {round}");
    }
}
