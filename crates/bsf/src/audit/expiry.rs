//! Bindings of PDU sessions that nothing confirms: removed after `bindingLifetime`, with or without NRFs.
//!
//! TS 29.521 gives a binding no end of its own. What writes a binding confirms it: its PCF, or the audit, which writes each
//! binding again of whose PCF the NRF has said something. A query of a consumer confirms nothing.

use std::time::Duration;

use store::{Audit as Walk, AuditConfig, Clock, Decision, Stored, is_plausible};

use super::Auditor;
use crate::binding::PcfBinding;
use crate::events::Event;

/// The least pause between two walks.
const LEAST_PAUSE: Duration = Duration::from_millis(10);

/// Removes bindings whose lifetime is over, until dropped.
pub(super) async fn run(auditor: &Auditor) {
    loop {
        let config = auditor.live.load().config.clone();
        let lifetime = config.binding_lifetime.duration();
        tokio::time::sleep(pause(lifetime, config.audit.walk.pause.duration())).await;
        if let Err(error) = walk(auditor).await {
            tracing::warn!(%error, "not all bindings whose lifetime is over were removed; the next walk goes on");
        }
    }
}

/// No binding stays for much longer than its lifetime because of the pause.
fn pause(lifetime: Duration, between_walks: Duration) -> Duration {
    let pause = match lifetime.is_zero() {
        true => between_walks,
        false => between_walks.min(lifetime / 4),
    };
    pause.max(LEAST_PAUSE)
}

async fn walk(auditor: &Auditor) -> Result<(), store::Error> {
    let config = auditor.live.load().config.clone();
    let lifetime = config.binding_lifetime;
    if lifetime.is_zero() {
        return Ok(());
    }
    auditor.measure().await?;
    let settings = AuditConfig {
        enabled: true,
        older_than: lifetime,
        rate: config.audit.removal_rate.max(1),
        ..config.audit.walk.clone()
    };
    let walk = Walk::new(
        auditor.repository.sessions.clone(),
        settings,
        auditor.clock.clone(),
    );
    let mut decide = async |stored: &Stored<PcfBinding>| {
        let is_own = *stored.site == *config.store.site;
        if is_over(stored.modified(), is_own, lifetime.duration(), &auditor.clock) {
            auditor.remove(stored, Event::BindingExpired, &config.audit).await;
        }
        Decision::Keep
    };
    walk.round(&mut decide).await
}

/// Whether the lifetime of a binding that was last written at `modified`, in microseconds since 1970, is over. Of another
/// site's binding it is that site which removes it, unless it has not done so for as long again.
fn is_over(modified: u64, is_own: bool, lifetime: Duration, clock: &Clock) -> bool {
    let age = match is_own {
        true => lifetime,
        false => lifetime.saturating_mul(2),
    };
    let age = u64::try_from(age.as_micros()).unwrap_or(u64::MAX);
    is_plausible(modified, clock) && modified.saturating_add(age) < clock.micros()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::*;

    #[test]
    fn a_lifetime_counts_from_the_last_write() {
        const DAY: Duration = Duration::from_secs(86_400);
        let hours = |count: u64| count * 3_600_000_000;
        let now = Arc::new(AtomicU64::new(hours(1_000)));
        let read = now.clone();
        let clock = Clock::new(move || read.load(Relaxed));
        let mut written = hours(1_000);
        for (hour, own, others) in [(1_000, false, false), (1_024, false, false), (1_025, true, false)] {
            now.store(hours(hour), Relaxed);
            let over = [true, false].map(|is_own| is_over(written, is_own, DAY, &clock));
            assert_eq!(over, [own, others], "{hour}");
        }
        // Its PCF, or the audit, writes it.
        written = hours(1_025);
        assert!(!is_over(written, true, DAY, &clock));
        now.store(hours(1_074), Relaxed);
        assert!(is_over(written, true, DAY, &clock) && is_over(written, false, DAY, &clock));
        // A clock was wrong: nothing is known of its age.
        assert!(!is_over(hours(9_000), true, DAY, &clock));
    }

    #[test]
    fn walks_are_as_frequent_as_the_lifetime_needs() {
        let minutes = |count: u64| Duration::from_secs(60 * count);
        assert_eq!(pause(Duration::ZERO, minutes(10)), minutes(10));
        assert_eq!(pause(minutes(600), minutes(10)), minutes(10));
        assert_eq!(pause(minutes(8), minutes(10)), minutes(2));
        assert_eq!(pause(minutes(8), Duration::ZERO), LEAST_PAUSE);
    }
}
