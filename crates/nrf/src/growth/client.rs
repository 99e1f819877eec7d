//! Retrieval of the state of another set.

use std::sync::Arc;

use http::{HeaderValue, Method, StatusCode};
use model::NfInstanceId;
use nrf_client::OwnTokens;
use registry::Entry;
use sbi::client::{Client, SendOptions};
use sbi::headers::{SbiHeader, TargetApiRoot};
use sbi::name::{AUTHORIZATION, ETAG, IF_NONE_MATCH};
use sbi::{Outbound, Response, Value};
use serde::Deserialize;
use serde_json::value::RawValue;
use telemetry::{AlarmKind, Alarms, Severity};
use tokio::sync::mpsc;

use super::PROFILES;
use super::standing::Standing;
use crate::config::Growth;
use crate::events::{Counters, Event};

/// The service whose tokens open the interface: another set reads what management lists.
const SCOPE: &str = "nnrf-nfm";

/// The state of another set is not retrieved.
pub(crate) const SET_NOT_RETRIEVED: AlarmKind = AlarmKind {
    number: 10_513,
    name: "NRF Set Not Retrieved",
    severity: Severity::Major,
    text: "No NRF of another set gives its state; the last known profiles of the set stay, and its changes are missed.",
    advice: "Check the reason in the alarm: the NRFs of `growth.sets` and the connection to them, or `growth.maxProfiles`.",
};

/// Everything that is registered with another set.
#[derive(Debug)]
pub(crate) struct Retrieved {
    pub(crate) set: Arc<str>,
    pub(crate) entries: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    #[serde(borrow)]
    nf_instances: Vec<&'a RawValue>,
    next: Option<NfInstanceId>,
}

/// Follows the state of another set until the receiver is dropped.
pub(crate) async fn follow(
    settings: Growth,
    standing: Arc<Standing>,
    own: String,
    client: Client,
    counters: Arc<Counters>,
    alarms: Alarms,
    retrieved: mpsc::Sender<Retrieved>,
) {
    let set = &standing.set;
    let name: Arc<str> = set.name.as_str().into();
    let nrfs: Vec<TargetApiRoot> = set
        .nrfs
        .iter()
        .filter_map(|root| TargetApiRoot::parse(root).ok())
        .collect();
    let tokens = OwnTokens::new(&own, "NRF");
    let mut known = None;
    let mut turn = 0;
    // Why the last attempt failed, without the NRF: a change of the reason is logged.
    let mut failing: Option<String> = None;
    let mut tick = tokio::time::interval(settings.interval.duration());
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            () = retrieved.closed() => return,
        }
        let (mut there, mut failure) = (false, None);
        for _ in 0..nrfs.len() {
            let nrf = &nrfs[turn % nrfs.len()];
            match retrieve(&client, nrf, &settings, &tokens, known.as_ref()).await {
                Ok(Some((tag, entries))) => {
                    known = tag;
                    there = true;
                    standing.answered(&nrf.to_string(), true);
                    let entries = entries
                        .into_iter()
                        .map(|entry| entry.of_set(name.clone()))
                        .collect();
                    if retrieved
                        .send(Retrieved {
                            set: name.clone(),
                            entries,
                        })
                        .await
                        .is_err()
                    {
                        return;
                    }
                }
                Ok(None) => {
                    there = true;
                    standing.answered(&nrf.to_string(), false);
                }
                Err(reason) => {
                    tracing::debug!(set = %name, %nrf, reason, "the state of another set was not retrieved");
                    // The tags of another NRF mean something else.
                    (turn, known) = (turn + 1, None);
                    standing.failed(format!("{nrf}: {reason}"));
                    failure = Some(reason);
                }
            }
            if there {
                break;
            }
        }
        counters.count(match there {
            true => Event::GrowthRetrieved,
            false => Event::GrowthFailed,
        });
        let failure = failure.filter(|_| !there);
        if failure != failing {
            match &failure {
                Some(reason) => {
                    tracing::warn!(set = %name, reason, "another NRF set is not retrieved; its last known profiles stay");
                }
                None => tracing::info!(set = %name, "another NRF set is retrieved again"),
            }
            alarms.set(&SET_NOT_RETRIEVED, &name, failure.clone());
            failing = failure;
        }
    }
}

type State = (Option<HeaderValue>, Vec<Entry>);

/// Retrieves the state of a set from one of its NRFs; `None`: unchanged.
async fn retrieve(
    client: &Client,
    nrf: &TargetApiRoot,
    settings: &Growth,
    tokens: &OwnTokens,
    known: Option<&HeaderValue>,
) -> Result<Option<State>, String> {
    let mut entries = Vec::new();
    let (mut first_tag, mut after) = (None, None);
    loop {
        let known = known.filter(|_| after.is_none());
        let mut response = ask(client, nrf, settings, after, known, tokens.held(nrf, SCOPE)).await?;
        if response.status() == StatusCode::UNAUTHORIZED
            && let Some(token) = tokens
                .fetch(client, nrf, SCOPE, settings.timeout.duration())
                .await
        {
            response = ask(client, nrf, settings, after, known, Some(token)).await?;
        }
        match response.status() {
            StatusCode::OK => {}
            StatusCode::NOT_MODIFIED => return Ok(None),
            status => return Err(format!("answered {status}")),
        }
        if after.is_none() {
            let tag = response.headers().get(ETAG);
            // What changes between pages has another tag, and is retrieved the next time.
            first_tag = tag.and_then(|tag| HeaderValue::try_from(tag).ok());
        }
        let body = response.into_body().into_bytes();
        let page: Page<'_> = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        for document in page.nf_instances {
            // A profile that this version cannot parse must not block the others.
            match Entry::parse(document.get().as_bytes(), |profile| {
                profile.heart_beat_timer.unwrap_or_default()
            }) {
                Ok(entry) => entries.push(entry),
                Err(fault) => tracing::warn!(%nrf, %fault, "invalid profile of another set; ignored"),
            }
            if entries.len() > settings.max_profiles {
                let most = settings.max_profiles;
                return Err(format!(
                    "the set has more than {most} profiles (growth.maxProfiles)"
                ));
            }
        }
        match page.next {
            Some(next) if after.is_none_or(|after| next > after) => after = Some(next),
            Some(_) => return Err("the pages repeat: `next` did not advance".to_owned()),
            None => return Ok(Some((first_tag, entries))),
        }
    }
}

/// Asks for a page, with a token where there is one.
async fn ask(
    client: &Client,
    nrf: &TargetApiRoot,
    settings: &Growth,
    after: Option<NfInstanceId>,
    known: Option<&HeaderValue>,
    token: Option<HeaderValue>,
) -> Result<Response, String> {
    let mut path = format!("{}{PROFILES}", nrf.prefix);
    if let Some(after) = after {
        path.push_str(&format!("?after={after}"));
    }
    let path = Value::try_from(&*path).map_err(|error| error.to_string())?;
    let mut request = Outbound::new(Method::GET, path);
    let headers = request.headers_mut();
    if let Some(known) = known {
        headers.set(IF_NONE_MATCH, known);
    }
    if let Some(token) = &token {
        headers.set_sensitive(AUTHORIZATION, token);
    }
    let options = SendOptions {
        deadline: settings.timeout.duration(),
        priority: 8,
    };
    let answer = client.send(&nrf.origin, request, options).await;
    answer.map_err(|error| error.to_string())
}
