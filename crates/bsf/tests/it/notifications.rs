//! Subscribers are told.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use sbi::{Request, Response, Service};
use serde_json::{Value, json};

use crate::support::{binding, local, start};

/// Takes notifications; the first of each run is refused with 503.
#[derive(Default)]
struct Subscriber {
    seen: RefCell<Vec<Value>>,
    refused: std::cell::Cell<bool>,
}

impl Service for Subscriber {
    async fn call(self: Rc<Self>, request: Request) -> Response {
        let mut response = Response::default();
        *response.status_mut() = StatusCode::NO_CONTENT;
        if !self.refused.replace(true) {
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            return response;
        }
        assert_eq!(
            request.head.headers["3gpp-sbi-callback"],
            "Nbsf_Management_Notify"
        );
        let body = serde_json::from_slice(&request.body.into_bytes()).unwrap();
        crate::judge::notification(&body);
        self.seen.borrow_mut().push(body);
        response
    }
}

#[test]
fn of_bindings_that_come_and_go() {
    local(async {
        let bsf = start(|config| config.notifications.retry_pause = settings::Period::from_millis(10));
        let listener = sbi::server::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let target = format!("http://{}/told", listener.local_addr().unwrap());
        let subscriber = Rc::new(Subscriber::default());
        let serving = sbi::server::serve(
            listener,
            subscriber.clone(),
            Arc::default(),
            None,
            Arc::default(),
            worker::Shutdown::new(),
        );
        tokio::task::spawn_local(serving);

        let session = bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        let body = json!({"events": ["PCF_PDU_SESSION_BINDING_REGISTRATION", "PCF_PDU_SESSION_BINDING_DEREGISTRATION",
            "PCF_UE_BINDING_REGISTRATION"], "notifUri": target, "notifCorreId": "c1", "supi": "imsi-001010000000001"});
        let subscribed = bsf.post("subscriptions", &body).await;
        let subscription = bsf.path(&subscribed);
        let met = &subscribed.json["eventNotifs"][0];
        assert_eq!(
            met["event"], "PCF_PDU_SESSION_BINDING_REGISTRATION",
            "{}",
            subscribed.json
        );
        assert_eq!(met["pcfForPduSessInfos"][0]["ipv4Addr"], "10.0.0.1");

        bsf.ask(Method::DELETE, &session, "", "").await;
        let ue = json!({"supi": "imsi-001010000000001", "pcfForUeFqdn": "pcf7.example.org"});
        bsf.path(&bsf.post("pcf-ue-bindings", &ue).await);
        let other = binding(&json!({"supi": "imsi-2"}));
        bsf.path(&bsf.post("pcfBindings", &other).await);
        while subscriber.seen.borrow().len() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let seen = subscriber.seen.borrow().clone();
        assert_eq!(seen[0]["notifCorreId"], "c1");
        assert_eq!(
            seen[0]["eventNotifs"][0]["event"],
            "PCF_PDU_SESSION_BINDING_DEREGISTRATION"
        );
        assert_eq!(
            seen[1]["eventNotifs"][0]["pcfForUeInfo"]["pcfFqdn"],
            "pcf7.example.org"
        );

        let mut replaced = body.clone();
        replaced["events"] = json!(["PCF_UE_BINDING_DEREGISTRATION"]);
        let put = bsf
            .ask(
                Method::PUT,
                &subscription,
                "application/json",
                replaced.to_string(),
            )
            .await;
        assert_eq!(put.status, StatusCode::OK, "{}", put.json);
        for status in [StatusCode::NO_CONTENT, StatusCode::NOT_FOUND] {
            assert_eq!(
                bsf.ask(Method::DELETE, &subscription, "", "").await.status,
                status
            );
        }
    });
}

/// Sends whoever comes elsewhere, once; takes what comes after that.
struct Mover(RefCell<Option<String>>, RefCell<usize>);

impl Service for Mover {
    async fn call(self: Rc<Self>, _: Request) -> Response {
        let mut response = Response::default();
        *response.status_mut() = StatusCode::NO_CONTENT;
        match &*self.0.borrow() {
            Some(there) => {
                *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
                response.headers_mut().insert("location", there.parse().unwrap());
            }
            None => *self.1.borrow_mut() += 1,
        }
        response
    }
}

