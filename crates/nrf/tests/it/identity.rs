//! An NF instance is registered, given tokens and deregistered by itself only.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{Method, StatusCode};
use sbi::Body;
use sbi::client::{Client, ClientConfig};
use sbi::identity::IdentityMode;
use sbi::oauth::{AssertionMode, SigningKey};
use serde_json::{Value, json};
use tls::authority::{Authority, Identity};

use crate::support::{Got, Nrf, UDM, id, local, profile, start};

const FORM: &str = "application/x-www-form-urlencoded";
const SCP: u32 = 0xc1;

/// An NRF that speaks mutual TLS, and the authority of its network.
struct Network {
    authority: Authority,
    nrf: Nrf,
}

fn network(change: impl FnOnce(&mut nrf::Config, &std::path::Path)) -> Network {
    let authority = Authority::new("the network's").unwrap();
    let mine = authority.issue(&["127.0.0.1", "nrf.test"]).unwrap();
    let nrf = start(|config| {
        let folder = config.store.embedded.directory.clone();
        std::fs::create_dir_all(&folder).unwrap();
        let mut files = authority.write(&mine, &folder, "nrf").unwrap();
        files.require_client_certificate = Some(true);
        config.tls = Some(files);
        change(config, &folder);
    });
    Network { authority, nrf }
}

impl Network {
    /// The NRF as somebody sees it who shows a certificate with these names.
    fn as_one(&self, names: &[&str]) -> Nrf {
        let identity = self.authority.issue(names).unwrap();
        self.with(&identity)
    }

    fn with(&self, identity: &Identity) -> Nrf {
        let tls = self
            .authority
            .material(Some(identity), false)
            .client(tls::HTTP2)
            .unwrap();
        let origin = format!("https://{}", self.nrf.running.as_ref().unwrap().addresses()[0]);
        Nrf {
            running: None,
            origin: origin.parse().unwrap(),
            client: Client::new(Arc::new(ClientConfig::default()), Some(tls)),
            directory: tempfile::tempdir().unwrap(),
        }
    }

    fn instance(&self, id: &str) -> Nrf {
        self.as_one(&["nf.test", &format!("urn:uuid:{id}")])
    }

    fn count(&self, event: nrf::Event) -> u64 {
        self.nrf.running.as_ref().unwrap().count(event)
    }

    fn is_registered(&self, id: &str) -> bool {
        let id = model::NfInstanceId::parse(id).unwrap();
        self.nrf.running.as_ref().unwrap().snapshot().get(&id).is_some()
    }
}

fn amf(number: u32) -> Value {
    profile(&id(number), "AMF", "namf-comm", &json!({}))
}

async fn send(
    nrf: &Nrf,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<(&str, String)>,
) -> Got {
    let mut request = http::Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut content = Body::empty();
    if let Some((media_type, text)) = body {
        request = request.header("content-type", media_type);
        content = Body::from(text);
    }
    nrf.send(request.body(content).unwrap()).await
}

fn form(consumer: &str, nf_type: &str, target: &str, scope: &str) -> String {
    format!(
        "grant_type=client_credentials&nfInstanceId={consumer}&nfType={nf_type}&targetNfType={target}&scope={scope}"
    )
}

async fn token(nrf: &Nrf, form: String) -> Got {
    nrf.ask(Method::POST, "/oauth2/token", FORM, form).await
}

async fn bearer(nrf: &Nrf, form: String) -> String {
    let got = token(nrf, form).await;
    assert_eq!(got.status, StatusCode::OK, "{}", got.json);
    format!("Bearer {}", got.json["access_token"].as_str().unwrap())
}

fn path(id: &str) -> String {
    format!("/nnrf-nfm/v1/nf-instances/{id}")
}

