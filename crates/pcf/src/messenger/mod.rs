//! Messages of policy projects to servers of the operator (`notify`), sent after the decision that made them is written.
//!
//! Delivery is best effort. Each worker sends what it has decided; for each server it has a bounded number of messages in
//! flight and pending, so that a server that hangs delays no other. No answer waits for a message, and a process that ends
//! loses those that it has not sent.

mod connector;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ahash::AHashMap;
use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use sbi::dns::Dns;
use serde_json::Value;
use tls::ClientTls;

use self::connector::Connector;
use crate::activity::{Entry, trail};
use crate::association::messages::{Form, Message};
use crate::backlog::{Backlog, Bounds, Place};
use crate::config::Notifier;
use crate::events::{Counters, Event};
use crate::targets::{Target, Targets};

/// Bytes of the headers of an answer.
const MOST_HEADERS: usize = 16 << 10;
/// Bytes of an answer that are read and dropped, so that its connection can be used again; a longer one ends its connection.
const MOST_IGNORED: usize = 16 << 10;

type Body = Full<Bytes>;

/// Sends the messages of a worker.
pub(crate) struct Messenger {
    client: Client<Connector, Body>,
    counters: Arc<Counters>,
    /// What is in flight and pending at each server, by its name; none of those where nothing is.
    backlogs: RefCell<AHashMap<String, Rc<Backlog<Job>>>>,
}

/// A message to be delivered.
struct Job {
    target: Arc<Target>,
    message: Message,
    /// The trail that it belongs to.
    mark: Option<trail::Mark>,
}

/// What came of an attempt.
enum Outcome {
    Delivered,
    /// The server will not answer otherwise another time.
    Refused,
    /// No answer in time, or one of a server that cannot.
    Open,
}

impl Messenger {
    pub(crate) fn new(
        settings: &Notifier,
        tls: Option<ClientTls>,
        names: Option<Dns>,
        counters: Arc<Counters>,
    ) -> Self {
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(settings.idle_time.duration())
            .pool_timer(TokioTimer::new())
            .http1_max_buf_size(MOST_HEADERS)
            .build(Connector::new(tls, names));
        Self {
            client,
            counters,
            backlogs: RefCell::default(),
        }
    }

    /// Takes the messages of a decision that was written.
    pub(crate) fn send(self: &Rc<Self>, targets: &Targets, messages: Vec<Message>) {
        for message in messages {
            if !targets.is_enabled {
                self.counters.count(Event::MessageSuppressed);
                continue;
            }
            // Projects are compiled with the settings of their servers, so that there is one.
            if let Some(target) = targets.get(&message.server) {
                self.take(target.clone(), message);
            }
        }
    }

    fn take(self: &Rc<Self>, target: Arc<Target>, message: Message) {
        let settings = &target.settings;
        let bounds = Bounds {
            parallel: settings.parallel,
            queue: settings.queue,
            bytes: settings.queue_bytes.as_usize(),
        };
        let name = target.name.clone();
        let backlog = self.backlogs.borrow_mut().entry(name).or_default().clone();
        let size = message.size();
        let job = Job {
            target,
            message,
            mark: trail::mark(),
        };
        match backlog.push(job, size, bounds) {
            Place::InFlight(job) => drop(tokio::task::spawn_local(self.clone().work(backlog, job))),
            Place::Pending => {}
            Place::None => self.counters.count(Event::MessageDropped),
        }
    }

    /// Delivers a message, and then what is pending.
    async fn work(self: Rc<Self>, backlog: Rc<Backlog<Job>>, first: Job) {
        let mut next = Some(first);
        while let Some(job) = next {
            trail::resume(job.mark.clone(), self.deliver(&job)).await;
            next = backlog.done();
            if backlog.is_idle() {
                self.backlogs.borrow_mut().remove(&job.target.name);
            }
        }
    }

    async fn deliver(&self, job: &Job) {
        let Job { target, message, .. } = job;
        let key = uuid::Uuid::new_v4().to_string();
        let mut pause = target.settings.retry_pause.duration();
        for attempt in 0..target.settings.attempts {
            if attempt > 0 {
                self.counters.count(Event::MessageRetried);
                tokio::time::sleep(pause).await;
                pause = pause.saturating_mul(2);
            }
            match self.attempt(target, message, &key).await {
                Outcome::Delivered => return self.counters.count(Event::MessageSent),
                Outcome::Refused => return self.counters.count(Event::MessageRefused),
                Outcome::Open => {}
            }
        }
        tracing::debug!(server = target.name, "a message of a policy project was given up");
        self.counters.count(Event::MessageFailed);
    }

    async fn attempt(&self, target: &Target, message: &Message, key: &str) -> Outcome {
        let Some(request) = target.request(message, key) else {
            tracing::debug!(
                server = target.name,
                path = message.path,
                "URL and path make no URI"
            );
            return Outcome::Refused;
        };
        trail::note(|| {
            Entry::new("out", format!("{} {}", request.method(), request.uri()))
                .over("HTTP", &*target.name)
                .body(shown(message))
        });
        let exchange = async {
            let answer = self.client.request(request).await?;
            Ok::<_, hyper_util::client::legacy::Error>(ignored(answer).await)
        };
        let timeout: Duration = target.settings.timeout.duration();
        let status = match tokio::time::timeout(timeout, exchange).await {
            Ok(Ok(status)) => status,
            Ok(Err(error)) => {
                tracing::debug!(
                    server = target.name,
                    ?error,
                    "a server of the operator does not answer"
                );
                return Outcome::Open;
            }
            Err(_) => {
                tracing::debug!(
                    server = target.name,
                    ?timeout,
                    "a server of the operator does not answer in time"
                );
                return Outcome::Open;
            }
        };
        trail::note(|| Entry {
            status: Some(status.as_u16().into()),
            ..Entry::new("in", "").over("HTTP", &*target.name)
        });
        of_status(status).inspect_refusal(target, status)
    }
}

/// What an answer means. A redirection is not followed: the settings say where a server is.
fn of_status(status: StatusCode) -> Outcome {
    match status {
        status if status.is_success() => Outcome::Delivered,
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS => Outcome::Open,
        status if status.is_server_error() => Outcome::Open,
        _ => Outcome::Refused,
    }
}

impl Outcome {
    fn inspect_refusal(self, target: &Target, status: StatusCode) -> Self {
        if matches!(self, Self::Refused) {
            tracing::debug!(server = target.name, %status, "a server of the operator refuses a message");
        }
        self
    }
}

/// The status of an answer, whose content is read and dropped as far as it is short.
async fn ignored(answer: Response<hyper::body::Incoming>) -> StatusCode {
    let (head, mut body) = answer.into_parts();
    let mut left = MOST_IGNORED;
    while let Some(Ok(frame)) = body.frame().await {
        let length = frame.data_ref().map_or(0, Bytes::len);
        match left.checked_sub(length) {
            Some(fewer) => left = fewer,
            None => break,
        }
    }
    head.status
}

/// A message on a trail.
fn shown(message: &Message) -> Value {
    match message.form {
        Form::Json => serde_json::from_slice(&message.body).unwrap_or_default(),
        Form::Empty => Value::Null,
        Form::Xml | Form::Text => String::from_utf8_lossy(&message.body).into(),
    }
}
