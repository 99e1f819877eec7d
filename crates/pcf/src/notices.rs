//! Notifications of the consumers of associations: what they are, and how they are delivered (TS 29.512 §4.2.3, §4.2.4).

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{StatusCode, Uri};
use notifier::{Answer, Bound, Event as Delivery, Notification, Policy, Publisher, Queue};
use sbi::Response;
use sbi::client::{Client, Origin};
use serde_json::{Map, Value, json};
use settings::Period;

use crate::activity::{Activity, Entry, trail};
use crate::association::ue_policy::{URSP_RULES, plmn_of};
use crate::association::unconfirmed::Unconfirmed;
use crate::association::{Association, AssociationId, Kind};
use crate::config::Notifications;
use crate::events::{Counters, Event};
use crate::live::Live;
use crate::removals::Removals;
use crate::reports::{self, Content, Report};
use crate::repository::Repository;
use crate::ursp;

/// Procedure transaction identity of the command that a V-PCF gets; those of the network are 80 to FE hexadecimal
/// (TS 24.007 §11.2.3.1a).
const TRANSACTION: u8 = 0x80;
/// UE policy section code of the section that the PCF provides.
const SECTION: u16 = 1;

/// Enqueues notifications. Clones share the queue.
#[derive(Clone, Debug)]
pub(crate) struct Notices {
    pub(crate) queue: Queue,
    /// Those of AFs.
    pub(crate) applications: Queue,
    /// Root of the URIs that the PCF hands out.
    pub(crate) root: Arc<str>,
    /// What is kept of traced subscribers.
    pub(crate) activity: Arc<Activity>,
    /// What consumers have not confirmed to have removed.
    pub(crate) removals: Arc<Removals>,
}

/// `3gpp-Sbi-Callback` of changes of SM policies.
const SM_UPDATE: &str = "Npcf_SMPolicyControl_SmPolicyUpdateNotification";
const SM_TERMINATE: &str = "Npcf_SMPolicyControl_SmPolicyControlTerminationRequestNotification";
/// The path of application sessions.
pub(crate) const APP_SESSIONS: &str = "/npcf-policyauthorization/v1/app-sessions";

/// The path of associations of a kind.
pub(crate) fn path_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Sm | Kind::Gx | Kind::Tdf => "/npcf-smpolicycontrol/v1/sm-policies",
        Kind::Am => "/npcf-am-policy-control/v1/policies",
        Kind::Ue => "/npcf-ue-policy-control/v1/policies",
    }
}

impl Notices {
    /// Enqueues the change of a decision for the consumer of its association (`UpdateNotify`), which this record was written with; false:
    /// the change is empty.
    pub(crate) fn updated(
        &self,
        association: &Association,
        change: Map<String, Value>,
        record: Option<u64>,
    ) -> bool {
        if !is_notified(association, &change) {
            return false;
        }
        let mark = self.removals.note(association.id, &change, record);
        let body = body(&self.root, association, change);
        self.push(association, "update", body, (false, mark))
    }

    /// Enqueues all of the present decision for the consumer of an association, after notifications with these records that it has not
    /// confirmed; false: the association has no usable URI.
    pub(crate) fn resumed(&self, association: &Association, records: &[&Unconfirmed]) -> bool {
        for record in records {
            let removed = record.removed.as_object().cloned().unwrap_or_default();
            self.removals.note(association.id, &removed, Some(record.number));
        }
        let mark = self.removals.latest(association.id);
        let decision = self.removals.complete(association.id, association.decision());
        let body = body(&self.root, association, decision);
        self.push(association, "update", body, (true, mark))
    }

    /// The SMF of a session shall have the UE choose another P-CSCF (`pcscfRestIndication`, TS 29.512 §5.6.2.4).
    pub(crate) fn restored(&self, association: &Association) {
        let change = Map::from_iter([("pcscfRestIndication".to_owned(), Value::Bool(true))]);
        self.updated(association, change, None);
    }

    /// A notification without a change, which shows whether the consumer has the association. None where it cannot be reached.
    pub(crate) fn question(&self, association: &Association) -> Option<Notification> {
        let body = body(&self.root, association, Map::new());
        notification(association, "update", &body, (false, 0))
    }

