//! Changes that collide: a change reads a record and writes it as long as no other has written it meanwhile. One that was
//! overtaken begins again, after a random pause, and within this instance one writer of a record at a time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

/// Attempts of a change that others keep overtaking.
const TRIES: u32 = 25;
/// Longest pause before another attempt, in milliseconds.
const LONGEST_PAUSE: u64 = 64;
/// Stripes of records whose overtaken changes wait for one another.
const STRIPES: usize = 64;

/// Why a record is not changed.
#[derive(Debug)]
pub enum ChangeFault<F> {
    /// The change itself says why.
    Refused(F),
    /// The store failed.
    Store(store::Error),
    /// Others keep changing the record.
    Overtaken,
}

impl<F> From<store::Error> for ChangeFault<F> {
    fn from(error: store::Error) -> Self {
        Self::Store(error)
    }
}

/// What became of an attempt.
#[derive(Debug)]
pub enum Attempt<T> {
    /// It has succeeded, or found that there is nothing to do.
    Done(T),
    /// Another writer was faster.
    Overtaken,
}

/// The turns of an instance's writers. Clones share them.
#[derive(Clone, Debug)]
pub struct Turns(Arc<[Mutex<()>; STRIPES]>);

impl Default for Turns {
    fn default() -> Self {
        Self(Arc::new(std::array::from_fn(|_| Mutex::default())))
    }
}

impl Turns {
    /// Attempts a change of what has this key until no other overtakes it.
    ///
    /// # Errors
    /// What an attempt says, or that others have overtaken each.
    pub async fn change<T, F>(
        &self,
        key: &[u8],
        mut attempt: impl AsyncFnMut() -> Result<Attempt<T>, ChangeFault<F>>,
    ) -> Result<T, ChangeFault<F>> {
        let mut turn = None;
        for tried in 0..TRIES {
            if tried > 0 {
                // Within this instance one writer is left; those of other instances meet again after different pauses.
                if turn.is_none() {
                    turn = Some(self.stripe(key).lock().await);
                }
                tokio::time::sleep(pause(tried, worker::Random::default().next())).await;
            }
            if let Attempt::Done(done) = attempt().await? {
                return Ok(done);
            }
        }
        Err(ChangeFault::Overtaken)
    }

    fn stripe(&self, key: &[u8]) -> &Mutex<()> {
        let sum: usize = key.iter().map(|byte| usize::from(*byte)).sum();
        // A remainder of the number of stripes is the position of one.
        &self.0[sum % STRIPES]
    }
}

/// A random time, the longer the more attempts have failed.
fn pause(tried: u32, random: u64) -> Duration {
    let most = (1_u64 << tried.min(16)).min(LONGEST_PAUSE);
    Duration::from_millis(random % (most + 1))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_overtaken_change_begins_again_and_gives_up_at_last() {
        let turns = Turns::default();
        let tried = Cell::new(0);
        let attempt = async |wins: u32| {
            tried.set(tried.get() + 1);
            Ok::<_, ChangeFault<()>>(if tried.get() == wins {
                Attempt::Done(wins)
            } else {
                Attempt::Overtaken
            })
        };
        assert!(matches!(
            turns.change(b"a", async || attempt(1).await).await,
            Ok(1)
        ));
        assert!(matches!(
            turns.change(b"a", async || attempt(7).await).await,
            Ok(7)
        ));
        tried.set(0);
        let ended = turns.change(b"a", async || attempt(1_000).await).await;
        assert!(matches!(ended, Err(ChangeFault::Overtaken)));
        assert_eq!(tried.get(), TRIES);
        let refused: Result<(), _> = turns.change(b"a", async || Err(ChangeFault::Refused(7))).await;
        assert!(matches!(refused, Err(ChangeFault::Refused(7))));
    }

    #[test]
    fn pauses_grow_up_to_a_bound() {
        for (tried, most) in [(1, 2), (2, 4), (5, 32), (6, 64), (24, 64), (u32::MAX, 64)] {
            let longest = (0..1_000).map(|random| pause(tried, random)).max();
            assert_eq!(longest, Some(Duration::from_millis(most)), "{tried}");
        }
    }
}
