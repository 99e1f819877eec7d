//! A running PCF on a free port and a client, inside the test's own runtime.

use http::{Method, StatusCode};
use pcf::{Config, Running};
use sbi::Body;
use sbi::client::{Client, Origin};
use serde_json::{Value, json};
pub use testpeer::local;
use testpeer::sbi::Server;
pub use testpeer::sbi::{Got, request, send};

/// Associations of PDU sessions.
pub const SM_POLICIES: &str = "/npcf-smpolicycontrol/v1/sm-policies";

/// A PCF and a client of it.
pub struct Pcf {
    pub running: Option<Running>,
    pub origin: Origin,
    pub client: Client,
    pub directory: tempfile::TempDir,
}

pub fn config(directory: &std::path::Path) -> Config {
    let listen = settings::Listen(vec!["127.0.0.1:0".parse().unwrap()]);
    let mut config = Config {
        listen: listen.clone(),
        workers: 1,
        ..Config::default()
    };
    config.diameter.listen = listen;
    // The machine of the tests may be busy.
    config.overload.enabled = false;
    config.store.embedded.directory = directory.join("store");
    config
}

pub fn client() -> Client {
    testpeer::sbi::client("SMF-test")
}

/// Starts a PCF whose configuration `change` may change.
pub fn start(change: impl FnOnce(&mut Config)) -> Pcf {
    let directory = tempfile::tempdir().unwrap();
    let mut config = config(directory.path());
    change(&mut config);
    let running = pcf::start(config).unwrap();
    let origin = format!("http://{}", running.addresses()[0]).parse().unwrap();
    Pcf {
        running: Some(running),
        origin,
        client: client(),
        directory,
    }
}

/// As [`local`], for a test of this many rounds.
pub fn repeated<F: Future>(rounds: usize, test: F) -> F::Output {
    let seconds = 300 + 15 * rounds as u64;
    testpeer::local_within(std::time::Duration::from_secs(seconds), test)
}

/// Rounds of a test that repeats itself: those of `SIGNALBOX_ROUNDS`, else these few.
pub fn rounds(few: usize) -> usize {
    let wanted = std::env::var("SIGNALBOX_ROUNDS").ok();
    wanted.and_then(|rounds| rounds.parse().ok()).unwrap_or(few)
}

/// Polls until the condition holds.
pub async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// Has a PCF ask these for the data of subscribers.
pub fn ask_sources(config: &mut Config, udr: Option<&Server>, chf: Option<&Server>) {
    if let Some(udr) = udr {
        config.pds.udr.enabled = true;
        config.pds.udr.api_roots = vec![udr.root()];
    }
    if let Some(chf) = chf {
        config.pds.chf.enabled = true;
        config.pds.chf.api_roots = vec![chf.root()];
    }
    config.pds.deadline = settings::Period::from_secs(20);
}

/// Sends a request; the answer is judged by the standard's own file.
pub async fn judged(client: &Client, origin: &Origin, request: http::Request<Body>) -> Got {
    let path = request.uri().path().to_owned();
    let got = send(client, origin, request).await.unwrap();
    crate::judge::answer(&path, got.status, &got.headers, &got.json);
    got
}

impl Pcf {
    pub async fn ask(&self, method: Method, path: &str, content_type: &str, body: impl Into<Body>) -> Got {
        judged(
            &self.client,
            &self.origin,
            request(method, path, content_type, body),
        )
        .await
    }

    pub async fn get(&self, path: &str) -> Got {
        self.ask(Method::GET, path, "", Body::empty()).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Got {
        self.ask(Method::POST, path, "application/json", body.to_string())
            .await
    }

    /// Creates an association of a PDU session: its path.
    pub async fn session(&self, more: &Value) -> String {
        path_of(&self.post(SM_POLICIES, &context(more)).await)
    }

    pub fn running(&self) -> &Running {
        self.running.as_ref().unwrap()
    }

    pub fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop().unwrap();
        }
    }
}

/// The path of an association that was created.
pub fn path_of(created: &Got) -> String {
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.json);
    created
        .header("location")
        .parse::<http::Uri>()
        .unwrap()
        .path()
        .to_owned()
}

/// `SmPolicyContextData` with these further members; a null takes one away.
pub fn context(more: &Value) -> Value {
    let value = json!({
        "supi": "imsi-001010000000001", "gpsi": "msisdn-15551234567", "pduSessionId": 5, "pduSessionType": "IPV4V6",
        "dnn": "internet", "notificationUri": "http://127.0.0.1:9/smf/n1", "accessType": "3GPP_ACCESS", "ratType": "NR",
        "servingNetwork": {"mcc": "001", "mnc": "01"}, "sliceInfo": {"sst": 1, "sd": "00000a"},
        "ipv4Address": "10.0.0.1", "ipv6AddressPrefix": "2001:db8:1:2::/64",
        "subsSessAmbr": {"uplink": "300 Mbps", "downlink": "1 Gbps"},
        "subsDefQos": {"5qi": 8, "arp": {"priorityLevel": 7, "preemptCap": "NOT_PREEMPT", "preemptVuln": "PREEMPTABLE"}},
        "suppFeat": "ffff", "vendorExtra": {"kept": [1, 2.50, null]}
    });
    with(value, more)
}

/// A value with these further members; a null takes one away.
pub fn with(mut value: Value, more: &Value) -> Value {
    for (name, member) in more.as_object().unwrap() {
        match member {
            Value::Null => drop(value.as_object_mut().unwrap().shift_remove(name)),
            member => value[name] = member.clone(),
        }
    }
    value
}
