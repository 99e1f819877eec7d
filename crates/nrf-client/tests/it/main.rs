//! NRFs over real sockets: which of them gets a request, and how a subscription is renewed.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use nrf_client::{Nrfs, Presence, Turns, stay_registered};
use sbi::Response;
use sbi::client::Client;
use sbi::name::LOCATION;
use sbi::problem::Problem;
use serde_json::json;
use testpeer::local;
use testpeer::sbi::{Seen, Server};

const HOUR: Duration = Duration::from_secs(3_600);

/// An NRF that answers with these statuses in turn; the last one stays.
fn nrf(statuses: &[StatusCode]) -> Server {
    let nrf = Server::start(|_| Response::default());
    let (root, left) = (nrf.root(), RefCell::new(statuses.to_vec()));
    nrf.answers(move |seen| {
        let mut statuses = left.borrow_mut();
        let status = match statuses.len() {
            1 => statuses[0],
            _ => statuses.remove(0),
        };
        if !status.is_success() {
            return Problem::of_status(status).into_response();
        }
        let mut answer = sbi::json::response(status, &seen.json());
        let made = format!("{root}/nnrf-nfm/v1/subscriptions/7");
        answer.headers_mut().set_printed(LOCATION, made);
        answer
    });
    nrf
}

/// The requests since the last call.
fn asked(nrf: &Server) -> Vec<(Method, String)> {
    let seen = nrf.take().into_iter();
    seen.map(|seen| (seen.method, seen.path)).collect()
}

fn nrfs(all: &[&Server]) -> Nrfs {
    let roots: Vec<String> = all.iter().map(|nrf| nrf.root()).collect();
    let client = Client::new(Arc::default(), None);
    Nrfs::new(Turns::new(&roots), client, Duration::from_secs(20))
}

#[test]
fn whoever_fails_is_passed_over_until_another_fails() {
    local(async {
        let failing = nrf(&[StatusCode::SERVICE_UNAVAILABLE, StatusCode::OK]);
        let refusing = nrf(&[
            StatusCode::FORBIDDEN,
            StatusCode::FORBIDDEN,
            StatusCode::BAD_GATEWAY,
        ]);
        let failures = Rc::new(Cell::new(0));
        let counted = failures.clone();
        let nrfs = nrfs(&[&failing, &refusing]).on_failure(move || counted.set(counted.get() + 1));
        let ask = async || {
            let answer = nrfs.send(Method::GET, "/x", None).await;
            answer.map(|answer| answer.status)
        };
        // A refusal (403) is an answer.
        assert_eq!(ask().await, Some(StatusCode::FORBIDDEN));
        assert_eq!(ask().await, Some(StatusCode::FORBIDDEN));
        assert_eq!(
            (failing.take().len(), refusing.take().len(), failures.get()),
            (1, 2, 1)
        );
        assert_eq!(ask().await, Some(StatusCode::OK));
        assert_eq!(
            (failing.take().len(), refusing.take().len(), failures.get()),
            (1, 1, 2)
        );
        failing.fails_with(500);
        assert_eq!(ask().await, None, "both NRFs were queried and failed");
        assert_eq!(
            (failing.take().len(), refusing.take().len(), failures.get()),
            (1, 1, 4)
        );
    });
}

#[test]
fn a_subscription_is_renewed_and_recreated_after_404() {
    local(async {
        let nrf = nrf(&[
            StatusCode::CREATED,
            StatusCode::OK,
            StatusCode::NOT_FOUND,
            StatusCode::CREATED,
            StatusCode::FORBIDDEN,
        ]);
        let nrfs = nrfs(&[&nrf]);
        let keep = async |held| {
            let data = json!({"subscrCond": {"nfType": "PCF"}});
            nrfs.keep_subscribed(held, data, HOUR).await
        };
        let before = Instant::now();
        let made = keep(None).await.unwrap();
        let subscription = nrf.take().remove(0);
        assert_eq!(
            (&subscription.method, &*subscription.path),
            (&Method::POST, "/nnrf-nfm/v1/subscriptions")
        );
        assert_eq!(subscription.json()["subscrCond"]["nfType"], "PCF");
        assert!(subscription.json()["validityTime"].is_string());
        let life = made.renew_at() - before;
        assert!(
            life > HOUR / 2 && life < HOUR,
            "with a third of its life left: {life:?}"
        );

        let at = "/nnrf-nfm/v1/subscriptions/7".to_owned();
        let renewed = keep(Some(&made)).await.unwrap();
        assert_eq!(asked(&nrf), [(Method::PATCH, at.clone())]);
        let again = keep(Some(&renewed)).await.unwrap();
        let created = (Method::POST, "/nnrf-nfm/v1/subscriptions".to_owned());
        assert_eq!(asked(&nrf), [(Method::PATCH, at.clone()), created.clone()]);
        assert!(keep(Some(&again)).await.is_none(), "403");
        assert_eq!(asked(&nrf), [(Method::PATCH, at.clone()), created]);
        nrfs.unsubscribe(&again).await;
        assert_eq!(asked(&nrf), [(Method::DELETE, at)]);
    });
}

