//! The peer state machine as a conversation between two of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use diameter_proto::MessageBuilder;
use diameter_proto::known::{self, disconnect_cause};
use diameter_proto::peer::{
    ApplicationId, Capabilities, DownReason, Duplicate, Health, Input, Machine, Output, PeerSettings, Reopen,
    Side, State,
};

use crate::world::{LATENCY, Reported, World, capabilities};

const SECOND: Duration = Duration::from_secs(1);
const CER: u32 = 257;
const DWR: u32 = 280;
const S6A: u32 = 16_777_251;

fn up(world: &World, who: usize) -> usize {
    world.nodes[who]
        .reported
        .iter()
        .filter(|event| matches!(event, Reported::Up(..)))
        .count()
}

#[test]
fn one_connects_the_other_waits() {
    let mut world = World::pair([true, false]);
    world.input(0, Input::Start);
    world.pass(SECOND);
    assert_eq!(world.states(), [State::IOpen, State::ROpen]);
    assert_eq!(
        world.nodes[0].reported,
        [
            Reported::Up(Side::Initiator, vec![S6A], false),
            Reported::Health(Health::Okay)
        ]
    );
    assert_eq!(
        world.nodes[1].reported,
        [
            Reported::Up(Side::Responder, vec![S6A], false),
            Reported::Health(Health::Okay)
        ]
    );
}

#[test]
fn both_connect_at_once_and_the_larger_name_keeps_the_others_connection() {
    let mut world = World::pair([true, true]);
    world.input(0, Input::Start);
    world.input(1, Input::Start);
    world.pass(SECOND);
    // b.example succeeds a.example: b keeps the connection that a opened.
    assert_eq!(world.states(), [State::IOpen, State::ROpen]);
    assert_eq!((up(&world, 0), up(&world, 1)), (1, 1));
}

/// Packets of ours are lost on the way: the peer's CER is answered although our attempt has no outcome.
#[test]
fn an_attempt_without_an_outcome_does_not_keep_the_peer_waiting() {
    let now = Instant::now();
    let settings = PeerSettings {
        initiate: true,
        ..PeerSettings::default()
    };
    let mut machine = Machine::new(Arc::new(capabilities("a.example")), settings, 1);
    machine.handle(now, Input::Start);
    let (remote, local) = (capabilities("b.example"), "192.0.2.1".parse().unwrap());
    let mut cer = MessageBuilder::request(CER, 0);
    remote.write(&mut cer);
    let cer = cer.finish().unwrap();
    let input = Input::ConnectedBy {
        cer: cer.view(),
        remote,
        local,
        same_address: false,
    };
    machine.handle(now, input);
    assert_eq!(machine.state(), State::WaitConnAckElect);
    let due = machine.deadline().unwrap();
    assert!(due <= now + 2 * SECOND);
    machine.handle(due, Input::Timer);
    assert_eq!(machine.state(), State::ROpen);
    let outputs: Vec<Output> = std::iter::from_fn(|| machine.output()).collect();
    let is_close = |output: &Output| matches!(output, Output::Close(Side::Initiator));
    assert!(outputs.iter().any(is_close), "{outputs:?}");
    let is_cea = |output: &Output| {
        matches!(output, Output::Send(Side::Responder, cea)
            if cea.require(known::RESULT_CODE) == Ok(2001))
    };
    assert!(outputs.iter().any(is_cea), "{outputs:?}");
}

#[test]
fn one_connection_stays_whichever_side_connects_first() {
    for (first, second) in [(0, 1), (1, 0)] {
        for margin in 0..8 {
            let mut world = World::pair([true, true]);
            world.input(first, Input::Start);
            world.pass(LATENCY * margin / 2);
            world.input(second, Input::Start);
            world.pass(5 * SECOND);
            let states = world.states();
            assert!(
                states == [State::IOpen, State::ROpen] || states == [State::ROpen, State::IOpen],
                "{first} first by {margin}: {states:?}"
            );
            assert!(
                world
                    .nodes
                    .iter()
                    .all(|node| !matches!(node.reported.last(), Some(Reported::Down(_))))
            );
        }
    }
}

#[test]
fn watchdogs_go_both_ways_and_traffic_spares_them() {
    let mut world = World::pair([true, false]);
    world.input(0, Input::Start);
    world.pass(100 * SECOND);
    assert!(world.count(0, DWR, true) + world.count(1, DWR, true) >= 3);
    assert_eq!(world.count(0, DWR, true), world.count(1, DWR, false));
    let before = world.log.len();
    for _ in 0..50 {
        let now = world.now;
        world.nodes.iter_mut().for_each(|node| node.machine.traffic(now));
        world.pass(2 * SECOND);
    }
    assert_eq!(world.log.len(), before, "who hears something does not ask");
}

