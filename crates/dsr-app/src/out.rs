//! Requests of an application's own.

use diameter_proto::MessageMut;

use crate::stage::Memo;

/// What an application sends while it is shown something.
#[derive(Debug, Default)]
pub struct Out(Vec<(MessageMut, Memo)>);

impl Out {
    /// Sends a request of the application's own in a later turn of the worker. Peer route rules route it, as one of the first
    /// local node and of no peer. What comes of it is shown to [`Application::answer`](crate::Application::answer) or
    /// [`lost`](crate::Application::lost) with this memo, on this worker, whether or not the application follows requests;
    /// there [`Flow::Next`](crate::Flow::Next) ends it. Without an available peer the loss comes at once: an application that
    /// tries again waits for its next tick.
    pub fn send(&mut self, request: MessageMut, memo: Memo) {
        self.0.push((request, memo));
    }

    /// Whether nothing is sent.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl IntoIterator for Out {
    type Item = (MessageMut, Memo);
    type IntoIter = std::vec::IntoIter<(MessageMut, Memo)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
