//! Cache of parsed queries with their answers.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use ::discovery::Whom;
use ahash::AHashMap;
use bounded::{Cache, Limits};
use model::{NfInstanceId, NfType, PlmnId};
use registry::{Entry, TypeTable};

use super::{Answer, Class, Classes, ParamFault, Policy, Query};

/// Cache of parsed queries with their answers, one per worker.
pub(crate) struct Plans {
    known: RefCell<Generations>,
    /// Subscriber classes by NF type, as of a state of its profiles.
    classes: RefCell<Cache<NfType, (u64, Rc<Classes>)>>,
    /// Bytes of the cached answers.
    pub(crate) kept: Cell<usize>,
    queries_max: usize,
    answers_max: usize,
    bytes_max: usize,
    text_max: usize,
    pub(crate) policy: Policy,
}

/// Target types whose classes are cached at most: far more than TS 29.510 names.
const TYPES_MAX: usize = 256;

/// Plans in two generations: when the young one is full it becomes the old one, and the old one is evicted. A used plan
/// moves to the young generation, so that plans in use stay. Eviction never scans plans one by one.
#[derive(Default)]
struct Generations {
    young: AHashMap<Box<str>, Rc<Plan>>,
    old: AHashMap<Box<str>, Rc<Plan>>,
}

/// A parsed query and its answers.
pub(crate) struct Plan {
    pub(crate) query: Query,
    /// The query as text, without its subscriber.
    pub(crate) text: Box<str>,
    /// `target-nf-type`, which every parsed query has.
    pub(crate) target: NfType,
    pub(crate) answers: RefCell<Answers>,
    matches: RefCell<Matches>,
}

/// Profiles that match the tests of a query, as of a state of the target type: after a change in a large type, only the
/// changed profiles are tested again.
#[derive(Default)]
enum Matches {
    #[default]
    Unknown,
    Few {
        generation: u64,
        /// In order.
        ids: Vec<NfInstanceId>,
    },
    /// Too many to be cached.
    Many,
}

/// Matching profiles that are cached with a plan at most.
const MATCHES_MAX: usize = 256;

/// Answers as of one state of the target type's profiles.
#[derive(Default)]
pub(crate) struct Answers {
    pub(crate) generation: u64,
    /// Built at the first query with a subscriber.
    classes: Option<Rc<Classes>>,
    /// Created with the first answer.
    by_key: Option<Cache<Key, Rc<Answer>>>,
}

/// Key of an answer beside query and registry: group and class of the subscriber.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) group: Group,
    pub(crate) class: Class,
}

/// Answer of the location function.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Group {
    /// No subscriber, or the type needs no group.
    NotAsked,
    /// No location function answered: profiles without a group, or of every group.
    Unavailable {
        none: bool,
        /// Seconds that the answer is valid at most.
        validity: u32,
    },
    None,
    Is(Arc<str>),
}

impl Group {
    /// Seconds that an answer is valid at most.
    pub(crate) fn validity(&self) -> Option<u32> {
        match self {
            Self::Unavailable { validity, .. } => Some(*validity),
            _ => None,
        }
    }

    pub(crate) fn as_about(&self) -> Option<Option<&str>> {
        match self {
            Self::NotAsked | Self::Unavailable { none: false, .. } => None,
            Self::None | Self::Unavailable { none: true, .. } => Some(None),
            Self::Is(group) => Some(Some(group)),
        }
    }
}

impl Plans {
    pub(crate) fn new(settings: &crate::config::Discovery, own_plmns: Vec<PlmnId>) -> Self {
        Self {
            known: RefCell::default(),
            classes: RefCell::new(Cache::new(Limits::entries(TYPES_MAX))),
            kept: Cell::new(0),
            queries_max: settings.cached_queries.max(2),
            answers_max: settings.cached_answers_per_query.max(1),
            bytes_max: settings.cached_bytes.as_usize(),
            text_max: settings.cached_query_size.as_usize(),
            policy: Policy::new(settings, own_plmns),
        }
    }

    /// The plan of a query string without its subscriber.
    pub(crate) fn of(&self, text: &str) -> Result<Rc<Plan>, ParamFault> {
        if text.len() > self.text_max {
            return Ok(Rc::new(Plan::parse(text)?));
        }
        let mut known = self.known.borrow_mut();
        if let Some(plan) = known.young.get(text) {
            return Ok(plan.clone());
        }
        let plan = match known.old.remove(text) {
            Some(plan) => plan,
            None => Rc::new(Plan::parse(text)?),
        };
        if known.young.len() >= self.queries_max / 2 {
            self.evict_old(&mut known);
        }
        known.young.insert(text.into(), plan.clone());
        Ok(plan)
    }

    fn evict_old(&self, known: &mut Generations) {
        known.old = std::mem::take(&mut known.young);
        // Recount: an evicted plan may have been in use and have got answers afterwards.
        let bytes = known.old.values().map(|plan| plan.answers.borrow().bytes());
        self.kept.set(bytes.sum());
    }

    pub(crate) fn classes_of(&self, target: &NfType, table: Option<&TypeTable>) -> Rc<Classes> {
        let Some(table) = table else { return Rc::default() };
        let mut known = self.classes.borrow_mut();
        let current = |(shape, _): &(u64, Rc<Classes>)| *shape == table.shape();
        if let Some((_, classes)) = known.get_if(target, current) {
            return classes.clone();
        }
        let classes = Rc::new(Classes::of(table));
        known.insert(target.clone(), (table.shape(), classes.clone()));
        classes
    }

