//! Delivery of UE policies: the command to the UE through its AMF, the UE's answer, T3501 (TS 29.525 §4.2.2.2,
//! TS 24.501 §D.2.1, TS 29.518 §5.2.2.3).
//!
//! A delivery is planned in the write of the association that needs it, and each attempt is written before the command is
//! sent. What was in flight when a process ended is therefore found in the store, and taken up by the next sweep of any
//! instance.

use std::rc::Rc;
use std::time::Instant;

use sbi::headers::TargetApiRoot;
use store::Scan;

use crate::activity::trail;
use crate::association::callbacks::{self, Producer};
use crate::association::due::DeliveryDue;
use crate::association::ue_policy::{self, Delivery, Progress};
use crate::association::{Association, AssociationId, Kind};
use crate::change::{self, ChangeFault, Rewritten};
use crate::events::Event;
use crate::notices;
use crate::outbound::AMF;
use crate::pds;
use crate::schedule::{Job, Schedule};
use crate::sources::amf::{self, Failure};
use crate::sources::signed_now_ms;
use crate::updp::Message;
use crate::worker::{Front, Worker};

/// Where an AMF notifies of a UE's answer, and that it cannot reach the UE (TS 29.518 §5.2.2.3.5, §5.2.2.3.2), with the
/// segment of [`callbacks`]; the latter with the procedure transaction identity as well.
const CALLBACK: &str = "/signalbox-pcf/v1/ue-policy";

/// Deliveries that are read at a time.
const PAGE: usize = 256;

/// Plans the delivery of the decision of an association at an AMF, where its UE does not have it. One that was given up is
/// planned again where `again` is true.
pub(crate) fn plan(worker: &Worker, association: &mut Association, again: bool) {
    let config = worker.config();
    let is_reachable = config.ue_policy.amf_api_root.is_some() || !config.nrf.api_roots.is_empty();
    let is_at_amf = association.kind == Kind::Ue && association.context.get("guami").is_some();
    if config.ue_policy.deliver && is_reachable && is_at_amf {
        let earlier = Delivery::of(association).is_some_and(|delivery| delivery.subscription.is_some());
        let is_planned = Delivery::plan(association, again, signed_now_ms());
        // The subscription of an earlier release has the path of then.
        if is_planned && !earlier {
            callbacks::open(association, Producer::Amf);
        }
    }
}

/// Begins the delivery that is planned with an association, after it was written.
pub(crate) fn begin(worker: &Worker, association: &Association) {
    if association.kind != Kind::Ue {
        return;
    }
    let planned = Delivery::of(association).filter(|delivery| delivery.progress == Progress::Pending);
    if let Some(delivery) = planned.filter(|delivery| delivery.attempts == 0) {
        push(worker, Job::of(association.id, &delivery));
    }
}

/// Ends the subscription of an association that has ended.
pub(crate) fn close(worker: &Worker, association: &Association) {
    if association.kind == Kind::Ue
        && let Some(uri) = Delivery::of(association).and_then(|delivery| delivery.subscription)
    {
        pds::end(worker, AMF, uri);
    }
}

/// Whether there was room for a job.
fn push(worker: &Worker, job: Job) -> bool {
    let has_room = worker.schedule().push(job, worker.config().ue_policy.queue);
    if !has_room {
        // The sweep finds it in the store.
        worker.count(Event::UePolicyDeferred);
    }
    has_room
}

/// Does what is due at a worker, until the worker ends.
pub(crate) async fn run(front: Rc<Front>) {
    let sweeps = front.seat().context.index == 0;
    let mut sweep = Instant::now();
    loop {
        let worker = front.worker();
        let (schedule, settings) = (worker.schedule().clone(), &worker.config().ue_policy);
        let now = Instant::now();
        if sweeps && settings.deliver && now >= sweep {
            take_up(&worker).await;
            sweep = now + settings.t3501.duration();
        }
        let parallel = settings.parallel;
        while let Some(job) = schedule.take(now, parallel) {
            tokio::task::spawn_local(work(worker.clone(), job));
        }
        let next = schedule.next_timer(parallel);
        let next = match (sweeps && settings.deliver, next) {
            (true, next) => Some(next.map_or(sweep, |next| next.min(sweep))),
            (false, next) => next,
        };
        drop(worker);
        match next {
            Some(next) => tokio::select! {
                () = schedule.woken() => {}
                () = tokio::time::sleep_until(next.into()) => {}
            },
            None => schedule.woken().await,
        }
    }
}

