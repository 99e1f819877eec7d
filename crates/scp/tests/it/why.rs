//! `scp why` says where a request goes: the same steps decide.

use http::{Method, StatusCode};
use routing::policy::{Reroute, Route, ServicePolicy, StagePolicy};
use scp::Config;
use scp::config::{AccessRule, Order};
use serde_json::{Value, json};

use crate::support::{PATH, Producer, Scp, local, start};

const SET: &str = "set1.udmset.5gc.mnc001.mcc001";

async fn why(scp: &Scp, asked: &[(&str, &str)]) -> Value {
    let asked: Vec<_> = asked
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    scp.running.as_ref().unwrap().why(&asked).await
}

/// Who is tried, in this order.
fn attempts(explained: &Value) -> Vec<&str> {
    let all = explained["attempts"].as_array().unwrap();
    all.iter()
        .filter(|one| one["verdict"].as_str().unwrap().starts_with("would be sent"))
        .filter_map(|one| one["nfInstanceId"].as_str())
        .collect()
}

/// The headers of the request that these parameters ask about.
fn headers(asked: &[(&str, &str)]) -> Vec<(String, String)> {
    let header = |(name, value): &(&str, &str)| match *name {
        "path" | "method" => None,
        "apiroot" => Some(("3gpp-sbi-target-apiroot".to_owned(), (*value).to_owned())),
        "nfset" => Some((
            "3gpp-sbi-routing-binding".to_owned(),
            format!("bl=nf-set; nfset={value}"),
        )),
        "nfinst" => Some((
            "3gpp-sbi-routing-binding".to_owned(),
            format!("bl=nf-instance; nfinst={value}"),
        )),
        name if name.starts_with("3gpp-") || name == "user-agent" => {
            Some((name.to_owned(), (*value).to_owned()))
        }
        name => Some((format!("3gpp-sbi-discovery-{name}"), (*value).to_owned())),
    };
    asked.iter().filter_map(header).collect()
}

/// Asks why, and sends: both must come to the same producer, or to the same refusal.
async fn agrees(scp: &Scp, asked: &[(&str, &str)], expected: &str) {
    let asked = [&[("path", PATH)], asked].concat();
    let explained = why(scp, &asked).await;
    let headers = headers(&asked);
    let headers: Vec<_> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let got = scp.ask(Method::GET, PATH, &headers).await;
    let decision = explained["decision"].as_str().unwrap();
    if got.status == StatusCode::OK {
        assert_eq!(got.by(), expected, "{asked:?}");
        assert_eq!(
            attempts(&explained).first(),
            Some(&got.by()),
            "{asked:?}: {explained:#}"
        );
        assert!(decision.contains(got.by()), "{decision}");
        assert_eq!(explained["decidedBy"], "relay");
    } else {
        assert_eq!(got.cause(), expected, "{asked:?}");
        assert_eq!(attempts(&explained), Vec::<&str>::new(), "{explained:#}");
        let refusal = format!("{} {}", got.status.as_u16(), got.cause());
        assert!(decision.contains(&refusal), "{asked:?}: {refusal}: {explained:#}");
    }
}

fn discovered(config: &mut Config, nrf: &Producer) {
    config.nrf.roots = vec![nrf.root()];
    config.nrf.register = false;
    config.nrf.nf_types.clear();
    config.discovery.order = Order::ScpThenNrf;
    config.forward_to_unknown = false;
}

