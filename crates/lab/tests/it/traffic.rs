//! Background traffic against a peer that is not an NRF, and against a closed port.

use std::time::{Duration, Instant};

use lab::sim::{RoleName, Settings};
use lab::traffic::{Traffic, start};

use crate::support::Peer;

#[test]
fn it_continues_through_restarts_and_ends_when_stopped() {
    let peer = Peer::start(&Settings {
        role: RoleName::Producer,
        ..Settings::default()
    });
    let traffic = Traffic {
        discoveries: 500.0,
        ..Traffic::new(peer.address)
    };
    let running = start(traffic).unwrap();
    let patience = Instant::now() + Duration::from_secs(20);
    let wait_for = |what: &dyn Fn() -> bool| {
        while !what() {
            assert!(Instant::now() < patience);
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    wait_for(&|| running.counts().0 > 30);
    drop(peer);
    wait_for(&|| running.counts().1 > 0);
    running.stop();
}
