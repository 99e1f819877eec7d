//! Associations and AF sessions are those of the NF instance that has created them, where senders prove who they are.

use http::{Method, StatusCode};
use sbi::oauth::SigningKey;
use serde_json::{Value, json};
use testpeer::sbi::{Got, Server, no_content, request};

use crate::authorization::{APP_SESSIONS, call};
use crate::policies::{AM, association};
use crate::support::{Pcf, SM_POLICIES, context, local, path_of, start};

const NRF: &str = "4947a69a-f61b-4bc1-b9da-47c9c5d14b64";
const OWNER: &str = "6f1c7a52-0000-4000-8000-000000000001";
const OF_ITS_SET: &str = "6f1c7a52-0000-4000-8000-000000000002";
const OTHER: &str = "6f1c7a52-0000-4000-8000-000000000003";

const AF: &str = "6f1c7a52-0000-4000-8000-000000000004";

/// An NRF that has the first two instances in one set.
fn nrf() -> Server {
    Server::start(
        |seen| match (seen.method.as_str(), seen.path.rsplit('/').next()) {
            ("GET", Some(id @ (OWNER | OF_ITS_SET))) => sbi::json::response(
                StatusCode::OK,
                &json!({"nfInstanceId": id, "nfSetIdList": ["set1.smfset.5gc.mnc001.mcc001"]}),
            ),
            ("GET", Some(AF)) => {
                sbi::json::response(StatusCode::OK, &json!({"nfInstanceId": AF, "nfType": "AF"}))
            }
            ("GET", Some(id)) => sbi::json::response(StatusCode::OK, &json!({"nfInstanceId": id})),
            ("PUT", _) => sbi::json::response(StatusCode::CREATED, &seen.json()),
            _ => no_content(),
        },
    )
}

struct Consumers {
    pcf: Pcf,
    key: SigningKey,
    _files: tempfile::TempDir,
}

impl Consumers {
    fn new(nrf: &Server) -> Self {
        let files = tempfile::tempdir().unwrap();
        let key = SigningKey::generate("k1").unwrap().0;
        let path = files.path().join("keys.json");
        std::fs::write(&path, json!({"keys": [key.jwk()]}).to_string()).unwrap();
        let root = nrf.root();
        let pcf = start(|config| {
            config.tokens.required = true;
            config.tokens.key_sets = vec![path];
            config.tokens.issuers = vec![NRF.to_owned()];
            config.nrf.api_roots = vec![root];
        });
        Self {
            pcf,
            key,
            _files: files,
        }
    }

    async fn send(&self, who: &str, method: Method, path: &str, body: &Value) -> Got {
        let claims = json!({"iss": NRF, "sub": who, "aud": "PCF", "exp": 4_000_000_000_u64,
            "scope": "npcf-smpolicycontrol npcf-policyauthorization npcf-am-policy-control"});
        let (content_type, text) = match (body, method == Method::PATCH) {
            (Value::Null, _) => ("", String::new()),
            (body, true) => ("application/merge-patch+json", body.to_string()),
            (body, false) => ("application/json", body.to_string()),
        };
        let mut request = request(method, path, content_type, text);
        let bearer = format!("Bearer {}", self.key.sign(&claims).unwrap());
        request
            .headers_mut()
            .insert("authorization", bearer.parse().unwrap());
        crate::support::judged(&self.pcf.client, &self.pcf.origin, request).await
    }

    async fn status(&self, who: &str, method: Method, path: &str, body: &Value) -> u16 {
        self.send(who, method, path, body).await.status.as_u16()
    }
}

