//! The attempts of one notification.

use std::collections::VecDeque;
use std::time::Duration;

use http::Uri;

use crate::{Answer, Notification, Policy};

/// How far the delivery of a notification has come.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Attempts that have failed.
    attempts: u32,
    /// Redirections followed in this attempt.
    redirects: u32,
    /// Target of a redirection or an alternate; `None`: the callback URI of the subscriber.
    target: Option<Uri>,
    stage: Stage,
}

#[derive(Debug, Default)]
enum Stage {
    /// The subscriber is tried.
    #[default]
    Own,
    /// The subscriber does not answer: alternates are resolved.
    Resolve,
    /// Alternates are tried; these are left.
    Alternates(VecDeque<Uri>),
}

/// What follows from an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Delivered {
        rerouted: bool,
    },
    Refused,
    Failed,
    /// Another target is tried at once.
    Now {
        redirected: bool,
    },
    After(Duration),
}

impl Progress {
    pub(super) fn target<'a>(&'a self, notification: &'a Notification) -> &'a Uri {
        self.target.as_ref().unwrap_or(&notification.target)
    }

    /// Attempts that have failed.
    pub(super) fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Whether alternates have to be resolved next.
    pub(super) fn resolves(&self) -> bool {
        matches!(self.stage, Stage::Resolve)
    }

    /// Takes the alternates; returns whether there is one.
    pub(super) fn resolved(&mut self, places: impl Iterator<Item = Uri>) -> bool {
        let mut places: VecDeque<Uri> = places.collect();
        self.target = places.pop_front();
        self.stage = Stage::Alternates(places);
        self.target.is_some()
    }

    pub(super) fn advance(&mut self, answer: &Answer, policy: &Policy, dice: f64) -> Next {
        let retry_after = match answer {
            Answer::Delivered => {
                let rerouted = matches!(self.stage, Stage::Alternates(_));
                return Next::Delivered { rerouted };
            }
            Answer::Redirect(place) if self.redirects < policy.redirects => {
                self.redirects += 1;
                self.target = Some(place.clone());
                return Next::Now { redirected: true };
            }
            Answer::Refused if matches!(self.stage, Stage::Own) => return Next::Refused,
            Answer::Retry(after) => *after,
            Answer::Redirect(_) | Answer::Refused => None,
        };
        self.redirects = 0;
        self.target = None;
        if let Stage::Alternates(places) = &mut self.stage {
            self.target = places.pop_front();
            return match self.target {
                Some(_) => Next::Now { redirected: false },
                None => Next::Failed,
            };
        }
        self.attempts += 1;
        if self.attempts < policy.attempts {
            return Next::After(policy.pause_after(self.attempts, retry_after, dice));
        }
        if policy.alternates == 0 {
            return Next::Failed;
        }
        self.stage = Stage::Resolve;
        Next::Now { redirected: false }
    }
}
