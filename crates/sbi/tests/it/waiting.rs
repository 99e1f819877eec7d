//! The time that requests have waited for a worker, which the admission of functions goes by.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use http::{Method, Request};
use sbi::client::{ClientConfig, SendOptions};
use sbi::server::ServerConfig;
use sbi::{Body, Response};

use crate::support::{Running, client, local, start};

/// How long the load lasts.
const LASTS: Duration = Duration::from_secs(2);
/// Requests under way, of 4 KB each: more than a turn of a connection reads.
const UNDER_WAY: usize = 64;

/// A connection that always has more than its turns read is busy, not ever further behind.
#[test]
fn a_queue_that_stays_as_it_is_does_not_count_as_one_that_grows() {
    local(async {
        let waited = Rc::new(RefCell::new(Vec::new()));
        let seen = waited.clone();
        let Running { addr, .. } = start(ServerConfig::default(), move |request| {
            seen.borrow_mut().push((Instant::now(), request.waited));
            let began = Instant::now();
            while began.elapsed() < Duration::from_micros(200) {
                std::hint::spin_loop();
            }
            async { Response::ok(Body::empty()) }
        });
        let (began, over) = (Instant::now(), Arc::new(AtomicBool::new(false)));
        let ends = over.clone();
        let load = std::thread::spawn(move || {
            worker::block_on(async move {
                let client = client(ClientConfig {
                    connections_per_origin: 1,
                    ..ClientConfig::default()
                });
                let origin = format!("http://{addr}").parse().unwrap();
                let post = async || {
                    while began.elapsed() < LASTS {
                        let request = Request::builder().method(Method::POST).uri("/");
                        let request = request.body(Body::from(vec![b'x'; 4_096])).unwrap();
                        let options = SendOptions {
                            deadline: Duration::from_secs(60),
                            ..SendOptions::default()
                        };
                        client.send(&origin, request, options).await.unwrap();
                    }
                };
                futures_util::future::join_all((0..UNDER_WAY).map(|_| post())).await;
                ends.store(true, Ordering::Relaxed);
            })
        });
        while !over.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        load.join().unwrap().unwrap();
        let waited = waited.borrow();
        let last: Vec<_> = waited
            .iter()
            .filter(|(at, _)| *at >= began + LASTS / 2)
            .map(|(_, waited)| *waited)
            .collect();
        let mut sorted = last.clone();
        sorted.sort();
        let median = sorted[sorted.len() / 2];
        // 64 requests of 200 µs. A bound that only an empty socket ends is more than a second at this time.
        assert!(
            median < Duration::from_millis(200),
            "{median:?} of {} requests",
            last.len()
        );
        assert!(
            median > Duration::from_millis(1),
            "{median:?}: nothing has waited"
        );
    });
}
