//! The BSF registers at an NRF, tells its load and state, and deregisters.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use sbi::{Request, Response, Service};
use serde_json::{Value, json};

use crate::support::{local, start};

/// Takes registrations; asks for a heart-beat a second; forgets the first registration once.
#[derive(Default)]
struct Nrf(RefCell<Vec<(Method, Value)>>);

impl Service for Nrf {
    async fn call(self: Rc<Self>, request: Request) -> Response {
        let method = request.method().clone();
        let body: Value = serde_json::from_slice(&request.body.into_bytes()).unwrap_or_default();
        let beats = self
            .0
            .borrow()
            .iter()
            .filter(|(method, _)| method == Method::PATCH)
            .count();
        let answer = match (&method, beats) {
            (&Method::PUT, _) => {
                let mut profile = body.clone();
                profile["heartBeatTimer"] = json!(1);
                sbi::json::response(StatusCode::CREATED, &profile)
            }
            (&Method::PATCH, 0) => sbi::problem::Problem::of_status(StatusCode::NOT_FOUND).into_response(),
            _ => sbi::json::response(StatusCode::OK, &json!({})),
        };
        self.0.borrow_mut().push((method, body));
        answer
    }
}

#[test]
fn as_long_as_it_runs() {
    local(async {
        let listener = sbi::server::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let root = format!("http://{}", listener.local_addr().unwrap());
        let nrf = Rc::new(Nrf::default());
        let shutdown = worker::Shutdown::new();
        tokio::task::spawn_local(sbi::server::serve(
            listener,
            nrf.clone(),
            Arc::default(),
            None,
            Arc::default(),
            shutdown,
        ));
        let mut bsf = start(|config| {
            config.nrf.api_roots = vec![root];
            config
                .nrf
                .profile
                .insert("bsfInfo".to_owned(), json!({"dnnList": ["internet"]}));
        });
        let count = |wanted: Method| {
            nrf.0
                .borrow()
                .iter()
                .filter(|(method, _)| *method == wanted)
                .count()
        };
        while count(Method::PATCH) < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // The NRF knew nothing of it: it has registered again.
        assert_eq!(count(Method::PUT), 2);
        let first = nrf
            .0
            .borrow()
            .iter()
            .find(|(method, _)| method == Method::PUT)
            .cloned();
        let profile = first.unwrap().1;
        crate::judge::profile(&profile);
        assert_eq!(
            (&profile["nfType"], &profile["bsfInfo"]["dnnList"][0]),
            (&json!("BSF"), &json!("internet"))
        );
        assert_eq!(profile["nfServices"][0]["serviceName"], "nbsf-management");
        bsf.running.as_ref().unwrap().set_state(bsf::State::Partial);
        let running = bsf.running.take().unwrap();
        tokio::task::spawn_blocking(move || running.stop())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(count(Method::DELETE), 1);
    });
}
