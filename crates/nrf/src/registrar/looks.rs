//! What the admin pages show of the registrar.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::Registrar;
use crate::cluster::micros;
use crate::subscriptions::Subscription;

/// A subscription, and whether this NRF notifies it.
pub(crate) type Followed = (Arc<Subscription>, bool);

/// A question of an admin page: the subscriptions, in the order of their ids.
#[derive(Debug)]
pub(crate) struct Look(pub(crate) oneshot::Sender<Vec<Followed>>);

impl Registrar {
    pub(super) fn show(&self, look: Look) {
        let now = micros();
        let each = self.book.iter();
        let all = each.map(|one| (one.clone(), self.notifies(&one.id, now)));
        // The page may not be read any more.
        let _ = look.0.send(all.collect());
    }
}
