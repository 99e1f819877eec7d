//! The NRF: registration, heart-beats with the load and the state, deregistration (TS 29.510 §5.2.2).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use sbi::Body;
use sbi::client::{Client, Origin, SendOptions};
use serde_json::{Value, json};

use crate::config::Config;
use crate::service::{State, Switches};

/// A BSF as an NRF knows it.
pub(crate) struct Registration {
    config: Arc<Config>,
    address: SocketAddr,
    switches: Arc<Switches>,
    client: Client,
    /// The NRF in use.
    at: usize,
}

impl Registration {
    /// `None` when no NRF is configured.
    pub(crate) fn new(
        config: Arc<Config>,
        address: SocketAddr,
        switches: Arc<Switches>,
        client: Client,
    ) -> Option<Self> {
        (!config.nrf.api_roots.is_empty()).then_some(Self {
            config,
            address,
            switches,
            client,
            at: 0,
        })
    }

    /// Registers and stays registered until `ended`; deregisters then.
    pub(crate) async fn run(mut self, ended: impl Future<Output = ()>) {
        tokio::select! {
            () = self.keep() => {}
            () = ended => {}
        }
        let _ = self.send(Method::DELETE, "", Body::empty()).await;
    }

    async fn keep(&mut self) {
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
    async fn register(&mut self) -> Option<Duration> {
        let body = self.profile().to_string();
        let (status, answer) = self.send(Method::PUT, "application/json", body.into()).await?;
        if !status.is_success() {
            tracing::warn!(%status, "the NRF refused the registration");
            return None;
        }
        let given = answer.get("heartBeatTimer").and_then(Value::as_u64);
        let own = self.config.nrf.heart_beat.duration();
        Some(given.map_or(own, |seconds| Duration::from_secs(seconds.max(1))))
    }

    /// Whether the NRF still knows us.
    async fn beat(&mut self) -> bool {
        let patch = json!([
            {"op": "replace", "path": "/nfStatus", "value": self.status()},
            {"op": "add", "path": "/load", "value": self.switches.load()},
        ]);
        let sent = self
            .send(Method::PATCH, sbi::json::JSON_PATCH, patch.to_string().into())
            .await;
        sent.is_some_and(|(status, _)| status.is_success())
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

    /// Status and body of the answer of the NRF in use; `None`, and the next NRF in use, when there is none.
    async fn send(&mut self, method: Method, media_type: &str, body: Body) -> Option<(StatusCode, Value)> {
        let roots = &self.config.nrf.api_roots;
        let origin: Origin = roots.get(self.at % roots.len().max(1))?.parse().ok()?;
        let path = format!("/nnrf-nfm/v1/nf-instances/{}", self.config.nf_instance_id);
        let mut request = http::Request::builder().method(method).uri(path);
        if !media_type.is_empty() {
            request = request.header(http::header::CONTENT_TYPE, media_type);
        }
        let options = SendOptions {
            deadline: self.config.nrf.timeout.duration(),
            priority: 8,
        };
        match self.client.send(&origin, request.body(body).ok()?, options).await {
            Ok(response) => {
                let (head, body) = response.into_parts();
                let body = serde_json::from_slice(&body.into_bytes()).unwrap_or_default();
                Some((head.status, body))
            }
            Err(error) => {
                tracing::warn!(%origin, ?error, "the NRF does not answer");
                self.at = self.at.wrapping_add(1);
                None
            }
        }
    }
}
