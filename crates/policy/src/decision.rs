//! Decisions: what an evaluation gives, in the names of the standard.

use bumpalo::Bump;
use bumpalo::collections::Vec;
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::Value as Json;
use time::OffsetDateTime;

use crate::notification::Notification;
use crate::program::Owner;
use crate::shape::{Section, Service};
use crate::value::{Member, Value};

/// What an evaluation decided. It borrows from the project, the input and the worker's scratch.
///
/// As JSON it has the members of `SmPolicyDecision` (TS 29.512 §5.6.2.4), of `PolicyAssociation` (TS 29.507 §5.6.2.2)
/// without `request` and `suppFeat`, or for UE policies `urspRules`, `triggers` and the like.
#[derive(Debug)]
pub struct Decision<'a> {
    service: Service,
    entries: Vec<'a, Entry<'a>>,
    members: Vec<'a, Member<'a>>,
    triggers: Vec<'a, &'a str>,
    state: Vec<'a, Member<'a>>,
    subscriber_state: Vec<'a, Member<'a>>,
    notifications: Vec<'a, Notification<'a>>,
    rejection: Option<Rejection<'a>>,
    next_change: Option<OffsetDateTime>,
}

/// A rule or datum of a decision.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Where it belongs.
    pub section: Section,
    /// Its identifier.
    pub id: &'a str,
    /// Its content; null removes it.
    pub value: Value<'a>,
}

/// The refusal of a request.
#[derive(Clone, Copy, Debug)]
pub struct Rejection<'a> {
    /// HTTP status, 400 to 599.
    pub status: u16,
    /// `cause` of the problem details.
    pub cause: &'a str,
    /// `detail` of the problem details.
    pub detail: Option<&'a str>,
}

impl<'a> Decision<'a> {
    pub(crate) fn new(service: Service, arena: &'a Bump) -> Self {
        Self {
            service,
            entries: Vec::with_capacity_in(8, arena),
            members: Vec::with_capacity_in(4, arena),
            triggers: Vec::with_capacity_in(8, arena),
            state: Vec::with_capacity_in(4, arena),
            subscriber_state: Vec::new_in(arena),
            notifications: Vec::new_in(arena),
            rejection: None,
            next_change: None,
        }
    }

    /// When a `$time` or `$now` that the evaluation has read is another one, so that the decision may be: the first end or
    /// beginning of its times of day, the next hour, the next day. Of minutes and seconds nothing is said.
    #[must_use]
    pub fn next_change(&self) -> Option<OffsetDateTime> {
        self.next_change
    }

    /// A time that was read is another one from this moment on.
    pub(crate) fn changes(&mut self, at: OffsetDateTime) {
        self.next_change = Some(self.next_change.map_or(at, |known| known.min(at)));
    }

    /// The service that it is for.
    #[must_use]
    pub fn service(&self) -> Service {
        self.service
    }

    /// Rules and data of one section, in the order in which blocks made them.
    pub fn entries(&self, section: Section) -> impl Iterator<Item = &Entry<'a>> {
        self.entries.iter().filter(move |entry| entry.section == section)
    }

    /// Other members of the decision.
    #[must_use]
    pub fn members(&self) -> &[Member<'a>] {
        &self.members
    }

    /// Triggers, each once.
    pub fn triggers(&self) -> impl Iterator<Item = &'a str> {
        self.triggers.iter().copied()
    }

    /// State variables to store with the association; null removes one.
    #[must_use]
    pub fn state(&self) -> &[Member<'a>] {
        &self.state
    }

    /// State variables to store with the subscriber, for all its associations; null removes one.
    #[must_use]
    pub fn subscriber_state(&self) -> &[Member<'a>] {
        &self.subscriber_state
    }

    /// Messages to servers of the operator, in the order in which blocks made them; none with a refusal.
    #[must_use]
    pub fn notifications(&self) -> &[Notification<'a>] {
        &self.notifications
    }

    /// The refusal, where a block refused the request.
    #[must_use]
    pub fn rejection(&self) -> Option<&Rejection<'a>> {
        self.rejection.as_ref()
    }

    /// The decision as JSON.
    #[must_use]
    pub fn to_json(&self) -> Json {
        serde_json::to_value(self).unwrap_or(Json::Null)
    }

    /// Number of entries, members, triggers and the like.
    pub(crate) fn len(&self) -> usize {
        let variables = self.state.len() + self.subscriber_state.len();
        let rest = variables + self.notifications.len();
        self.entries.len() + self.members.len() + self.triggers.len() + rest
    }

    /// The last of several entries with one identifier counts.
    pub(crate) fn put(&mut self, section: Section, id: &'a str, value: Value<'a>) {
        let same = |entry: &&mut Entry<'a>| entry.section == section && entry.id == id;
        match self.entries.iter_mut().find(same) {
            Some(entry) => entry.value = value,
            None => self.entries.push(Entry { section, id, value }),
        }
    }

    pub(crate) fn set(&mut self, name: &'a str, value: Value<'a>) {
        set(&mut self.members, name, value);
    }

    pub(crate) fn remember(&mut self, owner: Owner, name: &'a str, value: Value<'a>) {
        let variables = match owner {
            Owner::Association => &mut self.state,
            Owner::Subscriber => &mut self.subscriber_state,
        };
        set(variables, name, value);
    }

    pub(crate) fn trigger(&mut self, trigger: &'a str) {
        if !self.triggers.contains(&trigger) {
            self.triggers.push(trigger);
        }
    }

    pub(crate) fn notify(&mut self, notification: Notification<'a>) {
        self.notifications.push(notification);
    }

    pub(crate) fn reject(&mut self, rejection: Rejection<'a>) {
        // What is refused does not come to be, and nothing is sent of it.
        self.notifications.clear();
        self.rejection = Some(rejection);
    }
}

fn set<'a>(list: &mut Vec<'a, Member<'a>>, name: &'a str, value: Value<'a>) {
    match list.iter_mut().find(|(known, _)| *known == name) {
        Some(member) => member.1 = value,
        None => list.push((name, value)),
    }
}

impl Serialize for Decision<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for naming in Section::all() {
            if self.entries(naming.section).next().is_none() {
                continue;
            }
            let entries = Entries {
                decision: self,
                section: naming.section,
            };
            map.serialize_entry(naming.member, &entries)?;
        }
        for (name, value) in &self.members {
            map.serialize_entry(name, value)?;
        }
        if !self.triggers.is_empty() {
            map.serialize_entry(self.service.triggers(), self.triggers.as_slice())?;
        }
        map.end()
    }
}

/// One section: a map by identifier, or for URSP rules a list.
struct Entries<'d, 'a> {
    decision: &'d Decision<'a>,
    section: Section,
}

impl Serialize for Entries<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entries = self.decision.entries(self.section);
        if self.section == Section::UrspRules {
            let mut list = serializer.serialize_seq(None)?;
            for entry in entries {
                list.serialize_element(&entry.value)?;
            }
            return list.end();
        }
        let mut map = serializer.serialize_map(None)?;
        for entry in entries {
            map.serialize_entry(entry.id, &entry.value)?;
        }
        map.end()
    }
}
