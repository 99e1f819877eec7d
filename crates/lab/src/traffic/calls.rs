//! Calls through the whole core: a few stand, and each second one of them ends and another one begins.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use super::{CSCF, Counts, PAUSE, wait};
use crate::call::{Board, Caller, Legs, Peers, Standing, Ue};

/// Calls that stand.
const CALLS: usize = 12;
/// Between the ends of two calls.
const BETWEEN: Duration = Duration::from_secs(1);
/// Subscriber of the first call, whose session has the address 10.0.0.1 and which ends last: examples name it.
const FIRST_SUBSCRIBER: u64 = 1_010_000_000_101;
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// Addresses of the others follow from their numbers.
const ADDRESSES: u32 = 0x0a80_0000;
const MOST_ADDRESSES: u64 = 1 << 20;

/// Keeps calls until the end, and ends them then.
pub(super) fn run(peers: Peers, board: &Board, stop: &AtomicBool, counts: &Counts) {
    let mut caller = Caller::new(peers, CSCF, board.address(), board.notices());
    let mut calls = Calls::new();
    let mut turn = 0;
    while !stop.load(Ordering::Relaxed) {
        let mut legs = Legs::default();
        let made = calls.renew(turn, &mut caller, &mut legs);
        counts.add(&legs);
        if made.is_err() {
            // A function is unreachable, or still starts.
            wait(PAUSE, stop);
            continue;
        }
        turn += 1;
        if turn >= CALLS {
            wait(BETWEEN, stop);
            caller.attend();
        }
    }
    let mut legs = Legs::default();
    for call in calls.standing.iter_mut().filter_map(Option::take) {
        // It ends here whether or not every function still answers.
        let _ = caller.end(&call, &mut legs);
    }
    counts.add(&legs);
}

/// The calls that stand.
struct Calls {
    standing: [Option<Standing>; CALLS],
    /// Number of the next call. An earlier process that was killed has left calls of other numbers.
    next: u64,
}

impl Calls {
    fn new() -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self {
            standing: [const { None }; CALLS],
            next: now.map_or(0, |since| since.as_secs()),
        }
    }

    /// Ends the call whose turn it is, and begins another one in its place. The first one stays.
    fn renew(&mut self, turn: usize, caller: &mut Caller, legs: &mut Legs) -> Result<(), String> {
        let at = match turn {
            turn if turn < CALLS => turn,
            turn => 1 + turn % (CALLS - 1),
        };
        if let Some(call) = self.standing[at].take() {
            caller.end(&call, legs)?;
        }
        let call = self.next;
        self.next += 1;
        let address = match at {
            0 => FIRST_ADDRESS,
            _ => Ipv4Addr::from_bits(ADDRESSES + (call % MOST_ADDRESSES) as u32),
        };
        let ue = Ue {
            imsi: FIRST_SUBSCRIBER + at as u64,
            address,
            call,
        };
        self.standing[at] = Some(caller.begin(ue, legs)?);
        Ok(())
    }
}
