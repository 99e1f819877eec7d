//! Messages of policy projects to servers of the operator.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use pcf::Event;
use pcf::config::{Config, NotifierMethod, NotifierServer};
use serde_json::{Value, json};
use testpeer::page;
use tls::authority::Authority;

use crate::operator::Operator;
use crate::support::{
    Pcf, SM_POLICIES, client, config, context, judged, local, path_of, request, start, until, with,
};

/// Writes a project for sessions with these blocks.
fn write(folder: &Path, blocks: &str) {
    let text = format!("name: test\nservice: sm\nblocks:\n{blocks}\n");
    std::fs::write(folder.join("project.yaml"), text).unwrap();
}

/// A server that is asked again soon.
fn server(url: String) -> NotifierServer {
    NotifierServer {
        url,
        retry_pause: settings::Period::from_millis(2),
        timeout: settings::Period::from_secs(60),
        ..NotifierServer::default()
    }
}

/// A PCF with a project of these blocks and these servers.
struct Bed {
    pcf: Pcf,
    config: Config,
    folder: tempfile::TempDir,
}

fn bed(blocks: &str, servers: &[(&str, NotifierServer)], change: impl FnOnce(&mut Config)) -> Bed {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), blocks);
    let mut used = Config::default();
    let pcf = start(|config| {
        config.policy.sm = Some(folder.path().to_owned());
        let servers = servers.iter();
        config.notifier.servers = servers
            .map(|(name, server)| ((*name).to_owned(), server.clone()))
            .collect();
        change(config);
        used = config.clone();
    });
    Bed {
        pcf,
        config: used,
        folder,
    }
}

impl Bed {
    fn count(&self, event: Event) -> u64 {
        self.pcf.running().count(event)
    }

    async fn until(&self, event: Event, count: u64) {
        until(|| self.count(event) >= count).await;
        assert_eq!(self.count(event), count, "{event:?}");
    }

    async fn reload(&self, config: &Config) {
        self.pcf.running().reload(config).unwrap();
        // A worker sees the change with its next request.
        self.pcf.get(&format!("{SM_POLICIES}/7")).await;
    }
}

fn body(seen: &Value) -> Value {
    serde_json::from_str(seen["body"].as_str().unwrap()).unwrap()
}

