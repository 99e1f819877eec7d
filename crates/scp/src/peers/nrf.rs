//! What is asked of the NRFs of a set: lists, profiles, subscriptions (TS 29.510 §5.2).

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use http::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use http::{Method, StatusCode};
use sbi::Body;
use sbi::client::{Client, SendOptions};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::learner::callback_path;
use super::sets::Turns;
use crate::config::{AuditMode, Config};
use crate::events::Metrics;
use crate::network::Producer;

/// Where the profile of an NF instance is.
pub(super) fn instance_path(id: &str) -> String {
    format!("/nnrf-nfm/v1/nf-instances/{id}")
}

/// The NRFs of a set; whoever answers is asked until it fails.
pub(super) struct NrfSet {
    /// 0 for `nrf.roots`, then the sets of `nrf.sets`.
    pub(super) number: usize,
    /// What is learned from it.
    pub(super) nf_types: Vec<String>,
    pub(super) roots: Vec<String>,
    /// Whether this SCP registers there.
    pub(super) registers: bool,
    pub(super) nrfs: Turns,
    /// Subscriptions by NF type: their paths, and when they are to be renewed.
    pub(super) subscriptions: RefCell<AHashMap<String, (String, Instant)>>,
    pub(super) client: Client,
    pub(super) timeout: Duration,
    pub(super) metrics: Metrics,
}

pub(super) type Answer = (StatusCode, http::HeaderMap, Bytes);

/// Profiles that are fetched at the same time.
const FETCHES: usize = 16;
/// Pages of a list at most; a longer one goes round in circles.
const PAGES: usize = 10_000;

#[derive(Deserialize)]
struct Links {
    #[serde(default, rename = "_links")]
    links: LinkLists,
}

#[derive(Deserialize, Default)]
struct LinkLists {
    #[serde(default)]
    item: ItemLinks,
}

/// `LinksValueSchema` (TS 29.571 §5.2.4.7): a link, or an array of them.
#[derive(Deserialize)]
#[serde(untagged)]
enum ItemLinks {
    Many(Vec<Link>),
    One(Link),
}

impl Default for ItemLinks {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

#[derive(Deserialize)]
struct Link {
    href: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Search<'a> {
    #[serde(borrow)]
    nf_instances: Vec<&'a RawValue>,
}

impl NrfSet {
    /// Asks the NRFs in turn; `None` when none answers, or only with failures of its own.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, String)>,
    ) -> Option<Answer> {
        for nrf in self.nrfs.in_turn() {
            let mut request = http::Request::builder()
                .method(method.clone())
                .uri(format!("{}{path}", nrf.prefix))
                .header(
                    ACCEPT,
                    "application/json, application/3gppHal+json, application/problem+json",
                );
            if let Some((content_type, _)) = &body {
                request = request.header(CONTENT_TYPE, *content_type);
            }
            let content = body
                .as_ref()
                .map_or_else(Body::empty, |(_, text)| text.clone().into());
            let request = request.body(content).ok()?;
            let options = SendOptions {
                deadline: self.timeout,
                priority: 8,
            };
            match self.client.send(&nrf.origin, request, options).await {
                Ok(response) if !response.status().is_server_error() => {
                    let (head, body) = response.into_parts();
                    return Some((head.status, head.headers, body.into_bytes()));
                }
                Ok(response) => tracing::debug!(%nrf, path, status = %response.status(), "the NRF failed"),
                Err(error) => tracing::debug!(%nrf, path, %error, "the NRF did not answer"),
            }
            self.metrics.nrf_failures.inc();
            self.nrfs.next(nrf);
        }
        None
    }

    /// Ends all subscriptions.
    pub(super) async fn unsubscribe(&self) {
        let subscriptions = self.subscriptions.take();
        let paths = subscriptions.values().map(|(path, _)| path);
        join_all(paths.map(|path| self.send(Method::DELETE, path, None))).await;
    }

    /// Takes this SCP's profile away.
    pub(super) async fn deregister(&self, id: &str) {
        if self.registers {
            let path = instance_path(id);
            let _ = self.send(Method::DELETE, &path, None).await;
        }
    }

    async fn get(&self, path: &str) -> Option<Bytes> {
        let (status, _, body) = self.send(Method::GET, path, None).await?;
        (status == StatusCode::OK).then_some(body)
    }

    /// The profile at a URI of the NRF's: there is none (`Some(None)`), or no NRF says so (`None`).
    pub(super) async fn profile(&self, uri: &str) -> Option<Option<Producer>> {
        let (status, _, body) = self.send(Method::GET, &path_of(uri)?, None).await?;
        match status {
            StatusCode::OK => Some(Producer::learned(&body).ok()),
            status if status.is_client_error() => Some(None),
            _ => None,
        }
    }

