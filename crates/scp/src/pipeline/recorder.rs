//! Notes of the steps for `scp why`. Requests use [`Silent`], which costs nothing.

use std::cell::RefCell;

/// Receiver of the decisions of steps.
pub(super) trait Recorder {
    /// Records a decision of `step`; `text` describes it.
    fn note(&self, step: &'static str, text: impl FnOnce() -> String);
}

/// Discards notes.
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
