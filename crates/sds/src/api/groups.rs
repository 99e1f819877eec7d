//! `/groups/{group}`: the numbers of one subscriber, which are changed together.

use function::records::store_problem;
use function::sbi::Call;
use http::StatusCode;
use numbers::DestinationSet;
use sbi::problem::{Cause, Problem};
use serde_json::{Value, json};
use store::{Condition, Stored};

use super::{Answer, OFFSET, follows, json_of, parameter, unreadable, write, written, wrong};
use crate::change::{Change, check};
use crate::events::Event;
use crate::record::Group;
use crate::repository::GroupWrite;
use crate::subject::Subject;
use crate::worker::Worker;

/// Numbers of a kind in a group, at most.
const MOST_NUMBERS: usize = 8;
/// Bytes of a group's name.
const MOST_NAME: usize = 64;
/// The members of a group with the kinds of their numbers.
const MEMBERS: [(&str, &str); 2] = [("imsis", "imsi"), ("msisdns", "msisdn")];

/// The name of a group, and the group.
async fn found(call: &Call<Worker>) -> Result<(String, Option<Stored<Group>>), Problem> {
    let [id, ..] = &call.parameters;
    let id = parameter(id)?.into_owned();
    if id.len() > MOST_NAME || !id.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(wrong("the name of a group has 1 to 64 visible ASCII characters"));
    }
    let groups = &call.worker.shared().repository.groups;
    let group = groups.get(id.as_bytes()).await.map_err(store_problem)?;
    Ok((id, group))
}

fn unknown(id: &str) -> Problem {
    Problem::new(Cause::ResourceNotFound).detail(format!("group {id} is not known"))
}

fn subjects(group: &Group) -> Vec<Subject> {
    let numbers = group.numbers.iter().filter_map(|number| number.split_once(','));
    numbers
        .filter_map(|(kind, value)| Subject::parse(kind, value).ok())
        .collect()
}

/// The numbers of a group, each with its destinations.
pub(crate) async fn read(call: Call<Worker>) -> Answer {
    let worker = &*call.worker;
    follows(worker)?;
    let (id, group) = found(&call).await?;
    let group = group.ok_or_else(|| unknown(&id))?;
    worker.count(Event::Read);
    let data = &worker.shared().data;
    let offset = data.offset();
    let mut records = Vec::new();
    for subject in subjects(&group) {
        let set = data.find(&subject).map_err(unreadable)?;
        let destinations = set.as_ref().map(DestinationSet::as_str);
        records.push(crate::change::named(
            &subject,
            json!({"destinations": destinations}),
        ));
    }
    let document = json!({"group": id, "records": records, "offset": offset});
    let mut response = sbi::json::response(StatusCode::OK, &document);
    response.headers_mut().set_number(OFFSET, offset);
    Ok(response)
}

/// Sets a group: each of its numbers gets its destinations, and those that it has no more are removed.
pub(crate) async fn set(call: Call<Worker>) -> Answer {
    let worker = &*call.worker;
    let document = json_of(worker, &call.request)?;
    let (numbers, destinations) = of_json(&document).map_err(wrong)?;
    let (id, before) = found(&call).await?;
    let removed = before.as_ref().map(|group| subjects(group)).unwrap_or_default();
    let removed = removed.into_iter().filter(|subject| !numbers.contains(subject));
    let mut changes: Vec<Change> = removed.map(|subject| Change::new(subject, None)).collect();
    let set = |subject: &Subject| Change::new(subject.clone(), Some(destinations.clone()));
    changes.extend(numbers.iter().map(set));
    let group = Group {
        id,
        numbers: numbers.iter().map(Subject::to_string).collect(),
    };
    write_group(worker, changes, group, before).await
}

/// Removes a group with its numbers.
pub(crate) async fn remove(call: Call<Worker>) -> Answer {
    let (id, before) = found(&call).await?;
    let Some(before) = before else {
        return Err(unknown(&id));
    };
    let changes = subjects(&before).into_iter();
    let changes = changes.map(|subject| Change::new(subject, None)).collect();
    let group = Group {
        id,
        numbers: Vec::new(),
    };
    write_group(&call.worker, changes, group, Some(before)).await
}

async fn write_group(
    worker: &Worker,
    changes: Vec<Change>,
    group: Group,
    before: Option<Stored<Group>>,
) -> Answer {
    let condition = before.map_or(Condition::Absent, |before| Condition::Version(before.version));
    let group = GroupWrite { group, condition };
    write(worker, changes, Some(group)).await.map(written)
}

/// The numbers of a group and their destinations.
fn of_json(document: &Value) -> Result<(Vec<Subject>, DestinationSet), String> {
    let members = document.as_object().ok_or("expected an object")?;
    let known = |name: &str| name == "destinations" || MEMBERS.iter().any(|(member, _)| *member == name);
    if let Some(name) = members.keys().find(|name| !known(name)) {
        return Err(format!(
            "{name}: unknown; expected imsis, msisdns and destinations"
        ));
    }
    let destinations = members.get("destinations").and_then(Value::as_str);
    let destinations = destinations.ok_or("destinations: expected a string")?;
    let destinations =
        DestinationSet::parse(destinations).map_err(|error| format!("destinations: {error}"))?;
    let mut numbers = Vec::new();
    for (member, kind) in MEMBERS {
        let Some(value) = members.get(member) else {
            continue;
        };
        let each = value.as_array().filter(|each| each.len() <= MOST_NUMBERS);
        let each =
            each.ok_or_else(|| format!("{member}: expected an array of at most {MOST_NUMBERS} numbers"))?;
        for value in each {
            let digits = value
                .as_str()
                .ok_or_else(|| format!("{member}: expected strings"))?;
            numbers.push(Subject::parse(kind, digits).map_err(|error| format!("{member}: {error}"))?);
        }
    }
    let changes: Vec<Change> = numbers.iter().map(|one| Change::new(one.clone(), None)).collect();
    check(&changes).map_err(|(_, reason)| reason)?;
    Ok((numbers, destinations))
}
