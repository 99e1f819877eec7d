//! Subscriber location: which group a subscriber belongs to, asked of a UDR with Nudr_GroupIDmap
//! (TS 29.504; TS 29.510 §6.2.3.2.3.1, `supi` and `gpsi`).
//!
//! Every discovery of the configured types that names a subscriber and no group asks, so this is on the hot
//! path: one request to a function that is known already, a small answer, nothing kept unless configured.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use ahash::AHashMap;
use http::header::{ACCEPT, AUTHORIZATION};
use http::{HeaderValue, StatusCode};
use model::{NfType, ServiceName};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sbi::Body;
use sbi::client::{Client, SendOptions};
use sbi::headers::{SbiHeader, TargetApiRoot, names};

use crate::config;
use crate::events::{Counters, Event};
use crate::registry::Snapshot;
use crate::tokens::Issuer;

/// What the look-up came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// The subscriber belongs to this group.
    Group(Arc<str>),
    /// The location function knows no group for the subscriber: profiles without a group remain.
    Unknown,
    /// Nobody could be asked: discovery goes on without a group.
    Unavailable,
}

/// The asker: one per worker, as it holds a client.
pub struct Slf {
    settings: config::Slf,
    static_targets: Vec<TargetApiRoot>,
    scps: Vec<TargetApiRoot>,
    /// Which of them have answered when last looked at.
    scps_up: Vec<Cell<bool>>,
    client: Client,
    counters: Arc<Counters>,
    issuer: Arc<Issuer>,
    /// Location functions among the registered profiles, as of a version of the registry.
    learned: RefCell<(u64, Rc<[TargetApiRoot]>)>,
    /// The function to begin with; moves on when one fails.
    turn: Cell<usize>,
    /// Access token of this NRF and when it ends.
    token: RefCell<Option<(HeaderValue, u64)>>,
    known: RefCell<AHashMap<Box<str>, (Resolution, Instant)>>,
}

/// `NfGroupIdMapResult` (TS 29.504): group ids by NF type.
type GroupIdMap = BTreeMap<String, String>;

impl Slf {
    /// An asker; `settings` were validated.
    pub(crate) fn new(
        settings: config::Slf,
        client: Client,
        counters: Arc<Counters>,
        issuer: Arc<Issuer>,
    ) -> Self {
        let roots = |list: &[String]| {
            list.iter()
                .filter_map(|root| TargetApiRoot::parse(root).ok())
                .collect()
        };
        Self {
            static_targets: roots(&settings.static_targets),
            scps_up: settings.scps.iter().map(|_| Cell::new(true)).collect(),
            scps: roots(&settings.scps),
            settings,
            client,
            counters,
            issuer,
            learned: RefCell::new((u64::MAX, Rc::new([]))),
            turn: Cell::new(0),
            token: RefCell::new(None),
            known: RefCell::default(),
        }
    }

    /// Whether discoveries of this type need the subscriber's group.
    #[must_use]
    pub fn concerns(&self, target: &NfType) -> bool {
        self.settings
            .target_types
            .iter()
            .any(|one| one == target.as_str())
    }

    /// The group of a subscriber (`imsi-…`, `msisdn-…`) for a type.
    pub async fn group_of(&self, target: &NfType, subscriber: &str, snapshot: &Snapshot) -> Resolution {
        let cached = !self.settings.cache_for.is_zero();
        let key = || format!("{target} {subscriber}");
        if cached
            && let Some((resolution, until)) = self.known.borrow().get(&*key())
            && *until > Instant::now()
        {
            return resolution.clone();
        }
        self.counters.count(Event::SlfAsked);
        let resolution = self.ask(target, subscriber, snapshot).await;
        if resolution == Resolution::Unavailable {
            self.counters.count(Event::SlfFailed);
        } else if cached {
            let mut known = self.known.borrow_mut();
            if known.len() >= self.settings.cache_size {
                known.clear();
            }
            let until = Instant::now() + self.settings.cache_for.duration();
            known.insert(key().into(), (resolution.clone(), until));
        }
        resolution
    }

    async fn ask(&self, target: &NfType, subscriber: &str, snapshot: &Snapshot) -> Resolution {
        let learned;
        let targets: &[TargetApiRoot] = match self.static_targets.is_empty() {
            false => &self.static_targets,
            true => {
                learned = self.learn(snapshot);
                &learned
            }
        };
        if targets.is_empty() {
            return Resolution::Unavailable;
        }
        let plain = subscriber.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        let path = match plain {
            true => format!("/nudr-group-id-map/v1/nf-group-ids?nf-type={target}&subscriberId={subscriber}"),
            false => {
                let escaped = utf8_percent_encode(subscriber, NON_ALPHANUMERIC);
                format!("/nudr-group-id-map/v1/nf-group-ids?nf-type={target}&subscriberId={escaped}")
            }
        };
        let first = self.turn.get();
        for attempt in 0..self.settings.max_attempts {
            let chosen = &targets[(first + attempt) % targets.len()];
            match self.ask_one(chosen, &path, target, subscriber).await {
                Some(resolution) => return resolution,
                None => self.turn.set((first + attempt + 1) % targets.len()),
            }
        }
        Resolution::Unavailable
    }

