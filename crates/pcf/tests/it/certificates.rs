//! Over mutual TLS a certificate of an NF names its instance (TS 33.310 §6.1.3c.3), and the NRF knows what it is.

use std::sync::Arc;

use http::{Method, StatusCode};
use sbi::Response;
use sbi::client::{Client, ClientConfig, Origin};
use serde_json::{Value, json};
use testpeer::sbi::{Seen, Server, no_content, request, send};
use tls::authority::Authority;

use crate::authorization::{APP_SESSIONS, call};
use crate::policies::{AM, association};
use crate::support::{Pcf, SM_POLICIES, context, local, path_of, start};

const SMF: &str = "6f1c7a52-0000-4000-8000-000000000001";
const UDR: &str = "6f1c7a52-0000-4000-8000-000000000002";
const AF: &str = "6f1c7a52-0000-4000-8000-000000000003";
const AMF: &str = "6f1c7a52-0000-4000-8000-000000000004";
const OTHER_AMF: &str = "6f1c7a52-0000-4000-8000-000000000005";
const TYPES: [(&str, &str); 5] = [
    (SMF, "SMF"),
    (UDR, "UDR"),
    (AF, "AF"),
    (AMF, "AMF"),
    (OTHER_AMF, "AMF"),
];

/// An NRF and a UDR in one.
fn network() -> Server {
    let server = Server::start(|_| no_content());
    let root = server.root();
    server.answers(move |seen: &Seen| {
        let id = seen.path.rsplit('/').next().unwrap_or_default();
        let registered = TYPES.iter().find(|(known, _)| *known == id);
        match (&seen.method, registered) {
            (&Method::GET, Some((id, nf_type))) => {
                let profile = json!({"nfInstanceId": id, "nfType": nf_type, "nfStatus": "REGISTERED"});
                sbi::json::response(StatusCode::OK, &profile)
            }
            (&Method::PUT, _) => sbi::json::response(StatusCode::CREATED, &seen.json()),
            (&Method::POST, _) => {
                let mut response = sbi::json::response(StatusCode::CREATED, &seen.json());
                let location = format!("{root}/nudr-dr/v2/policy-data/subs-to-notify/1");
                response.headers_mut().set_printed(sbi::name::LOCATION, location);
                response
            }
            (&Method::GET, None) if seen.path.contains("policy-data") => {
                sbi::json::response(StatusCode::OK, &json!({}))
            }
            (&Method::GET, None) => Response::new(StatusCode::NOT_FOUND),
            _ => no_content(),
        }
    });
    server
}

struct Secured {
    pcf: Pcf,
    origin: Origin,
    authority: Authority,
    _files: tempfile::TempDir,
}

impl Secured {
    fn start(network: &Server) -> Self {
        let files = tempfile::tempdir().unwrap();
        let authority = Authority::new("lab").unwrap();
        let own = authority.issue(&["localhost"]).unwrap();
        let mut tls = authority.write(&own, files.path(), "pcf").unwrap();
        tls.require_client_certificate = Some(true);
        let root = network.root();
        let pcf = start(|config| {
            config.tls = Some(tls);
            config.nrf.api_roots = vec![root.clone()];
            config.pds.udr.enabled = true;
            config.pds.udr.api_roots = vec![root];
        });
        let port = pcf.running().addresses()[0].port();
        Self {
            pcf,
            origin: format!("https://localhost:{port}").parse().unwrap(),
            authority,
            _files: files,
        }
    }

    /// Who asks with a certificate of this name.
    fn with(&self, name: &str) -> Consumer<'_> {
        let identity = self.authority.issue(&[name]).unwrap();
        let tls = self.authority.material(Some(&identity), false);
        let tls = tls.client(tls::HTTP2).unwrap();
        Consumer {
            client: Client::new(Arc::new(ClientConfig::default()), Some(tls)),
            origin: &self.origin,
        }
    }

    fn instance(&self, id: &str) -> Consumer<'_> {
        self.with(&format!("urn:uuid:{id}"))
    }
}

struct Consumer<'a> {
    client: Client,
    origin: &'a Origin,
}