#[test]
fn a_cut_cable_is_detected_and_the_peers_reconnect() {
    let mut world = World::pair([true, false]);
    world.input(0, Input::Start);
    world.pass(SECOND);
    world.cut = true;
    world.pass(70 * SECOND);
    assert_eq!(
        world.nodes[0].reported[1..],
        [Reported::Health(Health::Okay), Reported::Health(Health::Suspect)]
    );
    world.pass(30 * SECOND);
    assert_eq!(
        world.nodes[0].reported.last(),
        Some(&Reported::Down(DownReason::Silent))
    );
    assert_eq!(world.states()[1], State::Closed);
    world.cut = false;
    world.pass(60 * SECOND);
    assert_eq!(world.states(), [State::IOpen, State::ROpen]);
    assert_eq!(
        world.nodes[0].reported.last(),
        Some(&Reported::Health(Health::Reopen)),
        "it has to prove itself"
    );
    world.pass(100 * SECOND);
    assert_eq!(
        world.nodes[0].reported.last(),
        Some(&Reported::Health(Health::Okay))
    );
}

#[test]
fn a_short_cut_leads_to_suspect_and_back_to_okay() {
    let mut world = World::pair([true, false]);
    world.input(0, Input::Start);
    world.pass(SECOND);
    world.cut = true;
    world.pass(66 * SECOND);
    assert_eq!(
        world.nodes[0].reported.last(),
        Some(&Reported::Health(Health::Suspect))
    );
    world.cut = false;
    // The other's next watchdog, or its answer, arrives.
    let now = world.now;
    world.nodes[0].machine.traffic(now);
    world.input(0, Input::Timer);
    assert_eq!(
        world.nodes[0].reported.last(),
        Some(&Reported::Health(Health::Okay))
    );
}

#[test]
fn a_dpr_closes_both_sides_with_its_cause() {
    let mut world = World::pair([true, false]);
    world.input(0, Input::Start);
    world.pass(SECOND);
    world.input(1, Input::Stop(disconnect_cause::BUSY));
    world.pass(SECOND);
    assert_eq!(world.states(), [State::Closed; 2]);
    assert_eq!(
        world.nodes[1].reported.last(),
        Some(&Reported::Down(DownReason::WeSaid))
    );
    assert_eq!(
        world.nodes[0].reported.last(),
        Some(&Reported::Down(DownReason::PeerSaid(disconnect_cause::BUSY)))
    );
    // RFC 6733 §5.4: a busy peer is not connected to periodically.
    world.pass(290 * SECOND);
    assert_eq!(world.states()[0], State::Closed);
    world.pass(20 * SECOND);
    assert_eq!(world.states(), [State::IOpen, State::ROpen]);
}

#[test]
fn a_peer_that_does_not_want_to_talk_is_not_connected_to_until_a_request_is_pending() {
    let mut world = World::pair([true, false]);
    world.input(0, Input::Start);
    world.pass(SECOND);
    world.input(1, Input::Stop(disconnect_cause::DO_NOT_WANT_TO_TALK_TO_YOU));
    world.pass(600 * SECOND);
    assert_eq!(world.states(), [State::Closed; 2]);
    world.input(0, Input::Start);
    world.pass(SECOND);
    assert_eq!(world.states(), [State::IOpen, State::ROpen]);
}

#[test]
fn both_leave_at_once() {
    let mut world = World::pair([true, false]);
    world.input(0, Input::Start);
    world.pass(SECOND);
    world.input(0, Input::Stop(disconnect_cause::REBOOTING));
    world.input(1, Input::Stop(disconnect_cause::REBOOTING));
    world.pass(SECOND);
    assert_eq!(world.states(), [State::Closed; 2]);
}

#[test]
fn attempts_back_off_and_end_with_success() {
    let mut world = World::pair([true, false]);
    world.nodes[1].listens = false;
    world.input(0, Input::Start);
    world.pass(300 * SECOND);
    assert_eq!(world.states()[0], State::Closed);
    world.nodes[1].listens = true;
    // The longest pause is 30 s and a quarter of jitter.
    world.pass(40 * SECOND);
    assert_eq!(world.states(), [State::IOpen, State::ROpen]);
    // After a loss, the first try is soon.
    world.break_off(0, Side::Initiator);
    world.pass(2 * SECOND);
    assert_eq!(world.states(), [State::IOpen, State::ROpen]);
    assert_eq!(up(&world, 0), 2);
}

