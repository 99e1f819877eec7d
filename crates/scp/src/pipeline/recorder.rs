//! What `scp why` hears of the steps. Requests use [`Silent`], which costs nothing.

use std::cell::RefCell;

/// Hears why a step decides as it does.
pub(super) trait Recorder {
    /// `step` has decided something; `text` says what and why.
    fn note(&self, step: &'static str, text: impl FnOnce() -> String);
}

/// Hears nothing.
pub(super) struct Silent;

impl Recorder for Silent {
    fn note(&self, _step: &'static str, _text: impl FnOnce() -> String) {}
}

/// Keeps the notes in their order, each with its step.
#[derive(Default)]
pub(super) struct Notes(pub(super) RefCell<Vec<(&'static str, String)>>);

impl Recorder for Notes {
    fn note(&self, step: &'static str, text: impl FnOnce() -> String) {
        self.0.borrow_mut().push((step, text()));
    }
}