/// Serves at an address of this machine's own network.
fn serve<S: Service>(ip: &str, port: u16, service: Rc<S>) -> std::net::SocketAddr {
    let listener = sbi::server::bind(format!("{ip}:{port}").parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    tokio::task::spawn_local(sbi::server::serve(
        listener,
        service,
        Arc::default(),
        None,
        Arc::default(),
        worker::Shutdown::new(),
    ));
    address
}

/// Knows one set, with one instance there.
struct Nrf(&'static str);

impl Service for Nrf {
    async fn call(self: Rc<Self>, request: Request) -> Response {
        let uri = request.uri().clone();
        let query = uri.query().unwrap_or_default();
        let known = uri.path() == "/nnrf-disc/v1/nf-instances"
            && query.contains("target-nf-type=NEF")
            && query.contains("set1%2Enefset");
        let found = if known {
            json!([{"ipv4Addresses": [self.0]}])
        } else {
            json!([])
        };
        sbi::json::response(
            StatusCode::OK,
            &json!({"nfInstances": found, "validityPeriod": 1, "heartBeatTimer": 100}),
        )
    }
}

#[test]
fn where_the_subscriber_or_another_of_its_set_is() {
    local(async {
        let taken = Rc::new(Mover(RefCell::default(), RefCell::default()));
        let there = serve("127.0.0.1", 0, taken.clone());
        let moved = Mover(
            RefCell::new(Some(format!("http://{there}/new"))),
            RefCell::default(),
        );
        let redirecting = serve("127.0.0.1", 0, Rc::new(moved));
        // Another instance of the set: the same port at another host.
        let another = Rc::new(Mover(RefCell::default(), RefCell::default()));
        let another_address = serve("127.0.0.2", 0, another.clone());
        let nrf = serve("127.0.0.1", 0, Rc::new(Nrf("127.0.0.2")));
        let bsf = start(|config| {
            config.nrf.api_roots = vec![format!("http://{nrf}")];
            config.notifications.retry_pause = settings::Period::from_millis(1);
            config.notifications.rate = 1_000;
        });
        let body = |supi: &str, target: String| {
            json!({"events": ["PCF_PDU_SESSION_BINDING_REGISTRATION"], "notifUri": target, "notifCorreId": "c",
                "supi": supi})
        };
        let redirected = body("imsi-00001", format!("http://{redirecting}/old"));
        bsf.path(&bsf.post("subscriptions", &redirected).await);
        let dead = body(
            "imsi-00002",
            format!("http://127.0.0.1:{}/x", another_address.port()),
        );
        let request = http::Request::post("/nbsf-management/v1/subscriptions")
            .header("content-type", "application/json")
            .header(
                "3gpp-sbi-binding",
                "bl=nf-set; nfset=set1.nefset.5gc.mnc001.mcc001; scope=callback",
            )
            .body(dead.to_string().into())
            .unwrap();
        bsf.path(&bsf.send(request).await);
        for supi in ["imsi-00001", "imsi-00002"] {
            bsf.path(&bsf.post("pcfBindings", &binding(&json!({"supi": supi}))).await);
        }
        let running = bsf.running.as_ref().unwrap();
        while running.count(bsf::Event::Notified) < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!((*taken.1.borrow(), *another.1.borrow()), (1, 1));
        assert_eq!(running.count(bsf::Event::NotificationRedirected), 1);
        assert_eq!(running.count(bsf::Event::NotificationRerouted), 1);
        assert!(running.score().score > 0.0);
    });
}

#[test]
fn where_dns_says_that_the_subscriber_is_served_too() {
    local(async {
        let dns = testpeer::dns::NameServer::start().await.unwrap();
        let another = Rc::new(Mover(RefCell::default(), RefCell::default()));
        let port = serve("127.0.0.1", 0, another.clone()).port();
        let nobody = testpeer::freediameter::free_port();
        for name in ["nef.example", "nef2.example"] {
            dns.addresses(name, 60, &["127.0.0.1".parse().unwrap()]);
        }
        let places = [(1, 1, nobody, "nef.example"), (2, 1, port, "nef2.example")];
        dns.services("_http._tcp.nef.example", 60, &places);
        let bsf = start(|config| {
            config.dns.servers = vec![dns.address];
            config.notifications.dns_srv = true;
            config.notifications.retry_pause = settings::Period::from_millis(1);
        });
        let body = json!({"events": ["PCF_PDU_SESSION_BINDING_REGISTRATION"], "notifCorreId": "c",
            "notifUri": format!("http://nef.example:{nobody}/x"), "supi": "imsi-00001"});
        bsf.path(&bsf.post("subscriptions", &body).await);
        bsf.path(
            &bsf.post("pcfBindings", &binding(&json!({"supi": "imsi-00001"})))
                .await,
        );
        let running = bsf.running.as_ref().unwrap();
        while running.count(bsf::Event::NotificationRerouted) == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(*another.1.borrow(), 1);
    });
}