#[test]
fn the_explained_way_is_the_way_of_the_request() {
    local(async {
        let (first, second, other) = (Producer::start(1), Producer::start(2), Producer::start(3));
        let (nrf, stranger) = (Producer::start(99), Producer::start(4));
        nrf.answers(|_| {
            sbi::json::response(StatusCode::OK, &json!({"validityPeriod": 60, "nfInstances": []}))
        });
        let scp = start(|config| {
            discovered(config, &nrf);
            config.producers = vec![
                first.profile(&json!({"priority": 1})),
                second.profile(&json!({"priority": 2})),
                other.profile(&json!({"priority": 9, "nfSetIdList": ["set2.udmset.5gc.mnc001.mcc001"]})),
            ];
            config.security.access = vec![AccessRule {
                consumers: vec!["SMF-denied".into()],
                producers: vec![first.id.clone()],
                deny: true,
                ..AccessRule::default()
            }];
        });
        let (to_first, to_second) = (first.root(), second.root());
        let wish = [("target-nf-type", "UDM"), ("requester-nf-type", "AMF")];
        let agent = |name| ("user-agent", name);
        let amf = agent("AMF-test");
        agrees(&scp, &[amf, ("apiroot", &to_first)], &first.id).await;
        agrees(&scp, &[amf, ("apiroot", &to_second)], &second.id).await;
        agrees(
            &scp,
            &[amf, ("apiroot", &stranger.root())],
            "TARGET_NF_NOT_REACHABLE",
        )
        .await;
        agrees(&scp, &[amf, ("nfset", SET)], &first.id).await;
        agrees(
            &scp,
            &[amf, ("nfset", "set9.udmset.5gc.mnc001.mcc001")],
            "NF_DISCOVERY_FAILURE",
        )
        .await;
        agrees(&scp, &[amf, ("nfinst", &second.id)], &second.id).await;
        agrees(&scp, &[amf, wish[0], wish[1]], &first.id).await;
        let third = ("target-nf-set-id", "set2.udmset.5gc.mnc001.mcc001");
        agrees(&scp, &[amf, wish[0], wish[1], third], &other.id).await;
        let unmatched = [amf, ("target-nf-type", "AUSF"), wish[1]];
        agrees(&scp, &unmatched, "NF_DISCOVERY_FAILURE").await;
        agrees(&scp, &[amf], "MANDATORY_IE_MISSING").await;
        // A rule of access.
        agrees(&scp, &[agent("SMF-denied"), ("apiroot", &to_first)], &second.id).await;
        agrees(
            &scp,
            &[
                amf,
                ("3gpp-sbi-max-forward-hops", "0; nodetype=scp"),
                ("apiroot", &to_first),
            ],
            "MAX_SCP_HOPS_REACHED",
        )
        .await;
        assert_eq!(stranger.count(), 0);
    });
}

#[test]
fn ejections_circuits_and_policies_are_part_of_it() {
    local(async {
        let (failing, well) = (Producer::start(1), Producer::start(2));
        failing.fails_with(503);
        let scp = start(|config| {
            config.producers = vec![
                failing.profile(&json!({"priority": 1})),
                well.profile(&json!({"priority": 2})),
            ];
            config.protection.outliers.consecutive_failures = 3;
            config.protection.outliers.base_ejection = settings::Period::from_secs(60);
            config.policies = vec![ServicePolicy {
                initial: StagePolicy {
                    route: Route::LoadBalance,
                    reroute: Reroute::Anywhere,
                },
                ..ServicePolicy::default()
            }];
        });
        let root = failing.root();
        let asked = [("path", PATH), ("apiroot", root.as_str())];
        let explained = why(&scp, &asked).await;
        assert_eq!(
            attempts(&explained),
            [failing.id.as_str(), well.id.as_str()],
            "{explained:#}"
        );
        for _ in 0..3 {
            assert_eq!(scp.get(&failing).await.by(), well.id);
        }
        agrees(&scp, &[("apiroot", &root)], &well.id).await;
        let explained = why(&scp, &asked).await;
        let candidates = explained["candidates"].as_array().unwrap();
        let standing = candidates
            .iter()
            .find(|one| one["nfInstanceId"] == failing.id)
            .unwrap();
        assert!(
            standing["standing"].as_str().unwrap().contains("ejected"),
            "{explained:#}"
        );
    });
}