    /// The consumer of an association shall end it (`Terminate`), for a cause of `SmPolicyAssociationReleaseCause`
    /// (TS 29.512 §5.6.3.7) or its kin.
    pub(crate) fn terminate(&self, association: &Association, cause: &str) {
        if !matches!(association.kind, Kind::Gx | Kind::Tdf) {
            self.removals.forget(association.id);
            let body = json!({"resourceUri": uri(&self.root, association), "cause": cause});
            self.push(association, "terminate", body, (true, 0));
        }
    }

    /// An AF gets at this URI what it is subscribed to, or that its session ends (TS 29.514 §4.2.5); of this association, with this record.
    pub(crate) fn application(
        &self,
        (session, base): (&str, &str),
        what: &str,
        body: &Value,
        (association, record): (AssociationId, Option<u64>),
    ) {
        let callback = match what {
            "terminate" => "Npcf_PolicyAuthorization_terminationRequest",
            _ => "Npcf_PolicyAuthorization_eventNotification",
        };
        let Some(target) = below(base, what) else {
            return;
        };
        let id: Arc<str> = session.into();
        trail::note(|| out("N5", &target, body.clone()));
        if let Some(mark) = trail::mark() {
            self.activity.expect(&id, mark);
        }
        self.applications.push(Notification {
            subscription: id,
            subject: association.to_string().into(),
            whole: false,
            target,
            callback,
            body: body.to_string().into(),
            set: None,
            mark: record.unwrap_or_default(),
        });
    }

    /// A provider is warned at this URI that the network is degraded where it is to transfer data (TS 29.554 §4.2.4); of this policy,
    /// with this record.
    pub(crate) fn warning(
        &self,
        (subscription, uri): (&str, &str),
        body: &Value,
        (policy, record): (AssociationId, Option<u64>),
    ) {
        let Ok(target) = uri.parse() else { return };
        self.applications.push(Notification {
            subscription: subscription.into(),
            subject: policy.to_string().into(),
            whole: false,
            target,
            callback: "Npcf_BDTPolicyControl_BdtNotification",
            body: body.to_string().into(),
            set: None,
            mark: record.unwrap_or_default(),
        });
    }

    /// Enqueues a notification, which is `known` as whole or not and by a mark; false: the association has no usable URI for it.
    fn push(&self, association: &Association, what: &str, body: Value, known: (bool, u64)) -> bool {
        let notification = notification(association, what, &body, known);
        if let Some(notification) = notification {
            let interface = match association.kind {
                Kind::Sm | Kind::Gx | Kind::Tdf => "N7",
                Kind::Am => "N15 AM",
                Kind::Ue => "N15 UE",
            };
            let target = &notification.target;
            let mark = trail::note_about(&self.activity, association, || out(interface, target, body));
            if let Some(mark) = mark {
                self.activity.expect(&notification.subscription, mark);
            }
            self.queue.push(notification);
            return true;
        }
        false
    }
}

/// Whether the consumer of an association is notified of a change of its decision.
pub(crate) fn is_notified(association: &Association, change: &Map<String, Value>) -> bool {
    match association.kind {
        Kind::Gx | Kind::Tdf => false,
        // URSP rules of a UE at an AMF: the UE gets them itself.
        Kind::Ue => !shown(association, change.clone()).is_empty(),
        Kind::Sm | Kind::Am => !change.is_empty(),
    }
}

/// When a request to end an association that is made `now` is repeated, in milliseconds since 1970.
pub(crate) fn release_due(settings: &Notifications, now: u64) -> u64 {
    /// For the consumer to end it.
    const WITHIN: u64 = 1_000;
    chain_end(settings, now).saturating_add(WITHIN)
}

/// When no attempt of a notification of now is in flight any more, in milliseconds since 1970.
pub(crate) fn chain_end(settings: &Notifications, now: u64) -> u64 {
    let redirected = settings.redirects.saturating_add(1);
    let timeout = settings.timeout.duration().saturating_mul(redirected);
    attempts_end(
        now,
        (settings.attempts, timeout),
        (settings.retry_pause, settings.max_retry_pause),
    )
}

