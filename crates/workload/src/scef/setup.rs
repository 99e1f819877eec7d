//! Before the load: NIDD configurations of all devices, and the subscriptions that stand.

use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use serde_json::Value;

use super::books::Subscription;
use super::servers::{configuration, configurations, reference_of, subscription, subscriptions};
use super::{Books, Plan};
use crate::nrf::setup::{SetupError, accept};
use loadgen::client::{Client, Request, Response};

/// The most that a group of creations may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Creations sent at once.
const GROUP: usize = 64;

/// Creates the configurations of these devices of a plan; their paths.
///
/// # Errors
/// When the SCEF cannot be reached or refuses one.
pub fn configure(scef: SocketAddr, plan: &Plan, devices: Range<u32>) -> Result<Vec<String>, SetupError> {
    let mut paths = Vec::with_capacity(devices.len());
    let documents = devices.map(|device| {
        let collection = configurations(plan.server(device));
        (collection, configuration(plan, device))
    });
    create(scef, documents, |answer| {
        // http://authority/path
        let path = answer.location.splitn(4, '/').nth(3)?;
        paths.push(format!("/{path}"));
        Some(())
    })?;
    Ok(paths)
}

/// Creates this number of subscriptions.
///
/// # Errors
/// As [`configure`].
pub fn subscribe(scef: SocketAddr, plan: &Plan, books: &Books, count: u32) -> Result<(), SetupError> {
    let mut servers = Vec::new();
    let documents: Vec<(String, Value)> = (0..count)
        .map(|_| {
            let (server, document) = subscription(plan, books.subscription());
            servers.push(server);
            (subscriptions(server), document)
        })
        .collect();
    let mut servers = servers.into_iter();
    create(scef, documents.into_iter(), |answer| {
        let (reference, server) = (reference_of(&answer.location)?, servers.next()?);
        books.subscribed(Subscription { reference, server });
        Some(())
    })
}

/// Posts documents; `take` takes each answer, and returns nothing if it has no valid `Location`.
fn create(
    scef: SocketAddr,
    documents: impl Iterator<Item = (String, Value)>,
    mut take: impl FnMut(&Response) -> Option<()>,
) -> Result<(), SetupError> {
    let failed = |source| SetupError::Io { peer: scef, source };
    let mut client = Client::connect(scef, PATIENCE).map_err(failed)?;
    let mut documents = documents.peekable();
    while documents.peek().is_some() {
        let group = documents.by_ref().take(GROUP);
        let requests: Vec<Request> = group
            .map(|(path, body)| Request::new("POST", path).with("application/json", body.to_string()))
            .collect();
        let answers = client.exchange(&requests).map_err(failed)?;
        for (request, answer) in requests.iter().zip(&answers) {
            let what = || format!("POST {}", request.path);
            accept(answer, &[201], what)?;
            if take(answer).is_none() {
                return Err(SetupError::Refused {
                    what: format!("{}: Location {:?} names nothing", what(), answer.location),
                    status: answer.status,
                    text: answer.text(),
                });
            }
        }
    }
    Ok(())
}