    pub(super) async fn all_of(
        &self,
        nf_type: &str,
        mode: AuditMode,
        config: &Config,
    ) -> Option<Vec<Arc<Producer>>> {
        match mode {
            AuditMode::Management => self.listed(nf_type).await,
            AuditMode::Discovery => {
                let path = format!(
                    "/nnrf-disc/v1/nf-instances?target-nf-type={nf_type}&requester-nf-type=SCP&limit=100000\
                     &requester-nf-instance-id={}",
                    config.nf_instance_id
                );
                let body = self.get(&path).await?;
                let search: Search<'_> = serde_json::from_slice(&body).ok()?;
                let producers = search
                    .nf_instances
                    .iter()
                    .filter_map(|profile| Producer::learned(profile.get().as_bytes()).ok());
                Some(producers.map(Arc::new).collect())
            }
        }
    }

    async fn listed(&self, nf_type: &str) -> Option<Vec<Arc<Producer>>> {
        const PAGE: usize = 1_000;
        let mut paths = Vec::new();
        for page in 1..=PAGES {
            let path =
                format!("/nnrf-nfm/v1/nf-instances?nf-type={nf_type}&page-number={page}&page-size={PAGE}");
            let body = self.get(&path).await?;
            let links: Links = serde_json::from_slice(&body).ok()?;
            let items = match links.links.item {
                ItemLinks::Many(items) => items,
                ItemLinks::One(item) => vec![item],
            };
            let count = items.len();
            paths.extend(items.iter().filter_map(|link| path_of(&link.href)));
            if count < PAGE {
                break;
            }
        }
        let fetched = stream::iter(paths)
            .map(|path| async move { self.send(Method::GET, &path, None).await })
            .buffer_unordered(FETCHES)
            .collect::<Vec<_>>()
            .await;
        let mut producers = Vec::with_capacity(fetched.len());
        for answer in fetched {
            match answer? {
                (StatusCode::OK, _, body) => producers.extend(Producer::learned(&body).ok().map(Arc::new)),
                // Gone between the list and now.
                (StatusCode::NOT_FOUND, ..) => {}
                _ => return None,
            }
        }
        Some(producers)
    }

    /// Subscribes to a type; the path of the subscription and when it is to be renewed.
    pub(super) async fn subscribe(&self, config: &Config, nf_type: &str) -> Option<(String, Instant)> {
        let wanted = config.nrf.subscription_validity.duration();
        let data = json!({
            "nfStatusNotificationUri": format!("{}{}", config.root(), callback_path(self.number)),
            "reqNfInstanceId": config.nf_instance_id,
            "reqNfType": "SCP",
            "reqNfFqdn": config.fqdn,
            "subscrCond": {"nfType": nf_type},
            "reqNotifEvents": ["NF_REGISTERED", "NF_DEREGISTERED", "NF_PROFILE_CHANGED"],
            "validityTime": time_after(wanted),
        });
        let body = Some(("application/json", data.to_string()));
        let (status, headers, body) = self
            .send(Method::POST, "/nnrf-nfm/v1/subscriptions", body)
            .await?;
        if status != StatusCode::CREATED {
            tracing::warn!(nf_type, %status, "the NRF refused a subscription");
            return None;
        }
        let path = headers
            .get(LOCATION)
            .and_then(|location| location.to_str().ok())
            .and_then(path_of)
            .or_else(|| {
                let data: Value = serde_json::from_slice(&body).ok()?;
                Some(format!(
                    "/nnrf-nfm/v1/subscriptions/{}",
                    data["subscriptionId"].as_str()?
                ))
            })?;
        Some((path, renewal(&body, wanted)))
    }

    /// Lets a subscription hold longer; `None` when it is not known any more.
    pub(super) async fn renew(&self, path: &str, wanted: Duration) -> Option<(String, Instant)> {
        let patch = json!([{"op": "replace", "path": "/validityTime", "value": time_after(wanted)}]);
        let body = Some(("application/json-patch+json", patch.to_string()));
        let (status, _, body) = self.send(Method::PATCH, path, body).await?;
        status
            .is_success()
            .then(|| (path.to_owned(), renewal(&body, wanted)))
    }
}

/// When a subscription is to be renewed: with a third of its life left.
fn renewal(subscription: &[u8], wanted: Duration) -> Instant {
    let told = serde_json::from_slice::<Value>(subscription).ok();
    let until = told.and_then(|data| {
        let text = data["validityTime"].as_str()?.to_owned();
        time::OffsetDateTime::parse(&text, &time::format_description::well_known::Rfc3339).ok()
    });
    let life = until.map_or(wanted, |until| {
        Duration::try_from(until - time::OffsetDateTime::now_utc()).unwrap_or_default()
    });
    Instant::now() + life * 2 / 3
}

fn time_after(wanted: Duration) -> String {
    let until = time::OffsetDateTime::now_utc() + wanted;
    until
        .format(&time::format_description::well_known::Rfc3339)
        .unwrap_or_default()
}

/// The path of an absolute URI, or of a path.
fn path_of(uri: &str) -> Option<String> {
    let uri: http::Uri = uri.parse().ok()?;
    uri.path_and_query().map(|path| path.as_str().to_owned())
}
