//! Which requests a worker of a serving function admits: by its operational state, its rates, its load, and by who sends them.

use std::rc::Rc;
use std::time::{Duration, Instant};

use ::sbi::problem::{Cause, Problem};
use ::sbi::{Request, Response};
use http::StatusCode;
use overload::{Admission, Offered};
use telemetry::Registry;

use super::admission::{Ahead, Offer, is_late, refusal, waited};
use super::config::Overload;
use super::gate::{Gate, Refused};
use super::operational::State;
use super::rates::{Exceeded, Rates};
use crate::shedder::{AdmissionMetrics, Meters, Shedder};

/// Why a request is not admitted; functions count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnedAway {
    /// An operator shuts the function down.
    ShutDown,
    /// All consumers together send too much (`ingressRate`).
    IngressRate,
    /// Its consumer sends too much (`consumerRate`).
    ConsumerRate,
    /// Its consumer does not wait any longer (`3gpp-Sbi-Max-Rsp-Time`).
    Late,
    /// The load is too high.
    Discarded,
    /// Its access token does not permit it.
    Token,
    /// Its sender is not who it may be.
    Identity,
}

/// What a request does, which decides when it is refused under load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// It begins something, or reads.
    Begins,
    /// It changes what stands: refused later than what begins.
    Changes,
    /// It ends something: it frees memory, and its sender does not send it again. Never refused for load or lateness.
    Ends,
}

/// Levels of priority by which a request that changes something is above one that begins something.
const ABOVE: u8 = 8;

/// A request that changes what stands.
struct Change<'a>(Offer<'a>);

impl Offered for Change<'_> {
    fn priority(&self) -> u8 {
        // TS 29.500 §6.8.2: 0 is the highest.
        self.0.priority().saturating_sub(ABOVE)
    }

    fn is_late(&self, waited: Duration) -> Option<bool> {
        self.0.is_late(waited)
    }
}

/// The admission of one worker. What it has measured outlives a reload.
pub struct Door {
    overload: Overload,
    rates: Rc<Rates>,
    shedder: Rc<Shedder>,
    gate: Gate,
}

impl Door {
    /// The door of a worker by what is in effect now; `before` is that of the worker before a reload.
    pub fn new(
        overload: &Overload,
        gate: Gate,
        workers: usize,
        before: Option<&Self>,
        meters: (&AdmissionMetrics, &Registry, usize),
    ) -> Self {
        let rates = before.filter(|before| before.overload == *overload).map_or_else(
            || Rc::new(Rates::new(overload, workers)),
            |before| before.rates.clone(),
        );
        let shedder = match before {
            Some(before) => {
                before.shedder.reconfigure(overload.shedding());
                before.shedder.clone()
            }
            None => {
                let (metrics, registry, index) = meters;
                let meters = Meters::new(metrics, registry, index);
                Rc::new(Shedder::new(overload.shedding(), meters))
            }
        };
        Self {
            overload: overload.clone(),
            rates,
            shedder,
            gate,
        }
    }

    /// What it refuses under load.
    #[must_use]
    pub fn shedder(&self) -> &Shedder {
        &self.shedder
    }

    /// Who may send requests.
    #[must_use]
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Why a request is not admitted now by state, rates and load, and the answer; `creates` is whether it would create a
    /// record.
    #[must_use]
    pub fn turned_away(
        &self,
        request: &Request,
        state: State,
        creates: bool,
    ) -> Option<(TurnedAway, Problem)> {
        self.turned_away_by(request, state, creates, Weight::Begins)
    }

    /// As [`Self::turned_away`], by what the request does.
    #[must_use]
    pub fn turned_away_by(
        &self,
        request: &Request,
        state: State,
        creates: bool,
        weight: Weight,
    ) -> Option<(TurnedAway, Problem)> {
        self.turned_away_ahead(request, state, (creates, weight), Duration::ZERO)
    }

    /// As [`Self::turned_away_by`], of a request that others wait behind, one of them for `delay`.
    #[must_use]
    pub fn turned_away_ahead(
        &self,
        request: &Request,
        state: State,
        (creates, weight): (bool, Weight),
        delay: Duration,
    ) -> Option<(TurnedAway, Problem)> {
        match state {
            State::Serving => {}
            State::Partial if !creates => {}
            State::Partial | State::Complete => {
                let detail = format!("this function is being shut down (state {state:?})");
                let problem = Problem::of_status(StatusCode::SERVICE_UNAVAILABLE).detail(detail);
                return Some((TurnedAway::ShutDown, problem));
            }
        }
        if let Err(exceeded) = self.rates.judge(request) {
            let (why, detail) = match exceeded {
                Exceeded::Ingress => (TurnedAway::IngressRate, "more requests a second than ingressRate"),
                Exceeded::Consumer => (
                    TurnedAway::ConsumerRate,
                    "more requests a second than a consumer may send (consumerRate)",
                ),
            };
            return Some((why, Problem::new(Cause::TooManyRequests).detail(detail)));
        }
        let judged = self.judge(request, weight, delay);
        // A request that its consumer has given up is not carried out at any load (TS 29.500 §6.11.2), unless it ends something:
        // its consumer has forgotten that.
        let admission = match judged {
            Admission::Admitted if weight != Weight::Ends && is_late(request) => Admission::Late,
            judged => judged,
        };
        let why = match admission {
            Admission::Late => TurnedAway::Late,
            _ => TurnedAway::Discarded,
        };
        refusal(admission).map(|problem| (why, problem))
    }

    fn judge(&self, request: &Request, weight: Weight, delay: Duration) -> Admission {
        let now = Instant::now();
        let longest = waited(request, now).max(delay);
        let age_limit = self.overload.waiting.age_limit.duration();
        match weight {
            Weight::Begins => self.shedder.admit(
                now,
                longest,
                Overload::SBI,
                &Ahead {
                    request,
                    offer: &Offer(request),
                    age_limit,
                },
            ),
            Weight::Changes => self.shedder.admit(
                now,
                longest,
                Overload::SBI,
                &Ahead {
                    request,
                    offer: &Change(Offer(request)),
                    age_limit,
                },
            ),
            Weight::Ends => {
                self.shedder.observe(now, longest);
                Admission::Admitted
            }
        }
    }

    /// Why the sender of a request may not use a service, and the answer; `root` is the root of the function's own URIs.
    #[must_use]
    pub fn denied(&self, request: &Request, service: &str, root: &str) -> Option<(TurnedAway, Response)> {
        let refused = self.gate.admit(request, service).err()?;
        let why = match refused {
            Refused::Token(_) => TurnedAway::Token,
            Refused::Identity(_) => TurnedAway::Identity,
        };
        Some((why, refused.into_response(root)))
    }
}
