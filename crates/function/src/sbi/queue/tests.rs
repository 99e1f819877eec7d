use std::collections::BTreeMap;
use std::future::pending;
use std::pin::pin;

use ::sbi::{Body, GivenUp, Peer, RequestHead, Value};
use http::Method;
use tokio::sync::Notify;
use tokio::task::{LocalSet, yield_now};

use super::*;

const METRICS: QueueMetrics = crate::queue_metrics!("test");

const CREATE: Nature = Nature {
    weight: Weight::Begins,
    asks_others: true,
};
const READ: Nature = Nature {
    weight: Weight::Begins,
    asks_others: false,
};
const CHANGE: Nature = Nature {
    weight: Weight::Changes,
    asks_others: false,
};
const END: Nature = Nature {
    weight: Weight::Ends,
    asks_others: false,
};

fn request(headers: &[(&'static str, &str)], body: usize) -> Request {
    let mut head = RequestHead::to(Method::POST, Value::from_static("/"));
    for (name, value) in headers {
        head.fields.append(*name, Value::new(value.as_bytes()).unwrap());
    }
    let address = ([127, 0, 0, 1], 1).into();
    Request {
        head,
        body: Body::from(vec![0; body]),
        peer: Rc::new(Peer {
            addr: address,
            local: address,
            tls: None,
            connection: 0,
            given_up: GivenUp::default(),
        }),
        received: Instant::now(),
        stream: 1,
        waited: Duration::ZERO,
    }
}

fn bounds(begun: usize, queued: usize) -> QueueBounds {
    QueueBounds {
        begun,
        elsewhere: 2,
        queued,
        queued_bytes: 1 << 20,
    }
}

/// A queue whose handlers run until their names are released, and what has become of each request.
#[derive(Clone)]
struct Bench {
    queue: Rc<RequestQueue>,
    registry: Rc<Registry>,
    begun: Rc<RefCell<Vec<&'static str>>>,
    refused: Rc<RefCell<BTreeMap<&'static str, NotBegun>>>,
    release: Rc<Notify>,
}

impl Bench {
    fn new(bounds: QueueBounds) -> Self {
        let registry = Rc::new(Registry::new());
        Self {
            queue: RequestQueue::new(bounds, &METRICS, &registry, 0),
            registry,
            begun: Rc::default(),
            refused: Rc::default(),
            release: Rc::default(),
        }
    }

    /// Offers a request, whose handler waits until it is released, at another function where `away`.
    async fn offer(&self, name: &'static str, request: Request, nature: Nature, away: bool) {
        let bench = self.clone();
        tokio::task::spawn_local(async move {
            let slot = match bench.queue.slot(&request, nature).await {
                Ok(slot) => slot,
                Err(why) => {
                    bench.refused.borrow_mut().insert(name, why);
                    return;
                }
            };
            let handler = async {
                bench.begun.borrow_mut().push(name);
                let released = pin!(bench.release.notified());
                match away {
                    true => elsewhere(released).await,
                    false => released.await,
                }
            };
            slot.run(Box::pin(handler)).await;
        });
        settle().await;
    }

    async fn release(&self) {
        self.release.notify_one();
        settle().await;
    }

    fn gauge(&self, name: &str) -> f64 {
        self.queue.measure();
        let page = self.registry.render();
        let line = page
            .lines()
            .find_map(|line| line.strip_prefix(&format!("signalbox_test_{name}{{worker=\"0\"}} ")));
        line.unwrap().parse().unwrap()
    }
}

async fn settle() {
    for _ in 0..16 {
        yield_now().await;
    }
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    LocalSet::new().block_on(&runtime.unwrap(), test);
}

const PRIORITY: &str = "3gpp-sbi-message-priority";
const LIMIT: &str = "3gpp-sbi-max-rsp-time";

#[test]
fn queued_requests_begin_by_priority_and_deadline() {
    run(async {
        let bench = Bench::new(bounds(1, 100));
        for (name, headers, nature) in [
            ("first", &[][..], CREATE),
            ("usual", &[], CREATE),
            ("later", &[(LIMIT, "60000")], CREATE),
            ("sooner", &[(LIMIT, "1000")], CREATE),
            ("read", &[], READ),
            ("change", &[], CHANGE),
            ("end", &[], END),
            ("emergency", &[(PRIORITY, "0")], CREATE),
            ("least", &[(PRIORITY, "31")], CREATE),
        ] {
            bench.offer(name, request(headers, 0), nature, false).await;
        }
        assert_eq!(*bench.begun.borrow(), ["first"]);
        assert_eq!(
            (bench.gauge("requests_begun"), bench.gauge("requests_queued")),
            (1.0, 8.0)
        );
        for _ in 0..9 {
            bench.release().await;
        }
        let order = [
            "first",
            "emergency",
            "end",
            "change",
            "sooner",
            "usual",
            "read",
            "later",
            "least",
        ];
        assert_eq!(*bench.begun.borrow(), order);
        assert_eq!(
            (
                bench.gauge("requests_begun"),
                bench.gauge("requests_queued_bytes")
            ),
            (0.0, 0.0)
        );
    });
}

#[test]
fn the_least_important_leave_a_full_queue_and_ends_never_do() {
    run(async {
        let bench = Bench::new(bounds(1, 2));
        bench.offer("first", request(&[], 0), CREATE, false).await;
        bench.offer("usual", request(&[], 0), CREATE, false).await;
        bench
            .offer("low", request(&[(PRIORITY, "30")], 0), READ, false)
            .await;
        bench
            .offer("lower", request(&[(PRIORITY, "31")], 0), CREATE, false)
            .await;
        assert_eq!(
            *bench.refused.borrow(),
            BTreeMap::from([("lower", NotBegun::Full)])
        );
        bench.offer("change", request(&[], 0), CHANGE, false).await;
        assert!(bench.refused.borrow().contains_key("low"));
        for name in ["end 1", "end 2", "end 3"] {
            bench.offer(name, request(&[], 0), END, false).await;
        }
        // Bytes are bounded as well.
        bench
            .offer("large", request(&[(PRIORITY, "5")], 1 << 21), CREATE, false)
            .await;
        assert_eq!(bench.refused.borrow().len(), 5, "{:?}", bench.refused.borrow());
        assert!(bench.gauge("requests_queued_bytes") < f64::from(1 << 20));
        for _ in 0..8 {
            bench.release().await;
        }
        assert_eq!(bench.begun.borrow()[1..4], ["end 1", "end 2", "end 3"]);
        assert_eq!(bench.gauge("queue_refusals_total"), 5.0);
    });
}

#[test]
fn a_queued_request_is_late_when_its_consumer_waits_no_longer() {
    run(async {
        let bench = Bench::new(bounds(1, 100));
        bench.offer("first", request(&[], 0), CREATE, false).await;
        bench
            .offer("late", request(&[(LIMIT, "50")], 0), CHANGE, false)
            .await;
        bench.offer("end", request(&[(LIMIT, "50")], 0), END, false).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        settle().await;
        assert_eq!(
            *bench.refused.borrow(),
            BTreeMap::from([("late", NotBegun::Late)])
        );
        bench.release().await;
        assert_eq!(*bench.begun.borrow(), ["first", "end"]);
    });
}

#[test]
fn handlers_that_await_others_hold_no_slot_and_are_bounded() {
    run(async {
        let bench = Bench::new(bounds(1, 100));
        for name in ["one", "two", "three"] {
            bench.offer(name, request(&[], 0), CREATE, true).await;
        }
        // The bound is 2, and what waits for that delays nothing else.
        assert_eq!(*bench.begun.borrow(), ["one", "two"]);
        assert_eq!(
            (bench.gauge("requests_begun"), bench.gauge("requests_elsewhere")),
            (0.0, 2.0)
        );
        bench.offer("change", request(&[], 0), CHANGE, true).await;
        bench.offer("read", request(&[], 0), READ, true).await;
        bench.offer("more", request(&[], 0), READ, false).await;
        assert_eq!(*bench.begun.borrow(), ["one", "two", "change", "read"]);
        assert!(
            bench.queue.delay(Instant::now()).is_zero(),
            "no slot would begin any of them"
        );
        bench.offer("end", request(&[], 0), END, false).await;
        assert_eq!(bench.begun.borrow().last(), Some(&"end"));
        for _ in 0..7 {
            bench.release().await;
        }
        assert_eq!(bench.begun.borrow().len(), 7);
        assert_eq!(
            (bench.gauge("requests_begun"), bench.gauge("requests_elsewhere")),
            (0.0, 0.0)
        );
    });
}

#[test]
fn a_request_that_is_dropped_leaves_the_queue() {
    run(async {
        let bench = Bench::new(bounds(1, 100));
        let held = bench.queue.slot(&request(&[], 0), CREATE).await.ok().unwrap();
        let (queued, empty) = (request(&[], 0), request(&[], 0));
        {
            let waits = pin!(bench.queue.slot(&queued, CREATE));
            tokio::select! {
                biased;
                _ = waits => unreachable!(),
                () = yield_now() => assert_eq!(bench.gauge("requests_queued"), 1.0),
            }
        }
        assert_eq!(bench.gauge("requests_queued"), 0.0);
        // One that is dropped while it awaits another function as well.
        {
            let mut never = pin!(pending::<()>());
            let handler = pin!(held.run(Box::pin(elsewhere(never.as_mut()))));
            tokio::select! {
                biased;
                () = handler => unreachable!(),
                () = yield_now() => assert_eq!(bench.gauge("requests_elsewhere"), 1.0),
            }
        }
        assert_eq!(
            (bench.gauge("requests_begun"), bench.gauge("requests_elsewhere")),
            (0.0, 0.0)
        );
        assert!(bench.queue.slot(&empty, CREATE).await.is_ok());
    });
}
