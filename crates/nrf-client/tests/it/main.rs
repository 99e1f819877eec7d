//! NRFs over real sockets: whom a question goes to, and how a subscription is kept.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::LOCATION;
use http::{HeaderValue, Method, StatusCode};
use nrf_client::{Nrfs, Turns};
use sbi::client::Client;
use sbi::problem::Problem;
use sbi::{Request, Response, Service};
use serde_json::{Value, json};

const HOUR: Duration = Duration::from_secs(3_600);

/// Notes what it is asked, and answers with these statuses in turn; the last one stays.
struct Nrf {
    root: String,
    asked: RefCell<Vec<(Method, String, Value)>>,
    statuses: RefCell<Vec<StatusCode>>,
}

impl Service for Nrf {
    async fn call(self: Rc<Self>, request: Request) -> Response {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let body: Value = serde_json::from_slice(&request.body.into_bytes()).unwrap_or_default();
        self.asked.borrow_mut().push((method, path, body.clone()));
        let mut statuses = self.statuses.borrow_mut();
        let status = match statuses.len() {
            1 => statuses[0],
            _ => statuses.remove(0),
        };
        if !status.is_success() {
            return Problem::of_status(status).into_response();
        }
        let mut answer = sbi::json::response(status, &body);
        let made = format!("{}/nnrf-nfm/v1/subscriptions/7", self.root);
        let made = HeaderValue::from_str(&made).unwrap();
        answer.headers_mut().insert(LOCATION, made);
        answer
    }
}

impl Nrf {
    fn start(statuses: &[StatusCode]) -> Rc<Self> {
        let listener = sbi::server::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let nrf = Rc::new(Self {
            root: format!("http://{}", listener.local_addr().unwrap()),
            asked: RefCell::default(),
            statuses: RefCell::new(statuses.to_vec()),
        });
        tokio::task::spawn_local(sbi::server::serve(
            listener,
            nrf.clone(),
            Arc::default(),
            None,
            Arc::default(),
            worker::Shutdown::new(),
        ));
        nrf
    }

    /// What it was asked since this was asked last.
    fn asked(&self) -> Vec<(Method, String)> {
        let asked = self.asked.take().into_iter();
        asked.map(|(method, path, _)| (method, path)).collect()
    }
}

fn local(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, test);
}

fn nrfs(all: &[&Rc<Nrf>]) -> Nrfs {
    let roots: Vec<String> = all.iter().map(|nrf| nrf.root.clone()).collect();
    let client = Client::new(Arc::default(), None);
    Nrfs::new(Turns::new(&roots), client, Duration::from_secs(20))
}

