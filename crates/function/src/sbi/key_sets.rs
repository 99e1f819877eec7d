//! Key sets that access tokens are verified with, fetched from the URIs at which NRFs publish them.

use std::sync::Arc;
use std::time::Duration;

use ::sbi::Body;
use ::sbi::client::{Client, Origin, SendOptions};
use ::sbi::name::ACCEPT;
use ::sbi::oauth::Keys;
use bytes::Bytes;

use super::config::TokenSettings;
use super::verification::Verification;
use crate::live::{Effective, Live};

/// Pause before another attempt when a set could not be fetched, and interval between checks of the settings.
const RETRY: Duration = Duration::from_secs(2);
/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Largest key set that is accepted, in bytes.
const LARGEST: usize = 256 * 1024;

/// Fetches key sets at the start and after each `tokens.refresh`, until dropped.
pub async fn follow_key_sets<C, D>(live: Arc<Live<C, D>>, client: Client)
where
    C: TokenSettings,
    D: Clone + AsRef<Verification> + AsMut<Verification>,
{
    loop {
        let tokens = live.load().config.tokens().clone();
        let complete = match tokens.key_set_uris.is_empty() {
            true => false,
            false => fetch(&live, &client, &tokens.key_set_uris).await,
        };
        let pause = match complete {
            true => tokens.refresh.duration(),
            false => RETRY,
        };
        // A reload may name other sets meanwhile.
        let ends = tokio::time::Instant::now() + pause;
        while tokio::time::Instant::now() < ends {
            tokio::time::sleep(pause.min(RETRY)).await;
            if *live.load().config.tokens() != tokens {
                break;
            }
        }
    }
}

/// Whether every set was fetched. One that was not stays as it was, if as many are known.
async fn fetch<C, D>(live: &Live<C, D>, client: &Client, uris: &[String]) -> bool
where
    C: TokenSettings,
    D: Clone + AsRef<Verification> + AsMut<Verification>,
{
    let mut complete = true;
    let before = live.load().derived.as_ref().fetched().to_vec();
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
        let change = |now: &Effective<C, D>| match now.config.tokens().key_set_uris == uris {
            true => with_fetched(now, sets).map_err(Some),
            // A reload names others meanwhile; they are fetched next.
            false => Err(None),
        };
        match live.rederive(change) {
            Ok(()) => {
                let keys = live.load().derived.as_ref().keys.clone();
                tracing::info!(?keys, "updated the keys that verify access tokens");
            }
            Err(Some(error)) => tracing::warn!(error, "failed to update the keys that verify access tokens"),
            Err(None) => complete = false,
        }
    }
    complete
}

/// What is in effect, with other key sets that were fetched.
fn with_fetched<C, D>(now: &Effective<C, D>, sets: Vec<Bytes>) -> Result<D, String>
where
    C: TokenSettings,
    D: Clone + AsRef<Verification> + AsMut<Verification>,
{
    let mut derived = now.derived.clone();
    *derived.as_mut() = now.derived.as_ref().with_fetched(now.config.tokens(), sets)?;
    Ok(derived)
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
        return Err(format!(
            "has {} bytes; at most {LARGEST} are accepted",
            body.len()
        ));
    }
    match Keys::new().add_jwks(&body) {
        Ok(0) => Err("has no key that can be used".to_owned()),
        Ok(_) => Ok(body),
        Err(error) => Err(error.to_string()),
    }
}
