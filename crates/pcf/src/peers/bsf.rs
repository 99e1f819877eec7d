//! Bindings of sessions at the BSF (Nbsf_Management, TS 29.521 §4.2.2 to §4.2.4): registered after a session was created,
//! changed with its addresses, removed after it has ended.
//!
//! Each worker registers the sessions that it creates. What is in flight and what is pending is bounded; a session never
//! waits for its binding. It has one binding: registrations of one session follow one another at a worker, and of two that two
//! workers have made, or that the BSF has made because it answered the first too late, the one stays that is kept first.

use std::net::IpAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use sbi::client::Origin;
use serde_json::{Map, Value, json};
use store::Version;

use crate::activity::trail;
use crate::association::bound::SessionBinding;
use crate::association::{Association, AssociationId, Kind};
use crate::bindings::{Job, Turn};
use crate::events::Event;
use crate::outbound::{BSF, Peers};
use crate::sources::producers;
use crate::worker::Worker;

/// How often a record is read again that another writer has changed meanwhile.
const CONFLICTS: usize = 8;

/// Registers a new session.
pub(crate) fn bind(worker: &Rc<Worker>, association: &Association) {
    let wanted = addresses(association);
    if is_used(worker) && is_session(association) && !wanted.is_empty() {
        let known = || Some(Wanted::of(worker, association, wanted, None));
        push(worker, Job::Bind(association.id), known);
    }
}

/// Changes the binding of a session after its addresses have changed, or registers it when that has failed before.
pub(crate) async fn rebind(worker: &Rc<Worker>, before: &Association, association: &Association) {
    if !is_used(worker) || !is_session(association) {
        return;
    }
    let (id, wanted) = (association.id, addresses(association));
    let is_changed = addresses(before) != wanted;
    for _ in 0..CONFLICTS {
        let Ok(held) = Held::read(worker, association).await else {
            break;
        };
        if held.addresses() != &wanted {
            let known = || Some(Wanted::of(worker, association, wanted, Some(held)));
            return push(worker, Job::Bind(id), known);
        }
        // Another registration may be in flight, with the addresses of before: it meets another version of the record.
        let repository = worker.repository();
        if !is_changed
            || matches!(
                repository.keep_binding(&held.binding, held.version).await,
                Ok(true)
            )
        {
            return;
        }
    }
    // The job reads it again.
    push(worker, Job::Bind(id), || None);
}

/// Removes the binding of a session that has ended.
pub(crate) fn unbind(worker: &Rc<Worker>, uri: Option<String>) {
    if let Some(uri) = uri {
        push(worker, Job::Unbind(uri, trail::mark()), || None);
    }
}

/// Whether sessions have bindings.
pub(crate) fn is_used(worker: &Worker) -> bool {
    let settings = &worker.config().bsf;
    !settings.api_roots.is_empty() || settings.discover
}

fn is_session(association: &Association) -> bool {
    matches!(association.kind, Kind::Sm | Kind::Gx)
}

/// What is known of the binding of a session.
struct Held {
    binding: SessionBinding,
    /// The version of its record; none where it has none.
    version: Option<Version>,
}

impl Held {
    async fn read(worker: &Worker, association: &Association) -> Result<Self, store::Error> {
        let stored = worker.repository().binding(association.id).await?;
        let version = stored.as_ref().map(|stored| stored.version);
        let known = stored.map(|stored| stored.record);
        let known = known.or_else(|| SessionBinding::of_earlier_release(association));
        let binding = known.unwrap_or_else(|| SessionBinding {
            id: association.id,
            uri: None,
            addresses: Map::new(),
        });
        Ok(Self { binding, version })
    }

    /// A session without addresses has no binding.
    fn addresses(&self) -> &Map<String, Value> {
        &self.binding.addresses
    }
}

/// What the BSF shall have of a session.
struct Wanted {
    /// Where its binding is, if it has one.
    uri: Option<String>,
    /// The version of the record of that.
    version: Option<Version>,
    /// The members of the binding that follow the session.
    addresses: Map<String, Value>,
    /// The whole binding.
    binding: Value,
    /// The merge patch of the binding that it has; null without one.
    change: Value,
    /// The trail that the requests belong to.
    trail: Option<trail::Mark>,
}

impl Wanted {
    /// Also makes the session the one that the present trail is about.
    fn of(
        worker: &Worker,
        association: &Association,
        addresses: Map<String, Value>,
        held: Option<Held>,
    ) -> Self {
        trail::concerns(association);
        let (known, version) = held.map_or((None, None), |held| (Some(held.binding), held.version));
        let bound = known.filter(|known| known.uri.is_some());
        Self {
            binding: binding(worker, association, &addresses),
            change: bound
                .as_ref()
                .map_or(Value::Null, |bound| change_of(&bound.addresses, &addresses)),
            uri: bound.and_then(|bound| bound.uri),
            version,
            addresses,
            trail: trail::mark(),
        }
    }

