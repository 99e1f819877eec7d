//! Profiles from a real NRF.

use std::time::Duration;

use http::{Method, StatusCode};
use sbi::Body;
use sbi::client::Origin;
use scp::config::{AuditMode, NrfSet};
use serde_json::{Value, json};
use testpeer::sbi::{request, send};

use crate::stub_nrf::{StubNrf, notification};
use crate::support::{OWN, PATH, Producer, Scp, client, local, start, until};

/// A real NRF.
struct Nrf {
    running: Option<nrf::Running>,
    origin: Origin,
    _directory: tempfile::TempDir,
}

impl Nrf {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut config = nrf::Config {
            listen: settings::Listen(vec!["127.0.0.1:0".parse().unwrap()]),
            workers: 1,
            ..nrf::Config::default()
        };
        config.store.embedded.directory = directory.path().to_owned();
        let running = nrf::start(config).unwrap();
        let origin = format!("http://{}", running.addresses()[0]).parse().unwrap();
        Self {
            running: Some(running),
            origin,
            _directory: directory,
        }
    }

    async fn send(&self, method: Method, id: &str, content_type: &str, body: Value) -> StatusCode {
        let path = format!("/nnrf-nfm/v1/nf-instances/{id}");
        let request = request(method, &path, content_type, body.to_string());
        let got = send(&client("OAM"), &self.origin, request).await;
        got.unwrap().status
    }

    async fn register(&self, producer: &Producer, more: &Value) {
        let status = self
            .send(
                Method::PUT,
                &producer.id,
                "application/json",
                producer.profile(more),
            )
            .await;
        assert!(status.is_success(), "{status}");
    }

    async fn patch(&self, producer: &Producer, path: &str, value: Value) {
        let patch = json!([{"op": "add", "path": path, "value": value}]);
        let status = self
            .send(Method::PATCH, &producer.id, "application/json-patch+json", patch)
            .await;
        assert!(status.is_success(), "{status}");
    }

    fn stop(&mut self) {
        self.running.take().unwrap().stop().unwrap();
    }
}

fn learning(nrf: &Nrf, mode: AuditMode) -> Scp {
    let root = nrf.origin.to_string();
    start(|config| {
        config.nrf.roots = vec![root];
        config.nrf.nf_types = vec!["UDM".into(), "SCP".into()];
        config.nrf.audit_mode = mode;
        config.nrf.audit_interval = settings::Period::from_secs(300);
        config.nrf.heart_beat = settings::Period::from_secs(1);
        config.forward_to_unknown = false;
        config.nrf.departure_grace = settings::Period::from_secs(0);
    })
}

async fn knows(scp: &Scp, producer: &Producer) -> bool {
    scp.get(producer).await.status == StatusCode::OK
}

#[test]
fn what_changes_at_the_nrf_takes_effect_here() {
    for mode in [AuditMode::Management, AuditMode::Discovery] {
        local(async {
            let nrf = Nrf::start();
            let (first, second) = (Producer::start(1), Producer::start(2));
            nrf.register(&first, &json!({})).await;
            let scp = learning(&nrf, mode);
            until("the audit finds the first", async || knows(&scp, &first).await).await;
            assert!(!knows(&scp, &second).await);
            nrf.register(&second, &json!({})).await;
            until("a notification of the second", async || {
                knows(&scp, &second).await
            })
            .await;

            // Suspended: the other one of the set is preferred for what is bound to the set.
            let binding = "bl=nf-set; nfset=set1.udmset.5gc.mnc001.mcc001";
            let bound = async || {
                let got = scp
                    .ask(Method::PUT, PATH, &[("3gpp-sbi-routing-binding", binding)])
                    .await;
                got.by().to_owned()
            };
            nrf.patch(&first, "/nfStatus", json!("SUSPENDED")).await;
            until("the first is not used", async || {
                for _ in 0..20 {
                    if bound().await != second.id {
                        return false;
                    }
                }
                true
            })
            .await;
            nrf.patch(&first, "/nfStatus", json!("REGISTERED")).await;
            nrf.patch(&second, "/nfServices/0/priority", json!(9)).await;
            nrf.patch(&first, "/nfServices/0/priority", json!(1)).await;
            until("the first is preferred", async || {
                for _ in 0..20 {
                    if bound().await != first.id {
                        return false;
                    }
                }
                true
            })
            .await;

            // It moves: the new address is known, the old one is not.
            let moved = Producer::start(1);
            nrf.register(&moved, &json!({})).await;
            until("the first has moved", async || knows(&scp, &moved).await).await;
            assert!(!knows(&scp, &first).await);
            nrf.send(Method::DELETE, &second.id, "application/json", json!({}))
                .await;
            until("the second is gone", async || !knows(&scp, &second).await).await;
        });
    }
}

