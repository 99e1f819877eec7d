//! A running SCP, producers with servers of their own, and a consumer, inside the test's runtime.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method, StatusCode};
use sbi::client::{Client, ClientConfig, Origin, SendOptions};
use sbi::server::{self, ServerConfig, ServerStats};
use sbi::{Body, Request, Response, Service};
use scp::{Config, Running};
use serde_json::{Value, json};
use telemetry::Registry;
use worker::Shutdown;

/// Runs a test as a worker would run a function.
pub fn local<F: Future>(test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, test)
}

/// What a producer has received.
#[derive(Clone, Debug)]
pub struct Seen {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

type Answer = Rc<dyn Fn(&Seen) -> Response>;

/// A producer: answers with its name unless told otherwise.
pub struct Producer {
    pub address: SocketAddr,
    pub id: String,
    seen: Rc<RefCell<Vec<Seen>>>,
    answer: Rc<RefCell<Answer>>,
    delay: Rc<Cell<Duration>>,
    stop: Shutdown,
}

struct Serving {
    seen: Rc<RefCell<Vec<Seen>>>,
    answer: Rc<RefCell<Answer>>,
    delay: Rc<Cell<Duration>>,
}

impl Service for Serving {
    async fn call(self: Rc<Self>, request: Request) -> Response {
        let seen = Seen {
            path: request.uri().path_and_query().unwrap().to_string(),
            headers: request.headers().clone(),
            body: request.body.to_bytes().to_vec(),
        };
        self.seen.borrow_mut().push(seen.clone());
        if !self.delay.get().is_zero() {
            tokio::time::sleep(self.delay.get()).await;
        }
        let answer = self.answer.borrow().clone();
        answer(&seen)
    }
}

impl Producer {
    /// A producer with this number at the end of its id, on a port of its own.
    pub fn start(number: u32) -> Self {
        Self::at(number, "127.0.0.1:0".parse().unwrap())
    }

    pub fn at(number: u32, address: SocketAddr) -> Self {
        let id = format!("00000000-0000-4000-8000-{number:012x}");
        let listener = server::bind(address).unwrap();
        let name = id.clone();
        let answer: Answer = Rc::new(move |_| sbi::json::response(StatusCode::OK, &json!({"by": name})));
        let producer = Self {
            address: listener.local_addr().unwrap(),
            id,
            seen: Rc::default(),
            answer: Rc::new(RefCell::new(answer)),
            delay: Rc::default(),
            stop: Shutdown::new(),
        };
        let serving = Rc::new(Serving {
            seen: producer.seen.clone(),
            answer: producer.answer.clone(),
            delay: producer.delay.clone(),
        });
        let (config, stats) = (
            Arc::new(ServerConfig::default()),
            Arc::new(ServerStats::default()),
        );
        tokio::task::spawn_local(server::serve(
            listener,
            serving,
            config,
            None,
            stats,
            producer.stop.clone(),
        ));
        producer
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.borrow().clone()
    }

    pub fn count(&self) -> usize {
        self.seen.borrow().len()
    }

    pub fn answers(&self, answer: impl Fn(&Seen) -> Response + 'static) {
        *self.answer.borrow_mut() = Rc::new(answer);
    }

    pub fn fails_with(&self, status: u16) {
        let status = StatusCode::from_u16(status).unwrap();
        self.answers(move |_| sbi::problem::Problem::of_status(status).into_response());
    }

    pub fn waits(&self, delay: Duration) {
        self.delay.set(delay);
    }

    pub fn root(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn stop(&self) {
        self.stop.fire();
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

/// A configuration on a free port with one worker and short times.
///
/// It refuses nothing for its load: an unoptimised worker on a busy machine would.
pub fn config() -> Config {
    let mut config = Config {
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
    let registry = Registry::new();
    let running = scp::start(config, &registry).unwrap();
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

pub fn client(user_agent: &str) -> Client {
    let config = ClientConfig {
        user_agent: user_agent.into(),
        ..ClientConfig::default()
    };
    Client::new(Arc::new(config), None)
}

/// A response, taken apart.
#[derive(Debug)]
pub struct Got {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub json: Value,
}

impl Got {
    pub fn cause(&self) -> &str {
        self.json["cause"].as_str().unwrap_or_default()
    }

    /// Who answered, by what producers answer here.
    pub fn by(&self) -> &str {
        self.json["by"].as_str().unwrap_or_default()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

pub fn got(response: Response) -> Got {
    let (head, body) = response.into_parts();
    let json = serde_json::from_slice(&body.into_bytes()).unwrap_or_default();
    Got {
        status: head.status,
        headers: head.headers,
        json,
    }
}

/// A path of the service that producers offer here.
pub const PATH: &str = "/nudm-sdm/v2/imsi-001010000000001/am-data";

impl Scp {
    pub async fn send(&self, request: http::Request<Body>) -> Got {
        let options = SendOptions {
            deadline: Duration::from_secs(20),
            ..SendOptions::default()
        };
        got(self.client.send(&self.origin, request, options).await.unwrap())
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

/// Asks until it is so.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..1_000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never came to this: {what}");
}
