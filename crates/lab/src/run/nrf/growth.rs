//! The other set of two: an NRF with functions of its own, which retrieves the state of the NRF under test and gives it its own.
//!
//! Part of the model's functions are registered there, so discoveries at the NRF under test find as many profiles as they must
//! only where growth works. Heart-beats of these functions change a load by less than the threshold of notifications: the
//! state is another one each second, and no subscriber is notified of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::run::children::Simulator;
use crate::run::relays;
use crate::run::rig::{Place, Probe, RigError};
use ::report::Check;
use loadgen::client::{Client, Request};
use report::measure::Metrics;
use settings::Period;
use workload::nrf::{Function, Population};

/// The most that an exchange with an NRF may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often functions of the other set send heart-beats: a part of them, in turn.
const EVERY: Duration = Duration::from_secs(1);
/// In how many of these turns each sends one.
const TURNS: usize = 10;

/// Settings by which an NRF retrieves the state of another set.
pub(super) fn settings(set: &str, nrf: SocketAddr) -> Value {
    json!({ "sets": [{ "name": set, "nrfs": [format!("http://{nrf}")] }] })
}

/// Starts a relay before an NRF of the other set, if its answers arrive later. Returns it with the address to use then.
pub(super) fn distance(
    other: SocketAddr,
    latency: Period,
    place: &Place,
) -> Result<Option<(Simulator, SocketAddr)>, RigError> {
    match latency.duration().is_zero() {
        true => Ok(None),
        false => relays::before(other, "other-set-relay", latency, place).map(Some),
    }
}

/// Divides the functions between two sets: the first one's, and `count` of the other. Location functions stay in the first.
pub(super) fn divide(population: &Population, count: usize) -> (Population, Population) {
    let (mut ours, mut theirs) = (population.clone(), population.clone());
    theirs.functions.clear();
    ours.functions.clear();
    for (at, function) in population.functions.iter().enumerate() {
        let left = population.functions.len() - at;
        let missing = count - theirs.functions.len();
        // Every second one, and all when no more than that are left.
        let is_theirs = missing > 0 && function.kind != "SLF" && (at % 2 == 1 || left <= missing);
        let set = if is_theirs { &mut theirs } else { &mut ours };
        set.functions.push(function.clone());
    }
    (ours, theirs)
}

/// What the other set's functions have done.
#[derive(Debug, Default)]
struct Beats {
    accepted: AtomicU64,
    failed: AtomicU64,
}

/// Sends the heart-beats of the other set's functions until the probe is gone, which checks the retrievals.
pub(super) fn watch(
    under_test: SocketAddr,
    admin: SocketAddr,
    other: SocketAddr,
    theirs: Population,
) -> Probe {
    let beats = Arc::new(Beats::default());
    let (sent, begun) = (Arc::downgrade(&beats), Instant::now());
    let count = theirs.functions.len();
    std::thread::spawn(move || {
        let (mut client, mut turn) = (None, 0);
        while let Some(beats) = sent.upgrade() {
            let requests = heart_beats(&theirs.functions, turn);
            match exchange(&mut client, other, &requests) {
                Some(accepted) => {
                    beats.accepted.fetch_add(accepted, Relaxed);
                    beats.failed.fetch_add(requests.len() as u64 - accepted, Relaxed);
                }
                None => _ = beats.failed.fetch_add(requests.len() as u64, Relaxed),
            }
            drop(beats);
            turn += 1;
            std::thread::sleep(EVERY);
        }
    });
    Box::new(move || {
        let metric = |name| Metrics::read(admin).map_or(f64::NAN, |metrics| metrics.sum(name, &[]));
        let retrievals = metric("signalbox_nrf_growth_retrievals_total");
        let failures = metric("signalbox_nrf_growth_failures_total");
        let (theirs, ours) = (state(other), state(under_test));
        let (accepted, failed) = (beats.accepted.load(Relaxed), beats.failed.load(Relaxed));
        let seconds = begun.elapsed().as_secs_f64();
        let size = |state: &Option<State>| {
            let of = |one: &State| {
                format!(
                    "{} profiles in {} bytes and {} pages",
                    one.profiles, one.bytes, one.pages
                )
            };
            state.as_ref().map_or_else(|| "no answer".to_owned(), of)
        };
        Check::new(
            "growth",
            format!("the state of {count} profiles of the other set, retrieved without a failure"),
            format!(
                "{retrievals} retrievals in {seconds:.0} s, {failures} failures; the other set has {}, this one {}; \
                 {accepted} heart-beats at the other set, {failed} refused",
                size(&theirs),
                size(&ours),
            ),
            // The first one may come before the other NRF listens.
            retrievals > 0.0
                && failures <= 1.0
                && failed == 0
                && theirs.is_some_and(|state| state.profiles == count)
                && ours.is_some(),
        )
    })
}

