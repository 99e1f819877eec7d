//! `/configurations` of 3gpp-nidd (TS 29.122 §4.4.5.2, §5.6).

use function::records::store_problem;
use function::sbi::Call;
use http::StatusCode;
use sbi::problem::{Cause, Problem};
use sbi::response::no_content;
use serde_json::{Map, Value, json};
use store::{Batch, Stored};

use super::features::NIDD;
use super::groups::{self, Prepared};
use super::{
    Answer, LISTED, body_of, count_in, created, downlinks, forbidden, not_found, refused_by_hss, stored,
    test_notifications, too_late, with_self,
};
use crate::clock::now;
use crate::events::Event;
use crate::record::{Configuration, Downlink, Id};
use crate::repository::MEMBERS;
use crate::spans::Caller;
use crate::worker::Worker;
use crate::{ending, identity, s6t, shape};

/// Members that the SCEF alone sets, or that have a resource of their own.
const READ_ONLY: [&str; 4] = ["self", "status", "maximumPacketSize", "niddDownlinkDataTransfers"];

/// Creates a configuration, once the HSS has authorized it.
pub(crate) async fn create(call: Call<Worker>) -> Answer {
    let worker = &*call.worker;
    let scs = &call.parameters[0];
    let document = body_of(worker, &call.request, "application/json")?;
    shape::configuration(&document)?;
    check(worker, &document)?;
    let data = first_data(worker, &document)?;
    let quota = &worker.shared().configurations;
    let (table, most) = (
        &worker.repository().configurations,
        worker.config().limits.configurations,
    );
    let holder = (scs.as_str(), most);
    count_in(worker, quota, table, Configuration::SCS, holder, "QUOTA_EXCEEDED").await?;
    let caller = Caller::of(&call.request);
    let document = stored(document, &READ_ONLY, Some(&NIDD));
    let made = match authorize(worker, caller, scs, document).await {
        Ok((configuration, members)) => insert(worker, &configuration, &members, data)
            .await
            .map(|data| (configuration, data)),
        Err(problem) => Err(problem),
    };
    let (configuration, data) = made.inspect_err(|_| quota.sub(scs))?;
    worker.count(Event::Configured);
    let uri = worker.shared().configuration_uri(&configuration);
    if NIDD.asks_for_test(&configuration.document) {
        let about = configuration.id.to_string();
        test_notifications(worker, about, &configuration.document, &uri).await;
    }
    let mut shown = shown(worker, &configuration);
    if let Some(data) = data {
        let data = match data {
            First::Device(data) => downlinks::begin(worker, &data).await,
            First::Group(data) => data.begin(worker, &configuration),
        };
        shown["niddDownlinkDataTransfers"] = json!([data]);
    }
    Ok(created(&uri, &shown))
}

/// The data that a new configuration brings, one at most (TS 29.122 table 5.6.2.1.2-1).
fn first_data(worker: &Worker, document: &Value) -> Result<Option<Value>, Problem> {
    let name = "niddDownlinkDataTransfers";
    let data = document.get(name).and_then(Value::as_array);
    match data.map(Vec::as_slice).unwrap_or_default() {
        [] => Ok(None),
        [one] => downlinks::checked(worker, one.clone(), document).map(Some),
        _ => Err(Problem::new(Cause::OptionalIeIncorrect).invalid_param(
            format!("/{name}"),
            "expected one at most: further data belongs to downlink-data-deliveries",
        )),
    }
}

/// The data that a new configuration brings, as it is stored.
enum First {
    Device(Downlink),
    Group(Prepared),
}

