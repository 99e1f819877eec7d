//! An active/standby pair: one of two front ends listens at the addresses of the sets, the other takes over when the first
//! does not answer.
//!
//! Each queries the other at its admin endpoint. Established connections end with the front end that relayed them;
//! clients reconnect to the same address. If the two cannot reach one another, both are active; when they can again,
//! the one that is not preferred becomes standby.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use function::live::Live;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use telemetry::{AlarmKind, Alarms, Counter, Severity};
use tokio::process::Command;
use tokio::sync::watch;

use crate::check::get;
use crate::config::{Check, Config, Pair};

/// The mate does not answer. The number is ours.
pub(crate) const MATE_UNAVAILABLE: AlarmKind = AlarmKind {
    number: 10514,
    name: "IPFE Mate Unavailable",
    severity: Severity::Major,
    text: "The other front end of the pair does not answer: no front end would take over from this one.",
    advice: "Check that the mate runs and that its admin endpoint answers at `/ipfe/pair`.",
};

/// Whether a front end of a pair listens at the addresses of its sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// It listens.
    Active,
    /// It does not listen until the mate fails.
    Standby,
}

/// The role of this front end, and the last known state of the mate.
#[derive(Debug)]
pub(crate) struct Pairing {
    role: watch::Sender<Role>,
    /// Listeners that accept.
    listeners: AtomicUsize,
    mate: Mutex<Option<Role>>,
}

/// What `/ipfe/pair` shows.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PairRow {
    pub(crate) role: Role,
    /// Listeners that accept connections.
    pub(crate) listeners: usize,
    /// The role of the mate; none: it does not answer, or there is none.
    pub(crate) mate: Option<Role>,
}

/// An accepting listener; counted until it is dropped.
#[derive(Debug)]
pub(crate) struct Listening(Arc<Pairing>);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.listeners.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pairing {
    /// Standby at first with a mate, active without one.
    pub(crate) fn new(pair: Option<&Pair>) -> Arc<Self> {
        let first = match pair {
            Some(_) => Role::Standby,
            None => Role::Active,
        };
        Arc::new(Self {
            role: watch::Sender::new(first),
            listeners: AtomicUsize::new(0),
            mate: Mutex::default(),
        })
    }

    pub(crate) fn role(&self) -> Role {
        *self.role.borrow()
    }

    /// Follows the role.
    pub(crate) fn follow(&self) -> watch::Receiver<Role> {
        self.role.subscribe()
    }

    /// A listener of this front end accepts from now on.
    pub(crate) fn listening(self: &Arc<Self>) -> Listening {
        self.listeners.fetch_add(1, Ordering::Relaxed);
        Listening(self.clone())
    }

    pub(crate) fn row(&self) -> PairRow {
        PairRow {
            role: self.role(),
            listeners: self.listeners.load(Ordering::Relaxed),
            mate: *self.mate.lock(),
        }
    }
}

/// The next role; `mate` is none when `check.failures` queries in a row had no answer.
fn next(mine: Role, preferred: bool, mate: Option<Role>) -> Role {
    match (mine, mate) {
        (_, None) => Role::Active,
        (Role::Standby, Some(Role::Active)) => Role::Standby,
        (Role::Active, Some(Role::Standby)) => Role::Active,
        // Both active or both standby: the preferred one is active.
        (Role::Active, Some(Role::Active)) | (Role::Standby, Some(Role::Standby)) => match preferred {
            true => Role::Active,
            false => Role::Standby,
        },
    }
}

/// Queries the mate until the front end ends, and changes the role.
pub(crate) async fn follow_mate(
    pairing: Arc<Pairing>,
    pair: Pair,
    live: Arc<Live<Config, ()>>,
    alarms: Alarms,
    takeovers: Counter,
) {
    let instance = pair.mate.to_string();
    let mut misses = 0;
    loop {
        let check = live.load().config.check.clone();
        let answer = ask(&pair, &check).await;
        misses = if answer.is_some() { 0 } else { misses + 1 };
        if misses < check.failures && answer.is_none() {
            tokio::time::sleep(check.interval.duration()).await;
            continue;
        }
        *pairing.mate.lock() = answer;
        let silent = answer.is_none();
        alarms.set(
            &MATE_UNAVAILABLE,
            &instance,
            silent.then(|| format!("no answer to {misses} checks in a row")),
        );
        let before = pairing.role();
        let now = next(before, pair.preferred, answer);
        if now != before {
            tracing::warn!(role = ?now, mate = ?answer, "role in the pair");
            assume(&pairing, &pair, now).await;
            if now == Role::Active {
                takeovers.inc();
            }
        }
        tokio::time::sleep(check.interval.duration()).await;
    }
}

/// Moves the addresses and changes the role, in the order that keeps the time short in which an address has no
/// listener.
async fn assume(pairing: &Pairing, pair: &Pair, role: Role) {
    match role {
        Role::Active => {
            run(&pair.takeover, pair.command_timeout.duration()).await;
            pairing.role.send_replace(Role::Active);
        }
        Role::Standby => {
            pairing.role.send_replace(Role::Standby);
            run(&pair.release, pair.command_timeout.duration()).await;
        }
    }
}

/// Gives up the addresses when the front end stops.
pub(crate) async fn release(pairing: &Pairing, pair: &Pair) {
    if pairing.role() == Role::Active {
        assume(pairing, pair, Role::Standby).await;
    }
}

/// The state that the mate reports.
async fn ask(pair: &Pair, check: &Check) -> Option<Role> {
    let answer = tokio::time::timeout(check.timeout.duration(), get(pair.mate, "/ipfe/pair"));
    let answer = answer.await.ok()?.ok()?;
    let body = answer
        .iter()
        .position(|byte| *byte == b'{')
        .and_then(|at| answer.get(at..))?;
    let mut rows = serde_json::Deserializer::from_slice(body).into_iter::<PairRow>();
    Some(rows.next()?.ok()?.role)
}

/// Runs a program of the settings. The role changes even if the program fails: the bind of the listeners shows whether
/// the address is present.
async fn run(command: &[String], timeout: Duration) {
    let Some((program, arguments)) = command.split_first() else {
        return;
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    let ended = tokio::time::timeout(timeout, command.status()).await;
    let why = match ended {
        Ok(Ok(status)) if status.success() => {
            tracing::info!(program, "addresses moved");
            return;
        }
        Ok(Ok(status)) => status.to_string(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("killed: it took longer than {timeout:?}"),
    };
    tracing::error!(program, why, "the program that moves the addresses failed");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of two that reach one another exactly one is active soon, and one that is alone is active.
    #[test]
    fn one_of_two_is_active() {
        let roles = [Role::Active, Role::Standby];
        for (first, second) in [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(a, b)| (roles[a], roles[b])) {
            let (mut preferred, mut other) = (first, second);
            for _ in 0..2 {
                preferred = next(preferred, true, Some(other));
                other = next(other, false, Some(preferred));
            }
            assert_ne!(preferred, other, "from {first:?} and {second:?}");
            // The same when they ask at the same time.
            let (mut preferred, mut other) = (first, second);
            for _ in 0..3 {
                (preferred, other) = (
                    next(preferred, true, Some(other)),
                    next(other, false, Some(preferred)),
                );
            }
            assert_ne!(preferred, other, "from {first:?} and {second:?}, at once");
            assert_eq!(next(first, false, None), Role::Active);
        }
        // One that returns does not take the connections of the other.
        assert_eq!(next(Role::Standby, true, Some(Role::Active)), Role::Standby);
    }
}
