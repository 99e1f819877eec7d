//! Key sets that access tokens are verified with, fetched from where NRFs publish them.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::header::ACCEPT;
use sbi::Body;
use sbi::client::{Client, Origin, SendOptions};
use sbi::oauth::Keys;

use crate::live::Live;

/// How soon it is tried again when a set could not be fetched, and how often settings are looked at.
const AGAIN: Duration = Duration::from_secs(2);
/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Largest key set that is taken.
const LARGEST: usize = 256 * 1024;

/// Fetches again and again, until dropped.
pub(crate) async fn follow(live: Arc<ArcSwap<Live>>, client: Client) {
    loop {
        let tokens = live.load().config.tokens.clone();
        let complete = match tokens.key_set_uris.is_empty() {
            true => false,
            false => fetch(&live, &client, &tokens.key_set_uris).await,
        };
        let pause = match complete {
            true => tokens.refresh.duration(),
            false => AGAIN,
        };
        // A reload may name other sets meanwhile.
        let ends = tokio::time::Instant::now() + pause;
        while tokio::time::Instant::now() < ends {
            tokio::time::sleep(pause.min(AGAIN)).await;
            if live.load().config.tokens != tokens {
                break;
            }
        }
    }
}

/// Whether every set was fetched. One that was not stays as it was, if as many are known.
async fn fetch(live: &ArcSwap<Live>, client: &Client, uris: &[String]) -> bool {
    let mut complete = true;
    let before = live.load().fetched().to_vec();
    let mut sets = Vec::with_capacity(uris.len());
    for (place, uri) in uris.iter().enumerate() {
        match fetch_one(client, uri).await {
            Ok(set) => sets.push(set),
            Err(reason) => {
                complete = false;
                tracing::warn!(uri, reason, "a key set could not be fetched");
                let same = before.len() == uris.len();
                sets.extend(before.get(place).filter(|_| same).cloned());
            }
        }
    }
    if sets != before {
        match live.load().with_fetched(sets) {
            Ok(next) => {
                tracing::info!(keys = ?next.keys, "keys that verify access tokens");
                live.store(Arc::new(next));
            }
            Err(error) => tracing::warn!(error, "keys that verify access tokens stay as they were"),
        }
    }
    complete
}

async fn fetch_one(client: &Client, uri: &str) -> Result<Bytes, String> {
    let uri: http::Uri = uri.parse().map_err(|_| "not a URI".to_owned())?;
    let origin = Origin::of_uri(&uri).map_err(|error| error.to_string())?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let request = http::Request::get(path)
        .header(ACCEPT, "application/jwk-set+json, application/json")
        .body(Body::empty())
        .map_err(|error| error.to_string())?;
    let options = SendOptions {
        deadline: TIMEOUT,
        priority: 8,
    };
    let answer = client.send(&origin, request, options).await;
    let answer = answer.map_err(|error| error.to_string())?;
    if !answer.status().is_success() {
        return Err(format!("answered {}", answer.status()));
    }
    let body = answer.into_body().into_bytes();
    if body.len() > LARGEST {
        return Err(format!("has {} bytes; at most {LARGEST} are taken", body.len()));
    }
    match Keys::new().add_jwks(&body) {
        Ok(0) => Err("has no key that can be used".to_owned()),
        Ok(_) => Ok(body),
        Err(error) => Err(error.to_string()),
    }
}