/// Has the HSS authorize a configuration, which is not stored yet, and those of the members of a group.
async fn authorize(
    worker: &Worker,
    caller: Caller<'_>,
    scs: &str,
    document: Value,
) -> Result<(Configuration, Vec<Configuration>), Problem> {
    let config = worker.config();
    let apn = config.nidd.apn_of(scs);
    let until = shape::time_of(&document, "duration");
    worker.count(Event::NiddMessage);
    let message = s6t::authorize(&config.diameter, &document, apn, until);
    let answer = worker.ask_hss(caller, message).await?;
    if let Some(refusal) = s6t::refusal(&answer) {
        return Err(refused_by_hss(refusal));
    }
    let unnamed = |wrong: &dyn std::fmt::Debug| {
        tracing::warn!(?wrong, "the HSS has authorized NIDD without an IMSI");
        Problem::of_status(StatusCode::INTERNAL_SERVER_ERROR).detail("the HSS has not named the device")
    };
    let authorized = s6t::authorized(&answer).map_err(|fault| unnamed(&fault))?;
    let configuration = |imsi, granted| {
        let (document, expires) = s6t::within_grant(document.clone(), granted);
        Configuration {
            id: Id::new(now()),
            scs: scs.to_owned(),
            document,
            imsi,
            group: None,
            hss: authorized.hss.clone(),
            apn: apn.to_owned(),
            expires,
            granted,
        }
    };
    if !s6t::is_group(&document) {
        let imsi = authorized.imsi.clone().ok_or_else(|| unnamed(&authorized))?;
        return Ok((configuration(imsi, authorized.until), Vec::new()));
    }
    let members = s6t::authorized_members(&answer).map_err(|fault| unnamed(&fault))?;
    if members.is_empty() {
        return Err(unnamed(&authorized));
    }
    if members.len() > MEMBERS {
        let detail = format!("the group has {} members, more than {MEMBERS}", members.len());
        return Err(forbidden("OPERATION_PROHIBITED", detail));
    }
    // That of a group is over when no member has a grant any more.
    let longest = members
        .iter()
        .map(|member| member.until.unwrap_or(u64::MAX))
        .max();
    let group = configuration(String::new(), longest.filter(|until| *until < u64::MAX));
    let members = members.into_iter();
    let members = members.map(|one| member(&group, one.user, one.imsi, one.until));
    let members = members.collect();
    Ok((group, members))
}

/// The configuration of a member of a group: what the delivery of data and notifications ask of it.
fn member(
    group: &Configuration,
    mut document: Map<String, Value>,
    imsi: String,
    granted: Option<u64>,
) -> Configuration {
    for name in ["notificationDestination", "pdnEstablishmentOption", "duration"] {
        let value = group.document.get(name);
        document.extend(value.map(|value| (name.to_owned(), value.clone())));
    }
    let (document, expires) = s6t::within_grant(document.into(), granted);
    Configuration {
        id: Id::new(now()),
        document,
        imsi,
        group: Some(group.id),
        expires,
        granted,
        ..group.clone()
    }
}

/// The configuration of a member of a group after that of the group has changed.
fn renewed(group: &Configuration, one: &Configuration) -> Configuration {
    let mut user = Map::new();
    identity::copy_user(&one.document, &mut user);
    Configuration {
        id: one.id,
        ..member(group, user, one.imsi.clone(), one.granted)
    }
}

/// Writes a new configuration with those of its members, and the data that it brings.
async fn insert(
    worker: &Worker,
    configuration: &Configuration,
    members: &[Configuration],
    data: Option<Value>,
) -> Result<Option<First>, Problem> {
    let repository = worker.repository();
    let mut batch = Batch::default();
    for one in std::iter::once(configuration).chain(members) {
        batch.insert(&repository.configurations, one);
    }
    let first = match data {
        Some(data) if configuration.is_of_group() => {
            let members: Vec<&Configuration> = members.iter().collect();
            let prepared = groups::prepare(worker, configuration, &members, data).await?;
            prepared.add_to(repository, &mut batch);
            Some(First::Group(prepared))
        }
        Some(data) => {
            let downlink = downlinks::first(worker, configuration, data).await?;
            batch.insert(&repository.downlinks, &downlink);
            Some(First::Device(downlink))
        }
        None => None,
    };
    match repository.commit(batch).await.map_err(store_problem)? {
        true => Ok(first),
        false => Err(forbidden(
            "OPERATION_PROHIBITED",
            "the device or group, or a member of the group, has a NIDD configuration already",
        )),
    }
}

