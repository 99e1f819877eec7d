//! How another set stands, for the admin page.

use std::time::SystemTime;

use arc_swap::ArcSwap;

use crate::config::GrowthSet;

/// Another set, and how retrieving its state goes.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) set: GrowthSet,
    state: ArcSwap<State>,
}

/// What came of the last attempt.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    /// The NRF that has answered.
    pub(crate) nrf: Option<String>,
    /// When it was.
    pub(crate) answered: Option<SystemTime>,
    /// When a state came that differs from the one before.
    pub(crate) changed: Option<SystemTime>,
    /// Why the last attempt failed; `None` after an answer.
    pub(crate) failure: Option<String>,
}

impl Standing {
    pub(crate) fn new(set: GrowthSet) -> Self {
        Self {
            set,
            state: ArcSwap::default(),
        }
    }

    pub(crate) fn state(&self) -> State {
        State::clone(&self.state.load())
    }

    pub(super) fn answered(&self, nrf: &str, changed: bool) {
        let now = SystemTime::now();
        let before = self.state();
        self.state.store(
            State {
                nrf: Some(nrf.to_owned()),
                answered: Some(now),
                changed: if changed { Some(now) } else { before.changed },
                failure: None,
            }
            .into(),
        );
    }

    pub(super) fn failed(&self, reason: String) {
        let failure = Some(reason);
        self.state.store(
            State {
                failure,
                ..self.state()
            }
            .into(),
        );
    }
}
