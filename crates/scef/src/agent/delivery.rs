//! Delivery of downlink data (TS 23.682 §5.13.3): in the order of acceptance for each device, with a repetition that the MME
//! recognises, buffered while the device is not reachable, until its time is over.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use ahash::{AHashMap, AHashSet};
use diameter::endpoint::{Endpoint, RequestError, SendOptions, To};
use diameter::proto::{Message, known};
use serde_json::{Value, json};
use store::{Batch, Error, Stored};
use tokio::sync::oneshot;

use super::Agent;
use crate::clock::{after, now};
use crate::events::Event;
use crate::orders::{Outcome, Waiting};
use crate::record::{Connection, Downlink, GroupOutcome, Id, Notice, Status};
use crate::repository::{Repository, delete_as_read};
use crate::t6a::{INVALID_BEARER, MtData, TEMPORARILY_UNREACHABLE};
use crate::worker::{Front, Worker};
use crate::{s6t, shape, t6a};

/// Pause between two searches for data that is due.
const PAUSE: Duration = Duration::from_secs(1);
/// Due data that a search reads at a time.
const MOST: usize = 256;
/// Devices that a search does not go beyond: further ones are delivered to when their data is found again.
const RUNNING: usize = 4_096;
/// Data of one device that is read at a time.
const OF_DEVICE: usize = 1_000;

/// The deliveries to all devices. Clones share them.
#[derive(Clone)]
pub(crate) struct Deliveries(Rc<Shared>);

struct Shared {
    front: Rc<Front>,
    node: OnceCell<Endpoint<Agent>>,
    /// Configurations whose data is being delivered, and whether there may be more by now.
    running: RefCell<AHashMap<Id, bool>>,
    /// Configurations whose device has become reachable.
    reachable: RefCell<AHashSet<Id>>,
    /// Pending requests of SCS/AS, by NIDD configuration and data.
    waiting: RefCell<BTreeMap<(Id, Id), oneshot::Sender<Outcome>>>,
}

/// What an attempt has come to.
enum Attempt {
    Delivered(Status),
    /// The device is not reachable until this time at most, in microseconds since 1970.
    Unreachable(Option<u64>),
    /// The MME does not know the connection.
    Disconnected,
    /// It is not known whether the MME has it.
    Unanswered,
    /// Nothing was sent: the MME is not connected.
    Unsent,
    Refused,
}

impl Deliveries {
    pub(crate) fn new(front: Rc<Front>) -> Self {
        Self(Rc::new(Shared {
            front,
            node: OnceCell::new(),
            running: RefCell::default(),
            reachable: RefCell::default(),
            waiting: RefCell::default(),
        }))
    }

    /// Begins to deliver what is due, what an earlier process has left included.
    pub(crate) fn begin(&self, node: Endpoint<Agent>) {
        // It is called once.
        let _ = self.0.node.set(node);
        let deliveries = self.clone();
        tokio::task::spawn_local(async move {
            loop {
                let due = |one| deliveries.deliver_idle(one);
                if let Err(error) = deliveries.repository().each_due(MOST, due).await {
                    tracing::warn!(%error, "failed to look for data that is due");
                }
                tokio::time::sleep(PAUSE).await;
            }
        });
    }

    /// Delivers what is stored for the device of a configuration.
    pub(crate) fn deliver(&self, configuration: Id, waiting: Option<Waiting>) {
        if let Some(Waiting { downlink, reply }) = waiting {
            let mut waiting = self.0.waiting.borrow_mut();
            waiting.insert((configuration, downlink), reply);
        }
        if let Some(more) = self.0.running.borrow_mut().get_mut(&configuration) {
            *more = true;
            return;
        }
        self.0.running.borrow_mut().insert(configuration, false);
        let deliveries = self.clone();
        tokio::task::spawn_local(async move { deliveries.run(configuration).await });
    }

    /// Delivers what is due for the device of a configuration, unless it is being delivered.
    fn deliver_idle(&self, configuration: Id) {
        let running = self.0.running.borrow();
        let begins = running.len() < RUNNING && !running.contains_key(&configuration);
        drop(running);
        if begins {
            self.deliver(configuration, None);
        }
    }