#[test]
fn peers_without_a_common_application_disconnect() {
    let settings = |initiate| PeerSettings {
        initiate,
        ..PeerSettings::default()
    };
    let gx = Capabilities::new("b.example", "example").with_applications([ApplicationId::tgpp(16_777_238)]);
    let mut world = World::new([(capabilities("a.example"), settings(true)), (gx, settings(false))]);
    world.input(0, Input::Start);
    world.pass(SECOND / 2);
    assert_eq!(world.states(), [State::Closed; 2]);
    assert_eq!(world.count(0, CER, false), 1, "the refusal is an answer");
    assert!(world.nodes.iter().all(|node| node.reported.is_empty()));
}

#[test]
fn a_peer_must_have_the_configured_name() {
    let settings = |initiate, host: &str| PeerSettings {
        initiate,
        host: Some(host.into()),
        ..PeerSettings::default()
    };
    for expected in [["x.example", "a.example"], ["b.example", "x.example"]] {
        let mut world = World::new([
            (capabilities("a.example"), settings(true, expected[0])),
            (capabilities("b.example"), settings(false, expected[1])),
        ]);
        world.input(0, Input::Start);
        world.pass(SECOND / 2);
        assert!(up(&world, 0) == 0 && world.states()[0] == State::Closed);
    }
}

fn restarted(duplicate: Duplicate) -> World {
    let settings = |initiate| PeerSettings {
        initiate,
        duplicate,
        ..PeerSettings::default()
    };
    let mut world = World::new([
        (capabilities("a.example"), settings(true)),
        (capabilities("b.example"), settings(false)),
    ]);
    world.input(0, Input::Start);
    world.pass(SECOND);
    world.restart(0, capabilities("a.example"), settings(true));
    world.input(0, Input::Start);
    world.pass(SECOND / 2);
    world
}

#[test]
fn a_peer_that_restarted_unnoticed_replaces_itself() {
    let world = restarted(Duplicate::ReplaceSameAddress);
    assert_eq!(world.states(), [State::IOpen, State::ROpen]);
    assert!(
        world.nodes[1]
            .reported
            .contains(&Reported::Down(DownReason::Replaced))
    );
    assert_eq!(up(&world, 1), 2);
}

#[test]
fn with_duplicate_reject_the_old_connection_gets_a_watchdog_first() {
    let mut world = restarted(Duplicate::Reject);
    assert_eq!(world.states()[1], State::ROpen);
    assert_eq!(up(&world, 0), 0);
    assert_eq!(world.nodes[1].machine.health(), Health::Okay);
    // The dead connection does not answer; after it was closed, the new one is accepted.
    world.pass(150 * SECOND);
    assert_eq!(world.states(), [State::IOpen, State::ROpen]);
    assert!(world.elapsed() < 152 * SECOND);
}

#[test]
fn inband_security_is_agreed_on_only_when_both_want_it() {
    for (wants, secure) in [([true, true], true), ([true, false], false)] {
        let node = |host, inband_tls| Capabilities {
            inband_tls,
            ..capabilities(host)
        };
        let settings = |initiate| PeerSettings {
            initiate,
            ..PeerSettings::default()
        };
        let mut world = World::new([
            (node("a.example", wants[0]), settings(true)),
            (node("b.example", wants[1]), settings(false)),
        ]);
        world.input(0, Input::Start);
        world.pass(SECOND);
        assert!(world.nodes.iter().all(
            |node| node.reported[0] == Reported::Up(node.machine.open_side().unwrap(), vec![S6A], secure)
        ));
    }
}

#[test]
fn with_reopen_always_every_new_connection_starts_in_reopen() {
    let settings = |initiate| PeerSettings {
        initiate,
        reopen: Reopen::Always,
        ..PeerSettings::default()
    };
    let mut world = World::new([
        (capabilities("a.example"), settings(true)),
        (capabilities("b.example"), settings(false)),
    ]);
    world.input(0, Input::Start);
    world.pass(SECOND);
    world.break_off(0, Side::Initiator);
    world.pass(5 * SECOND);
    assert_eq!(world.nodes[0].machine.health(), Health::Reopen);
    world.pass(70 * SECOND);
    assert_eq!(world.nodes[0].machine.health(), Health::Okay);
}