    /// Of a session as it is in the store; `None`: it has ended, or its binding is as it shall be.
    async fn read(worker: &Worker, id: AssociationId) -> Result<Option<Self>, store::Error> {
        let Some(stored) = worker.repository().get(id).await? else {
            return Ok(None);
        };
        let (association, wanted) = (&stored.record, addresses(&stored.record));
        let held = Held::read(worker, association).await?;
        Ok(match held.addresses() == &wanted {
            true => None,
            false => Some(Self::of(worker, association, wanted, Some(held))),
        })
    }
}

/// Takes a job. One that begins at once has what the caller knows of the session, which need not be read again.
fn push(worker: &Rc<Worker>, job: Job, known: impl FnOnce() -> Option<Wanted>) {
    if !is_used(worker) {
        return;
    }
    let settings = &worker.config().bsf;
    match worker.bindings().push(job, settings.parallel, settings.queue) {
        Turn::Now(job) => drop(tokio::task::spawn_local(work(worker.clone(), job, known()))),
        Turn::Later | Turn::Joined => {}
        Turn::Dropped => worker.count(Event::BindingDropped),
    }
}

/// Does a job, and then what is pending.
async fn work(worker: Rc<Worker>, first: Job, mut known: Option<Wanted>) {
    let mut next = Some(first);
    while let Some(job) = next {
        let settings = &worker.config().bsf;
        let mut pause = settings.retry_pause.duration();
        let mut done = false;
        for attempt in 0..settings.attempts {
            if attempt > 0 {
                worker.count(Event::BindingRetried);
                tokio::time::sleep(pause).await;
                pause = pause.saturating_mul(2);
            }
            done = match (&job, known.take()) {
                (Job::Bind(id), Some(mut wanted)) => {
                    let mark = wanted.trail.take();
                    trail::resume(mark, Box::pin(register(&worker, *id, wanted))).await
                }
                (Job::Bind(id), None) => {
                    trail::own(worker.activity(), Box::pin(read_and_register(&worker, *id))).await
                }
                (Job::Unbind(uri, mark), _) => {
                    trail::resume(mark.clone(), Box::pin(remove(&worker, uri))).await
                }
            };
            if done {
                break;
            }
        }
        if !done {
            worker.count(Event::BindingFailed);
        }
        next = worker.bindings().done(job);
    }
}

/// As [`register`], of a session as it is in the store.
async fn read_and_register(worker: &Rc<Worker>, id: AssociationId) -> bool {
    match Wanted::read(worker, id).await {
        Ok(Some(wanted)) => register(worker, id, wanted).await,
        Ok(None) => true,
        Err(_) => false,
    }
}

/// Whether the binding of a session is as it shall be. One that the BSF refuses is not tried again.
async fn register(worker: &Rc<Worker>, id: AssociationId, wanted: Wanted) -> bool {
    let wanted = Rc::new(wanted);
    let uri = match &wanted.uri {
        // A session without an address (TS 29.521 §4.2.3.2).
        Some(uri) if wanted.addresses.is_empty() => match remove(worker, uri).await {
            true => return keep(worker, id, &wanted, None).await,
            false => return false,
        },
        None if wanted.addresses.is_empty() => return true,
        Some(uri) => match send(worker, Method::PATCH, uri, &wanted.change).await {
            Some((status, _)) if status.is_success() => uri.clone(),
            Some((StatusCode::NOT_FOUND, _)) => match create(worker, id, &wanted).await {
                Created::At(uri) => uri,
                Created::Refused => return true,
                Created::Unanswered => return false,
            },
            Some((status, _)) => return refused(worker, status),
            None => return false,
        },
        None => match create(worker, id, &wanted).await {
            Created::At(uri) => uri,
            Created::Refused => return true,
            Created::Unanswered => return false,
        },
    };
    worker.count(Event::BindingRegistered);
    keep(worker, id, &wanted, Some(uri)).await
}

/// Keeps what the BSF has of a session, without a look at the session; no URI: nothing. Where its record is of another version
/// now, the session may have changed, and is registered next; a binding whose session has ended meanwhile, or has got another
/// binding, is removed.
async fn keep(worker: &Rc<Worker>, id: AssociationId, wanted: &Wanted, uri: Option<String>) -> bool {
    let addresses = match uri {
        Some(_) => wanted.addresses.clone(),
        None => Map::new(),
    };
    let binding = SessionBinding { id, uri, addresses };
    let (repository, mut version) = (worker.repository(), wanted.version);
    for attempt in 0..CONFLICTS {
        let kept = match repository.keep_binding(&binding, version).await {
            Ok(true) => {
                if attempt > 0 {
                    push(worker, Job::Bind(id), || None);
                }
                return true;
            }
            Ok(false) => repository.binding(id).await,
            Err(error) => Err(error),
        };
        match kept {
            // It is about the same binding, of which the BSF has what it has answered here.
            Ok(Some(known)) if is_about(&known.record, &binding, wanted) => version = Some(known.version),
            Ok(_) => {
                push(worker, Job::Bind(id), || None);
                forget(worker, binding, wanted);
                return true;
            }
            Err(error) => {
                tracing::warn!(%id, ?error, "failed to keep where the binding of a session is");
                break;
            }
        }
    }
    forget(worker, binding, wanted);
    false
}

