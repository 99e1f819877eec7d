//! Who may use an association or an AF session: the NF instance that has created it, or another of its NF set, where senders
//! prove their identity (`identity`). What was created without such a proof has no owner, and its URI is what opens it.

use sbi::Request;
use sbi::identity::Actor;

use super::fault::Fault;
use crate::association::{Association, consumer};
use crate::worker::Worker;

/// The sender of a request, as far as it has proved who it is.
pub(super) struct Consumer(Actor);

impl Consumer {
    /// The sender of an admitted request for a service.
    pub(super) fn of(worker: &Worker, request: &Request, service: &str) -> Result<Self, Fault> {
        Ok(Self(worker.actor(request, &[service])?))
    }

    /// The NF instance that it has proved to be.
    pub(super) fn instance(&self) -> Option<&str> {
        self.0.instance()
    }

    /// Makes an association its own.
    pub(super) fn own(&self, association: &mut Association) {
        if let Some(instance) = self.instance() {
            consumer::keep(association, instance);
        }
    }

    /// Refuses a sender that is neither the owner nor of its NF set.
    pub(super) async fn may_use(&self, worker: &Worker, owner: Option<&str>) -> Result<(), Fault> {
        let Some(owner) = owner else { return Ok(()) };
        let Err(problem) = self.0.may_use_what_is_of(owner) else {
            return Ok(());
        };
        match self.instance() {
            Some(own) if worker.peers().are_of_one_set(own, owner).await => Ok(()),
            _ => Err(problem.into()),
        }
    }

    /// Makes an association its own that an instance of these NF types may take over from another. A type is refused that the NRF
    /// names, and a sender that proves too little; while no NRF answers the association's URI opens it.
    pub(super) async fn take_over(
        &self,
        worker: &Worker,
        association: &mut Association,
        nf_types: &[&str],
    ) -> Result<(), Fault> {
        let Err(refusal) = self.may_use(worker, consumer::of(association)).await else {
            self.own(association);
            return Ok(());
        };
        let Some(own) = self.instance() else {
            return Err(refusal);
        };
        match worker.peers().nf_type_of(own).await {
            Some(nf_type) if !nf_types.contains(&&*nf_type) => Err(refusal),
            _ => {
                self.own(association);
                Ok(())
            }
        }
    }

    /// As [`Self::may_use`], of a stored association; where no sender can prove who it is nothing is read.
    pub(super) async fn may_use_stored(&self, worker: &Worker, id: &str) -> Result<(), Fault> {
        if self.instance().is_none() && !worker.config().proves_senders() {
            return Ok(());
        }
        // One that cannot be read has no owner that could be known.
        let stored = match worker.repository().get(super::id_of(id)?).await {
            Err(store::Error::Corrupt { .. }) => None,
            stored => stored?,
        };
        match stored {
            Some(stored) => self.may_use(worker, consumer::of(&stored.record)).await,
            None => Ok(()),
        }
    }
}