/// TS 29.510 §5.2.2.5.6: a renewal without an answer leaves the subscription in force, so no second one is created
/// beside it. One whose renewal is refused is ended once another replaces it.
#[test]
fn a_failed_renewal_leaves_no_second_subscription() {
    local(async {
        let (number, down) = (Cell::new(0), Rc::new(Cell::new(false)));
        let unavailable = down.clone();
        let nrf = Server::start(move |seen| match seen.method {
            _ if unavailable.get() => Problem::of_status(StatusCode::SERVICE_UNAVAILABLE).into_response(),
            Method::POST => {
                number.set(number.get() + 1);
                let mut answer = sbi::json::response(StatusCode::CREATED, &seen.json());
                let made = format!("/nnrf-nfm/v1/subscriptions/{}", number.get());
                answer.headers_mut().set_printed(LOCATION, made);
                answer
            }
            Method::DELETE => testpeer::sbi::no_content(),
            _ => Problem::of_status(StatusCode::FORBIDDEN).into_response(),
        });
        let nrfs = nrfs(&[&nrf]);
        let keep = async |held| {
            let data = json!({"subscrCond": {"nfType": "PCF"}});
            nrfs.keep_subscribed(held, data, HOUR).await.unwrap()
        };
        let made = keep(None).await;
        down.set(true);
        let held = keep(Some(&made)).await;
        assert!(held.renew_at() < made.renew_at(), "it is renewed soon");
        let path = |number: u32| format!("/nnrf-nfm/v1/subscriptions/{number}");
        let all = "/nnrf-nfm/v1/subscriptions".to_owned();
        assert_eq!(
            asked(&nrf),
            [(Method::POST, all.clone()), (Method::PATCH, path(1))],
            "no NRF served the renewal: no second subscription"
        );
        down.set(false);
        let replaced = keep(Some(&held)).await;
        assert_ne!(replaced, held);
        assert_eq!(
            asked(&nrf),
            [
                (Method::PATCH, path(1)),
                (Method::POST, all),
                (Method::DELETE, path(1))
            ]
        );
    });
}

#[test]
fn an_nrf_that_requires_a_token_is_asked_for_one() {
    local(async {
        // Grants tokens, and requires the last one for everything else.
        let granted = Rc::new(Cell::new(0));
        let last = granted.clone();
        let nrf = Server::start(move |seen| {
            if seen.path == "/oauth2/token" {
                last.set(last.get() + 1);
                let token = json!({"access_token": format!("t{}", last.get()), "expires_in": 3_600});
                return sbi::json::response(StatusCode::OK, &token);
            }
            match seen.header("authorization") == format!("Bearer t{}", last.get()) {
                true => sbi::json::response(StatusCode::OK, &json!({})),
                false => Problem::of_status(StatusCode::UNAUTHORIZED).into_response(),
            }
        });
        let asked = || -> Vec<String> {
            let shown = |seen: Seen| {
                let body = String::from_utf8_lossy(&seen.body);
                format!("{} {}{body}", seen.path, seen.header("authorization"))
            };
            nrf.take().into_iter().map(shown).collect()
        };
        let client = Client::new(Arc::default(), None);
        let turns = || Turns::new([&nrf.root()]);
        let nrfs = Nrfs::new(turns(), client.clone(), Duration::from_secs(5)).as_instance("me", "BSF");
        let path = "/nnrf-nfm/v1/nf-instances/me";
        assert!(nrfs.get(path).await.is_some());
        assert!(nrfs.get(path).await.is_some());
        let form = "grant_type=client_credentials&nfInstanceId=me&nfType=BSF&targetNfType=NRF&scope=";
        assert_eq!(
            asked(),
            [
                format!("{path} "),
                format!("/oauth2/token {form}nnrf-nfm"),
                format!("{path} Bearer t1"),
                format!("{path} Bearer t1"),
            ],
            "the client requests a token after 401 and reuses it"
        );
        // The client replaces a refused token; another service needs its own.
        granted.set(6);
        assert!(nrfs.get(path).await.is_some());
        assert!(nrfs.get("/nnrf-disc/v1/nf-instances").await.is_some());
        let asked_again = asked();
        assert_eq!(asked_again[2], format!("{path} Bearer t7"));
        assert_eq!(asked_again[4], format!("/oauth2/token {form}nnrf-disc"));
        // A client without an identity gets no token.
        let unknown = Nrfs::new(turns(), client, Duration::from_secs(5));
        assert!(unknown.get(path).await.is_none());
        assert_eq!(asked().len(), 1);
    });
}

/// A function that asks for a heart-beat a second.
struct Function;

impl Presence for Function {
    fn id(&self) -> &str {
        "4947a69a-f61b-4bc1-b9da-47c9c5d14b64"
    }

    fn profile(&self) -> serde_json::Value {
        json!({"nfInstanceId": self.id()})
    }

    fn status(&self) -> &'static str {
        "REGISTERED"
    }

    fn load(&self) -> u8 {
        0
    }

    fn heart_beat(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn retry(&self) -> Duration {
        Duration::from_secs(1)
    }
}

/// TS 29.510 §5.2.2.3.2: an NRF changes the timer in the answer to a heart-beat.
#[test]
fn a_changed_heart_beat_timer_holds_at_once() {
    local(async {
        let nrf = Server::start(|seen| match seen.method {
            Method::PATCH => sbi::json::response(StatusCode::OK, &json!({"heartBeatTimer": 3_600})),
            _ => sbi::json::response(StatusCode::CREATED, &json!({"heartBeatTimer": 1})),
        });
        let nrfs = nrfs(&[&nrf]);
        let received = async |count: usize| {
            while nrf.count() < count {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let presence = stay_registered(&nrfs, &Function);
        let observed = async {
            tokio::time::timeout(Duration::from_secs(60), received(2))
                .await
                .expect("a heart-beat");
            // With the old timer the next one would come after a second.
            let next = tokio::time::timeout(Duration::from_secs(4), received(3)).await;
            assert!(next.is_err(), "a heart-beat long before the new timer");
        };
        tokio::select! {
            () = presence => {}
            () = observed => {}
        }
        let methods: Vec<Method> = asked(&nrf).into_iter().map(|(method, _)| method).collect();
        assert_eq!(methods, [Method::PUT, Method::PATCH]);
    });
}
