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
