//! Every operation that functions of a core call at one another reaches its producer as it was sent, whether the request
//! names the producer (Model C) or what it must be able to do (Model D).

use http::Method;
use sbi::Body;
use scp::config::Order;
use serde_json::{Value, json};

use crate::support::{Producer, Scp, local, start};

type Calls = &'static [(Method, &'static str)];

/// Type of the producer, its service, and the operations: method and resource after the version of the API.
const SERVICES: &[(&str, &str, Calls)] = &[
    (
        "SMF",
        "nsmf-pdusession",
        &[
            (Method::POST, "/sm-contexts"),
            (Method::POST, "/sm-contexts/1/modify"),
            (Method::POST, "/sm-contexts/1/release"),
        ],
    ),
    (
        "SMF",
        "nsmf-event-exposure",
        &[
            (Method::POST, "/subscriptions"),
            (Method::PUT, "/subscriptions/1"),
            (Method::DELETE, "/subscriptions/1"),
        ],
    ),
    (
        "PCF",
        "npcf-smpolicycontrol",
        &[
            (Method::POST, "/sm-policies"),
            (Method::POST, "/sm-policies/1/update"),
            (Method::POST, "/sm-policies/1/delete"),
        ],
    ),
    (
        "PCF",
        "npcf-am-policy-control",
        &[
            (Method::POST, "/policies"),
            (Method::GET, "/policies/1"),
            (Method::POST, "/policies/1/update"),
            (Method::DELETE, "/policies/1"),
        ],
    ),
    (
        "PCF",
        "npcf-ue-policy-control",
        &[
            (Method::POST, "/policies"),
            (Method::GET, "/policies/1"),
            (Method::POST, "/policies/1/update"),
            (Method::DELETE, "/policies/1"),
        ],
    ),
    (
        "PCF",
        "npcf-policyauthorization",
        &[
            (Method::POST, "/app-sessions"),
            (Method::PATCH, "/app-sessions/1"),
            (Method::POST, "/app-sessions/1/delete"),
        ],
    ),
    (
        "PCF",
        "npcf-bdtpolicycontrol",
        &[(Method::POST, "/bdtpolicies"), (Method::PATCH, "/bdtpolicies/1")],
    ),
    (
        "UDM",
        "nudm-sdm",
        &[
            (
                Method::GET,
                "/imsi-001010000000001/am-data?plmn-id=%7B%22mcc%22%3A%22001%22%7D",
            ),
            (Method::POST, "/imsi-001010000000001/sdm-subscriptions"),
            (Method::DELETE, "/imsi-001010000000001/sdm-subscriptions/1"),
        ],
    ),
    (
        "UDM",
        "nudm-uecm",
        &[
            (Method::PUT, "/imsi-001010000000001/registrations/amf-3gpp-access"),
            (
                Method::PATCH,
                "/imsi-001010000000001/registrations/amf-3gpp-access",
            ),
            (Method::GET, "/imsi-001010000000001/registrations/amf-3gpp-access"),
            (
                Method::PUT,
                "/imsi-001010000000001/registrations/smf-registrations/5",
            ),
            (
                Method::DELETE,
                "/imsi-001010000000001/registrations/smf-registrations/5",
            ),
            (
                Method::PUT,
                "/imsi-001010000000001/registrations/smsf-3gpp-access",
            ),
        ],
    ),
    (
        "UDM",
        "nudm-ueau",
        &[
            (
                Method::POST,
                "/suci-0-001-01-0-0-0-1/security-information/generate-auth-data",
            ),
            (Method::POST, "/imsi-001010000000001/auth-events"),
        ],
    ),
    (
        "UDM",
        "nudm-ee",
        &[
            (Method::POST, "/imsi-001010000000001/ee-subscriptions"),
            (Method::PATCH, "/imsi-001010000000001/ee-subscriptions/1"),
            (Method::DELETE, "/imsi-001010000000001/ee-subscriptions/1"),
        ],
    ),
    (
        "UDM",
        "nudm-pp",
        &[(Method::PATCH, "/imsi-001010000000001/pp-data")],
    ),
    ("UDM", "nudm-ueid", &[(Method::POST, "/deconceal")]),
    (
        "UDR",
        "nudr-dr",
        &[
            (Method::POST, "/policy-data/subs-to-notify"),
            (Method::DELETE, "/policy-data/subs-to-notify/1"),
            (Method::GET, "/policy-data/ues/imsi-001010000000001/sm-data"),
            (
                Method::GET,
                "/subscription-data/imsi-001010000000001/00101/provisioned-data/sm-data",
            ),
        ],
    ),
    (
        "UDR",
        "nudr-group-id-map",
        &[(
            Method::GET,
            "/nf-group-ids?nf-type=%5B%22CHF%22%5D&subscriberId=imsi-001010000000001",
        )],
    ),
    (
        "CHF",
        "nchf-spendinglimitcontrol",
        &[
            (Method::POST, "/subscriptions"),
            (Method::PUT, "/subscriptions/1"),
            (Method::DELETE, "/subscriptions/1"),
        ],
    ),
    (
        "CHF",
        "nchf-convergedcharging",
        &[
            (Method::POST, "/chargingdata"),
            (Method::POST, "/chargingdata/1/update"),
            (Method::POST, "/chargingdata/1/release"),
        ],
    ),
    (
        "AUSF",
        "nausf-auth",
        &[
            (Method::POST, "/ue-authentications"),
            (Method::PUT, "/ue-authentications/1/5g-aka-confirmation"),
        ],
    ),
    (
        "AUSF",
        "nausf-sorprotection",
        &[(Method::POST, "/imsi-001010000000001/ue-sor")],
    ),
    (
        "AUSF",
        "nausf-upuprotection",
        &[(Method::POST, "/imsi-001010000000001/ue-upu")],
    ),
    (
        "BSF",
        "nbsf-management",
        &[
            (Method::POST, "/pcfBindings"),
            (Method::GET, "/pcfBindings?ipv4Addr=10.0.0.1"),
            (Method::DELETE, "/pcfBindings/1"),
        ],
    ),
    (
        "AMF",
        "namf-comm",
        &[
            (
                Method::POST,
                "/ue-contexts/imsi-001010000000001/n1-n2-messages/subscriptions",
            ),
            (
                Method::DELETE,
                "/ue-contexts/imsi-001010000000001/n1-n2-messages/subscriptions/1",
            ),
            (Method::POST, "/ue-contexts/imsi-001010000000001/n1-n2-messages"),
            (Method::POST, "/non-ue-n2-messages/subscriptions"),
            (Method::DELETE, "/non-ue-n2-messages/subscriptions/1"),
            (Method::POST, "/non-ue-n2-messages/transfer"),
        ],
    ),
    (
        "AMF",
        "namf-evts",
        &[
            (Method::POST, "/subscriptions"),
            (Method::PATCH, "/subscriptions/1"),
            (Method::DELETE, "/subscriptions/1"),
        ],
    ),
    (
        "AMF",
        "namf-mt",
        &[(Method::PUT, "/ue-contexts/imsi-001010000000001/ue-reachind")],
    ),
    (
        "AMF",
        "namf-loc",
        &[(Method::POST, "/imsi-001010000000001/provide-pos-info")],
    ),
    (
        "SMSF",
        "nsmsf-sms",
        &[
            (Method::PUT, "/ue-contexts/imsi-001010000000001"),
            (Method::DELETE, "/ue-contexts/imsi-001010000000001"),
        ],
    ),
    (
        "NSSF",
        "nnssf-nsselection",
        &[(Method::GET, "/network-slice-information?nf-type=AMF")],
    ),
    (
        "NSSF",
        "nnssf-nssaiavailability",
        &[
            (
                Method::PUT,
                "/nssai-availability/4947a69a-f61b-4bc1-b9da-47c9c5d14b64",
            ),
            (Method::POST, "/nssai-availability/subscriptions"),
        ],
    ),
    (
        "NSSAAF",
        "nnssaaf-nssaa",
        &[
            (Method::POST, "/slice-authentications"),
            (Method::PUT, "/slice-authentications/1"),
        ],
    ),
];

