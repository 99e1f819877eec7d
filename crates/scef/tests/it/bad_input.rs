//! Wrong requests of SCS/AS and of peers: refused with the reason, and nothing else suffers.

use diameter::proto::known::{self, application, command};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use testpeer::diameter::Peer;
use testpeer::sbi::{Template, mutations, request, send};

use crate::network::{NOT_CONNECTED, Node, result_of};
use crate::support::{CONFIGURATIONS, SUBSCRIPTIONS, configuration, local, server, start, subscription};

#[test]
fn wrong_bodies_are_refused_before_the_hss_is_asked() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let target = server.root();
        for (more, status, cause) in [
            (json!({"externalId": null}), 400, "OPTIONAL_IE_INCORRECT"),
            (json!({"msisdn": "43660"}), 400, "MANDATORY_IE_INCORRECT"),
            (
                json!({"notificationDestination": "ftp://x/"}),
                400,
                "MANDATORY_IE_INCORRECT",
            ),
            (
                json!({"notificationDestination": format!("{}", scef.api.origin)}),
                400,
                "MANDATORY_IE_INCORRECT",
            ),
            (
                json!({"monitoringType": "NUM_OF_REGD_UES"}),
                500,
                "EVENT_UNSUPPORTED",
            ),
            (
                json!({"monitorExpireTime": "2001-01-01T00:00:00Z"}),
                403,
                "PARAMETER_OUT_OF_RANGE",
            ),
            (
                json!({"monitorExpireTime": "2104-02-26T09:42:24Z"}),
                403,
                "PARAMETER_OUT_OF_RANGE",
            ),
            (json!({"reachabilityType": "VOICE"}), 400, "OPTIONAL_IE_INCORRECT"),
            (
                json!({"locationType": "INITIAL_LOCATION"}),
                400,
                "OPTIONAL_IE_INCORRECT",
            ),
            (json!({"accuracy": "GEO_AREA"}), 400, "OPTIONAL_IE_INCORRECT"),
            (json!({"associationType": "MAC"}), 400, "OPTIONAL_IE_INCORRECT"),
            (json!({"repPeriod": 60}), 400, "OPTIONAL_IE_INCORRECT"),
            (
                json!({"monitoringType": "UE_REACHABILITY", "reachabilityType": "SMS"}),
                403,
                "PARAMETER_OUT_OF_RANGE",
            ),
            (
                json!({"monitoringType": "LOCATION_REPORTING", "locationType": "LAST_KNOWN_LOCATION"}),
                403,
                "PARAMETER_OUT_OF_RANGE",
            ),
            (json!({"externalGroupId": "g@x"}), 400, "MANDATORY_IE_INCORRECT"),
        ] {
            let got = scef.api.post(SUBSCRIPTIONS, subscription(&target, &more)).await;
            assert_eq!(got.status.as_u16(), status, "{more} {}", got.json);
            assert!(cause.is_empty() || got.cause() == cause, "{more} {}", got.json);
        }
        let late = json!({"duration": "2105-01-01T00:00:00Z"});
        let got = scef.api.post(CONFIGURATIONS, configuration(&target, &late)).await;
        let refused = (StatusCode::FORBIDDEN, "PARAMETER_OUT_OF_RANGE");
        assert_eq!((got.status, got.cause()), refused);
        let detail = got.json["detail"].as_str().unwrap();
        assert!(detail.contains("2104-02-26T09:42:23Z"), "{detail}");
        let ports = json!([{"portUE": 1, "portSCEF": 2}]);
        for more in [
            json!({"pdnEstablishmentOption": "SEND_TRIGGER"}),
            json!({"reliableDataService": true}),
            json!({"rdsPorts": ports}),
        ] {
            let got = scef.api.post(CONFIGURATIONS, configuration(&target, &more)).await;
            let refused = (StatusCode::BAD_REQUEST, "OPTIONAL_IE_INCORRECT");
            assert_eq!((got.status, got.cause()), refused, "{more}");
        }
        let (method, path) = (Method::POST, SUBSCRIPTIONS);
        let media = scef.api.ask(method, path, "text/plain", &json!({})).await;
        assert_eq!(media.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
        let unknown = format!("{SUBSCRIPTIONS}/zzzzzzzz");
        assert_eq!(scef.api.get(&unknown).await.status, StatusCode::NOT_FOUND);
        let patch = scef
            .api
            .ask(Method::PATCH, &unknown, "application/json", &json!([]))
            .await;
        assert_eq!(patch.status, StatusCode::METHOD_NOT_ALLOWED);
        scef.stop();
    });
}

