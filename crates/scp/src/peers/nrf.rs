//! What is asked of the NRFs of a set: lists, profiles, subscriptions (TS 29.510 §5.2).

use std::cell::RefCell;
use std::sync::Arc;

use ahash::AHashMap;
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use http::{Method, StatusCode};
use nrf_client::{Nrfs, Subscription, deregister, path_of};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::learner::callback_path;
use crate::config::{AuditMode, Config};
use crate::network::Producer;

/// The NRFs of a set; whoever answers is asked until it fails.
pub(super) struct NrfSet {
    /// 0 for `nrf.roots`, then the sets of `nrf.sets`.
    pub(super) number: usize,
    /// What is learned from it.
    pub(super) nf_types: Vec<String>,
    pub(super) roots: Vec<String>,
    /// Whether this SCP registers there.
    pub(super) registers: bool,
    pub(super) nrfs: Nrfs,
    /// Subscriptions by NF type.
    pub(super) subscriptions: RefCell<AHashMap<String, Subscription>>,
}

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
    /// Ends all subscriptions.
    pub(super) async fn unsubscribe(&self) {
        let subscriptions = self.subscriptions.take();
        join_all(subscriptions.values().map(|one| self.nrfs.unsubscribe(one))).await;
    }

    /// Takes this SCP's profile away.
    pub(super) async fn deregister(&self, id: &str) {
        if self.registers {
            deregister(&self.nrfs, id).await;
        }
    }

    /// The profile at a URI of the NRF's: there is none (`Some(None)`), or no NRF says so (`None`).
    pub(super) async fn profile(&self, uri: &str) -> Option<Option<Producer>> {
        let answer = self.nrfs.send(Method::GET, &path_of(uri)?, None).await?;
        match answer.status {
            StatusCode::OK => Some(Producer::learned(&answer.body).ok()),
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
                let body = self.nrfs.get(&path).await?;
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
            let body = self.nrfs.get(&path).await?;
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
            .map(|path| async move { self.nrfs.send(Method::GET, &path, None).await })
            .buffer_unordered(FETCHES)
            .collect::<Vec<_>>()
            .await;
        let mut producers = Vec::with_capacity(fetched.len());
        for answer in fetched {
            let answer = answer?;
            match answer.status {
                StatusCode::OK => producers.extend(Producer::learned(&answer.body).ok().map(Arc::new)),
                // Gone between the list and now.
                StatusCode::NOT_FOUND => {}
                _ => return None,
            }
        }
        Some(producers)
    }

    /// Stays subscribed to a type, or becomes so.
    pub(super) async fn subscribe(
        &self,
        held: Option<&Subscription>,
        config: &Config,
        nf_type: &str,
    ) -> Option<Subscription> {
        let data = json!({
            "nfStatusNotificationUri": format!("{}{}", config.root(), callback_path(self.number)),
            "reqNfInstanceId": config.nf_instance_id,
            "reqNfType": "SCP",
            "reqNfFqdn": config.fqdn,
            "subscrCond": {"nfType": nf_type},
            "reqNotifEvents": ["NF_REGISTERED", "NF_DEREGISTERED", "NF_PROFILE_CHANGED"],
        });
        let wanted = config.nrf.subscription_validity.duration();
        self.nrfs.keep_subscribed(held, data, wanted).await
    }
}