/// When attempts that begin now have ended, each within a timeout and followed by a pause that doubles up to the longest.
pub(crate) fn attempts_end(
    now: u64,
    (attempts, timeout): (u32, Duration),
    (pause, longest): (Period, Period),
) -> u64 {
    let mut all = Duration::from_secs(1);
    for attempt in 0..attempts.min(64) {
        let pause = pause.duration().saturating_mul(1 << attempt.min(16));
        let pause = pause.min(longest.duration());
        // The pause is spread by a quarter.
        all += timeout + pause + pause / 4;
    }
    now.saturating_add(u64::try_from(all.as_millis()).unwrap_or(u64::MAX))
}

/// A notification on its way.
fn out(interface: &'static str, target: &Uri, body: Value) -> Entry {
    let peer = target.authority().map(ToString::to_string).unwrap_or_default();
    let entry = Entry::new("out", format!("POST {}", target.path()));
    entry.over(interface, peer).body(body)
}

fn uri(root: &str, association: &Association) -> String {
    format!("{root}{}/{}", path_of(association.kind), association.id)
}

/// `SmPolicyNotification` (TS 29.512 §5.6.2.5), or `PolicyUpdate` (TS 29.507 §5.6.2.5, TS 29.525 §5.6.2.5).
fn body(root: &str, association: &Association, change: Map<String, Value>) -> Value {
    match association.kind {
        Kind::Sm | Kind::Gx | Kind::Tdf => {
            json!({"resourceUri": uri(root, association), "smPolicyDecision": change})
        }
        Kind::Am | Kind::Ue => Value::Object(policy_update(root, association, change)),
    }
}

/// `PolicyUpdate` (TS 29.507 §5.6.2.5, TS 29.525 §5.6.2.5), as an answer and as a notification.
pub(crate) fn policy_update(
    root: &str,
    association: &Association,
    change: Map<String, Value>,
) -> Map<String, Value> {
    let mut body = shown(association, change);
    body.insert("resourceUri".to_owned(), uri(root, association).into());
    body
}

/// A decision as the consumer of its association sees it. URSP rules go to the UE as octets: a V-PCF gets them
/// (`uePolicy`, TS 29.525 §4.2.2.1) and passes them on; an AMF, which names itself by its GUAMI, does not.
pub(crate) fn shown(association: &Association, mut decision: Map<String, Value>) -> Map<String, Value> {
    let Some(rules) = decision.shift_remove(URSP_RULES) else {
        return decision;
    };
    if association.kind == Kind::Ue
        && association.context.get("guami").is_none()
        && let Some(policy) = ue_policy(association, rules_of(&rules), TRANSACTION)
    {
        decision.insert("uePolicy".to_owned(), STANDARD.encode(policy).into());
    }
    decision
}

fn rules_of(rules: &Value) -> &[Value] {
    rules.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The MANAGE UE POLICY COMMAND with URSP rules. What a UE cannot be given is logged.
pub(crate) fn ue_policy(association: &Association, rules: &[Value], transaction: u8) -> Option<Vec<u8>> {
    match ursp::command(transaction, plmn_of(association), SECTION, rules) {
        Ok(command) => Some(command),
        Err(reason) => {
            tracing::warn!(id = %association.id, reason, "a UE policy cannot be encoded");
            None
        }
    }
}

fn notification(
    association: &Association,
    what: &str,
    body: &Value,
    (whole, mark): (bool, u64),
) -> Option<Notification> {
    let base = association.text_of("notificationUri")?;
    let id: Arc<str> = association.id.to_string().into();
    Some(Notification {
        subscription: id.clone(),
        subject: id,
        whole,
        target: below(base, what)?,
        callback: callback(association.kind, what),
        body: body.to_string().into(),
        set: None,
        mark,
    })
}

/// A URI with one more segment: behind its path, not behind its text, whose query would take the segment.
fn below(base: &str, segment: &str) -> Option<Uri> {
    let mut parts = base.parse::<Uri>().ok()?.into_parts();
    let (path, query) = match &parts.path_and_query {
        Some(both) => (both.path().trim_end_matches('/'), both.query()),
        None => ("", None),
    };
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    parts.path_and_query = Some(format!("{path}/{segment}{query}").parse().ok()?);
    Uri::from_parts(parts).ok()
}

/// `3gpp-Sbi-Callback` (TS 29.500 annex B): the name of table B-1, else the API and the callback of its OpenAPI file, as they
/// are spelt there.
fn callback(kind: Kind, what: &str) -> &'static str {
    match (kind, what) {
        (Kind::Sm | Kind::Gx | Kind::Tdf, "terminate") => SM_TERMINATE,
        (Kind::Sm | Kind::Gx | Kind::Tdf, _) => SM_UPDATE,
        (Kind::Am, "terminate") => "Npcf_AMPolicyControl_policyAssocitionTerminationRequestNotification",
        (Kind::Am, _) => "Npcf_AMPolicyControl_policyUpdateNotification",
        (Kind::Ue, _) => "Npcf_UEPolicyControl_UpdateNotify",
    }
}