#[test]
fn answers_are_sentences_and_questions_are_checked() {
    local(async {
        let producer = Producer::start(1);
        let scp = start(|config| {
            config.producers = vec![producer.profile(&json!({}))];
            config.forward_to_unknown = false;
        });
        // The example of its own help.
        let explained = why(
            &scp,
            &[
                ("method", "POST"),
                ("path", "/nudm-sdm/v2/imsi-1"),
                ("apiroot", "http://udm:80"),
            ],
        )
        .await;
        let text = explained.to_string();
        assert!(!text.contains("StagePolicy"), "{text}");
        assert_eq!(explained["decidedBy"], "planner");
        let decision = explained["decision"].as_str().unwrap();
        assert!(
            decision.contains("no registered producer is at http://udm:80"),
            "{decision}"
        );
        for wrong in [
            &[("method", "GET")][..],
            &[("path", "nudm-sdm")],
            &[("path", "/x"), ("method", "G T")],
            &[("path", "/x"), ("user-agent", "\n")],
        ] {
            assert!(why(&scp, wrong).await["error"].is_string(), "{wrong:?}");
        }
        assert_eq!(producer.count(), 0, "nothing is sent");
    });
}

/// Numbers that are the same in each run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: usize) -> usize {
        // xorshift64* (Marsaglia).
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % most
    }

    fn one<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }

    /// A request with its headers: any target, consumer and limit.
    fn request(&mut self, roots: &[String], ids: &[String]) -> (Method, String, Vec<(String, String)>) {
        let method = self.one(&["GET", "PUT", "POST", "DELETE"]).parse().unwrap();
        let path = self.one(&[
            PATH,
            "/nudm-sdm/v2/x%2Fy?a=b&c",
            "/nudm-sdm//v2/./x",
            "/nudm-uecm/v1/x",
            "/nausf-auth/v1/x",
        ]);
        let mut headers = vec![(
            "user-agent",
            self.one(&["AMF-test", "SMF-denied", "SMF-1"]).to_owned(),
        )];
        match self.below(6) {
            0 => headers.push(("3gpp-sbi-target-apiroot", roots[self.below(roots.len())].clone())),
            1 => headers.push((
                "3gpp-sbi-routing-binding",
                format!("bl=nf-set; nfset=set{}.udmset.5gc.mnc001.mcc001", self.below(4)),
            )),
            2 => headers.push((
                "3gpp-sbi-routing-binding",
                format!("bl=nf-instance; nfinst={}", ids[self.below(ids.len())]),
            )),
            3 => {}
            _ => {
                let kind = self.one(&["UDM", "AUSF", "PCF"]);
                headers.push(("3gpp-sbi-discovery-target-nf-type", kind.to_owned()));
                if self.below(8) > 0 {
                    headers.push(("3gpp-sbi-discovery-requester-nf-type", "AMF".to_owned()));
                }
                if self.below(2) == 0 {
                    let set = format!("set{}.udmset.5gc.mnc001.mcc001", self.below(4));
                    headers.push(("3gpp-sbi-discovery-target-nf-set-id", set));
                }
            }
        }
        if self.below(10) == 0 {
            let hops = self.one(&["0; nodetype=scp", "5; nodetype=scp", "x"]);
            headers.push(("3gpp-sbi-max-forward-hops", hops.to_owned()));
        }
        let own = |(name, value): (&str, String)| (name.to_owned(), value);
        (method, path.to_owned(), headers.into_iter().map(own).collect())
    }
}

/// What the page and the command ask of a request; they send it as its headers are.
fn asked_of(method: &Method, path: &str, headers: &[(String, String)]) -> Vec<(String, String)> {
    let mut asked = vec![
        ("method".to_owned(), method.to_string()),
        ("path".to_owned(), path.to_owned()),
    ];
    asked.extend(
        headers
            .iter()
            .map(|(name, value)| ("header".to_owned(), format!("{name}: {value}"))),
    );
    asked
}