    /// `None`: this one did not help, another may.
    async fn ask_one(
        &self,
        target: &TargetApiRoot,
        path: &str,
        nf_type: &NfType,
        subscriber: &str,
    ) -> Option<Resolution> {
        let mut request = http::Request::get(format!("{}{path}", target.prefix))
            .body(Body::empty())
            .ok()?;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(token) = self.access_token() {
            headers.insert(AUTHORIZATION, token);
        }
        // `imsi-…` and `msisdn-…` are written alike in the header (TS 29.500 §5.2.3.3.10).
        if self.settings.correlation_info
            && (subscriber.starts_with("imsi-") || subscriber.starts_with("msisdn-"))
            && let Ok(value) = HeaderValue::from_str(subscriber)
        {
            headers.insert(names::CORRELATION_INFO, value);
        }
        let origin = match self.scp() {
            None => &target.origin,
            Some(scp) => {
                headers.insert(names::TARGET_API_ROOT, target.to_value()?);
                &scp.origin
            }
        };
        let options = SendOptions {
            deadline: self.settings.attempt_timeout.duration(),
            priority: 8,
        };
        let response = self.client.send(origin, request, options).await.ok()?;
        match response.status() {
            StatusCode::OK => {
                let mut map: GroupIdMap = serde_json::from_slice(&response.into_body().into_bytes()).ok()?;
                let group = map.remove(nf_type.as_str());
                Some(group.map_or(Resolution::Unknown, |group| Resolution::Group(group.into())))
            }
            StatusCode::NOT_FOUND => Some(Resolution::Unknown),
            _ => None,
        }
    }

    /// The SCP to go through: the next one that is well; if none is, one that may have recovered.
    fn scp(&self) -> Option<&TargetApiRoot> {
        let turn = self.turn.get();
        let in_turn = || (0..self.scps.len()).map(|step| (turn + step) % self.scps.len());
        let chosen = in_turn()
            .find(|at| self.scps_up[*at].get())
            .or_else(|| in_turn().next())?;
        self.scps.get(chosen)
    }

    /// How often the SCPs are to be looked at; `None`: not at all.
    pub(crate) fn scp_interval(&self) -> Option<std::time::Duration> {
        let wanted = !self.scps.is_empty() && !self.settings.scp_health_path.is_empty();
        wanted.then(|| self.settings.scp_health_interval.duration())
    }

    /// Looks whether the SCPs are well.
    pub(crate) async fn look_at_scps(&self) {
        for (scp, up) in self.scps.iter().zip(&self.scps_up) {
            let path = format!("{}{}", scp.prefix, self.settings.scp_health_path);
            let Ok(request) = http::Request::get(path).body(Body::empty()) else {
                continue;
            };
            let options = SendOptions {
                deadline: self.settings.attempt_timeout.duration(),
                priority: 0,
            };
            let answer = self.client.send(&scp.origin, request, options).await;
            let well = answer.is_ok_and(|response| !response.status().is_server_error());
            if up.replace(well) != well {
                tracing::warn!(%scp, well, "an SCP for location queries has changed");
            }
        }
    }

    /// Registered functions that offer the service (dynamic SLF); looked for again when the registry changes.
    fn learn(&self, snapshot: &Snapshot) -> Rc<[TargetApiRoot]> {
        let mut learned = self.learned.borrow_mut();
        if learned.0 != snapshot.version() {
            let offers = snapshot
                .iter()
                .filter(|entry| entry.status == model::NfStatus::Registered);
            let mut found: Vec<(u16, TargetApiRoot)> = Vec::new();
            for entry in offers {
                for service in entry.profile.services() {
                    if service.service_name == ServiceName::from("nudr-group-id-map") {
                        let priority = service.priority.or(entry.profile.priority).unwrap_or(u16::MAX);
                        found.extend(api_root(&entry.profile, service).map(|root| (priority, root)));
                    }
                }
            }
            found.sort_by_key(|(priority, _)| *priority);
            *learned = (
                snapshot.version(),
                found.into_iter().map(|(_, root)| root).collect(),
            );
        }
        learned.1.clone()
    }

    fn access_token(&self) -> Option<HeaderValue> {
        if !self.settings.use_access_token {
            return None;
        }
        let now = crate::tokens::unix_now();
        if let Some((token, until)) = &*self.token.borrow()
            && *until > now + 60
        {
            return Some(token.clone());
        }
        let (token, until) = self.issuer.own_token("UDR", "nudr-group-id-map", now)?;
        let value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
        *self.token.borrow_mut() = Some((value.clone(), until));
        Some(value)
    }
}

/// The API root of a service: its end point's address and port, else FQDN of service or profile with the
/// port of the first end point (N041).
pub(crate) fn api_root(profile: &model::NfProfile, service: &model::NfService) -> Option<TargetApiRoot> {
    let point = service.ip_end_points.first();
    let port = point
        .and_then(|point| point.port)
        .map(|port| format!(":{port}"))
        .unwrap_or_default();
    let address = point.and_then(|point| {
        point
            .ipv4_address
            .clone()
            .or_else(|| point.ipv6_address.as_ref().map(|a| format!("[{a}]")))
    });
    let host = address
        .or_else(|| service.fqdn.clone())
        .or_else(|| profile.fqdn.clone())
        .or_else(|| profile.ipv4_addresses.first().cloned())
        .or_else(|| {
            profile
                .ipv6_addresses
                .first()
                .map(|address| format!("[{address}]"))
        })?;
    let prefix = service
        .api_prefix
        .as_deref()
        .map(|prefix| prefix.trim_matches('/'))
        .filter(|p| !p.is_empty());
    let prefix = prefix.map(|prefix| format!("/{prefix}")).unwrap_or_default();
    TargetApiRoot::parse(&format!("{}://{host}{port}{prefix}", service.scheme.as_str())).ok()
}