#[test]
fn a_certificate_acts_for_its_own_instance_only() {
    local(async {
        let network = network(|_, _| {});
        let (mine, udm) = (network.instance(&id(1)), network.instance(&UDM.to_uppercase()));
        assert_eq!(mine.put(&amf(1)).await.status, StatusCode::CREATED);
        let other = profile(UDM, "UDM", "nudm-sdm", &json!({}));
        let refused = mine.put(&other).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.json);
        assert!(!network.is_registered(UDM), "what was refused has no effect");
        assert_eq!(
            udm.put(&other).await.status,
            StatusCode::CREATED,
            "case does not matter"
        );

        let load = json!([{"op": "add", "path": "/load", "value": 99}]);
        assert_eq!(
            udm.patch(&id(1), load.clone()).await.status,
            StatusCode::FORBIDDEN
        );
        let gone = udm.ask(Method::DELETE, &path(&id(1)), "", Body::empty()).await;
        assert_eq!(gone.status, StatusCode::FORBIDDEN);
        assert!(network.is_registered(&id(1)));
        assert_eq!(mine.get(&path(&id(1))).await.json.get("load"), None);
        assert_eq!(mine.patch(&id(1), load).await.status, StatusCode::NO_CONTENT);

        let stolen = token(&mine, form(UDM, "UDM", "AMF", "namf-comm")).await;
        assert_eq!(stolen.status, StatusCode::FORBIDDEN, "{}", stolen.json);
        let own = token(&udm, form(UDM, "UDM", "AMF", "namf-comm")).await;
        assert_eq!(own.status, StatusCode::OK, "{}", own.json);
        assert_eq!(network.count(nrf::Event::IdentityRefused), 4);

        // A certificate that names no instance proves none, and one is asked for where every client has one.
        let client = network.as_one(&["client"]);
        assert_eq!(client.put(&amf(2)).await.status, StatusCode::FORBIDDEN);
        assert!(!network.is_registered(&id(2)));
        let stolen = token(&client, form(UDM, "UDM", "AMF", "namf-comm")).await;
        assert_eq!(stolen.status, StatusCode::FORBIDDEN, "{}", stolen.json);
        let gone = mine.ask(Method::DELETE, &path(&id(1)), "", Body::empty()).await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT);
    });
}

#[test]
fn where_identities_are_required_an_unknown_sender_is_refused() {
    local(async {
        let network = network(|config, _| {
            config.identity.mode = Some(IdentityMode::Required);
            config.identity.trusted = vec!["tools.test".into()];
        });
        let client = network.as_one(&["client"]);
        assert_eq!(client.put(&amf(1)).await.status, StatusCode::FORBIDDEN);
        let asked = token(&client, form(&id(1), "AMF", "NRF", "nnrf-nfm")).await;
        assert_eq!(asked.status, StatusCode::FORBIDDEN);
        let subscribed = client
            .ask(
                Method::POST,
                "/nnrf-nfm/v1/subscriptions",
                "application/json",
                json!({"nfStatusNotificationUri": "http://127.0.0.1:9/x"}).to_string(),
            )
            .await;
        assert_eq!(subscribed.status, StatusCode::FORBIDDEN, "{}", subscribed.json);
        assert_eq!(
            network.instance(&id(1)).put(&amf(1)).await.status,
            StatusCode::CREATED
        );
        let tools = network.as_one(&["tools.test"]);
        let gone = tools.ask(Method::DELETE, &path(&id(1)), "", Body::empty()).await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT, "who is trusted acts for all");
    });
}

#[test]
fn a_subscription_belongs_to_who_has_made_it() {
    local(async {
        let network = network(|_, _| {});
        let (mine, other) = (network.instance(&id(1)), network.instance(&id(2)));
        let wanted = |more: Value| {
            let mut data =
                json!({"nfStatusNotificationUri": "http://127.0.0.1:9/x", "subscrCond": {"nfType": "UDM"}});
            for (name, value) in more.as_object().unwrap() {
                data[name] = value.clone();
            }
            data.to_string()
        };
        let subscribe = async |nrf: &Nrf, data: String| {
            nrf.ask(
                Method::POST,
                "/nnrf-nfm/v1/subscriptions",
                "application/json",
                data,
            )
            .await
        };
        let forged = subscribe(&other, wanted(json!({"reqNfInstanceId": id(1)}))).await;
        assert_eq!(forged.status, StatusCode::FORBIDDEN, "{}", forged.json);
        let named = subscribe(&mine, wanted(json!({"reqNfInstanceId": id(1)}))).await;
        assert_eq!(named.status, StatusCode::CREATED);
        // Who proves itself need not name itself.
        let made = subscribe(&mine, wanted(json!({}))).await;
        assert_eq!(
            (made.status, &made.json["reqNfInstanceId"]),
            (StatusCode::CREATED, &json!(id(1)))
        );
        for subscription in [named, made] {
            let at = format!(
                "/nnrf-nfm/v1/subscriptions/{}",
                subscription.json["subscriptionId"].as_str().unwrap()
            );
            let longer = json!([{"op": "replace", "path": "/validityTime", "value": "2099-01-01T00:00:00Z"}]);
            let patch = "application/json-patch+json";
            let change = async |nrf: &Nrf, patched: &Value| {
                nrf.ask(Method::PATCH, &at, patch, patched.to_string())
                    .await
                    .status
            };
            assert_eq!(change(&other, &longer).await, StatusCode::FORBIDDEN);
            let ended = other.ask(Method::DELETE, &at, "", Body::empty()).await;
            assert_eq!(ended.status, StatusCode::FORBIDDEN);
            let give = json!([{"op": "replace", "path": "/reqNfInstanceId", "value": id(2)}]);
            assert_eq!(change(&mine, &give).await, StatusCode::FORBIDDEN);
            assert_eq!(change(&mine, &longer).await, StatusCode::OK);
            let ended = mine.ask(Method::DELETE, &at, "", Body::empty()).await;
            assert_eq!(ended.status, StatusCode::NO_CONTENT);
        }
    });
}