#[test]
fn the_scp_registers_itself_and_goes_on_without_the_nrf() {
    local(async {
        let mut nrf = Nrf::start();
        let producer = Producer::start(1);
        nrf.register(&producer, &json!({})).await;
        let scp = learning(&nrf, AuditMode::Management);
        until("it is learned", async || knows(&scp, &producer).await).await;
        let client = client("OAM");
        until("the SCP is registered", async || {
            let path = "/nnrf-nfm/v1/nf-instances?nf-type=SCP";
            let request = request(Method::GET, path, "", Body::empty());
            let list = send(&client, &nrf.origin, request).await.unwrap();
            list.json["totalItemCount"] == 1
        })
        .await;
        nrf.stop();
        tokio::time::sleep(Duration::from_millis(100)).await;
        for _ in 0..50 {
            assert!(knows(&scp, &producer).await, "traffic goes on from what is known");
        }
    });
}

#[test]
fn a_storm_of_notifications_disturbs_no_request() {
    local(async {
        let (nrf, producer) = (StubNrf::start(), Producer::start(1));
        nrf.knows(producer.profile(&json!({})));
        let scp = nrf.learner(|_| {});
        until("it is learned", async || knows(&scp, &producer).await).await;
        let callback = nrf.callback().await;
        let storm = async {
            for round in 0..500_u32 {
                let profile = producer.profile(&json!({"load": round % 100}));
                nrf.knows(profile.clone());
                let change = notification("NF_PROFILE_CHANGED", &producer.id, Some(&profile));
                assert_eq!(
                    scp.notify(&callback, &change).await.status,
                    StatusCode::NO_CONTENT
                );
            }
        };
        let traffic = async {
            for _ in 0..500 {
                assert_eq!(scp.get(&producer).await.status, StatusCode::OK);
            }
        };
        tokio::join!(storm, traffic);
        let running = scp.running.as_ref().unwrap();
        until("the last load is known", async || {
            let network = running.network();
            network.producers().next().is_some_and(|one| one.load == 99)
        })
        .await;
        assert!(
            nrf.looked_up(&producer.id) < 500,
            "notifications of one NF are put together"
        );
    });
}

#[test]
fn notifications_that_are_none_are_refused() {
    local(async {
        let nrf = StubNrf::start();
        let scp = nrf.learner(|_| {});
        let callback = nrf.callback().await;
        let request = http::Request::post(callback.as_str())
            .body(Body::from("{"))
            .unwrap();
        let refused = scp.send(request).await;
        assert_eq!(
            (refused.status, refused.cause()),
            (StatusCode::BAD_REQUEST, "INVALID_MSG_FORMAT")
        );
        assert_eq!(refused.header("server"), "SCP-scp1.test");
        let asked = scp.ask(Method::GET, &callback, &[]).await;
        assert_eq!(asked.status, StatusCode::METHOD_NOT_ALLOWED);
    });
}

