//! One worker's share of the SCEF: what the handlers of requests work with.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use diameter::endpoint::RequestError;
use diameter::proto::{Message, MessageMut};
use function::sbi::Door;
use function::{Seat, Shedder};
use http::StatusCode;
use overload::{KeyedRateLimiter, Rate};
use sbi::problem::{Cause, Problem};
use serde_json::Value;
use telemetry::Dependency;

use crate::config::Config;
use crate::events::{ADMISSION, Counters, Event};
use crate::live::Effective;
use crate::orders::Orders;
use crate::repository::Repository;
use crate::shared::Scef;
use crate::spans::Caller;

/// A worker as its listeners and the Diameter node see it.
pub(crate) type Front = function::Front<Scef>;

/// SCS/AS that a worker keeps rates of; further ones share one.
const RATED: usize = 10_000;

/// The rates of SCS/AS, and what each is.
type Rates = Rc<RefCell<(u32, KeyedRateLimiter<String>)>>;

/// One worker's SCEF.
pub struct Worker {
    now: Arc<Effective>,
    shared: Arc<Scef>,
    door: Door,
    rates: Rates,
    counters: Arc<Counters>,
}

impl Worker {
    /// A worker by what is in effect now. What the one before has measured stays, as far as its settings do.
    pub(crate) fn new(
        shared: &Arc<Scef>,
        seat: &Seat<Scef>,
        now: Arc<Effective>,
        before: Option<&Self>,
    ) -> Self {
        let index = seat.context.index;
        let config = &now.config;
        let gate = now
            .verification
            .gate(&config.tokens, &config.identity, &config.nf_instance_id, "SCEF");
        let doors = before.map(|before| &before.door);
        let door = Door::new(
            &config.overload,
            gate,
            shared.workers,
            doors,
            (&ADMISSION, &seat.registry, index),
        );
        door.shedder().enforce(config.overload.enabled);
        let rate = config.limits.rate;
        let same = before.filter(|before| before.rates.borrow().0 == rate);
        let rates = same.map_or_else(
            || {
                let share = Rate::per_second(f64::from(rate) / shared.workers.max(1) as f64);
                Rc::new(RefCell::new((rate, KeyedRateLimiter::new(share, RATED))))
            },
            |before| before.rates.clone(),
        );
        Self {
            shared: shared.clone(),
            door,
            rates,
            counters: shared.counts.of(index),
            now,
        }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.now.config
    }

    pub(crate) fn effective(&self) -> &Effective {
        &self.now
    }

    /// What admits requests.
    pub(crate) fn door(&self) -> &Door {
        &self.door
    }

    pub(crate) fn shedder(&self) -> &Shedder {
        self.door.shedder()
    }

    pub(crate) fn shared(&self) -> &Arc<Scef> {
        &self.shared
    }

    pub(crate) fn repository(&self) -> &Repository {
        &self.shared.repository
    }

    pub(crate) fn orders(&self) -> &Orders {
        &self.shared.orders
    }

    pub(crate) fn count(&self, event: Event) {
        self.counters.count(event);
    }

    /// Root of the URIs that the SCEF hands out.
    pub(crate) fn root(&self) -> &str {
        // It is set when the function is bound.
        self.config().api_root.trim_end_matches('/')
    }

    /// Whether an SCS/AS sends no more than `limits.rate`.
    pub(crate) fn admits(&self, scs: &str) -> bool {
        let (rate, limiter) = &mut *self.rates.borrow_mut();
        *rate == 0 || limiter.allow(scs, Instant::now())
    }

    /// Checks where notifications are to go.
    pub(crate) fn check_target(&self, document: &Value) -> Result<(), Problem> {
        let name = "notificationDestination";
        let target = document.get(name).and_then(Value::as_str).unwrap_or_default();
        let checked = self.now.destinations.check_uri(target, function::sbi::Use::Whole);
        checked.map_err(|expected| {
            self.count(Event::TargetDenied);
            let pointer = format!("/{name}");
            Problem::new(Cause::MandatoryIeIncorrect)
                .detail(format!("{pointer}: {expected}"))
                .invalid_param(pointer, expected)
        })
    }

    /// Sends a request to the HSS and waits for its answer.
    pub(crate) async fn ask_hss(
        &self,
        caller: Caller<'_>,
        message: Option<MessageMut>,
    ) -> Result<Message, Problem> {
        let answer = self.ask(caller, &self.shared.hss, message).await?;
        answer.map_err(|_| {
            Problem::of_status(StatusCode::SERVICE_UNAVAILABLE)
                .detail("the HSS does not answer; nothing was done, try later")
        })
    }

    /// Sends a request and waits for its answer, which decides whether `dependency` is as it should be.
    pub(crate) async fn ask(
        &self,
        caller: Caller<'_>,
        dependency: &Dependency,
        message: Option<MessageMut>,
    ) -> Result<Result<Message, RequestError>, Problem> {
        let Some(message) = message else {
            return Err(
                Problem::new(Cause::PayloadTooLarge).detail("the request does not fit a Diameter message")
            );
        };
        let timeout = self.config().diameter.timeout.duration();
        let span = caller.sends(&message);
        let answer = self.orders().request(message, timeout).await;
        if let Some(span) = span {
            diameter::spans::answered(span, &answer);
        }
        match &answer {
            Ok(_) => dependency.succeeded("answers"),
            Err(error) => {
                self.count(Event::DiameterUnanswered);
                tracing::warn!(%error, peer = dependency.row().name, "a Diameter request was not answered");
                dependency.failed(&error.to_string());
            }
        }
        Ok(answer)
    }
}
