use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::instance_path;
use crate::nrfs::{Answer, Nrfs};

/// A function that registers with NRFs.
pub trait Presence {
    /// Its `nfInstanceId`.
    fn id(&self) -> &str;
    /// Its `NFProfile` (TS 29.510 §6.1.6.2.2), as of now.
    fn profile(&self) -> Value;
    /// Its `nfStatus`, as of now.
    fn status(&self) -> &'static str;
    /// Its `load`, in percent, as of now.
    fn load(&self) -> u8;
    /// Interval of heart-beats, unless the NRF assigns one.
    fn heart_beat(&self) -> Duration;
    /// Pause before the next attempt after a failed registration.
    fn retry(&self) -> Duration;
    /// Reports whether the function is registered: at which NRF, or why at none. Called after each attempt and each
    /// heart-beat.
    fn report(&self, _outcome: Result<&str, &str>) {}
}

/// Registers the function and sends heart-beats (TS 29.510 §5.2.2.2 and §5.2.2.3.2). Never returns.
pub async fn stay_registered(nrfs: &Nrfs, me: &impl Presence) {
    let mut interval = None;
    loop {
        interval = match interval {
            Some(interval) => beat(nrfs, me, interval).await,
            None => None,
        };
        // The NRF does not have the instance: it has lost it, or another NRF of the set answers.
        if interval.is_none() {
            interval = register(nrfs, me).await;
        }
        match interval {
            Some(_) => me.report(Ok(&nrfs.answered_by())),
            None => me.report(Err(&nrfs.last_failure())),
        }
        tokio::time::sleep(interval.unwrap_or_else(|| me.retry())).await;
    }
}

/// Deregisters the function (TS 29.510 §5.2.2.4). Logs nothing when no NRF answers: an NRF on the same machine may
/// stop at the same time, and any other NRF detects the missing heart-beats.
pub async fn deregister(nrfs: &Nrfs, id: &str) {
    let _ = nrfs.ask(&Method::DELETE, &instance_path(id), None).await;
}

/// Registers the function. Returns the interval of heart-beats, or `None` when no NRF accepts the registration.
async fn register(nrfs: &Nrfs, me: &impl Presence) -> Option<Duration> {
    let body = Some(("application/json", me.profile().to_string().into()));
    let Answer { status, body, .. } = nrfs.send(Method::PUT, &instance_path(me.id()), body).await?;
    if !status.is_success() {
        let problem = String::from_utf8_lossy(&body[..body.len().min(300)]);
        tracing::warn!(%status, %problem, "the NRF refused the registration");
        nrfs.refused(&format!("refused the registration with {status}: {problem}"));
        return None;
    }
    tracing::info!(%status, "registered at the NRF");
    Some(assigned(&body).unwrap_or_else(|| me.heart_beat()))
}

/// Sends a heart-beat. Returns the interval until the next one: an NRF that changes the timer returns it in the answer
/// (TS 29.510 §5.2.2.3.2). `None` when the NRF does not have the instance, or none answers.
async fn beat(nrfs: &Nrfs, me: &impl Presence, interval: Duration) -> Option<Duration> {
    let patch = json!([
        {"op": "replace", "path": "/nfStatus", "value": me.status()},
        {"op": "add", "path": "/load", "value": me.load()},
    ]);
    let body = Some((sbi::json::JSON_PATCH, patch.to_string().into()));
    let answer = nrfs.send(Method::PATCH, &instance_path(me.id()), body).await?;
    let timer = assigned(&answer.body).unwrap_or(interval);
    answer.status.is_success().then_some(timer)
}

/// The `heartBeatTimer` of a profile in an answer, at least 1 s.
fn assigned(body: &[u8]) -> Option<Duration> {
    let profile: Value = serde_json::from_slice(body).ok()?;
    let seconds = profile["heartBeatTimer"].as_u64()?;
    Some(Duration::from_secs(seconds.max(1)))
}
