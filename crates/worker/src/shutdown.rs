//! A token that fires once and makes all its holders drain.

use tokio_util::sync::CancellationToken;

/// Fires once; cheap to clone, may be awaited anywhere. A child fires with its parent, a parent not with its child.
#[derive(Clone, Debug, Default)]
pub struct Shutdown(CancellationToken);

impl Shutdown {
    /// A token that has not fired.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A token that fires when this one does, and can fire alone.
    #[must_use]
    pub fn child(&self) -> Self {
        Self(self.0.child_token())
    }

    /// Fires the token: all holders drain. A second call has no effect.
    pub fn fire(&self) {
        self.0.cancel();
    }

    /// Whether it has fired.
    #[must_use]
    pub fn has_fired(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Resolves when it has fired, at once if it has already.
    pub async fn fired(&self) {
        self.0.cancelled().await;
    }
}