#[test]
fn damaged_bodies_never_end_a_worker() {
    local(async {
        let scef = start(|config| config.diameter.timeout = settings::Period::from_millis(50));
        let json = "application/json";
        let bodies = [
            (SUBSCRIPTIONS, subscription("http://127.0.0.1:1/", &json!({}))),
            (CONFIGURATIONS, configuration("http://127.0.0.1:1/", &json!({}))),
        ];
        let templates = bodies.map(|(path, body)| Template::body(Method::POST, path, json, body.to_string()));
        for one in mutations(templates.into(), 400, 7) {
            let request = request(one.method.clone(), &one.path, one.content_type, one.body.clone());
            let got = send(&scef.api.client, &scef.api.origin, request).await.unwrap();
            assert!(!got.status.is_success(), "{one}: {}", got.json);
        }
        assert_eq!(scef.api.get(SUBSCRIPTIONS).await.json, json!([]));
        scef.stop();
    });
}

#[test]
fn a_peer_speaks_for_itself_and_to_the_letter() {
    local(async {
        let scef = start(|_| {});
        let mut mme = Node::mme(scef.diameter()).await;
        let which = (command::MO_DATA, application::T6A);
        let mut forged = mme.request(which, 1, |_| {});
        let mut bytes = forged.as_bytes().to_vec();
        let at = bytes.windows(3).position(|window| window == b"mme").unwrap();
        // The name in Origin-Host; the Session-Id has it first.
        let second = at
            + 3
            + bytes[at + 3..]
                .windows(3)
                .position(|window| window == b"mme")
                .unwrap();
        bytes[second..second + 3].copy_from_slice(b"hss");
        mme.0.send(&bytes).await;
        let answer = mme.0.expect(command::MO_DATA).await;
        assert_eq!(result_of(&answer), (0, 5012));

        // User-Identifier is missing.
        forged = mme.request((command::REPORTING_INFORMATION, application::T6A), 2, |_| {});
        let mut header = forged.as_bytes().to_vec();
        header[5..8].copy_from_slice(&command::MO_DATA.to_be_bytes()[1..]);
        mme.0.send(&header).await;
        let answer = mme.0.expect(command::MO_DATA).await;
        assert_eq!(result_of(&answer), (0, 5005));
        assert!(answer.get(known::FAILED_AVP).unwrap().is_some());

        // CIR is for HSS and MME, not for the SCEF.
        let request = mme.request((command::CONFIGURATION_INFORMATION, application::T6A), 3, |_| {});
        assert_eq!(result_of(&mme.ask(&request).await).1, 3001);
        let mut stranger = Peer::connect(scef.diameter()).await;
        stranger.send(b"GET / HTTP/1.1\r\n\r\n").await;
        stranger.expect_close().await;
        assert_eq!(mme.uplink(&[1], 4).await, NOT_CONNECTED);
        scef.stop();
    });
}

#[test]
fn a_dead_hss_costs_an_answer_and_no_more() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let got = scef
            .api
            .post(SUBSCRIPTIONS, subscription(&server.root(), &json!({})))
            .await;
        assert_eq!(got.status, StatusCode::SERVICE_UNAVAILABLE, "{}", got.json);
        let got = scef
            .api
            .post(CONFIGURATIONS, configuration(&server.root(), &json!({})))
            .await;
        assert_eq!(got.status, StatusCode::SERVICE_UNAVAILABLE, "{}", got.json);
        assert_eq!(scef.api.get(CONFIGURATIONS).await.json, Value::Array(Vec::new()));
        scef.stop();
    });
}