#[test]
fn a_thousand_requests_go_where_why_says() {
    local(async {
        let producers: Vec<Producer> = (1..=6).map(Producer::start).collect();
        let (nrf, stranger) = (Producer::start(99), Producer::start(50));
        nrf.answers(|_| {
            sbi::json::response(StatusCode::OK, &json!({"validityPeriod": 60, "nfInstances": []}))
        });
        let scp = start(|config| {
            discovered(config, &nrf);
            // Different priorities: nothing is drawn.
            let profiles = producers.iter().zip(1..).map(|(producer, number)| {
                let set = format!("set{}.udmset.5gc.mnc001.mcc001", 1 + number % 3);
                producer.profile(&json!({"priority": number, "nfSetIdList": [set]}))
            });
            config.producers = profiles.collect();
            config.security.access = vec![AccessRule {
                consumers: vec!["SMF-denied".into()],
                producers: vec![producers[0].id.clone(), producers[1].id.clone()],
                deny: true,
                ..AccessRule::default()
            }];
        });
        let roots: Vec<String> = producers
            .iter()
            .chain([&stranger])
            .map(|one| one.root())
            .collect();
        let ids: Vec<String> = producers
            .iter()
            .chain([&stranger])
            .map(|one| one.id.clone())
            .collect();
        let (mut draw, mut served, mut refused) = (Draw(35), 0, 0);
        for number in 0..1_000 {
            let (method, path, headers) = draw.request(&roots, &ids);
            let asked = asked_of(&method, &path, &headers);
            let explained = scp.running.as_ref().unwrap().why(&asked).await;
            let sent: Vec<_> = headers
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect();
            let got = scp.ask(method, &path, &sent).await;
            let decision = explained["decision"]
                .as_str()
                .unwrap_or_else(|| panic!("{number} {asked:?}: {explained:#}"));
            let candidates = explained["candidates"].as_array().unwrap();
            let chosen: Vec<&str> = candidates
                .iter()
                .filter(|one| one["outcome"] == "chosen")
                .filter_map(|one| one["nfInstanceId"].as_str())
                .collect();
            if got.status == StatusCode::OK {
                served += 1;
                assert_eq!(
                    attempts(&explained).first(),
                    Some(&got.by()),
                    "{number} {asked:?}: {explained:#}"
                );
                assert!(decision.contains(got.by()), "{number} {asked:?}: {decision}");
                assert_eq!(chosen, [got.by()], "{number} {asked:?}: {explained:#}");
            } else {
                refused += 1;
                let refusal = format!("{} ", got.status.as_u16());
                assert!(
                    decision.contains(&refusal),
                    "{number} {asked:?}: {refusal}: {explained:#}"
                );
                assert_eq!(chosen, [""; 0], "{number} {asked:?}: {explained:#}");
            }
            let has_reason = |one: &Value| {
                one["outcome"]
                    .as_str()
                    .is_some_and(|words| !words.is_empty() && words != "may serve")
            };
            assert!(
                candidates.iter().all(has_reason) || got.status != StatusCode::OK,
                "{explained:#}"
            );
        }
        assert!(
            served > 200 && refused > 200,
            "{served} served, {refused} refused"
        );
        assert_eq!(stranger.count(), 0);
    });
}

#[test]
fn headers_and_bodies_of_a_question_are_those_of_the_request() {
    local(async {
        let producer = Producer::start(1);
        let scp = start(|config| config.producers = vec![producer.profile(&json!({}))]);
        let root = producer.root();
        let header = format!("3gpp-Sbi-Target-apiRoot: {root}");
        let asked = [
            ("method", "POST"),
            ("path", PATH),
            ("authority", "scp1.test"),
            ("header", &header),
            ("body", "{}"),
        ];
        let explained = why(&scp, &asked).await;
        assert_eq!(attempts(&explained), [producer.id.as_str()], "{explained:#}");
        for wrong in ["no colon", "a b: c", ": x", "x: a\0b"] {
            let explained = why(&scp, &[("path", PATH), ("header", wrong)]).await;
            assert!(explained["error"].is_string(), "{wrong}: {explained:#}");
        }
        assert_eq!(producer.count(), 0, "nothing is sent");
    });
}