/// The heart-beats of a turn: the load of a function differs from turn to turn by less than a threshold.
fn heart_beats(functions: &[Function], turn: usize) -> Vec<Request> {
    let load = if (turn / TURNS).is_multiple_of(2) { 20 } else { 22 };
    let mine = functions.iter().skip(turn % TURNS).step_by(TURNS);
    mine.map(|function| {
        let body = format!(
            r#"[{{"op":"replace","path":"/nfStatus","value":"REGISTERED"}},{{"op":"replace","path":"/load","value":{load}}}]"#
        );
        Request::new("PATCH", format!("/nnrf-nfm/v1/nf-instances/{}", function.id))
            .with("application/json-patch+json", body)
    })
    .collect()
}

/// How many requests were accepted; `None` when the NRF does not answer.
fn exchange(client: &mut Option<Client>, nrf: SocketAddr, requests: &[Request]) -> Option<u64> {
    let mut connected = match client.take() {
        Some(client) => client,
        None => Client::connect(nrf, PATIENCE).ok()?,
    };
    let answers = connected.exchange(requests).ok()?;
    *client = Some(connected);
    let accepted = answers
        .iter()
        .filter(|answer| (200..300).contains(&answer.status));
    Some(accepted.count() as u64)
}

/// The state of a set, as another one retrieves it.
struct State {
    profiles: usize,
    bytes: usize,
    pages: usize,
}

fn state(nrf: SocketAddr) -> Option<State> {
    /// More pages than a model has.
    const MOST: usize = 1_000;
    let mut client = Client::connect(nrf, PATIENCE).ok()?;
    let mut state = State {
        profiles: 0,
        bytes: 0,
        pages: 0,
    };
    let mut path = "/signalbox-growth/v2/profiles".to_owned();
    while state.pages < MOST {
        let answers = client.exchange(&[Request::new("GET", path)]).ok()?;
        let answer = answers.into_iter().next().filter(|answer| answer.status == 200)?;
        let page: Value = serde_json::from_slice(&answer.body).ok()?;
        state.profiles += page["nfInstances"].as_array()?.len();
        state.bytes += answer.body.len();
        state.pages += 1;
        match page["next"].as_str() {
            Some(next) => path = format!("/signalbox-growth/v2/profiles?after={next}"),
            None => return Some(state),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_divided_between_the_sets() {
        let found = callmodel::find("nrf/38k").unwrap();
        let all = Population::new(found.model.nrf.as_ref().unwrap());
        for count in [1, 100, 125] {
            let (ours, theirs) = divide(&all, count);
            assert_eq!(theirs.functions.len(), count);
            assert_eq!(ours.functions.len() + count, all.functions.len());
            assert!(theirs.functions.iter().all(|function| function.kind != "SLF"));
        }
        let (_, theirs) = divide(&all, 125);
        let turns = (0..TURNS).flat_map(|turn| heart_beats(&theirs.functions, turn));
        assert_eq!(turns.count(), 125, "each sends one in that many turns");
    }
}