/// Whether a record names the binding that the BSF has answered, or the one that is in its place.
fn is_about(known: &SessionBinding, binding: &SessionBinding, wanted: &Wanted) -> bool {
    known.uri.is_some() && [&binding.uri, &wanted.uri].contains(&&known.uri)
}

/// Removes a new binding that was not kept.
fn forget(worker: &Rc<Worker>, binding: SessionBinding, wanted: &Wanted) {
    if binding.uri != wanted.uri {
        unbind(worker, binding.uri);
    }
}

/// Status and `Location`.
type Answer = (StatusCode, Option<String>);

/// What came of a registration.
enum Created {
    At(String),
    Refused,
    Unanswered,
}

async fn create(worker: &Rc<Worker>, id: AssociationId, wanted: &Rc<Wanted>) -> Created {
    for target in collections(worker).await {
        match post(worker, id, wanted, target).await {
            Some((StatusCode::CREATED, Some(location))) => return Created::At(location),
            Some((status, _)) if status.is_server_error() => {}
            Some((status, _)) if refused(worker, status) => return Created::Refused,
            Some(_) => return Created::Unanswered,
            None => {}
        }
    }
    Created::Unanswered
}

/// Asks a BSF for a binding; without an answer in `bsf.timeout` it is asked again elsewhere, and its answer awaited beside
/// that, because it may have made the binding.
async fn post(worker: &Rc<Worker>, id: AssociationId, wanted: &Rc<Wanted>, target: String) -> Option<Answer> {
    let settings = &worker.config().bsf;
    let timeout = settings.timeout.duration();
    let deadline = timeout.saturating_add(settings.late_timeout.duration());
    let (by, what) = (worker.clone(), wanted.clone());
    let mut sent =
        Box::pin(async move { exchange(by.peers(), &Method::POST, &target, &what.binding, deadline).await });
    if let Ok(answer) = tokio::time::timeout(timeout, &mut sent).await {
        return answer;
    }
    if let Some(place) = worker.bindings().late(settings.parallel) {
        let (worker, wanted, mark) = (worker.clone(), wanted.clone(), trail::mark());
        let late = async move {
            if let Some((StatusCode::CREATED, Some(location))) = sent.await {
                worker.count(Event::BindingLate);
                keep(&worker, id, &wanted, Some(location)).await;
            }
            drop(place);
        };
        drop(tokio::task::spawn_local(trail::resume(mark, late)));
    }
    None
}

/// Whether an answer other than a success is final: the BSF will not answer otherwise another time.
fn refused(worker: &Worker, status: StatusCode) -> bool {
    // A BSF that refuses a token (401) may have to fetch the keys of the NRF yet.
    let is_open = [StatusCode::TOO_MANY_REQUESTS, StatusCode::UNAUTHORIZED].contains(&status);
    let is_final = status.is_client_error() && !is_open;
    if is_final {
        tracing::debug!(%status, "the BSF refuses a binding");
        worker.count(Event::BindingRefused);
    }
    is_final
}

async fn remove(worker: &Worker, uri: &str) -> bool {
    let is_removed = match send(worker, Method::DELETE, uri, &Value::Null).await {
        Some((status, _)) if status.is_success() => {
            worker.count(Event::BindingRemoved);
            true
        }
        Some((StatusCode::NOT_FOUND, _)) => true,
        Some((status, _)) => refused(worker, status),
        None => false,
    };
    if is_removed {
        worker.removed().note(uri, Instant::now());
    }
    is_removed
}

/// Sends a request about a binding to the BSF that has it.
async fn send(worker: &Worker, method: Method, uri: &str, body: &Value) -> Option<Answer> {
    let deadline = worker.config().bsf.timeout.duration();
    let answer = exchange(worker.peers(), &method, uri, body, deadline).await;
    answer.filter(|(status, _)| !status.is_server_error())
}

/// Where the BSFs make bindings, of the settings or else of the NRF.
async fn collections(worker: &Worker) -> Vec<String> {
    let settings = &worker.config().bsf;
    let collection = |root: &str| format!("{}/nbsf-management/v1/pcfBindings", root.trim_end_matches('/'));
    if !settings.api_roots.is_empty() {
        return settings.api_roots.iter().map(|root| collection(root)).collect();
    }
    let (discovered, time) = (&worker.sources().discovered, settings.discovery_time.duration());
    let roots = discovered.find(worker.peers(), (BSF, ""), time).await;
    roots.iter().map(|root| collection(&root.to_string())).collect()
}