/// How consumers are reached.
pub(crate) struct Consumers {
    pub(crate) client: Client,
    pub(crate) repository: Repository,
    pub(crate) live: Arc<Live>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) root: Arc<str>,
    /// What SMFs report in their answers.
    pub(crate) reports: reports::Sender,
    pub(crate) activity: Arc<Activity>,
    pub(crate) removals: Arc<Removals>,
}

impl Consumers {
    /// An association, and a notification of all its decision.
    async fn present(&self, id: AssociationId) -> Option<(Association, Value)> {
        let association = match self.repository.get(id).await {
            Ok(Some(stored)) => stored.record,
            Ok(None) => {
                self.removals.forget(id);
                return None;
            }
            Err(error) => {
                tracing::warn!(%error, %id, "failed to load an association, its decision is not sent as a whole");
                return None;
            }
        };
        let decision = self.removals.complete(id, association.decision());
        let body = body(&self.root, &association, decision);
        Some((association, body))
    }

    /// The store need not keep these notifications any longer.
    fn confirm(&self, id: AssociationId, records: Vec<u64>) {
        if records.is_empty() {
            return;
        }
        let repository = self.repository.clone();
        tokio::task::spawn_local(async move {
            for number in records {
                if let Err(error) = repository.confirm(id, number).await {
                    // It is sent again later, as a whole.
                    tracing::debug!(%error, %id, "a notification is not noted as confirmed");
                }
            }
        });
    }

    /// Has a worker act on what came of a notification.
    fn report(&self, id: AssociationId, content: Content) {
        let sent = self.reports.try_send(Report { id, content });
        self.counters.count(match sent {
            Ok(()) => Event::AnswerReport,
            Err(_) => Event::AnswerReportDropped,
        });
    }
}

impl Publisher for Consumers {
    fn policy(&self) -> Policy {
        policy(&self.live.load().config.notifications)
    }

    fn client(&self) -> &Client {
        &self.client
    }

    fn count(&self, event: Delivery) {
        self.counters.count(match event {
            Delivery::Delivered => Event::Notified,
            Delivery::Failed => Event::NotificationFailed,
            Delivery::Dropped => Event::NotificationDropped,
            Delivery::Redirected => Event::NotificationRedirected,
            Delivery::Rerouted => Event::NotificationRerouted,
            Delivery::Resynced => Event::NotificationResynced,
        });
    }

    fn permits(&self, from: &Uri, to: &Origin) -> bool {
        let permitted = self.live.load().destinations.permits_redirection(from, to);
        if !permitted {
            self.counters.count(Event::TargetDenied);
        }
        permitted
    }

    /// An SMF answers with what failed of the change, or where the UE is (TS 29.512 §4.2.3.2).
    fn answered(&self, notification: &Notification, answer: &Answer, response: Option<&Response>) {
        self.activity.answered(&notification.subscription, || {
            let peer = notification.target.authority().map(ToString::to_string);
            let text = format!("{answer:?}");
            Entry::new("in", text).over("notification", peer.unwrap_or_default())
        });
        let id = AssociationId::parse(&notification.subscription);
        if let (Some(id), Answer::Delivered) = (id, answer) {
            self.confirm(id, self.removals.delivered(id, notification));
        }
        let (Some(id), Some(response)) = (id, response) else {
            return;
        };
        let is_update = notification.callback == SM_UPDATE;
        if matches!(response.status(), StatusCode::NOT_FOUND | StatusCode::GONE) {
            // It has lost the session, or never had it: nothing keeps that alive (TS 29.512 §4.2.3.2).
            if is_update || notification.callback == SM_TERMINATE {
                return self.report(id, Content::Unknown);
            }
            // An AMF that does not know the association is sent nothing again; the audit decides about it.
            return self.confirm(id, self.removals.delivered(id, notification));
        }
        if !is_update {
            return;
        }
        let limit = self.live.load().config.max_body_size.as_usize();
        match reports::read(response.status(), &response.body, limit) {
            Some(members) => self.report(id, Content::Members(members)),
            None if *answer == Answer::Refused => self.given_up(notification),
            None => {}
        }
    }