/// The profile of a producer of these services.
fn profile(producer: &Producer, nf_type: &str) -> Value {
    let offered = SERVICES.iter().filter(|(of, ..)| *of == nf_type);
    let services: Vec<Value> = offered
        .map(|(_, name, _)| {
            json!({
                "serviceInstanceId": name, "serviceName": name, "scheme": "http", "nfServiceStatus": "REGISTERED",
                "versions": [{"apiVersionInUri": "v1", "apiFullVersion": "1.0.0"}],
                "ipEndPoints": [{"ipv4Address": "127.0.0.1", "port": producer.address.port()}]
            })
        })
        .collect();
    producer.profile(&json!({
        "nfType": nf_type, "nfServices": services,
        "nfSetIdList": [format!("set1.{}set.5gc.mnc001.mcc001", nf_type.to_ascii_lowercase())]
    }))
}

async fn call(scp: &Scp, method: &Method, path: &str, headers: &[(&str, &str)]) -> u16 {
    let mut request = http::Request::builder().method(method.clone()).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = match *method {
        Method::GET | Method::DELETE => Body::empty(),
        _ => Body::from(format!(r#"{{"called":"{path}"}}"#).into_bytes()),
    };
    scp.send(request.body(body).unwrap()).await.status.as_u16()
}

#[test]
fn operations_of_every_service_reach_their_producer_as_they_were_sent() {
    local(async {
        let mut types: Vec<&str> = SERVICES.iter().map(|(nf_type, ..)| *nf_type).collect();
        types.dedup();
        let producers: Vec<(&str, Producer)> = (1..)
            .zip(types)
            .map(|(number, nf_type)| (nf_type, Producer::start(number)))
            .collect();
        let profiles = producers
            .iter()
            .map(|(nf_type, producer)| profile(producer, nf_type))
            .collect();
        let scp = start(|config| {
            config.producers = profiles;
            config.discovery.order = Order::ScpThenNrf;
        });
        for (nf_type, service, calls) in SERVICES {
            let (_, producer) = producers.iter().find(|(one, _)| one == nf_type).unwrap();
            let root = producer.root();
            let named = [("3gpp-sbi-target-apiroot", root.as_str())];
            let delegated = [
                ("3gpp-sbi-discovery-target-nf-type", *nf_type),
                ("3gpp-sbi-discovery-requester-nf-type", "NEF"),
                ("3gpp-sbi-discovery-service-names", *service),
            ];
            for (method, resource) in *calls {
                let path = format!("/{service}/v1{resource}");
                for headers in [&named[..], &delegated] {
                    let before = producer.count();
                    let status = call(&scp, method, &path, headers).await;
                    assert_eq!(status, 200, "{method} {path} {headers:?}");
                    assert_eq!(producer.count(), before + 1, "{method} {path}");
                    let seen = producer.seen();
                    let last = seen.last().unwrap();
                    assert_eq!((&last.method, last.path.as_str()), (method, path.as_str()));
                    let text = String::from_utf8_lossy(&last.body);
                    assert_eq!(text.contains(&path), !text.is_empty(), "{text}");
                    let empty = matches!(*method, Method::GET | Method::DELETE);
                    assert_eq!(text.is_empty(), empty, "{method} {path}");
                }
            }
        }
    });
}