#[test]
fn a_message_has_the_values_of_its_decision_and_is_sent_once() {
    local(async {
        let Some(operator) = Operator::start(None) else {
            return;
        };
        let blocks = "
  - sessionRule: {sessRuleId: one}
  - if: {$all: [{$eq: [$request.ratType, EUTRA]}, {$not: $state.warned}]}
    then:
      - block: warn
        notify:
          server: crm
          path: /of/{$request.supi}?why=a%20b&rat={$request.ratType}
          body: {to: $request.gpsi, slice: $request.sliceInfo, text: welcome abroad}
      - notify: {server: get, path: '?to={$request.gpsi}&text={$concat: [a &, \" b\"]}'}
      - notify: {server: log, text: \"{$request.dnn} <{$event}>\"}
      - remember: {warned: true}";
        let secret = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(secret.path(), "Bearer abc\n").unwrap();
        let crm = NotifierServer {
            headers: [("X-Tenant".to_owned(), "7".to_owned())].into(),
            authorization: Some(settings::Secret::File(secret.path().to_owned())),
            ..server(operator.url("/ok/"))
        };
        let get = NotifierServer {
            method: NotifierMethod::Get,
            ..server(operator.url("/ok?user=me"))
        };
        let log = server(operator.url("/ok/log"));
        let bed = bed(blocks, &[("crm", crm), ("get", get), ("log", log)], |_| {});
        let path = bed.pcf.session(&json!({})).await;
        assert_eq!(operator.seen(), Vec::<Value>::new());
        for _ in 0..3 {
            let update = json!({"ratType": "EUTRA"});
            assert_eq!(
                bed.pcf.post(&format!("{path}/update"), &update).await.status,
                StatusCode::OK
            );
        }
        bed.until(Event::MessageSent, 3).await;
        let (_, lines) = page(
            bed.pcf.running().handle().routes(),
            "/pcf/explain/imsi-001010000000001",
        )
        .await;
        assert!(lines.contains("\"kind\":\"if\""), "{lines}");
        let seen: BTreeMap<String, Value> = operator
            .seen()
            .into_iter()
            .map(|seen| (seen["url"].to_string(), seen))
            .collect();
        assert_eq!(operator.have(3).await.len(), 3);
        let crm = &seen["\"/ok/of/imsi-001010000000001?why=a%20b&rat=EUTRA\""];
        assert_eq!((&crm["method"], &crm["version"]), (&json!("POST"), &json!("1.1")));
        assert_eq!(
            body(crm),
            json!({"to": "msisdn-15551234567", "slice": {"sst": 1, "sd": "00000a"}, "text": "welcome abroad"})
        );
        let headers = &crm["headers"];
        for (name, value) in [
            ("content-type", "application/json"),
            ("x-tenant", "7"),
            ("authorization", "Bearer abc"),
            ("user-agent", "PCF"),
            ("host", &format!("127.0.0.1:{}", operator.port)),
        ] {
            assert_eq!(headers[name], value, "{name}");
        }
        assert_eq!(
            headers["idempotency-key"].as_str().unwrap().len(),
            38,
            "{headers}"
        );
        let get = &seen["\"/ok?user=me&to=msisdn-15551234567&text=a%20%26%20b\""];
        assert_eq!((&get["method"], &get["body"]), (&json!("GET"), &json!("")));
        assert_eq!(get["headers"].get("content-type"), None);
        let log = &seen["\"/ok/log\""];
        assert_eq!(log["body"], "internet <update>");
        assert_eq!(log["headers"]["content-type"], "text/plain; charset=utf-8");
    });
}

#[test]
fn a_connection_serves_messages_one_after_the_other() {
    local(async {
        let Some(operator) = Operator::start(None) else {
            return;
        };
        let blocks = "  - notify: {server: crm, body: 1}";
        let one = NotifierServer {
            parallel: 1,
            ..server(operator.url("/ok"))
        };
        let bed = bed(blocks, &[("crm", one)], |_| {});
        for round in 1..=3 {
            bed.pcf.session(&json!({"pduSessionId": round})).await;
            bed.until(Event::MessageSent, round).await;
        }
        let seen = operator.have(3).await;
        assert!(seen.iter().all(|seen| seen["connection"] == 1), "{seen:?}");
    });
}

#[test]
fn a_soap_envelope_has_escaped_values_and_its_action() {
    local(async {
        let Some(operator) = Operator::start(None) else {
            return;
        };
        let blocks = "
  - notify:
      server: soap11
      action: urn:example:SendSms
      xml: |
        <soap:Envelope xmlns:soap=\"http://schemas.xmlsoap.org/soap/envelope/\"><soap:Body>
          <SendSms to='{$request.gpsi}'><text>{$request.vendorText}</text></SendSms>
        </soap:Body></soap:Envelope>
  - notify: {server: soap12, xml: '<a>{$request.vendorText}</a>'}";
        let soap11 = server(operator.url("/ok/11"));
        let soap12 = NotifierServer {
            content_type: "application/soap+xml; charset=utf-8".to_owned(),
            soap_action: Some("urn:example:Log".to_owned()),
            ..server(operator.url("/ok/12"))
        };
        let bed = bed(blocks, &[("soap11", soap11), ("soap12", soap12)], |_| {});
        let text = "</text></SendSms><Evil a='1' b=\"2\"/>&amp;";
        bed.pcf.session(&json!({"vendorText": text})).await;
        let mut seen = operator.have(2).await;
        seen.sort_by_key(|seen| seen["url"].to_string());
        let escaped = "&lt;/text&gt;&lt;/SendSms&gt;&lt;Evil a=&apos;1&apos; b=&quot;2&quot;/&gt;&amp;amp;";
        assert_eq!(
            seen[0]["body"],
            format!(
                "<soap:Envelope xmlns:soap=\"http://schemas.xmlsoap.org/soap/envelope/\"><soap:Body>\n  \
                 <SendSms to='msisdn-15551234567'><text>{escaped}</text></SendSms>\n</soap:Body></soap:Envelope>\n"
            )
        );
        let headers = &seen[0]["headers"];
        assert_eq!(headers["content-type"], "text/xml; charset=utf-8");
        assert_eq!(headers["soapaction"], "\"urn:example:SendSms\"");
        assert_eq!(seen[1]["body"], format!("<a>{escaped}</a>"));
        let headers = &seen[1]["headers"];
        assert_eq!(
            headers["content-type"],
            "application/soap+xml; charset=utf-8; action=\"urn:example:Log\""
        );
        assert_eq!(headers.get("soapaction"), None);
    });
}

#[test]
fn attempts_are_bounded_and_counted() {
    local(async {
        let Some(operator) = Operator::start(None) else {
            return;
        };
        let gone = free_ports::port().unwrap();
        for (url, requests, counts) in [
            (operator.url("/later"), 3, [1, 2, 0, 0]),
            (operator.url("/fail"), 3, [0, 2, 0, 1]),
            (operator.url("/break"), 3, [0, 2, 0, 1]),
            (operator.url("/refuse"), 1, [0, 0, 1, 0]),
            (operator.url("/elsewhere"), 1, [0, 0, 1, 0]),
            // What it answers is ignored, and its connection ends with it.
            (operator.url("/long"), 1, [1, 0, 0, 0]),
            (format!("http://127.0.0.1:{gone}/"), 0, [0, 2, 0, 1]),
        ] {
            let before = operator.seen().len();
            let bed = bed(
                "  - notify: {server: crm, body: 1}",
                &[("crm", server(url.clone()))],
                |_| {},
            );
            bed.pcf.session(&json!({})).await;
            let [sent, retried, refused, failed] = counts;
            let ended = [Event::MessageSent, Event::MessageRefused, Event::MessageFailed];
            until(|| ended.iter().any(|event| bed.count(*event) > 0)).await;
            let counted = [
                Event::MessageSent,
                Event::MessageRetried,
                Event::MessageRefused,
                Event::MessageFailed,
            ]
            .map(|event| bed.count(event));
            assert_eq!(counted, [sent, retried, refused, failed], "{url}");
            let seen = operator.have(before + requests).await;
            assert_eq!(seen.len(), before + requests, "{url}");
            // A server can discard what it has had.
            let keys = seen[before..]
                .iter()
                .map(|seen| &seen["headers"]["idempotency-key"]);
            assert!(keys.clone().all(|key| Some(key) == keys.clone().next()), "{url}");
        }
    });
}

#[test]
fn a_server_that_hangs_delays_no_answer_and_no_other_server() {
    local(async {
        let Some(operator) = Operator::start(None) else {
            return;
        };
        let hang = NotifierServer {
            parallel: 1,
            queue: 2,
            queue_bytes: settings::ByteSize(1_000),
            timeout: settings::Period::from_secs(3_600),
            ..server(operator.url("/hang"))
        };
        let blocks = "
  - notify: {server: hang, body: $request.vendorText}
  - notify: {server: crm, body: $request.pduSessionId}";
        let bed = bed(
            blocks,
            &[("hang", hang), ("crm", server(operator.url("/ok")))],
            |_| {},
        );
        let session = async |number: u64, text: &str| {
            let more = json!({"pduSessionId": number, "vendorText": text});
            bed.pcf.session(&more).await;
            bed.until(Event::MessageSent, number).await;
        };
        // In flight, too large to be pending, pending, pending, and one too many.
        let long = "x".repeat(1_000);
        for (number, text, dropped) in [(1, "a", 0), (2, &long, 1), (3, "b", 1), (4, "c", 1), (5, "d", 2)] {
            session(number, text).await;
            assert_eq!(bed.count(Event::MessageDropped), dropped, "{number}");
        }
        let seen = operator.have(6).await;
        let to = |path: &str| seen.iter().filter(|seen| seen["url"] == path).count();
        assert_eq!((to("/hang"), to("/ok")), (1, 5));
        // One in flight does not keep the PCF from ending.
        drop(bed);
    });
}

#[test]
fn what_is_refused_or_fails_is_not_sent() {
    local(async {
        let Some(operator) = Operator::start(None) else {
            return;
        };
        let blocks = "
  - notify: {server: crm, body: $request.dnn}
  - if: {$eq: [$request.dnn, refuse]}
    then: [reject: {cause: USER_UNKNOWN}]
  - if: {$eq: [$request.dnn, fault]}
    then: [{while: true, do: [{set: {x: 1}}]}]";
        let bed = bed(blocks, &[("crm", server(operator.url("/ok")))], |_| {});
        let create = async |dnn: &str| {
            bed.pcf
                .post(SM_POLICIES, &context(&json!({"dnn": dnn})))
                .await
                .status
        };
        assert_eq!(create("refuse").await, StatusCode::BAD_REQUEST);
        // The built-in project decides.
        assert_eq!(create("fault").await, StatusCode::CREATED);
        assert_eq!(create("right").await, StatusCode::CREATED);
        bed.until(Event::MessageSent, 1).await;
        let seen = operator.have(1).await;
        assert_eq!((seen.len(), body(&seen[0])), (1, json!("right")));
    });
}

/// Updates with a tag each, of one session, by clients at the same time. The tags that were acknowledged.
async fn updates(bed: &Bed, path: &str, round: usize) -> Vec<String> {
    const LANES: usize = 8;
    let lanes: Vec<_> = (0..LANES)
        .map(|lane| {
            let (origin, path) = (bed.pcf.origin.clone(), format!("{path}/update"));
            tokio::task::spawn_local(async move {
                let (client, mut acknowledged) = (client(), Vec::new());
                for turn in 0..6 {
                    let tag = format!("{round}-{lane}-{turn}");
                    let update = json!({"vendorTag": tag}).to_string();
                    let update = request(Method::POST, &path, "application/json", update);
                    if judged(&client, &origin, update).await.status == StatusCode::OK {
                        acknowledged.push(tag);
                    }
                }
                acknowledged
            })
        })
        .collect();
    let mut acknowledged = Vec::new();
    for lane in lanes {
        acknowledged.extend(lane.await.unwrap());
    }
    acknowledged
}

#[test]
fn a_decision_that_is_made_again_after_a_conflict_is_sent_once() {
    local(async {
        let Some(operator) = Operator::start(None) else {
            return;
        };
        let blocks = "
  - if: {$eq: [$event, update]}
    then: [notify: {server: crm, body: $request.vendorTag}]";
        let bed = bed(blocks, &[("crm", server(operator.url("/ok")))], |config| {
            config.workers = 2;
        });
        let path = bed.pcf.session(&json!({})).await;
        let mut acknowledged = Vec::new();
        // Two workers meet when the machine lets them run at once.
        let deadline = Instant::now() + Duration::from_secs(120);
        let mut rounds = 0..;
        while bed.count(Event::Retried) == 0 {
            assert!(Instant::now() < deadline, "no conflict came about");
            acknowledged.extend(updates(&bed, &path, rounds.next().unwrap()).await);
        }
        bed.until(Event::MessageSent, acknowledged.len() as u64).await;
        let seen = operator.have(acknowledged.len()).await;
        let mut seen: Vec<String> = seen
            .iter()
            .map(|seen| body(seen).as_str().unwrap().to_owned())
            .collect();
        seen.sort();
        acknowledged.sort();
        assert_eq!(seen, acknowledged);
    });
}

#[test]
fn a_report_that_is_sent_again_notifies_once() {
    local(async {
        let Some(operator) = Operator::start(None) else {
            return;
        };
        let blocks = "
  - if: {$exists: $request.accuUsageReports}
    then: [{notify: {server: crm, body: $request.accuUsageReports}}]";
        let bed = bed(blocks, &[("crm", server(operator.url("/ok")))], |_| {});
        let path = bed.pcf.session(&json!({})).await;
        let update = json!({"repPolicyCtrlReqTriggers": ["US_RE"], "accuUsageReports": [{"refUmIds": "a", "volUsage": 1}]});
        for key in ["a1", "a1", "a2"] {
            let mut update = request(
                Method::POST,
                &format!("{path}/update"),
                "application/json",
                update.to_string(),
            );
            let info = format!("idempotency-key={key}").parse().unwrap();
            update.headers_mut().insert("3gpp-sbi-request-info", info);
            let got = judged(&bed.pcf.client, &bed.pcf.origin, update).await;
            assert_eq!(got.status, StatusCode::OK);
        }
        bed.until(Event::MessageSent, 2).await;
        assert_eq!(bed.count(Event::UsageRepeated), 1);
    });
}

#[test]
fn the_activity_of_a_traced_subscriber_has_the_message_and_its_status() {
    local(async {
        let Some(operator) = Operator::start(None) else {
            return;
        };
        let blocks = "  - block: hello\n    notify: {server: crm, body: {to: $request.gpsi}}";
        let directory = tempfile::tempdir().unwrap();
        let bed = bed(blocks, &[("crm", server(operator.url("/refuse")))], |config| {
            config.activity_log.files.directory = directory.path().to_owned();
            config.activity_log.subscribers = vec!["imsi-001010000000001".to_owned()];
        });
        bed.pcf.session(&json!({})).await;
        bed.until(Event::MessageRefused, 1).await;
        let routes = bed.pcf.running().handle().routes();
        let (_, text) = page(routes, "/pcf/activity/imsi-001010000000001").await;
        let entries: Vec<Value> = serde_json::from_str(&text).unwrap();
        let of_server: Vec<&Value> = entries
            .iter()
            .filter(|entry| entry["interface"] == "HTTP")
            .collect();
        let [out, came] = of_server[..] else {
            panic!("{text}")
        };
        assert_eq!((&out["what"], &out["peer"]), (&json!("out"), &json!("crm")));
        assert_eq!(out["body"], json!({"to": "msisdn-15551234567"}));
        assert_eq!((&came["what"], &came["status"]), (&json!("in"), &json!(400)));
        assert!(text.contains("notify.crm"), "{text}");
        // What is written comes before what is sent.
        let written = entries.iter().find(|entry| entry["what"] == "write").unwrap();
        assert!(written["time"].as_str() <= out["time"].as_str(), "{text}");
    });
}

#[test]
fn a_server_over_tls_has_to_have_a_certificate_of_the_authority() {
    local(async {
        let files = tempfile::tempdir().unwrap();
        let (authority, other) = (Authority::new("lab").unwrap(), Authority::new("other").unwrap());
        let [own, pcf] = ["localhost", "pcf.example"].map(|name| authority.issue(&[name]).unwrap());
        let own = authority.write(&own, files.path(), "server").unwrap();
        let Some(operator) = Operator::start(Some(&own)) else {
            return;
        };
        let trusted = authority.write(&pcf, files.path(), "pcf").unwrap();
        let mut distrusted = trusted.clone();
        let path = files.path().join("other.crt");
        std::fs::write(&path, other.pem()).unwrap();
        distrusted.authorities = Some(path);
        for (tls, event) in [(trusted, Event::MessageSent), (distrusted, Event::MessageFailed)] {
            let url = format!("https://localhost:{}/ok", operator.port);
            let bed = bed(
                "  - notify: {server: crm, body: 1}",
                &[("crm", server(url))],
                |config| config.notifier.tls = Some(tls),
            );
            bed.pcf.session(&json!({})).await;
            bed.until(event, 1).await;
        }
        let seen = operator.have(1).await;
        assert_eq!((seen.len(), &seen[0]["version"]), (1, &json!("1.1")));
        assert_ne!(seen[0]["client"], json!({}), "the certificate of the PCF");
    });
}

#[test]
fn an_unknown_server_is_a_mistake_of_the_project_and_the_notifier_can_be_switched_off() {
    local(async {
        let Some(operator) = Operator::start(None) else {
            return;
        };
        let crm = server(operator.url("/ok/one"));
        let bed = bed(
            "  - block: n\n    notify: {server: crm, body: 1}",
            &[("crm", crm)],
            |_| {},
        );
        let mut without = bed.config.clone();
        without.notifier.servers.clear();
        for reason in [
            bed.pcf.running().reload(&without).unwrap_err(),
            pcf::start(Config {
                store: config(bed.folder.path()).store,
                ..without
            })
            .err()
            .unwrap()
            .to_string(),
        ] {
            for part in [
                "policy.sm",
                "project.yaml:5",
                "blocks[0].notify.server",
                "no server is called `crm`",
                "which have none",
            ] {
                assert!(reason.contains(part), "{part} is missing:\n{reason}");
            }
        }
        bed.pcf.session(&json!({"pduSessionId": 1})).await;
        bed.until(Event::MessageSent, 1).await;

        let mut off = bed.config.clone();
        off.notifier.enabled = false;
        bed.reload(&off).await;
        bed.pcf.session(&json!({"pduSessionId": 2})).await;
        bed.until(Event::MessageSuppressed, 1).await;

        let mut moved = bed.config.clone();
        moved
            .notifier
            .servers
            .insert("crm".to_owned(), server(operator.url("/ok/two")));
        bed.reload(&moved).await;
        bed.pcf.session(&json!({"pduSessionId": 3})).await;
        bed.until(Event::MessageSent, 2).await;
        let urls: Vec<Value> = operator
            .have(2)
            .await
            .iter()
            .map(|seen| seen["url"].clone())
            .collect();
        assert_eq!(urls, [json!("/ok/one"), json!("/ok/two")]);
    });
}

#[test]
fn am_policies_notify_as_sessions_do() {
    local(async {
        let Some(operator) = Operator::start(None) else {
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let text = "name: am\nservice: am\nblocks:\n  - amPolicy: {rfsp: 7}\n  - notify: {server: crm, body: {was: $event, rat: $request.ratType}}\n";
        std::fs::write(folder.path().join("project.yaml"), text).unwrap();
        let pcf = start(|config| {
            config.policy.am = Some(folder.path().to_owned());
            config
                .notifier
                .servers
                .insert("crm".to_owned(), server(operator.url("/ok")));
        });
        let asked = json!({"supi": "imsi-001010000000001", "notificationUri": "http://127.0.0.1:9/amf", "suppFeat": "0"});
        let created = pcf
            .post(
                "/npcf-am-policy-control/v1/policies",
                &with(asked, &json!({"ratType": "NR"})),
            )
            .await;
        let path = path_of(&created);
        operator.have(1).await;
        pcf.post(&format!("{path}/update"), &json!({"ratTypes": ["EUTRA"]}))
            .await;
        let seen = operator.have(2).await;
        assert_eq!(body(&seen[0]), json!({"was": "create", "rat": "NR"}));
        assert_eq!(body(&seen[1])["was"], "update");
    });
}