#[test]
fn an_nf_registers_at_a_protected_nrf_by_its_certificate_and_goes_on_by_token() {
    local(async {
        let network = network(|config, _| {
            config.tokens.protect_own_services = true;
            config.identity.mode = Some(IdentityMode::Required);
        });
        let (mine, other) = (network.instance(&id(1)), network.instance(&id(2)));
        // A registration of another instance is refused as well.
        assert_eq!(other.put(&amf(1)).await.status, StatusCode::UNAUTHORIZED);
        assert_eq!(mine.put(&amf(1)).await.status, StatusCode::CREATED);
        let load = json!([{"op": "add", "path": "/load", "value": 9}]).to_string();
        let patch = async |nrf: &Nrf, authorization: &[(&str, &str)]| {
            let body = Some(("application/json-patch+json", load.clone()));
            send(nrf, Method::PATCH, &path(&id(1)), authorization, body).await
        };
        assert_eq!(patch(&mine, &[]).await.status, StatusCode::UNAUTHORIZED);
        let own = bearer(&mine, form(&id(1), "AMF", "NRF", "nnrf-nfm")).await;
        assert_eq!(
            patch(&mine, &[("authorization", &own)]).await.status,
            StatusCode::NO_CONTENT
        );
        // A token that was stolen opens nothing to another certificate, reading included.
        assert_eq!(
            patch(&other, &[("authorization", &own)]).await.status,
            StatusCode::FORBIDDEN
        );
        let list = "/nnrf-nfm/v1/nf-instances";
        let stolen = send(&other, Method::GET, list, &[("authorization", &own)], None).await;
        assert_eq!(stolen.status, StatusCode::FORBIDDEN);
        // Nor does one's own token open what is another's.
        let others = bearer(&other, form(&id(2), "AMF", "NRF", "nnrf-nfm")).await;
        let refused = patch(&other, &[("authorization", &others)]).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.json);
        let read = send(&other, Method::GET, list, &[("authorization", &others)], None).await;
        assert_eq!(read.status, StatusCode::OK);
    });
}

#[test]
fn in_cleartext_the_subject_of_the_token_counts() {
    local(async {
        let nrf = start(|config| config.tokens.protect_own_services = true);
        // With the defaults of the shipped example: who is not registered yet gets a token to register with.
        assert_eq!(nrf.put(&amf(1)).await.status, StatusCode::UNAUTHORIZED);
        let own = bearer(&nrf, form(&id(1), "AMF", "NRF", "nnrf-nfm")).await;
        let put = async |number: u32, authorization: &str| {
            let body = Some(("application/json", amf(number).to_string()));
            let headers = [("authorization", authorization)];
            send(&nrf, Method::PUT, &path(&id(number)), &headers, body)
                .await
                .status
        };
        assert_eq!(put(2, &own).await, StatusCode::FORBIDDEN);
        assert_eq!(put(1, &own).await, StatusCode::CREATED);
        // Only for that: an NF that looks for others must be registered.
        for (consumer, status) in [(2, StatusCode::BAD_REQUEST), (1, StatusCode::OK)] {
            for scope in ["nnrf-disc", "nnrf-nfm nnrf-disc"] {
                let got = token(&nrf, form(&id(consumer), "AMF", "NRF", scope)).await;
                assert_eq!(got.status, status, "{consumer} {scope}: {}", got.json);
            }
        }
    });
}