/// Takes up deliveries that are long due: their worker had no room, or its process has ended. "Long" is more than an attempt may
/// take beyond T3501; an attempt that waits for a slow AMF is therefore left to the worker that makes it.
async fn take_up(worker: &Worker) {
    let settings = &worker.config().ue_policy;
    let patience = settings.t3501.duration() + amf::longest(settings.timeout.duration());
    let latest = signed_now_ms().saturating_sub(i64::try_from(patience.as_millis()).unwrap_or(i64::MAX));
    if let Err(error) = resume(worker, latest).await {
        tracing::warn!(%error, "failed to look for deliveries of UE policies in the store");
    }
}

/// Takes up what was due before a time, the oldest first, until the worker has no room for more.
async fn resume(worker: &Worker, latest: i64) -> Result<(), store::Error> {
    // Of an earlier release.
    for stored in worker.repository().of_name(ue_policy::IN_FLIGHT).await? {
        again(worker, &stored.record, latest);
    }
    let end = u64::try_from(latest).unwrap_or(0).to_be_bytes();
    let mut next = Some(Scan::by_index(DeliveryDue::DUE, PAGE).to_key(&end));
    while let Some(scan) = next {
        let page = worker.repository().deliveries().scan(&scan).await?;
        for due in page.records {
            match worker.repository().get(due.record.id).await {
                Ok(Some(stored)) if !again(worker, &stored.record, latest) => return Ok(()),
                Ok(Some(_)) | Err(store::Error::Corrupt { .. }) => {}
                Ok(None) => worker.repository().forget_delivery(due.record.id).await?,
                Err(error) => return Err(error),
            }
        }
        next = page.next;
    }
    Ok(())
}

/// Queues another attempt at the delivery of an association that was due before `latest`; false: the queue is full.
fn again(worker: &Worker, association: &Association, latest: i64) -> bool {
    let overdue =
        Delivery::of(association).filter(|delivery| delivery.is_in_flight() && delivery.due < latest);
    overdue.is_none_or(|delivery| {
        worker.count(Event::UePolicyResumed);
        push(worker, Job::of(association.id, &delivery))
    })
}

/// Counts a job in flight.
struct InFlight(Rc<Schedule>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.done();
    }
}

async fn work(worker: Rc<Worker>, job: Job) {
    let _in_flight = InFlight(worker.schedule().clone());
    if let Some(next) = trail::own(worker.activity(), attempt(&worker, job)).await {
        let settings = &worker.config().ue_policy;
        let moment = Instant::now() + settings.t3501.duration();
        if !worker.schedule().at(moment, next, settings.queue) {
            worker.count(Event::UePolicyDeferred);
        }
    }
}

/// An AMF with a subscription to the answers of the UE, and whether that is new.
struct Reached {
    root: TargetApiRoot,
    subscription: String,
    is_new: bool,
}