    /// The device of a configuration has become reachable.
    pub(crate) fn reachable(&self, configuration: Id) {
        self.0.reachable.borrow_mut().insert(configuration);
        self.deliver(configuration, None);
    }

    async fn run(&self, configuration: Id) {
        loop {
            if let Err(error) = self.round(configuration).await {
                tracing::warn!(%error, %configuration, "data for a device was not delivered; it is tried again");
            }
            let mut running = self.0.running.borrow_mut();
            match running.get_mut(&configuration) {
                Some(more) if *more => *more = false,
                _ => {
                    running.remove(&configuration);
                    break;
                }
            }
        }
        // The data of requests that are still pending was cancelled, or could not be read. Their answer is `BUFFERING`.
        let mut waiting = self.0.waiting.borrow_mut();
        while let Some((key, _)) = waiting
            .range((configuration, Id::MIN)..=(configuration, Id::MAX))
            .next()
        {
            let key = *key;
            waiting.remove(&key);
        }
    }

    /// The pending request of the SCS/AS that sent data.
    fn waiting(&self, one: &Downlink) -> Option<oneshot::Sender<Outcome>> {
        let key = (one.configuration, one.id);
        self.0.waiting.borrow_mut().remove(&key)
    }

    fn repository(&self) -> &Repository {
        &self.0.front.function().repository
    }

    async fn round(&self, configuration: Id) -> Result<(), Error> {
        let reachable = self.0.reachable.borrow_mut().remove(&configuration);
        let worker = self.0.front.worker();
        let found = self.repository().downlinks_of(configuration, OF_DEVICE).await?;
        let connection = self.repository().connections_of(configuration).await?;
        let connection = connection.into_iter().next();
        // Why, and until when, what follows is not sent: the order is kept, so that the first one decides.
        let mut held = match &connection {
            Some(_) => None,
            None => Some((Status::Buffering, u64::MAX)),
        };
        let mut is_first = true;
        for one in found {
            if one.expires <= now() {
                let outcome = Outcome::Failed(Status::FailureTimeout);
                self.finish(&worker, &one, outcome).await?;
                continue;
            }
            if held.is_none() && is_first && !reachable && one.due > now() {
                held = Some((one.status, one.due));
            }
            is_first = false;
            match (&connection, held) {
                (Some(connection), None) => held = self.attempt(&worker, &one, connection).await?,
                (_, held) => {
                    let (status, due) = held.unwrap_or((Status::Buffering, u64::MAX));
                    self.hold(&worker, &one, status, due).await?;
                }
            }
        }
        Ok(())
    }

    /// Sends data once; if what follows is to be held, returns why and until when.
    async fn attempt(
        &self,
        worker: &Rc<Worker>,
        one: &Stored<Downlink>,
        connection: &Stored<Connection>,
    ) -> Result<Option<(Status, u64)>, Error> {
        let Some(sending) = self.begin_sending(worker, one).await? else {
            // It was replaced or cancelled.
            return Ok(None);
        };
        let again = one.sent.is_some();
        let attempt = self.send(worker, &sending, connection, again).await;
        let retry = after(worker.config().nidd.retry_pause.duration());
        Ok(match attempt {
            Attempt::Delivered(status) => {
                self.finish(worker, &sending, Outcome::Delivered(status)).await?;
                None
            }
            Attempt::Refused => {
                let outcome = Outcome::Failed(Status::FailureNextHop);
                self.finish(worker, &sending, outcome).await?;
                None
            }
            Attempt::Unreachable(until) => {
                // A time that is over would be tried all the time.
                let due = until.map_or(u64::MAX, |until| if until > now() { until } else { retry });
                let status = Status::BufferingTemporarilyNotReachable;
                self.hold_unsent(worker, sending, status, due).await?;
                Some((status, due))
            }
            Attempt::Disconnected => {
                let repository = self.repository();
                repository
                    .remove_as_read(&repository.connections, connection)
                    .await?;
                worker.count(Event::Disconnected);
                let (status, due) = (Status::Buffering, u64::MAX);
                self.hold_unsent(worker, sending, status, due).await?;
                Some((status, due))
            }
            Attempt::Unsent if !again => {
                self.hold_unsent(worker, sending, Status::Buffering, retry)
                    .await?;
                Some((Status::Buffering, retry))
            }
            Attempt::Unsent | Attempt::Unanswered => {
                self.hold(worker, &sending, Status::Sending, retry).await?;
                Some((Status::Sending, retry))
            }
        })
    }

