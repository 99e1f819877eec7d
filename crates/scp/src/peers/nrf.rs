//! Requests to the NRFs of a set: lists, profiles, subscriptions (TS 29.510 §5.2).

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

use ahash::AHashMap;
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use http::{Method, StatusCode};
use nrf_client::{Nrfs, Renewal, Subscription, deregister, instance_path, path_of};
use routing::network::Producer;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::callbacks::Callbacks;
use crate::config::{AuditMode, Config};

/// The NRFs of a set; requests go to one until it fails.
pub(super) struct NrfSet {
    /// 0 for `nrf.roots`, then the sets of `nrf.sets`.
    pub(super) number: usize,
    /// NF types that are learned from it.
    pub(super) nf_types: Vec<String>,
    pub(super) roots: Vec<String>,
    /// Whether this SCP registers there.
    pub(super) registers: bool,
    pub(super) nrfs: Nrfs,
    /// Subscriptions by NF type.
    pub(super) subscriptions: RefCell<AHashMap<String, Held>>,
    /// Callback paths for its NRFs.
    pub(super) callbacks: Arc<Callbacks>,
}

/// A subscription and its callback path.
#[derive(Clone, Debug)]
pub(super) struct Held {
    subscription: Subscription,
    callback: u64,
}

impl Held {
    /// When it has to be renewed.
    pub(super) fn renew_at(&self) -> Instant {
        self.subscription.renew_at()
    }
}

/// Result of the look-up of an NF.
#[derive(Clone, Debug)]
pub(crate) enum LookedUp {
    /// Registered, with this profile.
    Known(Arc<Producer>),
    /// Not registered.
    Gone,
    /// No NRF answered, or the profile is invalid.
    Unanswered,
}

/// Profiles that are fetched at the same time.
const FETCHES: usize = 16;
/// Pages of a list at most, against links that repeat.
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
        for held in subscriptions.values() {
            self.callbacks.close(held.callback);
        }
        let ending = subscriptions.values();
        join_all(ending.map(|held| self.nrfs.unsubscribe(&held.subscription))).await;
    }

    /// Whether any NRF of the set answers.
    pub(super) async fn answers(&self) -> bool {
        let nf_type = self.nf_types.first().map_or("SCP", String::as_str);
        let path = format!("/nnrf-nfm/v1/nf-instances?nf-type={nf_type}&limit=1");
        self.nrfs.send(Method::GET, &path, None).await.is_some()
    }

    /// Deregisters this SCP.
    pub(super) async fn deregister(&self, id: &str) {
        if self.registers {
            deregister(&self.nrfs, id).await;
        }
    }

    /// Looks up an NF (TS 29.510 §5.2.2.9).
    pub(super) async fn look_up(&self, id: &str) -> LookedUp {
        let Some(answer) = self.nrfs.send(Method::GET, &instance_path(id), None).await else {
            return LookedUp::Unanswered;
        };
        match answer.status {
            StatusCode::OK => match Producer::learned(&answer.body) {
                Ok(producer) if *producer.id == *id => LookedUp::Known(Arc::new(producer)),
                _ => LookedUp::Unanswered,
            },
            StatusCode::NOT_FOUND | StatusCode::GONE => LookedUp::Gone,
            // A refused request does not show whether the NF is registered.
            _ => LookedUp::Unanswered,
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
                // Deregistered since the list was retrieved.
                StatusCode::NOT_FOUND => {}
                _ => return None,
            }
        }
        Some(producers)
    }

    /// Renews the subscription to a type, or creates one with a new callback path. Returns whether it succeeded.
    pub(super) async fn subscribe(&self, config: &Config, nf_type: &str) -> bool {
        let wanted = config.nrf.subscription_validity.duration();
        let held = self.subscriptions.borrow().get(nf_type).cloned();
        let mut still_held = false;
        if let Some(held) = &held {
            match self.nrfs.renew(&held.subscription, wanted).await {
                Renewal::Renewed(subscription) => {
                    let renewed = Held {
                        subscription,
                        callback: held.callback,
                    };
                    self.subscriptions
                        .borrow_mut()
                        .insert(nf_type.to_owned(), renewed);
                    return true;
                }
                // The NRF may still hold it: another one beside it would double each notification.
                Renewal::Unanswered => return false,
                Renewal::Refused => still_held = true,
                Renewal::Unknown => {}
            }
        }
        // Open the path first: the first notification may arrive before the answer.
        let (callback, path) = self.callbacks.open(self.number);
        let mut data = json!({
            "nfStatusNotificationUri": format!("{}{path}", config.root()),
            "reqNfInstanceId": config.nf_instance_id,
            "reqNfType": "SCP",
            "subscrCond": {"nfType": nf_type},
            "reqNotifEvents": ["NF_REGISTERED", "NF_DEREGISTERED", "NF_PROFILE_CHANGED"],
        });
        if let Some(fqdn) = config.public_fqdn() {
            data["reqNfFqdn"] = json!(fqdn);
        }
        let Some(subscription) = self.nrfs.subscribe(data, wanted).await else {
            self.callbacks.close(callback);
            return false;
        };
        if let Some(held) = held {
            self.callbacks.close(held.callback);
            if still_held {
                self.nrfs.unsubscribe(&held.subscription).await;
            }
        }
        let made = Held {
            subscription,
            callback,
        };
        self.subscriptions.borrow_mut().insert(nf_type.to_owned(), made);
        true
    }
}