/// Sends a request to the BSF; one that redirects it (307, 308, TS 29.500 §6.10.9) is followed, where it may be.
async fn exchange(
    peers: &Peers,
    method: &Method,
    uri: &str,
    body: &Value,
    deadline: Duration,
) -> Option<Answer> {
    let (root, path) = producers::parts_of(uri)?;
    let content = (*method != Method::DELETE).then(|| producers::content_of(method, body));
    let what = (method, path.as_str(), content);
    let (at, answer) = producers::send(peers, (BSF, &root), what, deadline).await.ok()?;
    Some((answer.status(), producers::located(&at, &answer)))
}

/// The members of a binding that follow the addresses of a session.
fn addresses(association: &Association) -> Map<String, Value> {
    let mut members = Map::new();
    for (name, from) in [
        ("ipv4Addr", "ipv4Address"),
        ("ipv6Prefix", "ipv6AddressPrefix"),
        ("ipDomain", "ipDomain"),
    ] {
        if let Some(value) = association.context.get(from) {
            members.insert(name.to_owned(), value.clone());
        }
    }
    for (name, list) in [
        ("addIpv6Prefixes", &association.addresses.ipv6),
        ("addMacAddrs", &association.addresses.mac),
    ] {
        if !list.is_empty() {
            members.insert(name.to_owned(), json!(list));
        }
    }
    if members.len() == 1 && members.contains_key("ipDomain") {
        members.clear();
    }
    members
}

/// The merge patch that makes a binding follow its session (`PcfBindingPatch`, TS 29.521 §5.6.2.3).
fn change_of(held: &Map<String, Value>, wanted: &Map<String, Value>) -> Value {
    let held = held.iter();
    let gone = held.filter(|(name, _)| !wanted.contains_key(*name));
    let mut patch: Map<String, Value> = gone.map(|(name, _)| (name.clone(), Value::Null)).collect();
    patch.extend(wanted.iter().map(|(name, value)| (name.clone(), value.clone())));
    Value::Object(patch)
}

/// `PcfBinding` (TS 29.521 §5.6.2.2).
fn binding(worker: &Worker, association: &Association, wanted: &Map<String, Value>) -> Value {
    let config = worker.config();
    let mut members = wanted.clone();
    for (name, from) in [
        ("supi", "supi"),
        ("gpsi", "gpsi"),
        ("dnn", "dnn"),
        ("snssai", "sliceInfo"),
        ("ipv4FrameRouteList", "ipv4FrameRouteList"),
        ("ipv6FrameRouteList", "ipv6FrameRouteList"),
    ] {
        if let Some(value) = association.context.get(from) {
            members.insert(name.to_owned(), value.clone());
        }
    }
    if association.kind == Kind::Gx {
        // Mandatory in a binding (TS 29.521 §5.6.2.2), unknown to a PCEF.
        let slice = config.bsf.gx_slice.clone();
        members.insert("snssai".to_owned(), Value::Object(slice));
    }
    members.insert("pcfId".to_owned(), json!(config.nf_instance_id));
    if config.diameter.enabled {
        // Where Rx requests of the session go.
        members.insert("pcfDiamHost".to_owned(), json!(config.diameter.host));
        members.insert("pcfDiamRealm".to_owned(), json!(config.diameter.realm));
    }
    members.extend(own_address(worker.root()));
    members.extend(
        config
            .bsf
            .binding
            .iter()
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    // BindingUpdate, MultiUeAddr.
    members.insert("suppFeat".to_owned(), json!("3"));
    Value::Object(members)
}

/// Where this PCF is, as members of a binding: by the root of its URIs, as a name or as an end point.
fn own_address(root: &str) -> Vec<(String, Value)> {
    let Ok(origin) = root.parse::<Origin>() else {
        return Vec::new();
    };
    let host = origin.host().trim_matches(['[', ']']);
    let (name, value) = match host.parse() {
        Ok(IpAddr::V4(address)) => (
            "IpEndPoints",
            json!([{"ipv4Address": address, "port": origin.port()}]),
        ),
        Ok(IpAddr::V6(address)) => (
            "IpEndPoints",
            json!([{"ipv6Address": address, "port": origin.port()}]),
        ),
        Err(_) => ("Fqdn", json!(host)),
    };
    // That of Npcf_PolicyAuthorization, and that of Npcf_SMPolicyControl.
    let members = ["pcf", "pcfSm"].map(|prefix| (format!("{prefix}{name}"), value.clone()));
    members.into_iter().collect()
}