impl Consumer<'_> {
    async fn ask(&self, method: Method, path: &str, body: &Value) -> testpeer::sbi::Got {
        let (content_type, text) = match body {
            Value::Null => ("", String::new()),
            body => ("application/json", body.to_string()),
        };
        let request = request(method, path, content_type, text);
        send(&self.client, self.origin, request).await.unwrap()
    }

    async fn status(&self, method: Method, path: &str, body: &Value) -> u16 {
        self.ask(method, path, body).await.status.as_u16()
    }
}

#[test]
fn a_certificate_without_an_instance_acts_on_nothing_that_has_an_owner() {
    local(async {
        let network = network();
        let secured = Secured::start(&network);
        let (smf, af) = (secured.instance(SMF), secured.instance(AF));
        let nameless = secured.with("smf.example.org");
        let sm = path_of(&smf.ask(Method::POST, SM_POLICIES, &context(&json!({}))).await);
        let session = call("http://127.0.0.1:9", &json!({}));
        let session = path_of(&af.ask(Method::POST, APP_SESSIONS, &session).await);
        for (method, path, body) in [
            (Method::GET, sm.clone(), Value::Null),
            (Method::POST, format!("{sm}/update"), json!({})),
            (Method::POST, format!("{sm}/delete"), json!({})),
            (Method::GET, session.clone(), Value::Null),
            (Method::POST, format!("{session}/delete"), Value::Null),
        ] {
            let status = nameless.status(method.clone(), &path, &body).await;
            assert_eq!(status, 403, "{method} {path}");
        }
        let delete = format!("{session}/delete");
        assert_eq!(af.status(Method::POST, &delete, &Value::Null).await, 204);
        let delete = format!("{sm}/delete");
        assert_eq!(smf.status(Method::POST, &delete, &json!({})).await, 204);
    });
}

#[test]
fn a_policy_association_is_taken_over_by_an_amf_alone() {
    local(async {
        let network = network();
        let secured = Secured::start(&network);
        let amf = secured.instance(AMF);
        let am = path_of(&amf.ask(Method::POST, AM, &association(&json!({}))).await);
        let update = format!("{am}/update");
        let moved = json!({"notificationUri": "http://127.0.0.1:9/new"});
        let strangers = [secured.instance(AF), secured.with("amf.example.org")];
        for stranger in strangers {
            assert_eq!(stranger.status(Method::POST, &update, &moved).await, 403);
        }
        assert_eq!(amf.status(Method::GET, &am, &Value::Null).await, 200);
        let other = secured.instance(OTHER_AMF);
        assert_eq!(other.status(Method::POST, &update, &moved).await, 200);
        assert_eq!(amf.status(Method::GET, &am, &Value::Null).await, 403);
    });
}

#[test]
fn a_notification_comes_from_the_kind_of_producer_that_was_subscribed_to() {
    local(async {
        let network = network();
        let secured = Secured::start(&network);
        let smf = secured.instance(SMF);
        let created = smf.ask(Method::POST, SM_POLICIES, &context(&json!({}))).await;
        assert_eq!(created.status, StatusCode::CREATED);
        let seen = network.take();
        let subscribed = seen.iter().find(|seen| seen.path.contains("subs-to-notify"));
        let uri = subscribed.unwrap().json()["notificationUri"].clone();
        let path = uri
            .as_str()
            .unwrap()
            .parse::<http::Uri>()
            .unwrap()
            .path()
            .to_owned();
        let change = json!([{"ueId": "imsi-001010000000001"}]);
        for (sender, status) in [
            (secured.instance(AF), 403),
            (secured.instance(SMF), 403),
            (secured.instance(UDR), 204),
        ] {
            assert_eq!(sender.status(Method::POST, &path, &change).await, status);
        }
        assert_eq!(secured.pcf.running().count(pcf::Event::UdrNotified), 1);
    });
}

#[test]
fn a_flood_of_notifications_in_an_unknown_name_costs_the_nrf_few_requests() {
    local(async {
        let network = network();
        let secured = Secured::start(&network);
        let stranger = secured.instance("6f1c7a52-0000-4000-8000-00000000000f");
        drop(network.take());
        for number in 0..200 {
            let path = format!("/signalbox-pcf/v1/policy-data-change/{number:032x}");
            assert_eq!(stranger.status(Method::POST, &path, &json!([])).await, 404);
        }
        let asked = network.take();
        let asked = asked.iter().filter(|seen| seen.path.ends_with("00000f")).count();
        // Once in two seconds, on a machine as slow as it may be.
        assert!((1..100).contains(&asked), "{asked}");
    });
}