/// Makes an attempt at a delivery: the job after it, for when T3501 expires. `None`: none is needed, or another process has
/// taken over.
async fn attempt(worker: &Worker, job: Job) -> Option<Job> {
    let association = match worker.repository().get(job.id).await {
        Ok(stored) => stored?.record,
        Err(error) => {
            tracing::warn!(%error, id = %job.id, "failed to load an association, delivery of its UE policy deferred");
            worker.count(Event::UePolicyDeferred);
            return None;
        }
    };
    trail::concerns(&association);
    let delivery = Delivery::of(&association).filter(|delivery| job.is_due(delivery))?;
    let settings = &worker.config().ue_policy;
    if delivery.attempts > settings.retransmissions {
        let why = delivery.cause.as_deref().unwrap_or("the UE has not answered");
        let cause = format!("given up after {} attempts: {why}", delivery.attempts);
        give_up(worker, job, &cause).await;
        return None;
    }
    let Some(command) = notices::ue_policy(&association, ue_policy::rules_of(&association), delivery.pti)
    else {
        give_up(worker, job, "the UE policy cannot be encoded").await;
        return None;
    };
    let reached = reach(worker, &association, &delivery).await;
    let written = change::rewrite(worker, job.id, async |association| {
        let mut delivery = due(association, job)?;
        delivery.attempts += 1;
        delivery.progress = Progress::Sent;
        delivery.due =
            signed_now_ms() + i64::try_from(settings.t3501.duration().as_millis()).unwrap_or(i64::MAX);
        match &reached {
            Ok(reached) => {
                delivery.amf = Some(reached.root.to_string());
                delivery.subscription = Some(reached.subscription.clone());
                delivery.cause = None;
            }
            Err(failure) if failure.is_final => delivery.fail(&failure.cause),
            Err(failure) => delivery.cause = Some(failure.cause.clone()),
        }
        delivery.keep(association);
        Ok::<_, Overtaken>(())
    });
    if !matches!(written.await, Ok(Some(Rewritten { .. }))) {
        // The association has ended, or another one delivers.
        if let Ok(reached) = reached
            && reached.is_new
        {
            pds::end(worker, AMF, reached.subscription);
        }
        return None;
    }
    let next = Job {
        attempts: job.attempts + 1,
        ..job
    };
    let root = match reached {
        Ok(reached) => reached.root,
        Err(failure) => {
            tracing::debug!(id = %job.id, failure.cause, "a UE policy is not delivered");
            if failure.is_final {
                worker.count(Event::UePolicyFailed);
            }
            return (!failure.is_final).then_some(next);
        }
    };
    let supi = association.text_of("supi").unwrap_or_default();
    let segment = segment_of(&association);
    let failed = format!("{}{CALLBACK}/{segment}/failure/{}", worker.root(), job.pti);
    let message = (supi, command.as_slice(), failed.as_str());
    let timeout = settings.timeout.duration();
    match amf::transfer(worker.peers(), &root, message, timeout).await {
        Ok(()) => {
            worker.count(match job.attempts {
                0 => Event::UePolicySent,
                _ => Event::UePolicyResent,
            });
            Some(next)
        }
        Err(failure) if failure.is_final => {
            give_up(worker, next, &failure.cause).await;
            None
        }
        Err(failure) => {
            note(worker, next, &failure.cause).await;
            Some(next)
        }
    }
}

/// The segment of the paths of an association's AMF.
fn segment_of(association: &Association) -> String {
    let token = callbacks::token(association, Producer::Amf);
    token.map_or_else(|| association.id.to_string(), str::to_owned)
}

/// Another process delivers, or the UE has answered.
struct Overtaken;

fn due(association: &Association, job: Job) -> Result<Delivery, Overtaken> {
    let delivery = Delivery::of(association).filter(|delivery| job.is_due(delivery));
    delivery.ok_or(Overtaken)
}

