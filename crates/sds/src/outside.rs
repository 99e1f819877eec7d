//! What workers await of other threads.

/// Awaits on a worker what another thread completes.
pub(crate) async fn outside<F: Future>(awaited: F) -> F::Output {
    let mut awaited = std::pin::pin!(awaited);
    std::future::poll_fn(|context| worker::outside::poll(context, |context| awaited.as_mut().poll(context)))
        .await
}
