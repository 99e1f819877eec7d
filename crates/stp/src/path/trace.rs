//! The explanation of a decision, where one is wanted.

/// Steps of a decision; on the path of traffic there are none, and no text is made.
#[derive(Default)]
pub(crate) struct Trace(Option<Vec<String>>);

impl Trace {
    /// Collects steps.
    pub(crate) fn recording() -> Self {
        Self(Some(Vec::new()))
    }

    #[inline]
    pub(crate) fn add(&mut self, step: impl FnOnce() -> String) {
        if let Some(steps) = &mut self.0 {
            steps.push(step());
        }
    }

    pub(crate) fn steps(self) -> Vec<String> {
        self.0.unwrap_or_default()
    }
}