/// An AMF that has the UE, with a subscription to its answers.
async fn reach(worker: &Worker, association: &Association, delivery: &Delivery) -> Result<Reached, Failure> {
    let settings = &worker.config().ue_policy;
    let peers = worker.peers();
    let roots = amf::find((peers, &worker.sources().discovered), settings, association).await;
    if let (Some(amf), Some(subscription)) = (&delivery.amf, &delivery.subscription)
        && let Some(root) = roots.iter().find(|root| root.to_string() == *amf)
    {
        return Ok(Reached {
            root: root.clone(),
            subscription: subscription.clone(),
            is_new: false,
        });
    }
    let callback = format!("{}{CALLBACK}/{}/n1", worker.root(), segment_of(association));
    let supi = association.text_of("supi").unwrap_or_default();
    let who = (supi, callback.as_str(), worker.config().nf_instance_id.as_str());
    let mut failure = Failure {
        cause: "no AMF is known for the GUAMI of the association".to_owned(),
        is_final: false,
    };
    for root in roots.iter() {
        match amf::subscribe(peers, root, who, settings.timeout.duration()).await {
            Ok(subscription) => {
                // That of another AMF, which has handed the UE over.
                if let Some(old) = &delivery.subscription {
                    pds::end(worker, AMF, old.clone());
                }
                return Ok(Reached {
                    root: root.clone(),
                    subscription,
                    is_new: true,
                });
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

async fn give_up(worker: &Worker, job: Job, cause: &str) {
    let step = async |association: &mut Association| {
        let mut delivery = due(association, job)?;
        delivery.fail(cause);
        delivery.keep(association);
        Ok::<_, Overtaken>(())
    };
    if kept(change::rewrite(worker, job.id, step).await, job.id) {
        tracing::info!(id = %job.id, cause, "the delivery of a UE policy was given up");
        worker.count(Event::UePolicyFailed);
    }
}

/// Keeps why an attempt has failed.
async fn note(worker: &Worker, job: Job, cause: &str) {
    let step = async |association: &mut Association| {
        let mut delivery = due(association, job)?;
        delivery.cause = Some(cause.to_owned());
        delivery.keep(association);
        Ok::<_, Overtaken>(())
    };
    kept(change::rewrite(worker, job.id, step).await, job.id);
}

fn kept<T>(outcome: Result<Option<Rewritten<T>>, ChangeFault<Overtaken>>, id: AssociationId) -> bool {
    match outcome {
        Ok(rewritten) => rewritten.is_some(),
        Err(ChangeFault::Refused(Overtaken)) => false,
        Err(ChangeFault::Store(error)) => {
            tracing::warn!(%error, %id, "failed to keep how far the delivery of a UE policy has come");
            false
        }
        Err(ChangeFault::Overtaken) => false,
    }
}

/// What a UE has answered: whether there is such an association.
///
/// # Errors
/// When the store fails.
pub(crate) async fn answered(
    worker: &Worker,
    id: AssociationId,
    (pti, message): (u8, Message),
) -> Result<bool, ChangeFault<std::convert::Infallible>> {
    let step = async |association: &mut Association| {
        let delivery = Delivery::of(association);
        // TS 24.501 §D.8.4: an answer to no command of ours is ignored.
        let Some(mut delivery) = delivery.filter(|one| one.is_in_flight() && one.pti == pti) else {
            return Ok(Event::UePolicyStray);
        };
        let event = match &message {
            Message::Complete => {
                delivery.progress = Progress::Delivered;
                Event::UePolicyDelivered
            }
            Message::Reject(results) => {
                delivery.progress = Progress::Rejected;
                delivery.results.clone_from(results);
                Event::UePolicyRejected
            }
            Message::Other(_) => return Ok(Event::UePolicyStray),
        };
        delivery.cause = None;
        delivery.keep(association);
        Ok(event)
    };
    let rewritten = change::rewrite(worker, id, step).await?;
    if let Some(rewritten) = &rewritten {
        worker.count(rewritten.answer);
    }
    Ok(rewritten.is_some())
}

/// An AMF cannot reach a UE: whether there is such an association.
///
/// # Errors
/// When the store fails.
pub(crate) async fn unreached(
    worker: &Worker,
    id: AssociationId,
    (pti, cause): (u8, &str),
) -> Result<bool, ChangeFault<std::convert::Infallible>> {
    let step = async |association: &mut Association| {
        let delivery = Delivery::of(association);
        let Some(mut delivery) = delivery.filter(|one| one.is_in_flight() && one.pti == pti) else {
            return Ok(Event::UePolicyStray);
        };
        delivery.fail(cause);
        delivery.keep(association);
        Ok(Event::UePolicyFailed)
    };
    let rewritten = change::rewrite(worker, id, step).await?;
    if let Some(rewritten) = &rewritten {
        worker.count(rewritten.answer);
    }
    Ok(rewritten.is_some())
}