    /// Writes that data is sent, before it is: after a crash it is sent again with the same identifiers.
    async fn begin_sending(
        &self,
        worker: &Worker,
        one: &Stored<Downlink>,
    ) -> Result<Option<Stored<Downlink>>, Error> {
        let settings = &worker.config().diameter;
        let sent = one.sent.clone().or_else(|| {
            let node = self.0.node.get()?;
            Some((s6t::session_id(settings), node.node().end_to_end()))
        });
        let changed = Downlink {
            sent,
            status: Status::Sending,
            due: after(settings.timeout.duration()),
            ..one.record.clone()
        };
        self.change(one, changed).await
    }

    async fn send(&self, worker: &Worker, one: &Downlink, connection: &Connection, again: bool) -> Attempt {
        let settings = &worker.config().diameter;
        let (Some(node), Some(sent)) = (self.0.node.get(), &one.sent) else {
            return Attempt::Unsent;
        };
        let wait = settings.timeout.duration();
        let data = MtData {
            connection,
            sent,
            again,
            data: &shape::octets_of(&one.document, "data"),
            wait,
            until: one.buffered.then_some(one.expires),
        };
        let Some(message) = t6a::mt_data(settings, &data) else {
            return Attempt::Refused;
        };
        worker.count(if again { Event::Resent } else { Event::NiddMessage });
        let options = SendOptions {
            deadline: wait,
            failover: false,
        };
        let answer = node.request(To::Routed, message, options).await;
        attempt_of(worker, answer, &connection.host)
    }

    /// Holds data that was not sent, or that the MME does not have.
    async fn hold_unsent(
        &self,
        worker: &Worker,
        mut one: Stored<Downlink>,
        status: Status,
        due: u64,
    ) -> Result<(), Error> {
        // What is stored has the status of data that is sent: `hold` writes it in any case.
        one.record.sent = None;
        self.hold(worker, &one, status, due).await
    }

    /// Holds data until this time, or ends it where it is not buffered.
    async fn hold(
        &self,
        worker: &Worker,
        one: &Stored<Downlink>,
        status: Status,
        due: u64,
    ) -> Result<(), Error> {
        if !one.buffered {
            let why = match status {
                Status::Sending => Status::FailureTimeout,
                // Only a connection ends the wait, or the MME of the connection is tried again.
                Status::Buffering if due == u64::MAX => Status::Failure,
                Status::Buffering => Status::FailureNextHop,
                _ => Status::FailureTemporarilyNotReachable,
            };
            return self.finish(worker, one, Outcome::Failed(why)).await;
        }
        let status = match (&one.sent, status) {
            (Some(_), _) => Status::Sending,
            // It waits behind what is being sent.
            (None, Status::Sending) => Status::Buffering,
            (None, status) => status,
        };
        let changed = Downlink {
            status,
            due,
            ..one.record.clone()
        };
        if changed != one.record {
            self.change(one, changed).await?;
        }
        if let Some(waiting) = self.waiting(one) {
            // An SCS/AS that has given up knows that it is stored.
            let _ = waiting.send(Outcome::Buffered(status));
        }
        Ok(())
    }

    /// Replaces data as it was read; `None` if it was replaced or cancelled meanwhile.
    async fn change(
        &self,
        one: &Stored<Downlink>,
        changed: Downlink,
    ) -> Result<Option<Stored<Downlink>>, Error> {
        let repository = self.repository();
        repository.update(&repository.downlinks, one, changed).await
    }