#[test]
fn whoever_fails_is_passed_over_until_another_fails() {
    local(async {
        let failing = Nrf::start(&[StatusCode::SERVICE_UNAVAILABLE, StatusCode::OK]);
        let refusing = Nrf::start(&[
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
        // That the NRF does not want is an answer.
        assert_eq!(ask().await, Some(StatusCode::FORBIDDEN));
        assert_eq!(ask().await, Some(StatusCode::FORBIDDEN));
        assert_eq!(
            (failing.asked().len(), refusing.asked().len(), failures.get()),
            (1, 2, 1)
        );
        assert_eq!(ask().await, Some(StatusCode::OK));
        assert_eq!(
            (failing.asked().len(), refusing.asked().len(), failures.get()),
            (1, 1, 2)
        );
        *failing.statuses.borrow_mut() = vec![StatusCode::INTERNAL_SERVER_ERROR];
        assert_eq!(ask().await, None, "both were asked, and none helps");
        assert_eq!(
            (failing.asked().len(), refusing.asked().len(), failures.get()),
            (1, 1, 4)
        );
    });
}

#[test]
fn a_subscription_is_renewed_and_made_anew_when_it_is_forgotten() {
    local(async {
        let nrf = Nrf::start(&[
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
        let asked = nrf.asked.take();
        assert_eq!(
            (&asked[0].0, &*asked[0].1),
            (&Method::POST, "/nnrf-nfm/v1/subscriptions")
        );
        assert_eq!(asked[0].2["subscrCond"]["nfType"], "PCF");
        assert!(asked[0].2["validityTime"].is_string());
        let life = made.renew_at() - before;
        assert!(
            life > HOUR / 2 && life < HOUR,
            "with a third of its life left: {life:?}"
        );

        let at = "/nnrf-nfm/v1/subscriptions/7".to_owned();
        let renewed = keep(Some(&made)).await.unwrap();
        assert_eq!(nrf.asked(), [(Method::PATCH, at.clone())]);
        let again = keep(Some(&renewed)).await.unwrap();
        let anew = (Method::POST, "/nnrf-nfm/v1/subscriptions".to_owned());
        assert_eq!(nrf.asked(), [(Method::PATCH, at.clone()), anew.clone()]);
        assert!(keep(Some(&again)).await.is_none(), "it is refused");
        assert_eq!(nrf.asked(), [(Method::PATCH, at.clone()), anew]);
        nrfs.unsubscribe(&again).await;
        assert_eq!(nrf.asked(), [(Method::DELETE, at)]);
    });
}

/// Grants tokens, and wants one for all else.
struct Protected {
    root: String,
    asked: RefCell<Vec<String>>,
    granted: Cell<u32>,
}

impl Service for Protected {
    async fn call(self: Rc<Self>, request: Request) -> Response {
        let path = request.uri().path().to_owned();
        let shown = request.headers().get("authorization").cloned();
        let shown = shown
            .map(|value| value.to_str().unwrap().to_owned())
            .unwrap_or_default();
        let body = String::from_utf8(request.body.into_bytes().to_vec()).unwrap();
        self.asked.borrow_mut().push(format!("{path} {shown}{body}"));
        if path == "/oauth2/token" {
            self.granted.set(self.granted.get() + 1);
            let token = json!({"access_token": format!("t{}", self.granted.get()), "expires_in": 3_600});
            return sbi::json::response(StatusCode::OK, &token);
        }
        match shown == format!("Bearer t{}", self.granted.get()) {
            true => sbi::json::response(StatusCode::OK, &json!({})),
            false => Problem::of_status(StatusCode::UNAUTHORIZED).into_response(),
        }
    }
}

#[test]
fn an_nrf_that_wants_a_token_is_asked_for_one() {
    local(async {
        let listener = sbi::server::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let nrf = Rc::new(Protected {
            root: format!("http://{}", listener.local_addr().unwrap()),
            asked: RefCell::default(),
            granted: Cell::default(),
        });
        tokio::task::spawn_local(sbi::server::serve(
            listener,
            nrf.clone(),
            Arc::default(),
            None,
            Arc::default(),
            worker::Shutdown::new(),
        ));
        let client = Client::new(Arc::default(), None);
        let turns = || Turns::new([&nrf.root]);
        let nrfs = Nrfs::new(turns(), client.clone(), Duration::from_secs(5)).as_instance("me", "BSF");
        let path = "/nnrf-nfm/v1/nf-instances/me";
        assert!(nrfs.get(path).await.is_some());
        assert!(nrfs.get(path).await.is_some());
        let form = "grant_type=client_credentials&nfInstanceId=me&nfType=BSF&targetNfType=NRF&scope=";
        assert_eq!(
            nrf.asked.take(),
            [
                format!("{path} "),
                format!("/oauth2/token {form}nnrf-nfm"),
                format!("{path} Bearer t1"),
                format!("{path} Bearer t1"),
            ],
            "a token is asked for when it is wanted, and used again"
        );
        // One that is accepted no more is replaced; one for another service is another.
        nrf.granted.set(6);
        assert!(nrfs.get(path).await.is_some());
        assert!(nrfs.get("/nnrf-disc/v1/nf-instances").await.is_some());
        let asked = nrf.asked.take();
        assert_eq!(asked[2], format!("{path} Bearer t7"));
        assert_eq!(asked[4], format!("/oauth2/token {form}nnrf-disc"));
        // Who does not say who it is gets none.
        let unknown = Nrfs::new(turns(), client, Duration::from_secs(5));
        assert!(unknown.get(path).await.is_none());
        assert_eq!(nrf.asked.take().len(), 1);
    });
}
