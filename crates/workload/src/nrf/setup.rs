//! Before the load: registering every function and making every subscription.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;

use super::{Condition, Plan, Population, profiles};
use loadgen::client::{Client, Request, Response};

/// The most that the whole of it may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A subscription that stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// As the NRF names it.
    pub id: String,
    /// What it is for.
    pub condition: Condition,
}

/// Something could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The function cannot be reached.
    #[error("cannot set up over {peer}: {source}")]
    Io {
        /// Its address.
        peer: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The function refused.
    #[error("{what}: the answer was {status}: {text}")]
    Refused {
        /// What was asked.
        what: String,
        /// The status code.
        status: u16,
        /// What it said.
        text: String,
    },
}

/// Registers every function. SLFs offer their service at `slf`, in turn.
///
/// # Errors
/// When the NRF cannot be reached or refuses one.
pub fn register(
    nrf: SocketAddr,
    population: &Population,
    heartbeat_s: u64,
    slf: &[SocketAddr],
) -> Result<(), SetupError> {
    let requests: Vec<Request> = population
        .functions
        .iter()
        .map(|function| {
            let slf = slf.get(function.number as usize % slf.len().max(1)).copied();
            Request::new("PUT", format!("/nnrf-nfm/v1/nf-instances/{}", function.id))
                .with("application/json", profiles::profile(function, heartbeat_s, slf))
        })
        .collect();
    let answers = exchange(nrf, &requests)?;
    for (function, answer) in population.functions.iter().zip(&answers) {
        accept(answer, &[200, 201], || {
            format!("registering {} {}", function.kind, function.id)
        })?;
    }
    Ok(())
}

/// Makes every subscription; notifications go to the sinks in turn, each with a path of its own.
///
/// # Errors
/// When the NRF cannot be reached or refuses one.
pub fn subscribe(
    nrf: SocketAddr,
    plan: &Plan,
    sinks: &[SocketAddr],
) -> Result<Vec<Subscription>, SetupError> {
    let requests: Vec<Request> = plan
        .conditions
        .iter()
        .enumerate()
        .map(|(at, c)| subscription(plan, c, sinks, at))
        .collect();
    let answers = exchange(nrf, &requests)?;
    let mut made = Vec::with_capacity(answers.len());
    for (condition, answer) in plan.conditions.iter().zip(&answers) {
        accept(answer, &[201], || format!("subscribing to {condition:?}"))?;
        let Some(id) = subscription_id(&answer.body) else {
            return Err(SetupError::Refused {
                what: format!("subscribing to {condition:?}: no subscriptionId"),
                status: answer.status,
                text: answer.text(),
            });
        };
        made.push(Subscription {
            id,
            condition: condition.clone(),
        });
    }
    Ok(made)
}

/// The request for a subscription.
#[must_use]
pub fn subscription(plan: &Plan, condition: &Condition, sinks: &[SocketAddr], number: usize) -> Request {
    Request::new("POST", "/nnrf-nfm/v1/subscriptions")
        .with("application/json", plan.body(condition, &sink(sinks, number)))
}

/// Where the notifications of the subscription with this number go.
#[must_use]
pub fn sink(sinks: &[SocketAddr], number: usize) -> String {
    match sinks.get(number % sinks.len().max(1)) {
        Some(sink) => format!("http://{sink}/notify/{number}"),
        None => format!("http://127.0.0.1:9/notify/{number}"),
    }
}

/// The identifier in the answer to a subscription.
#[must_use]
pub fn subscription_id(body: &[u8]) -> Option<String> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    Some(answer.get("subscriptionId")?.as_str()?.to_owned())
}

/// Connections of a large population, and from how many requests on there is more than one.
const CONNECTIONS: usize = 8;
const LARGE: usize = 2_000;

/// Asks all of them; the answers are in the order of the requests.
fn exchange(nrf: SocketAddr, requests: &[Request]) -> Result<Vec<Response>, SetupError> {
    if requests.len() < LARGE {
        return exchange_over_one(nrf, requests);
    }
    let parts = requests.chunks(requests.len().div_ceil(CONNECTIONS));
    std::thread::scope(|scope| {
        let asked: Vec<_> = parts
            .map(|part| scope.spawn(move || exchange_over_one(nrf, part)))
            .collect();
        let mut answers = Vec::with_capacity(requests.len());
        for thread in asked {
            let ended = thread.join().map_err(|_| SetupError::Io {
                peer: nrf,
                source: io::Error::other("a thread has ended"),
            })?;
            answers.extend(ended?);
        }
        Ok(answers)
    })
}

fn exchange_over_one(nrf: SocketAddr, requests: &[Request]) -> Result<Vec<Response>, SetupError> {
    let failed = |source| SetupError::Io { peer: nrf, source };
    let mut client = Client::connect(nrf, PATIENCE).map_err(failed)?;
    let mut answers = Vec::with_capacity(requests.len());
    // In groups, so that a slow disk behind the NRF does not meet thousands of writers at once.
    for group in requests.chunks(64) {
        answers.extend(client.exchange(group).map_err(failed)?);
    }
    Ok(answers)
}

pub(crate) fn accept(answer: &Response, right: &[u16], what: impl Fn() -> String) -> Result<(), SetupError> {
    if right.contains(&answer.status) {
        return Ok(());
    }
    Err(SetupError::Refused {
        what: what(),
        status: answer.status,
        text: answer.text(),
    })
}