#[test]
fn several_sets_of_nrfs_are_learned_from_and_do_not_undo_each_other() {
    local(async {
        let (own, partner) = (Nrf::start(), Nrf::start());
        let (first, second) = (Producer::start(1), Producer::start(2));
        own.register(&first, &json!({})).await;
        partner.register(&second, &json!({})).await;
        let (root, further) = (own.origin.to_string(), partner.origin.to_string());
        let scp = start(|config| {
            config.nrf.roots = vec![root];
            config.nrf.sets = vec![NrfSet {
                // The first of them never answers: the other of the set does.
                roots: vec!["http://127.0.0.1:1".into(), further],
                plmns: vec!["262-01".into()],
                ..NrfSet::default()
            }];
            config.nrf.nf_types = vec!["UDM".into()];
            config.nrf.audit_interval = settings::Period::from_millis(200);
            config.forward_to_unknown = false;
            config.nrf.departure_grace = settings::Period::from_secs(0);
        });
        until("both are learned", async || {
            knows(&scp, &first).await && knows(&scp, &second).await
        })
        .await;
        // Several audits later each set still has only its own profiles, and the SCP keeps those of the others.
        for _ in 0..20 {
            tokio::time::sleep(Duration::from_millis(50)).await;
            assert!(knows(&scp, &first).await && knows(&scp, &second).await);
        }
        partner
            .send(Method::DELETE, &second.id, "application/json", json!({}))
            .await;
        until("the second is gone", async || !knows(&scp, &second).await).await;
        assert!(knows(&scp, &first).await);
    });
}

#[test]
fn nrfs_and_static_producers_change_while_running_and_no_request_is_lost() {
    local(async {
        let (before, after) = (Nrf::start(), Nrf::start());
        let producers: Vec<Producer> = (1..=4).map(Producer::start).collect();
        let [stays, old, fixed, new] = &producers[..] else {
            unreachable!()
        };
        for nrf in [&before, &after] {
            nrf.register(stays, &json!({})).await;
        }
        before.register(old, &json!({})).await;
        let configured = |nrf: &Nrf, fixed: &Producer| {
            let mut config = crate::support::config();
            config.nrf.roots = vec![nrf.origin.to_string()];
            config.nrf.nf_types = vec!["UDM".into()];
            config.producers = vec![fixed.profile(&json!({}))];
            config.forward_to_unknown = false;
            config.nrf.departure_grace = settings::Period::from_secs(0);
            config
        };
        let wanted = configured(&before, fixed);
        let scp = start(|config| *config = wanted);
        until("all are known", async || {
            knows(&scp, stays).await && knows(&scp, old).await && knows(&scp, fixed).await
        })
        .await;
        let running = scp.running.as_ref().unwrap();
        running.reload(&configured(&after, new)).unwrap();
        // The one that both NRFs know is served all the time.
        until(
            "the other NRF is asked and the other producer known",
            async || {
                assert!(knows(&scp, stays).await);
                knows(&scp, new).await && !knows(&scp, old).await && !knows(&scp, fixed).await
            },
        )
        .await;
        // The SCP ignores the old NRF and learns from the new one.
        let late = Producer::start(5);
        before.register(old, &json!({"priority": 3})).await;
        after.register(&late, &json!({})).await;
        until("the new NRF notifies", async || knows(&scp, &late).await).await;
        assert!(!knows(&scp, old).await);
    });
}

/// The own profile at the NRF follows `places.locality`.
#[test]
fn a_reload_registers_the_changed_profile() {
    local(async {
        let nrf = Nrf::start();
        let configured = |locality: &str| {
            let mut config = crate::support::config();
            config.nrf.roots = vec![nrf.origin.to_string()];
            config.nrf.nf_types = vec!["UDM".into()];
            config.nrf.register = true;
            config.places.locality = locality.into();
            config
        };
        let wanted = configured("east");
        let scp = start(|config| *config = wanted);
        let locality = async || {
            let path = format!("/nnrf-nfm/v1/nf-instances/{OWN}");
            let got = send(
                &client("OAM"),
                &nrf.origin,
                request(Method::GET, &path, "", String::new()),
            )
            .await;
            got.unwrap().json["locality"].clone()
        };
        until("the SCP is registered", async || locality().await == "east").await;
        scp.running.as_ref().unwrap().reload(&configured("west")).unwrap();
        until("the NRF has the new locality", async || {
            locality().await == "west"
        })
        .await;
    });
}