    /// Ends data: the pending request of the SCS/AS is answered; without one, the SCS/AS is notified.
    async fn finish(&self, worker: &Worker, one: &Stored<Downlink>, outcome: Outcome) -> Result<(), Error> {
        let repository = self.repository();
        if let Some(delivery) = one.group {
            return self.finish_of_group(worker, one, delivery, outcome).await;
        }
        let waiting = self.waiting(one);
        let notice = notice(worker, one, outcome);
        let mut batch = Batch::default();
        delete_as_read(&mut batch, &repository.downlinks, one);
        let is_awaited = waiting.as_ref().is_some_and(|reply| !reply.is_closed());
        if !is_awaited {
            batch.insert(&repository.notices, &notice);
        }
        if !repository.commit(batch).await? {
            return Ok(());
        }
        count_end(worker, outcome);
        let heard = waiting.is_some_and(|reply| reply.send(outcome).is_ok());
        if is_awaited && !heard {
            // It has given up at this moment.
            repository.insert(&repository.notices, &notice).await?;
        }
        if !heard {
            worker.shared().notify(&notice);
        }
        Ok(())
    }

    /// Ends data of a group for one device, of which the SCS/AS is notified with that of others.
    async fn finish_of_group(
        &self,
        worker: &Worker,
        one: &Stored<Downlink>,
        delivery: Id,
        outcome: Outcome,
    ) -> Result<(), Error> {
        let repository = self.repository();
        let ended = GroupOutcome::new(delivery, &one.document, status_of(outcome));
        let mut batch = Batch::default();
        delete_as_read(&mut batch, &repository.downlinks, one);
        batch.insert(&repository.group_outcomes, &ended);
        if repository.commit(batch).await? {
            count_end(worker, outcome);
        }
        Ok(())
    }
}

fn count_end(worker: &Worker, outcome: Outcome) {
    worker.count(match outcome {
        Outcome::Delivered(_) => Event::Delivered,
        _ => Event::Undelivered,
    });
}

fn status_of(outcome: Outcome) -> Status {
    let (Outcome::Delivered(status) | Outcome::Buffered(status) | Outcome::Failed(status)) = outcome;
    status
}

fn attempt_of(worker: &Worker, answer: Result<Message, RequestError>, mme: &str) -> Attempt {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => {
            worker.count(Event::DiameterUnanswered);
            tracing::debug!(%error, "an MME has not answered");
            return if error.is_unsent() {
                Attempt::Unsent
            } else {
                Attempt::Unanswered
            };
        }
    };
    match s6t::refusal(&answer) {
        None => {
            let flags = answer.get(known::TDA_FLAGS).ok().flatten().unwrap_or_default();
            // Bit 0: the eNodeB has acknowledged (TS 29.128 §6.4.31).
            Attempt::Delivered(match flags & 1 {
                1 => Status::SuccessNextHopAcknowledged,
                _ => Status::SuccessNextHopUnacknowledged,
            })
        }
        Some((known::VENDOR_3GPP, TEMPORARILY_UNREACHABLE)) => {
            let at = answer.get(known::REQUESTED_RETRANSMISSION_TIME).ok().flatten();
            Attempt::Unreachable(at.map(s6t::micros))
        }
        Some((known::VENDOR_3GPP, INVALID_BEARER)) => {
            // Without the MME that has the connection the request may reach another one, by its realm.
            let origin = answer.get(known::ORIGIN_HOST).ok().flatten();
            match origin.is_some_and(|origin| origin.eq_ignore_ascii_case(mme)) {
                true => Attempt::Disconnected,
                false => Attempt::Unsent,
            }
        }
        // A router that cannot deliver it, or a busy MME, has not taken it.
        Some((0, 3002 | 3004)) => Attempt::Unsent,
        Some((vendor, code)) => {
            tracing::info!(vendor, code, "an MME has refused data");
            Attempt::Refused
        }
    }
}

/// `NiddDownlinkDataDeliveryStatusNotification` (TS 29.122 §5.6.2.1.5).
fn notice(worker: &Worker, one: &Downlink, outcome: Outcome) -> Notice {
    let body: Value = json!({
        "niddDownlinkDataTransfer": worker.shared().downlink_uri(one),
        "deliveryStatus": status_of(outcome),
    });
    Notice {
        id: Id::new(now()),
        about: one.configuration.to_string(),
        target: one.target.clone(),
        body,
        expires: after(worker.config().notifications.keep.duration()),
    }
}