#[test]
fn through_an_scp_the_assertion_of_the_consumer_counts() {
    local(async {
        let network = network(|config, folder| {
            config.identity.mode = Some(IdentityMode::Required);
            config.identity.relays = vec![id(SCP)];
            config.identity.assertions.mode = AssertionMode::Check;
            config.identity.assertions.authorities = Some(folder.join("authority.crt"));
        });
        let scp = network.instance(&id(SCP));
        let consumer = network
            .authority
            .issue(&[&format!("urn:uuid:{}", id(1))])
            .unwrap();
        let stranger = Authority::new("stranger").unwrap();
        let forged = stranger.issue(&[&format!("urn:uuid:{}", id(1))]).unwrap();
        let put = async |number: u32, assertion: Option<&str>| {
            let headers: Vec<(&str, &str)> = assertion
                .map(|text| ("3gpp-sbi-client-credentials", text))
                .into_iter()
                .collect();
            let body = Some(("application/json", amf(number).to_string()));
            let got = send(&scp, Method::PUT, &path(&id(number)), &headers, body).await;
            (got.status, got.cause().to_owned())
        };
        let good = assertion(&consumer, &id(1), "NRF");
        let forbidden = |cause: &str| (StatusCode::FORBIDDEN, cause.to_owned());
        assert_eq!(put(1, None).await, forbidden(""));
        assert_eq!(
            put(1, Some(&assertion(&forged, &id(1), "NRF"))).await,
            forbidden("CCA_VERIFICATION_FAILURE")
        );
        assert_eq!(
            put(1, Some(&assertion(&consumer, &id(2), "NRF"))).await,
            forbidden("CCA_VERIFICATION_FAILURE")
        );
        assert_eq!(
            put(1, Some(&assertion(&consumer, &id(1), "UDM"))).await,
            forbidden("CCA_VERIFICATION_FAILURE")
        );
        assert_eq!(put(2, Some(&good)).await, forbidden(""));
        assert_eq!(put(1, Some(&good)).await.0, StatusCode::CREATED);
        // The SCP is itself, too.
        assert_eq!(put(SCP, None).await.0, StatusCode::CREATED);
        let asked = token(&scp, form(&id(1), "AMF", "AMF", "namf-comm")).await;
        assert_eq!(
            asked.status,
            StatusCode::FORBIDDEN,
            "no assertion says that the consumer asks"
        );
        let body = Some((FORM, form(&id(1), "AMF", "AMF", "namf-comm")));
        let headers = [("3gpp-sbi-client-credentials", good.as_str())];
        let asked = send(&scp, Method::POST, "/oauth2/token", &headers, body).await;
        assert_eq!(asked.status, StatusCode::OK, "{}", asked.json);
    });
}

/// A client credentials assertion of an instance, signed with the key of a certificate that comes along.
fn assertion(identity: &Identity, subject: &str, audience: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let end = now + Duration::from_secs(60);
    let claims = json!({"sub": subject, "iat": now.as_secs(), "exp": end.as_secs(), "aud": [audience]});
    SigningKey::from_pem("unused", identity.key.as_bytes())
        .unwrap()
        .assert(&claims, &identity.certificate)
        .unwrap()
}

#[test]
fn a_subscription_that_is_forwarded_is_judged_before() {
    local(async {
        let other = start(|_| {});
        let root = other.origin.to_string();
        let network = network(|config, _| {
            config.forwarding.rules = vec![nrf::config::ForwardingRule {
                operations: vec![nrf::config::ForwardedOperation::Subscription],
                targets: vec![root],
                ..Default::default()
            }];
        });
        let mine = network.instance(&id(1));
        let subscribe = async |subscriber: &str| {
            let data = json!({"nfStatusNotificationUri": "http://127.0.0.1:9/x", "reqNfInstanceId": subscriber,
                "subscrCond": {"nfType": "UDM"}});
            let (path, media) = ("/nnrf-nfm/v1/subscriptions", "application/json");
            mine.ask(Method::POST, path, media, data.to_string()).await.status
        };
        let made = || other.running.as_ref().unwrap().count(nrf::Event::Subscribed);
        assert_eq!(subscribe(&id(2)).await, StatusCode::FORBIDDEN);
        assert_eq!(made(), 0);
        assert_eq!(subscribe(&id(1)).await, StatusCode::CREATED);
        assert_eq!(made(), 1);
    });
}
