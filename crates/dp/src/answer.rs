//! From a bundle of queries to the bundle of its answers.

use std::time::Instant;

use dp_proto::{Answer, Bundle, Frame, Malformed, Outcome, Query};
use numbers::{Damaged, DestinationSet, Key, Kind, SetId};
use overload::{Rate, RateLimiter};

use crate::data::Data;

/// Answers of each outcome, in the order of [`Outcome::ALL`].
pub(crate) type Tally = [u64; Outcome::ALL.len()];

/// Answers the queries of a worker. What it needs for a bundle is kept for the next one.
#[derive(Debug, Default)]
pub(crate) struct Responder {
    keys: Vec<Key>,
    /// For each query whether it has one of the keys.
    has_key: Vec<bool>,
    found: Vec<Result<Option<SetId>, Damaged>>,
    rate: Option<(u32, RateLimiter)>,
}

impl Responder {
    /// Appends the answers to the queries of a frame. Without data all of them are answered as unavailable, and by old data those
    /// that these do not have; at most `most` are answered in a second, the others as congested.
    ///
    /// # Errors
    /// When the frame is malformed; nothing is answered then.
    pub(crate) fn answer(
        &mut self,
        frame: &Frame<'_, Query<'_>>,
        data: Option<&Data>,
        most: u32,
        out: &mut Bundle,
    ) -> Result<Tally, Malformed> {
        self.collect(frame)?;
        let mut tally = Tally::default();
        let Some(data) = data else {
            refuse(frame, Outcome::Unavailable, out, &mut tally);
            return Ok(tally);
        };
        let mut admitted = admitted(&mut self.rate, most, frame.count());
        // Nothing is searched for those that are refused.
        let searched = self.has_key.iter().take(admitted).filter(|has| **has).count();
        self.found.clear();
        let found = &mut self.found;
        let keys = self.keys.get(..searched).unwrap_or_default();
        data.map.find_many(keys, |one| found.push(one));
        let sets = data.map.sets();
        let unknown = match data.is_old() {
            true => Outcome::Unavailable,
            false => Outcome::Unknown,
        };
        let (mut found, mut has_key) = (self.found.iter(), self.has_key.iter());
        frame.each(|query| {
            let key = has_key.next().copied().unwrap_or_default().then(|| found.next());
            let Some(rest) = admitted.checked_sub(1) else {
                return put(query.id, Outcome::Congested, b"", out, &mut tally);
            };
            admitted = rest;
            let service = std::str::from_utf8(query.service).unwrap_or_default();
            match key.flatten() {
                Some(Ok(id)) => {
                    let set = id.and_then(|id| sets.get(id.index()));
                    match set.and_then(|set| set.destination(service)) {
                        Some(found) => put(query.id, Outcome::Exact, found.as_bytes(), out, &mut tally),
                        None => put(query.id, unknown, b"", out, &mut tally),
                    }
                }
                Some(Err(_)) => put(query.id, Outcome::Damaged, b"", out, &mut tally),
                None if query.kind == dp_proto::Kind::Name => {
                    name(&query, service, data, unknown, out, &mut tally);
                }
                // Digits that are not a number.
                None => put(query.id, Outcome::Unknown, b"", out, &mut tally),
            }
        })?;
        Ok(tally)
    }

    /// The keys of a frame, each query of which is checked.
    fn collect(&mut self, frame: &Frame<'_, Query<'_>>) -> Result<(), Malformed> {
        self.keys.clear();
        self.has_key.clear();
        frame.each(|query| {
            let key = key(query.kind, query.value);
            self.has_key.push(key.is_some());
            self.keys.extend(key);
        })
    }
}

/// How many of these queries are answered now.
fn admitted(rate: &mut Option<(u32, RateLimiter)>, most: u32, queries: usize) -> usize {
    if most == 0 {
        return queries;
    }
    if rate.as_ref().is_none_or(|(before, _)| *before != most) {
        *rate = Some((most, RateLimiter::new(Rate::per_second(f64::from(most)))));
    }
    let Some((_, limiter)) = rate else { return queries };
    let now = Instant::now();
    (0..queries).take_while(|_| limiter.allow(now)).count()
}

/// The number of a query; none: it asks for a name, or its digits are not a number.
pub(crate) fn key(kind: dp_proto::Kind, value: &[u8]) -> Option<Key> {
    let kind = match kind {
        dp_proto::Kind::Imei => Kind::Imei,
        dp_proto::Kind::Imsi => Kind::Imsi,
        dp_proto::Kind::Msisdn => Kind::Msisdn,
        dp_proto::Kind::Name => return None,
    };
    Key::new(kind, value).ok()
}

/// The entry that stands for every name of the realm: `*@realm`, and `sip:*@realm` for a SIP URI.
pub(crate) fn realm(name: &str) -> Option<String> {
    let (user, realm) = name.split_once('@')?;
    let scheme = ["sip:", "sips:"]
        .into_iter()
        .find(|scheme| user.starts_with(scheme));
    Some(format!("{}*@{realm}", scheme.unwrap_or_default()))
}

/// Answers a query for a name; one that old data do not have may be known by now, before its realm.
fn name(
    query: &Query<'_>,
    service: &str,
    data: &Data,
    unknown: Outcome,
    out: &mut Bundle,
    tally: &mut Tally,
) {
    let Ok(name) = std::str::from_utf8(query.value) else {
        return put(query.id, Outcome::Unknown, b"", out, tally);
    };
    let mut found = |name: &str, outcome| {
        data.names.find(name, |set: &DestinationSet| {
            let destination = set.destination(service)?;
            put(query.id, outcome, destination.as_bytes(), out, tally);
            Some(())
        })
    };
    let known = found(name, Outcome::Exact).and_then(|known| {
        let realm = (known.is_none() && unknown == Outcome::Unknown).then(|| realm(name));
        match realm.flatten() {
            Some(realm) => found(&realm, Outcome::Realm),
            None => Ok(known),
        }
    });
    match known {
        Ok(Some(())) => {}
        Ok(None) => put(query.id, unknown, b"", out, tally),
        Err(_) => put(query.id, Outcome::Damaged, b"", out, tally),
    }
}

fn put(id: u32, outcome: Outcome, destination: &[u8], out: &mut Bundle, tally: &mut Tally) {
    tally[outcome as usize] += 1;
    out.push(&Answer {
        id,
        outcome,
        destination,
    });
}

/// Answers all queries alike.
fn refuse(frame: &Frame<'_, Query<'_>>, outcome: Outcome, out: &mut Bundle, tally: &mut Tally) {
    // The frame was checked.
    let _ = frame.each(|query| put(query.id, outcome, b"", out, tally));
}