/// Lists the configurations of an SCS/AS.
pub(crate) async fn list(call: Call<Worker>) -> Answer {
    let (worker, scs) = (&*call.worker, &call.parameters[0]);
    let table = &worker.repository().configurations;
    let found = table.find(Configuration::SCS, scs.as_bytes(), LISTED).await;
    let found = found.map_err(store_problem)?;
    let own = found.iter().filter(|one| one.scs == **scs && one.is_active());
    let shown: Vec<Value> = own.map(|one| shown(worker, one)).collect();
    Ok(sbi::json::response(StatusCode::OK, &shown))
}

/// Reads a configuration.
pub(crate) async fn read(call: Call<Worker>) -> Answer {
    let worker = &*call.worker;
    let found = existing(worker, &call.parameters).await?;
    Ok(sbi::json::response(StatusCode::OK, &shown(worker, &found)))
}

/// Changes a configuration (`NiddConfigurationPatch`, RFC 7396).
pub(crate) async fn modify(call: Call<Worker>) -> Answer {
    let worker = &*call.worker;
    let patch = body_of(worker, &call.request, "application/merge-patch+json")?;
    let fixed = ["externalId", "msisdn", "externalGroupId", "mtcProviderId"];
    if let Some(name) = fixed.into_iter().find(|name| patch.get(name).is_some()) {
        let pointer = format!("/{name}");
        return Err(Problem::new(Cause::ModificationNotAllowed).invalid_param(pointer, "cannot be changed"));
    }
    let (repository, limit) = (worker.repository(), worker.config().max_body_size.as_usize());
    loop {
        let before = existing(worker, &call.parameters).await?;
        let mut document = before.document.clone();
        sbi::json::merge(&mut document, &patch, limit)?;
        shape::configuration(&document)?;
        check(worker, &document)?;
        let (document, expires) =
            s6t::within_grant(stored(document, &READ_ONLY, Some(&NIDD)), before.granted);
        let changed = Configuration {
            document,
            expires,
            ..before.record.clone()
        };
        let mut batch = Batch::default();
        batch.update(&repository.configurations, &changed, before.version);
        if changed.is_of_group() {
            let members = repository.members_of(changed.id).await.map_err(store_problem)?;
            for one in &members {
                let renewed = renewed(&changed, one);
                batch.update(&repository.configurations, &renewed, one.version);
            }
        }
        if repository.commit(batch).await.map_err(store_problem)? {
            return Ok(sbi::json::response(StatusCode::OK, &shown(worker, &changed)));
        }
    }
}

/// Ends a configuration, with what is buffered for its device and with the connection of the device.
pub(crate) async fn end(call: Call<Worker>) -> Answer {
    let worker = &*call.worker;
    loop {
        let found = existing(worker, &call.parameters).await?;
        let count = |event| worker.count(event);
        let ended = ending::end(worker.shared(), &found, None, count).await;
        if ended.map_err(store_problem)? {
            return Ok(no_content());
        }
    }
}

/// The configuration of a path, where its SCS/AS has it.
pub(super) async fn existing(
    worker: &Worker,
    [scs, id, _]: &[String; 3],
) -> Result<Stored<Configuration>, Problem> {
    let id = Id::parse(id).ok_or_else(|| not_found("configuration"))?;
    let found = worker.repository().configurations.get(&id.key()).await;
    let found = found.map_err(store_problem)?;
    found
        .filter(|one| one.scs == *scs && one.is_active() && one.group.is_none())
        .ok_or_else(|| not_found("configuration"))
}

fn shown(worker: &Worker, configuration: &Configuration) -> Value {
    let uri = worker.shared().configuration_uri(configuration);
    let mut shown = with_self(&configuration.document, &uri);
    shown["status"] = json!("ACTIVE");
    shown["maximumPacketSize"] = json!(worker.config().nidd.max_packet.bytes().saturating_mul(8));
    shown
}

fn check(worker: &Worker, document: &Value) -> Result<(), Problem> {
    worker.check_target(document)?;
    downlinks::check_offered(document)?;
    if shape::time_of(document, "duration").is_some_and(|at| at <= now()) {
        return Err(forbidden("PARAMETER_OUT_OF_RANGE", "duration is over"));
    }
    if !s6t::is_held(shape::time_of(document, "duration")) {
        return Err(too_late("duration"));
    }
    Ok(())
}
