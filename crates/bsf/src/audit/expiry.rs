//! Bindings of PDU sessions that nothing confirms: removed after `bindingLifetime`, with or without NRFs.
//!
//! TS 29.521 gives a binding no end of its own. What writes a binding confirms it: its PCF, or the audit, which writes each
//! binding again of whose PCF the NRF has said something. A query of a consumer confirms nothing.

use std::time::Duration;

use store::{Audit as Walk, AuditConfig, Decision, Stored};

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
        auditor.ages.clock.clone(),
    );
    let mut decide = async |stored: &Stored<PcfBinding>| {
        let lifetime = lifetime.duration();
        // Of another site's binding it is that site which removes it, unless it has not done so for as long again.
        let is_anothers = auditor
            .ages
            .is_of_another_site(stored, &config.store.site, lifetime);
        if !is_anothers && auditor.ages.is_over(stored.modified(), lifetime) {
            auditor.remove(stored, Event::BindingExpired, &config.audit).await;
        }
        Decision::Keep
    };
    walk.round(&mut decide).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_are_as_frequent_as_the_lifetime_needs() {
        let minutes = |count: u64| Duration::from_secs(60 * count);
        assert_eq!(pause(Duration::ZERO, minutes(10)), minutes(10));
        assert_eq!(pause(minutes(600), minutes(10)), minutes(10));
        assert_eq!(pause(minutes(8), minutes(10)), minutes(2));
        assert_eq!(pause(minutes(8), Duration::ZERO), LEAST_PAUSE);
    }
}
