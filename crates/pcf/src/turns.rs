//! The turns of requests of one worker for one association: those that change the same association run one after the other,
//! so that they need not compete for its version in the store.

use std::cell::RefCell;
use std::rc::Rc;

use ahash::AHashMap;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::association::AssociationId;

type Lock = std::sync::Arc<Mutex<()>>;

/// The turns of a worker. They take memory for associations with a request in flight alone.
#[derive(Debug, Default)]
pub(crate) struct Turns(RefCell<AHashMap<AssociationId, Lock>>);

/// A turn; it ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Rc<Turns>,
    id: AssociationId,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Turns {
    /// Waits for the turn of a request.
    pub(crate) async fn of(self: &Rc<Self>, id: AssociationId) -> Turn {
        let lock = self.0.borrow_mut().entry(id).or_default().clone();
        let mut turn = Turn {
            turns: self.clone(),
            id,
            guard: None,
        };
        turn.guard = Some(lock.lock_owned().await);
        turn
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        drop(self.guard.take());
        let mut turns = self.turns.0.borrow_mut();
        // Another request that waits holds a second reference.
        if turns
            .get(&self.id)
            .is_some_and(|lock| Lock::strong_count(lock) == 1)
        {
            turns.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_of_one_association_follow_one_another_and_leave_nothing() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let turns = Rc::new(Turns::default());
        let (one, other) = (AssociationId([1; 16]), AssociationId([2; 16]));
        let inside = RefCell::new(0);
        runtime.block_on(async {
            let each = async || {
                let _turn = turns.of(one).await;
                *inside.borrow_mut() += 1;
                assert_eq!(*inside.borrow(), 1);
                tokio::task::yield_now().await;
                *inside.borrow_mut() -= 1;
            };
            let _elsewhere = turns.of(other).await;
            tokio::join!(each(), each(), each());
            // A request that is given up while it waits leaves nothing either.
            let held = turns.of(one).await;
            let waits = turns.of(one);
            tokio::select! {
                biased;
                _ = waits => unreachable!(),
                () = tokio::task::yield_now() => {}
            }
            drop(held);
        });
        assert!(turns.0.borrow().is_empty());
    }
}
