//! Requests that are in flight together, a bounded number of them.

use std::pin::Pin;

use futures_util::StreamExt as _;
use futures_util::stream;

/// A request.
pub(super) type Request<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Requests of one batch, page or index key in flight at the same time.
const AT_ONCE: usize = 16;

/// The answers, in the order of the requests.
pub(super) async fn all<T: Send>(requests: Vec<Request<'_, T>>) -> Vec<T> {
    let mut answers = Vec::with_capacity(requests.len());
    let mut running = stream::iter(requests).buffered(AT_ONCE);
    while let Some(answer) = running.next().await {
        answers.push(answer);
    }
    answers
}