    /// AFs learn that their rules are not in effect.
    fn given_up(&self, notification: &Notification) {
        let id = AssociationId::parse(&notification.subscription);
        // What was sent again as a whole is not about the rules in it; AFs have heard of those that failed before.
        if let Some(id) = id.filter(|_| notification.callback == SM_UPDATE && !notification.whole) {
            let rules = reports::rules_of(&notification.body);
            if !rules.is_empty() {
                self.report(id, Content::Undelivered(rules));
            }
        }
    }

    /// A further attempt has the whole decision of now: what the first one had may be past, by an answer to an update.
    async fn renewed(&self, notification: &Notification) -> Option<Bytes> {
        let id = AssociationId::parse(&notification.subscription)?;
        // Neither what asks for an end nor a P-CSCF's restoration is about the decision.
        let is_decision = notification.whole || notification.mark != 0;
        if !is_decision || !notification.target.path().ends_with("/update") {
            return None;
        }
        let (_, body) = self.present(id).await?;
        Some(body.to_string().into())
    }

    /// The whole decision, after changes of it were lost.
    async fn resync(&self, subscription: &str, _: &[Arc<str>]) -> Vec<Notification> {
        let Some(id) = AssociationId::parse(subscription) else {
            return Vec::new();
        };
        // Changes from here on are notified by themselves.
        let mark = self.removals.latest(id);
        let Some((association, body)) = self.present(id).await else {
            return Vec::new();
        };
        notification(&association, "update", &body, (true, mark))
            .into_iter()
            .collect()
    }
}

/// How AFs are reached: as consumers of associations are. What they miss is past.
pub(crate) struct Applications(pub(crate) Rc<Consumers>);

impl Publisher for Applications {
    fn policy(&self) -> Policy {
        self.0.policy()
    }

    fn client(&self) -> &Client {
        self.0.client()
    }

    fn count(&self, event: Delivery) {
        self.0.count(event);
    }

    fn permits(&self, from: &Uri, to: &Origin) -> bool {
        self.0.permits(from, to)
    }

    fn answered(&self, notification: &Notification, answer: &Answer, response: Option<&Response>) {
        self.0.answered(notification, answer, response);
        let is_answered = matches!(answer, Answer::Delivered | Answer::Refused);
        if let Some(id) = AssociationId::parse(&notification.subject).filter(|_| is_answered)
            && notification.mark != 0
        {
            self.0.confirm(id, vec![notification.mark]);
        }
    }

    async fn resync(&self, _: &str, _: &[Arc<str>]) -> Vec<Notification> {
        Vec::new()
    }
}

/// Delivers notifications until the function ends.
pub(crate) async fn deliver<P: Publisher>(pending: notifier::Receiver, consumers: Rc<P>) {
    notifier::run(pending, consumers).await;
}

fn policy(settings: &Notifications) -> Policy {
    Policy {
        total: Bound {
            notifications: settings.queue,
            bytes: settings.queue_bytes.as_usize(),
        },
        per_subscription: Bound {
            notifications: settings.queue_per_association,
            bytes: settings.queue_bytes_per_association.as_usize(),
        },
        parallel: settings.parallel,
        attempts: settings.attempts,
        pause: settings.retry_pause.duration().max(Duration::from_millis(1)),
        max_pause: settings.max_retry_pause.duration(),
        timeout: settings.timeout.duration(),
        redirects: settings.redirects,
        alternates: 0,
        rate: settings.rate,
    }
}
