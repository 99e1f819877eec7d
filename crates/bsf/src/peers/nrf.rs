//! The NRFs: registration, heart-beats with the load and the state, deregistration (TS 29.510 §5.2.2).

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, Method, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sbi::Body;
use sbi::client::{Client, Origin, SendOptions};
use serde_json::{Value, json};

use crate::config::{Config, Nrf};
use crate::service::{State, Switches};

/// The NRFs of the configuration; whoever answers is asked until it fails.
pub(crate) struct Nrfs {
    origins: Vec<Origin>,
    turn: Cell<usize>,
    client: Client,
    timeout: Duration,
}

/// Status, headers and body of an NRF's answer.
pub(crate) type Answer = (StatusCode, HeaderMap, Bytes);

impl Nrfs {
    pub(crate) fn new(settings: &Nrf, client: Client) -> Self {
        Self {
            origins: settings
                .api_roots
                .iter()
                .filter_map(|root| root.parse().ok())
                .collect(),
            turn: Cell::new(0),
            client,
            timeout: settings.timeout.duration(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.origins.is_empty()
    }

    /// Asks the NRFs in turn; `None` when none answers, or only with failures of its own.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, String)>,
    ) -> Option<Answer> {
        for _ in 0..self.origins.len() {
            let origin = &self.origins[self.turn.get() % self.origins.len()];
            let mut request = http::Request::builder()
                .method(method.clone())
                .uri(path)
                .header(ACCEPT, "application/json, application/problem+json");
            if let Some((media_type, _)) = &body {
                request = request.header(CONTENT_TYPE, *media_type);
            }
            let content = body
                .as_ref()
                .map_or_else(Body::empty, |(_, text)| text.clone().into());
            let options = SendOptions {
                deadline: self.timeout,
                priority: 8,
            };
            match self
                .client
                .send(origin, request.body(content).ok()?, options)
                .await
            {
                Ok(answer) if !answer.status().is_server_error() => {
                    let (head, body) = answer.into_parts();
                    return Some((head.status, head.headers, body.into_bytes()));
                }
                Ok(answer) => tracing::warn!(%origin, path, status = %answer.status(), "the NRF failed"),
                Err(error) => tracing::warn!(%origin, path, %error, "the NRF does not answer"),
            }
            self.turn.set(self.turn.get().wrapping_add(1));
        }
        None
    }
}

impl Nrfs {
    /// Hosts at which instances of an NF set can be reached, as the NRF orders them; empty when it knows none or
    /// does not answer.
    pub(crate) async fn hosts_of_set(&self, set: &str) -> Vec<String> {
        // TS 23.003 §28.12: set12.amfset.5gc.mnc001.mcc001
        let nf_type = set.split('.').nth(1).and_then(|label| label.strip_suffix("set"));
        let Some(nf_type) = nf_type.filter(|nf_type| !nf_type.is_empty()) else {
            return Vec::new();
        };
        let path = format!(
            "/nnrf-disc/v1/nf-instances?target-nf-type={}&requester-nf-type=BSF&target-nf-set-id={}",
            utf8_percent_encode(&nf_type.to_ascii_uppercase(), NON_ALPHANUMERIC),
            utf8_percent_encode(set, NON_ALPHANUMERIC)
        );
        let Some((StatusCode::OK, _, body)) = self.send(Method::GET, &path, None).await else {
            return Vec::new();
        };
        let found: Value = serde_json::from_slice(&body).unwrap_or_default();
        let instances = found.get("nfInstances").and_then(Value::as_array);
        instances.into_iter().flatten().filter_map(host_of).collect()
    }
}

/// Where an NF instance is, as an authority has it.
fn host_of(profile: &Value) -> Option<String> {
    let first = |name: &str| profile.get(name)?.get(0)?.as_str();
    let own = profile.get("fqdn").and_then(Value::as_str);
    own.or_else(|| first("ipv4Addresses"))
        .map(str::to_owned)
        .or_else(|| Some(format!("[{}]", first("ipv6Addresses")?)))
}

/// A BSF as an NRF knows it.
pub(crate) struct Registration {
    config: Arc<Config>,
    address: SocketAddr,
    switches: Arc<Switches>,
    nrfs: Rc<Nrfs>,
}

impl Registration {
    /// `None` when no NRF is configured.
    pub(crate) fn new(
        config: Arc<Config>,
        address: SocketAddr,
        switches: Arc<Switches>,
        nrfs: Rc<Nrfs>,
    ) -> Option<Self> {
        (!nrfs.is_empty()).then_some(Self {
            config,
            address,
            switches,
            nrfs,
        })
    }