#[test]
fn an_association_is_used_by_its_creator_and_its_set_alone() {
    local(async {
        let nrf = nrf();
        let all = Consumers::new(&nrf);
        let sm = path_of(
            &all.send(OWNER, Method::POST, SM_POLICIES, &context(&json!({})))
                .await,
        );
        let (update, delete) = (format!("{sm}/update"), format!("{sm}/delete"));
        for (who, status) in [(OTHER, 403), (OF_ITS_SET, 200), (OWNER, 200)] {
            assert_eq!(
                all.status(who, Method::GET, &sm, &Value::Null).await,
                status,
                "{who}"
            );
            assert_eq!(
                all.status(who, Method::POST, &update, &json!({})).await,
                status,
                "{who}"
            );
        }
        assert_eq!(all.status(OTHER, Method::POST, &delete, &json!({})).await, 403);
        assert_eq!(
            all.status(OF_ITS_SET, Method::POST, &delete, &json!({})).await,
            204
        );

        // An AMF that the UE has moved to takes the association over.
        let am = path_of(&all.send(OWNER, Method::POST, AM, &association(&json!({}))).await);
        let update = format!("{am}/update");
        assert_eq!(
            all.status(OTHER, Method::POST, &update, &json!({"rfsp": 7}))
                .await,
            403
        );
        assert_eq!(all.status(OTHER, Method::DELETE, &am, &Value::Null).await, 403);
        let moved = json!({"notificationUri": "http://127.0.0.1:9/new"});
        assert_eq!(all.status(AF, Method::POST, &update, &moved).await, 403);
        assert_eq!(all.status(OTHER, Method::POST, &update, &moved).await, 200);
        assert_eq!(all.status(OWNER, Method::GET, &am, &Value::Null).await, 403);
        assert_eq!(all.status(OTHER, Method::DELETE, &am, &Value::Null).await, 204);
    });
}

#[test]
fn an_af_session_is_used_by_its_af_alone_and_its_name_says_nothing_of_the_association() {
    local(async {
        let nrf = nrf();
        let all = Consumers::new(&nrf);
        let sm = path_of(
            &all.send(OWNER, Method::POST, SM_POLICIES, &context(&json!({})))
                .await,
        );
        let session = call("http://127.0.0.1:9", &json!({}));
        let session = path_of(&all.send(OTHER, Method::POST, APP_SESSIONS, &session).await);
        let id = sm.rsplit('/').next().unwrap();
        assert!(
            !session.contains(id) && !session.contains(&id.replace('-', "")),
            "{session}"
        );
        let patch = json!({"ascReqData": {"afAppId": "x"}});
        let events = json!({"events": [{"event": "PLMN_CHG"}], "notifUri": "http://127.0.0.1:9/e"});
        for (method, path, body, status) in [
            (Method::GET, session.clone(), Value::Null, 200),
            (Method::PATCH, session.clone(), patch, 200),
            (Method::PUT, format!("{session}/events-subscription"), events, 200),
            (
                Method::DELETE,
                format!("{session}/events-subscription"),
                Value::Null,
                204,
            ),
            (Method::POST, format!("{session}/delete"), Value::Null, 204),
        ] {
            assert_eq!(
                all.status(OWNER, method.clone(), &path, &body).await,
                403,
                "{method} {path}"
            );
            assert_eq!(
                all.status(OTHER, method.clone(), &path, &body).await,
                status,
                "{method} {path}"
            );
        }
        assert_eq!(all.status(OTHER, Method::GET, &session, &Value::Null).await, 404);
        // The identity of the association names no session of an AF.
        let guessed = format!("{APP_SESSIONS}/{id}.0000000000000000");
        assert_eq!(all.status(OTHER, Method::GET, &guessed, &Value::Null).await, 404);
    });
}

#[test]
fn the_profile_says_which_types_of_consumers_a_service_is_for() {
    local(async {
        let nrf = nrf();
        let _all = Consumers::new(&nrf);
        testpeer::until("the PCF registers", async || {
            nrf.seen().iter().any(|seen| seen.method == Method::PUT)
        })
        .await;
        let seen = nrf.seen();
        let profile = seen
            .iter()
            .find(|seen| seen.method == Method::PUT)
            .unwrap()
            .json();
        let allowed = |name: &str| {
            let services = profile["nfServices"].as_array().unwrap();
            let service = services
                .iter()
                .find(|service| service["serviceName"] == name)
                .unwrap();
            service["allowedNfTypes"].as_array().unwrap().clone()
        };
        let names = [
            "npcf-smpolicycontrol",
            "npcf-am-policy-control",
            "npcf-ue-policy-control",
        ];
        for (name, consumer) in names.into_iter().zip(["SMF", "AMF", "AMF"]) {
            let allowed = allowed(name);
            assert!(
                allowed.contains(&json!(consumer)) && !allowed.contains(&json!("AF")),
                "{allowed:?}"
            );
        }
        assert!(allowed("npcf-policyauthorization").contains(&json!("AF")));
    });
}
