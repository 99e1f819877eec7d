//! Bindings to a PCRF that does not serve them: after several such results the sessions that make the binding are removed, and the next
//! session of the subscriber chooses a PCRF.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use diameter_proto::{Message, ResultCode};
use dsr_app::On;
use sbr::{Session, Shards};

use crate::config::SuspectBindings;
use crate::events::Event;
use crate::facts::Facts;
use crate::within::correlate;
use crate::{Correlated, Pdra, Shared};

/// Bindings in a part that are suspected at once; further ones are not.
const MOST: usize = 1_024;

/// Results that count against bindings.
#[derive(Debug, Default)]
pub(crate) struct Strikes {
    bindings: Shards<Strike>,
    /// Sessions that were removed and are not counted yet.
    removed: AtomicU64,
}

#[derive(Debug)]
struct Strike {
    count: u32,
    until: Instant,
}

impl Strikes {
    /// A result counts against a binding. Whether it is one too many.
    fn strike(&self, binding: &[u8], settings: &SuspectBindings, now: Instant) -> bool {
        let mut shard = self.bindings.lock(binding);
        let (until, is_crowded) = (now + settings.within.duration(), shard.len() >= MOST);
        let known = shard.get_mut(binding).filter(|strike| now < strike.until);
        let count = match known {
            Some(strike) => {
                strike.count += 1;
                strike.count
            }
            None if is_crowded => return false,
            None => {
                shard.insert(binding.to_vec(), Strike { count: 1, until });
                1
            }
        };
        let is_over = count >= settings.count;
        if is_over {
            shard.remove(binding);
        }
        is_over
    }

    /// Sessions that were removed since this was asked last.
    pub(crate) fn take_removed(&self) -> u64 {
        self.removed.swap(0, Relaxed)
    }

    /// Removes what is void.
    pub(crate) fn purge(&self, now: Instant) {
        self.bindings.retain(|strike| now < strike.until);
    }
}

impl Pdra {
    /// A request to a PCRF came to this result; none: it did not say.
    pub(crate) fn suspect(&self, on: &On<'_, Self>, request: &Message, result: Option<ResultCode>) {
        let settings = &self.settings.suspect_bindings;
        if !result.is_some_and(|result| settings.results.contains(&result.0)) {
            return;
        }
        let Some(facts) = Facts::read_sent(request) else {
            return;
        };
        on.count(Event::Suspected);
        let (settings, shared, now) = (settings.clone(), self.shared.clone(), on.now);
        let repository = self.shared.opened.repository().clone();
        let asked = facts.destination_host.clone();
        let found = correlate(
            repository,
            facts,
            self.settings.keys.clone(),
            self.domains.clone(),
        );
        self.shared.opened.spawn(async move {
            let found = found.await.ok().flatten().map(|found| match found {
                Correlated::Own(session) | Correlated::Other { session, .. } => session,
            });
            let bound = found.filter(|session| session.server.host.eq_ignore_ascii_case(&asked));
            if let Some(session) = bound {
                // What is not removed now is with one of the next results.
                let _ = judge(&shared, &session, &settings, now).await;
            }
        });
    }
}

/// Counts a result against the binding of a session, and removes that when it is one too many.
async fn judge(
    shared: &Arc<Shared>,
    session: &Session,
    settings: &SuspectBindings,
    now: Instant,
) -> Result<(), store::Error> {
    let Some(binding) = &session.binding else {
        return Ok(());
    };
    let host = session.server.host.to_ascii_lowercase();
    let name = [&binding.key, &b"/"[..], host.as_bytes()].concat();
    if shared.strikes.strike(&name, settings, now) {
        let removed = shared.opened.repository().unbind(&binding.key, &host).await?;
        shared.strikes.removed.fetch_add(removed, Relaxed);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_binding_has_as_many_results_in_as_much_time() {
        let (strikes, now) = (Strikes::default(), Instant::now());
        let settings = SuspectBindings {
            count: 3,
            within: settings::Period::from_secs(60),
            ..SuspectBindings::default()
        };
        let strike =
            |binding: &[u8], seconds| strikes.strike(binding, &settings, now + Duration::from_secs(seconds));
        assert!(!strike(b"a", 0) && !strike(b"a", 59) && !strike(b"b", 59));
        assert!(strike(b"a", 59));
        // It begins again, and so it does when the time is over.
        assert!(!strike(b"a", 59) && !strike(b"a", 60));
        assert!(!strike(b"a", 119) && !strike(b"a", 120) && strike(b"a", 121));
        strikes.purge(now + Duration::from_secs(200));
        assert!(strikes.bindings.is_empty());
    }

    #[test]
    fn bindings_that_are_suspected_are_bounded() {
        let (strikes, now) = (Strikes::default(), Instant::now());
        let settings = SuspectBindings::default();
        for number in 0..200 * MOST as u64 {
            strikes.strike(&number.to_be_bytes(), &settings, now);
        }
        assert!(strikes.bindings.len() <= 64 * MOST);
    }
}