    /// Registers and stays registered until `ended`; deregisters then.
    pub(crate) async fn run(self, ended: impl Future<Output = ()>) {
        tokio::select! {
            () = self.keep() => {}
            () = ended => {}
        }
        let _ = self.nrfs.send(Method::DELETE, &self.path(), None).await;
    }

    fn path(&self) -> String {
        format!("/nnrf-nfm/v1/nf-instances/{}", self.config.nf_instance_id)
    }

    async fn keep(&self) {
        loop {
            let mut pause = self.register().await;
            while let Some(wait) = pause {
                tokio::time::sleep(wait).await;
                pause = self.beat().await.then_some(wait);
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// The time between heart-beats, once registered.
    async fn register(&self) -> Option<Duration> {
        let body = Some(("application/json", self.profile().to_string()));
        let (status, _, answer) = self.nrfs.send(Method::PUT, &self.path(), body).await?;
        if !status.is_success() {
            tracing::warn!(%status, "the NRF refused the registration");
            return None;
        }
        let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
        let given = answer.get("heartBeatTimer").and_then(Value::as_u64);
        let own = self.config.nrf.heart_beat.duration();
        Some(given.map_or(own, |seconds| Duration::from_secs(seconds.max(1))))
    }

    /// Whether the NRF still knows us.
    async fn beat(&self) -> bool {
        let patch = json!([
            {"op": "replace", "path": "/nfStatus", "value": self.status()},
            {"op": "add", "path": "/load", "value": self.switches.load()},
        ]);
        let body = Some((sbi::json::JSON_PATCH, patch.to_string()));
        let sent = self.nrfs.send(Method::PATCH, &self.path(), body).await;
        sent.is_some_and(|(status, ..)| status.is_success())
    }

    /// Who is shut down in steps is not to be found by new consumers (TS 29.510 §6.1.6.3.7).
    fn status(&self) -> &'static str {
        match self.switches.state() {
            State::Serving => "REGISTERED",
            State::Partial => "UNDISCOVERABLE",
            State::Complete => "SUSPENDED",
        }
    }

    fn profile(&self) -> Value {
        let scheme = if self.config.tls.is_some() {
            "https"
        } else {
            "http"
        };
        let (ip, port) = (self.address.ip().to_string(), self.address.port());
        let (member, service_member, addresses) = match self.address {
            SocketAddr::V4(_) => ("ipv4Addresses", "ipv4Address", [ip.clone()]),
            SocketAddr::V6(_) => ("ipv6Addresses", "ipv6Address", [ip.clone()]),
        };
        let mut profile = json!({
            "nfInstanceId": self.config.nf_instance_id,
            "nfType": "BSF",
            "nfStatus": self.status(),
            "heartBeatTimer": self.config.nrf.heart_beat.duration().as_secs(),
            "load": self.switches.load(),
            member: addresses,
            "bsfInfo": {},
            "nfServices": [{
                "serviceInstanceId": "nbsf-management",
                "serviceName": "nbsf-management",
                "versions": [{"apiVersionInUri": "v1", "apiFullVersion": "1.3.1"}],
                "scheme": scheme,
                "nfServiceStatus": "REGISTERED",
                "ipEndPoints": [{service_member: ip, "port": port}],
            }],
        });
        for (name, value) in &self.config.nrf.profile {
            profile[name.as_str()] = value.clone();
        }
        profile
    }
}
