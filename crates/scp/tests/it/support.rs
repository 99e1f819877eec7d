//! A running SCP, producers with servers of their own, and a consumer, inside the test's runtime.

use std::net::SocketAddr;
use std::ops::Deref;

use http::{Method, StatusCode};
use sbi::Body;
use sbi::client::{Client, Origin};
use scp::{Config, Running};
use serde_json::{Value, json};
use telemetry::Registry;
pub use testpeer::sbi::{Got, Seen, client};
use testpeer::sbi::{Server, send};
pub use testpeer::{local, until};

/// A producer: answers with its id as the member `by`, until a test changes its answer.
pub struct Producer {
    pub id: String,
    server: Server,
}

impl Deref for Producer {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl Producer {
    /// A producer with this number at the end of its id, on a port of its own.
    pub fn start(number: u32) -> Self {
        Self::at(number, "127.0.0.1:0".parse().unwrap())
    }

    pub fn at(number: u32, address: SocketAddr) -> Self {
        let id = format!("00000000-0000-4000-8000-{number:012x}");
        let by = json!({"by": id});
        let server = Server::at(address, move |_| sbi::json::response(StatusCode::OK, &by));
        Self { id, server }
    }

    /// Its profile, a UDM with `nudm-sdm`; members of `more` are added.
    pub fn profile(&self, more: &Value) -> Value {
        let mut profile = json!({
            "nfInstanceId": self.id, "nfType": "UDM", "nfStatus": "REGISTERED", "heartBeatTimer": 60,
            "ipv4Addresses": ["127.0.0.1"], "nfSetIdList": ["set1.udmset.5gc.mnc001.mcc001"],
            "nfServices": [{
                "serviceInstanceId": "sdm-1", "serviceName": "nudm-sdm", "scheme": "http",
                "nfServiceStatus": "REGISTERED",
                "versions": [{"apiVersionInUri": "v2", "apiFullVersion": "2.0.0"}],
                "ipEndPoints": [{"ipv4Address": "127.0.0.1", "port": self.address.port()}]
            }]
        });
        for (name, value) in more.as_object().unwrap() {
            profile[name] = value.clone();
        }
        profile
    }
}

/// A running SCP and a consumer of it.
pub struct Scp {
    pub running: Option<Running>,
    pub origin: Origin,
    pub client: Client,
    pub registry: Registry,
}

/// NF instance id of the SCPs of tests.
pub const OWN: &str = "8b7a1f0e-6c1d-4b5a-9d53-2f1c0a7e4b20";

/// A configuration on a free port with one worker and short times.
///
/// It refuses nothing for its load: an unoptimised worker on a busy machine would.
pub fn config() -> Config {
    let mut config = Config {
        nf_instance_id: OWN.into(),
        listen: settings::Listen(vec!["127.0.0.1:0".parse().unwrap()]),
        workers: 1,
        fqdn: "scp1.test".into(),
        ..Config::default()
    };
    config.nrf.roots.clear();
    // Most tests name producers that have no profile.
    config.forward_to_unknown = true;
    config.nrf.retry_interval = settings::Period::from_millis(50);
    config.protection.target_load = None;
    config
}

pub fn start(change: impl FnOnce(&mut Config)) -> Scp {
    let mut config = config();
    change(&mut config);
    let running = scp::start(config).unwrap();
    let registry = running.handle().registry().clone();
    let origin = format!("http://{}", running.addresses()[0]).parse().unwrap();
    Scp {
        running: Some(running),
        origin,
        client: client("AMF-test"),
        registry,
    }
}

/// An SCP that knows these producers from its configuration.
pub fn knowing(producers: &[&Producer], change: impl FnOnce(&mut Config)) -> Scp {
    let profiles = producers
        .iter()
        .map(|producer| producer.profile(&json!({})))
        .collect();
    start(|config| {
        config.producers = profiles;
        change(config);
    })
}

/// An SCP that delegates discoveries to these NRFs.
pub fn delegating(roots: Vec<String>, change: impl FnOnce(&mut Config)) -> Scp {
    start(|config| {
        config.nrf.roots = roots;
        config.nrf.register = false;
        config.nrf.nf_types.clear();
        change(config);
    })
}

/// An NRF whose discoveries find these profiles, whatever their parameters are.
pub fn nrf_that_finds(profiles: Vec<Value>) -> Producer {
    let nrf = Producer::start(99);
    nrf.answers(move |_| {
        let found = json!({"validityPeriod": 60, "nfInstances": profiles});
        sbi::json::response(StatusCode::OK, &found)
    });
    nrf
}

/// A path of the service that producers offer here.
pub const PATH: &str = "/nudm-sdm/v2/imsi-001010000000001/am-data";

impl Scp {
    pub async fn send(&self, request: http::Request<Body>) -> Got {
        send(&self.client, &self.origin, request).await.unwrap()
    }

    /// A request with these headers.
    pub async fn ask(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> Got {
        let mut request = http::Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(Body::empty()).unwrap()).await
    }

    /// A `GET` for a producer (Model C).
    pub async fn get(&self, producer: &Producer) -> Got {
        self.ask(
            Method::GET,
            PATH,
            &[("3gpp-sbi-target-apiroot", &producer.root())],
        )
        .await
    }

    /// The value of a counter, all labels added up that contain `with`.
    pub fn count(&self, metric: &str, with: &str) -> f64 {
        let text = self.registry.render();
        text.lines()
            .filter(|line| line.starts_with(metric) && line.contains(with))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    }
}
