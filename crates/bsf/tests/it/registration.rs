//! The BSF registers at an NRF, reports its load and state, and deregisters.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use http::{Method, StatusCode};
use sbi::problem::Problem;
use serde_json::json;
use testpeer::dns::NameServer;
use testpeer::sbi::{Seen, Server};

use crate::support::{local, start};

/// Answers as an NRF that wants a heart-beat each second.
fn answer(seen: &Seen) -> sbi::Response {
    let mut profile = match seen.method {
        Method::PUT => seen.json(),
        _ => json!({}),
    };
    profile["heartBeatTimer"] = json!(1);
    sbi::json::response(StatusCode::OK, &profile)
}

/// Answers so until it is down.
fn failing(is_down: Rc<Cell<bool>>) -> impl Fn(&Seen) -> sbi::Response {
    move |seen| match is_down.get() {
        true => Problem::of_status(StatusCode::SERVICE_UNAVAILABLE).into_response(),
        false => answer(seen),
    }
}

/// An NRF that wants a heart-beat each second, and does not know the instance at the first one.
fn nrf() -> Server {
    let known = Cell::new(false);
    Server::start(move |seen| match seen.method {
        Method::PUT => {
            let mut profile = seen.json();
            profile["heartBeatTimer"] = json!(1);
            sbi::json::response(StatusCode::CREATED, &profile)
        }
        Method::PATCH if !known.replace(true) => Problem::of_status(StatusCode::NOT_FOUND).into_response(),
        _ => sbi::json::response(StatusCode::OK, &json!({})),
    })
}

/// With one id for all, one would replace the other's profile at the NRF, and undo what an operator has set on it.
#[test]
fn two_installations_with_default_settings_register_as_two() {
    local(async {
        let nrf = nrf();
        let started = || {
            let root = nrf.root();
            start(|config| config.nrf.api_roots = vec![root])
        };
        let _both = (started(), started());
        let registered = || -> std::collections::BTreeSet<String> {
            let seen = nrf.seen().into_iter().filter(|seen| seen.method == Method::PUT);
            seen.map(|seen| {
                let id = seen.json()["nfInstanceId"].as_str().unwrap().to_owned();
                assert!(seen.path.ends_with(&id), "{}", seen.path);
                id
            })
            .collect()
        };
        while registered().len() < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
}

/// No peer can send anything to `0.0.0.0`: others get the address from which the BSF reaches its NRF.
#[test]
fn addresses_that_others_cannot_use_are_not_published() {
    local(async {
        for (listen, own) in [
            (vec!["0.0.0.0:0"], vec!["127.0.0.1"]),
            (vec!["127.0.0.1:0", "127.0.0.2:0"], vec!["127.0.0.1", "127.0.0.2"]),
        ] {
            let nrf = nrf();
            let root = nrf.root();
            let bsf = start(|config| {
                config.nrf.api_roots = vec![root];
                config.listen = settings::Listen(listen.iter().map(|one| one.parse().unwrap()).collect());
            });
            let put = || nrf.seen().into_iter().find(|seen| seen.method == Method::PUT);
            while put().is_none() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let profile = put().unwrap().json();
            crate::judge::profile(&profile);
            assert_eq!(profile["ipv4Addresses"], json!(own));
            for service in profile["nfServices"].as_array().unwrap() {
                let points = service["ipEndPoints"].as_array().unwrap();
                let ips: Vec<&str> = points
                    .iter()
                    .map(|point| point["ipv4Address"].as_str().unwrap())
                    .collect();
                assert_eq!(ips, own);
                assert!(points.iter().all(|point| point["port"].as_u64() > Some(0)));
            }
            let all = json!({"ipv4Addr": "10.0.0.1", "supi": "imsi-1"});
            let made = bsf.post("pcfBindings", &crate::support::binding(&all)).await;
            let location = made.header("location");
            assert!(location.starts_with("http://127.0.0.1:"), "{location}");
        }
    });
}

/// The NRF that SRV records name first does not listen; when the second one fails, the third answers.
#[test]
fn nrfs_are_found_by_the_srv_records_of_their_name() {
    local(async {
        let names = NameServer::start().await.unwrap();
        let is_down = Rc::new(Cell::new(false));
        let (second, third) = (Server::start(failing(is_down.clone())), Server::start(answer));
        let closed = free_ports::port().unwrap();
        let places = [
            (1, 1, closed, "nrf1.test"),
            (2, 1, second.address.port(), "nrf2.test"),
            (3, 1, third.address.port(), "nrf3.test"),
        ];
        names.services("_http._tcp.nrf.test", 60, &places);
        for (_, _, _, host) in places {
            names.addresses(host, 60, &["127.0.0.1".parse().unwrap()]);
        }
        let _bsf = start(|config| {
            config.dns.servers = vec![names.address];
            config.nrf.api_roots = vec!["http://nrf.test".to_owned()];
            config.nrf.dns_srv = true;
        });
        while second.count() < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(third.count(), 0);
        is_down.set(true);
        while third.count() < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // The one that answered last is asked first.
        let before = second.count();
        while third.count() < 4 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(second.count(), before);
    });
}

#[test]
fn as_long_as_it_runs() {
    local(async {
        let nrf = nrf();
        let root = nrf.root();
        let mut bsf = start(|config| {
            config.nrf.api_roots = vec![root];
            config
                .nrf
                .profile
                .insert("bsfInfo".to_owned(), json!({"dnnList": ["internet"]}));
        });
        let of = |wanted: Method| -> Vec<Seen> {
            let all = nrf.seen().into_iter();
            all.filter(|seen| seen.method == wanted).collect()
        };
        while of(Method::PATCH).len() < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // The NRF did not know it: it has registered again.
        assert_eq!(of(Method::PUT).len(), 2);
        let profile = of(Method::PUT)[0].json();
        crate::judge::profile(&profile);
        assert_eq!(
            (&profile["nfType"], &profile["bsfInfo"]["dnnList"][0]),
            (&json!("BSF"), &json!("internet"))
        );
        assert_eq!(profile["nfServices"][0]["serviceName"], "nbsf-management");
        bsf.running
            .as_ref()
            .unwrap()
            .set_state(bsf::State::Partial)
            .await
            .unwrap();
        let running = bsf.running.take().unwrap();
        tokio::task::spawn_blocking(move || running.stop())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(of(Method::DELETE).len(), 1);
    });
}