    pub(crate) fn keep(&self, plan: &Plan, key: Key, answer: &Rc<Answer>) {
        if self.kept.get() + answer.body.len() > self.bytes_max {
            let mut known = self.known.borrow_mut();
            self.evict_old(&mut known);
            drop(known);
            if self.kept.get() + answer.body.len() > self.bytes_max {
                return;
            }
        }
        let mut answers = plan.answers.borrow_mut();
        let before = answers.bytes();
        let limits = Limits::entries(self.answers_max);
        let by_key = answers.by_key.get_or_insert_with(|| Cache::new(limits));
        by_key.insert_sized(key, answer.clone(), answer.body.len());
        let kept = self.kept.get().saturating_sub(before) + answers.bytes();
        self.kept.set(kept);
    }
}

impl Plan {
    pub(crate) fn parse(text: &str) -> Result<Self, ParamFault> {
        let in_query = |byte: u8| byte > b' ' && byte != 0x7f && byte != b'#';
        if !text.bytes().all(in_query) {
            return Err(ParamFault::new("query", "expected a URI query"));
        }
        let pairs =
            sbi::query::pairs(Some(text)).map_err(|error| ParamFault::new(&error.name, "expected UTF-8"))?;
        let query = Query::parse(&pairs)?;
        let target = query
            .target
            .clone()
            .ok_or_else(|| ParamFault::missing("target-nf-type"))?;
        Ok(Self {
            query,
            text: text.into(),
            target,
            answers: RefCell::default(),
            matches: RefCell::default(),
        })
    }

    /// The profiles that match the tests of the query, where those are few among many; else all.
    pub(crate) fn candidates<'a>(&self, table: &'a TypeTable) -> Vec<&'a Arc<Entry>> {
        let all = || table.iter().collect();
        if table.len() <= MATCHES_MAX {
            return all();
        }
        // For all subscribers: an answer judges its own together with these tests.
        let fits = |entry: &Arc<Entry>| self.query.matches(&entry.profile, Whom::default());
        let mut matches = self.matches.borrow_mut();
        let known = match &mut *matches {
            Matches::Many => return all(),
            Matches::Few { generation, ids } => match table.changed_since(*generation) {
                Some(changed) => {
                    for id in changed {
                        match (ids.binary_search(id), table.get(id).is_some_and(fits)) {
                            (Err(at), true) => ids.insert(at, *id),
                            (Ok(at), false) => drop(ids.remove(at)),
                            (Ok(_), true) | (Err(_), false) => {}
                        }
                    }
                    true
                }
                None => false,
            },
            Matches::Unknown => false,
        };
        if !known {
            let found = table.iter().filter(|entry| fits(entry)).map(|entry| entry.id);
            let mut ids: Vec<NfInstanceId> = found.take(MATCHES_MAX + 1).collect();
            ids.sort_unstable();
            *matches = Matches::Few { generation: 0, ids };
        }
        let Matches::Few { generation, ids } = &mut *matches else {
            return all();
        };
        if ids.len() > MATCHES_MAX {
            *matches = Matches::Many;
            return all();
        }
        *generation = table.generation();
        ids.iter().filter_map(|id| table.get(id)).collect()
    }
}

impl Answers {
    /// No answers yet, as of a state of the target type's profiles.
    pub(crate) fn of(generation: u64) -> Self {
        Self {
            generation,
            classes: None,
            by_key: None,
        }
    }

    /// The classes of subscribers, which `make` makes when they are wanted first.
    pub(crate) fn classes(&mut self, make: impl FnOnce() -> Rc<Classes>) -> &Rc<Classes> {
        self.classes.get_or_insert_with(make)
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Rc<Answer>> {
        self.by_key.as_ref()?.get(key)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.by_key.as_ref().map_or(0, Cache::bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_queries_are_not_kept() {
        let settings = crate::config::Discovery {
            cached_query_size: settings::ByteSize::kib(1),
            ..crate::config::Discovery::default()
        };
        let plans = Plans::new(&settings, Vec::new());
        let query = |length: usize| {
            let more = "y".repeat(length);
            format!("target-nf-type=UDM&requester-nf-type=AMF&x={more}")
        };
        let same = |text: &str| Rc::ptr_eq(&plans.of(text).unwrap(), &plans.of(text).unwrap());
        assert!(same(&query(900)) && !same(&query(1_000)));
        assert_eq!(plans.known.borrow().young.len(), 1);
    }

    #[test]
    fn an_answer_in_use_survives_a_flood_of_others() {
        let settings = crate::config::Discovery {
            cached_answers_per_query: 8,
            ..crate::config::Discovery::default()
        };
        let plans = Plans::new(&settings, Vec::new());
        let plan = plans.of("target-nf-type=UDM&requester-nf-type=AMF").unwrap();
        let key = |group: usize| Key {
            group: Group::Is(Arc::from(format!("g{group}"))),
            class: Class::default(),
        };
        let answer = Rc::new(Answer {
            body: bytes::Bytes::from_static(b"0123456789"),
            etag: http::HeaderValue::from_static("\"1\""),
            freshness: http::HeaderValue::from_static("max-age=1"),
            profiles: 0,
            packed: std::cell::OnceCell::new(),
        });
        for group in 0..100 {
            plans.keep(&plan, key(group), &answer);
            assert!(
                plan.answers.borrow().get(&key(0)).is_some(),
                "after {group} others"
            );
            assert_eq!(plans.kept.get(), plan.answers.borrow().bytes());
        }
        assert_eq!(plans.kept.get(), 80);
    }
}
