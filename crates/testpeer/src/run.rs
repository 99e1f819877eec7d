//! A test on a runtime of its own, with a deadline.

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// The deadline of a test. The slowest tests take a tenth of it on an idle machine.
const DEADLINE: Duration = Duration::from_secs(300);

/// The time after the deadline in which the test has to return control to its runtime.
const GRACE: Duration = Duration::from_secs(30);

/// Runs a test as a worker runs a function: on one thread, with tasks that need not be [`Send`].
///
/// The deadline is in real time, also where the test has paused the clock of its runtime.
///
/// # Panics
/// When the test takes longer than its deadline of five minutes. A test that blocks its thread ends the process.
pub fn local<F: Future>(test: F) -> F::Output {
    local_within(DEADLINE, test)
}

/// As [`local`], with a deadline of its own, for a test whose size is a setting.
///
/// # Panics
/// When the test takes longer than the deadline. A test that blocks its thread ends the process.
pub fn local_within<F: Future>(deadline: Duration, test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be made");
    let (expire, expired) = tokio::sync::oneshot::channel();
    // Dropped when the test has ended, however it ended.
    let (_running, ended) = sync_channel::<()>(0);
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    std::thread::spawn(move || {
        if ended.recv_timeout(deadline) != Err(RecvTimeoutError::Timeout) {
            return;
        }
        let _ = expire.send(());
        if ended.recv_timeout(GRACE) == Err(RecvTimeoutError::Timeout) {
            eprintln!("{name}: blocks its thread and has exceeded its deadline of {deadline:?}");
            std::process::abort();
        }
    });
    tokio::task::LocalSet::new().block_on(&runtime, async {
        tokio::select! {
            biased;
            output = test => output,
            Ok(()) = expired => panic!("the test takes longer than its deadline of {deadline:?}"),
        }
    })
}

/// Polls until the condition holds.
///
/// # Panics
/// When the condition does not hold within a minute.
pub async fn until(condition: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..6_000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not reached within a minute: {condition}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_in_time_returns_its_output() {
        assert_eq!(local(async { 7 }), 7);
    }

    #[test]
    #[should_panic(expected = "longer than its deadline")]
    fn a_test_that_hangs_fails_at_its_deadline() {
        local_within(Duration::from_millis(20), std::future::pending::<()>());
    }
}
