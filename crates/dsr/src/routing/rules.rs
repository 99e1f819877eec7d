//! Tables of rules. A table of twenty thousand rules must not cost twenty thousand comparisons per request, so each
//! rule is filed under its most selective condition, if that is an exact name or a prefix of a number; a request is
//! compared only with the rules filed under its own values, and with those that are not filed.

use ahash::AHashMap;
use diameter::proto::identity::with_lower;
use dsr_app::{Digits, View};
use smallvec::SmallVec;

use crate::config::{Conditions, TextCondition};

/// A field of a request.
fn value<'v>(view: &'v View<'_>, field: Field) -> Option<&'v [u8]> {
    match field {
        Field::DestinationHost => view.routing.destination_host,
        Field::DestinationRealm => view.routing.destination_realm,
        Field::OriginHost => view.routing.origin_host,
        Field::OriginRealm => view.routing.origin_realm,
        Field::Imsi => view.imsi().map(Digits::as_bytes),
        Field::Msisdn => view.msisdn().map(Digits::as_bytes),
    }
}

/// The field of a condition, the most selective first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Field {
    DestinationHost,
    Imsi,
    Msisdn,
    DestinationRealm,
    OriginHost,
    OriginRealm,
}

#[derive(Debug)]
enum Test {
    Equals(Vec<Box<[u8]>>),
    StartsWith(Vec<Box<[u8]>>),
    EndsWith(Vec<Box<[u8]>>),
    Present(bool),
}

impl Test {
    fn new(condition: &TextCondition) -> Self {
        let lower = |texts: &[String]| {
            texts
                .iter()
                .map(|t| t.to_ascii_lowercase().into_bytes().into())
                .collect()
        };
        match condition {
            TextCondition {
                present: Some(present),
                ..
            } => Self::Present(*present),
            TextCondition { starts_with, .. } if !starts_with.is_empty() => {
                Self::StartsWith(lower(starts_with))
            }
            TextCondition { ends_with, .. } if !ends_with.is_empty() => Self::EndsWith(lower(ends_with)),
            TextCondition { equals, .. } => Self::Equals(lower(equals)),
        }
    }

    fn holds(&self, value: Option<&[u8]>) -> bool {
        let Some(value) = value else {
            return matches!(self, Self::Present(false));
        };
        let same =
            |part: Option<&[u8]>, wanted: &[u8]| part.is_some_and(|part| part.eq_ignore_ascii_case(wanted));
        match self {
            Self::Equals(all) => all.iter().any(|one| value.eq_ignore_ascii_case(one)),
            Self::StartsWith(all) => all.iter().any(|one| same(value.get(..one.len()), one)),
            Self::EndsWith(all) => all.iter().any(|one| {
                same(
                    value.len().checked_sub(one.len()).and_then(|at| value.get(at..)),
                    one,
                )
            }),
            Self::Present(present) => *present,
        }
    }
}

#[derive(Debug)]
struct Compiled<A> {
    texts: SmallVec<[(Field, Test); 2]>,
    applications: SmallVec<[u32; 2]>,
    commands: SmallVec<[u32; 2]>,
    priority: u8,
    action: A,
}

impl<A> Compiled<A> {
    fn fits(&self, view: &View<'_>) -> bool {
        (self.applications.is_empty() || self.applications.contains(&view.application))
            && (self.commands.is_empty() || self.commands.contains(&view.command))
            && view.priority <= self.priority
            && self
                .texts
                .iter()
                .all(|(field, test)| test.holds(value(view, *field)))
    }
}

/// Numbers of rules in their order, by a key.
type Filed = AHashMap<Box<[u8]>, Vec<u32>>;

/// A table of rules with what each leads to.
#[derive(Debug)]
pub(crate) struct Rules<A> {
    /// In the order in which they are evaluated.
    rules: Vec<Compiled<A>>,
    /// By exact name, one map per field that has one.
    exact: Vec<(Field, Filed)>,
    /// By the beginning of a number: field, length, map.
    beginnings: Vec<(Field, usize, Filed)>,
    applications: AHashMap<u32, Vec<u32>>,
    rest: Vec<u32>,
}

impl<A> Rules<A> {
    /// Files rules, given with their priority value (lower first; equal ones in the order given).
    #[must_use]
    pub(crate) fn new(mut rules: Vec<(u32, &Conditions, A)>) -> Self {
        rules.sort_by_key(|(priority, ..)| *priority);
        let mut table = Self {
            rules: Vec::with_capacity(rules.len()),
            exact: Vec::new(),
            beginnings: Vec::new(),
            applications: AHashMap::new(),
            rest: Vec::new(),
        };
        for (_, conditions, action) in rules {
            table.file(conditions, action);
        }
        table
    }

    fn file(&mut self, conditions: &Conditions, action: A) {
        let Conditions {
            destination_realm,
            destination_host,
            origin_realm,
            origin_host,
            imsi,
            msisdn,
            applications,
            commands,
            priority_at_least,
        } = conditions;
        let given = [
            (Field::DestinationHost, destination_host),
            (Field::Imsi, imsi),
            (Field::Msisdn, msisdn),
            (Field::DestinationRealm, destination_realm),
            (Field::OriginHost, origin_host),
            (Field::OriginRealm, origin_realm),
        ];
        let texts: SmallVec<[(Field, Test); 2]> = given
            .iter()
            .filter_map(|(field, condition)| Some((*field, Test::new(condition.as_ref()?))))
            .collect();
        // Rules are far fewer than u32 can count: the file they come from is bounded.
        let number = self.rules.len() as u32;
        let selective = texts.iter().find_map(|(field, test)| match (field, test) {
            (_, Test::Equals(all)) => Some((*field, all, true)),
            (Field::Imsi | Field::Msisdn, Test::StartsWith(all)) => Some((*field, all, false)),
            _ => None,
        });
        match selective {
            Some((field, names, true)) => {
                let map = match self.exact.iter_mut().position(|(of, _)| *of == field) {
                    Some(at) => &mut self.exact[at].1,
                    None => {
                        self.exact.push((field, Filed::new()));
                        let last = self.exact.len() - 1;
                        &mut self.exact[last].1
                    }
                };
                for name in names {
                    add(map.entry(name.clone()).or_default(), number);
                }
            }
            Some((field, numbers, false)) => {
                for digits in numbers {
                    let known = self
                        .beginnings
                        .iter()
                        .position(|(of, length, _)| *of == field && *length == digits.len());
                    let at = known.unwrap_or_else(|| {
                        self.beginnings.push((field, digits.len(), Filed::new()));
                        self.beginnings.len() - 1
                    });
                    add(self.beginnings[at].2.entry(digits.clone()).or_default(), number);
                }
            }
            None if !applications.is_empty() => {
                for application in applications {
                    add(self.applications.entry(*application).or_default(), number);
                }
            }
            None => self.rest.push(number),
        }
        self.rules.push(Compiled {
            texts,
            applications: applications.iter().copied().collect(),
            commands: commands.iter().copied().collect(),
            priority: priority_at_least.unwrap_or(u8::MAX),
            action,
        });
    }

    /// The target of the first rule that matches.
    #[must_use]
    pub(crate) fn find(&self, view: &View<'_>) -> Option<&A> {
        let mut best = u32::MAX;
        self.look(&self.rest, view, &mut best);
        for (field, map) in &self.exact {
            if let Some(value) = value(view, *field)
                && let Some(filed) = find_lower(map, value)
            {
                self.look(filed, view, &mut best);
            }
        }
        for (field, length, map) in &self.beginnings {
            if let Some(begin) = value(view, *field).and_then(|value| value.get(..*length))
                && let Some(filed) = map.get(begin)
            {
                self.look(filed, view, &mut best);
            }
        }
        if let Some(filed) = self.applications.get(&view.application) {
            self.look(filed, view, &mut best);
        }
        self.rules.get(best as usize).map(|rule| &rule.action)
    }

    /// Looks for a rule that fits before `best`, among these.
    fn look(&self, filed: &[u32], view: &View<'_>, best: &mut u32) {
        for &number in filed {
            if number >= *best {
                return;
            }
            if self.rules[number as usize].fits(view) {
                *best = number;
                return;
            }
        }
    }
}

fn add(filed: &mut Vec<u32>, number: u32) {
    if filed.last() != Some(&number) {
        filed.push(number);
    }
}

/// What a map with keys in lower case has for a name in any case.
#[inline]
pub(crate) fn find_lower<'m, K, V>(map: &'m AHashMap<K, V>, name: &[u8]) -> Option<&'m V>
where
    K: std::borrow::Borrow<[u8]> + Eq + std::hash::Hash,
{
    if map.is_empty() {
        return None;
    }
    with_lower(name, |lower| map.get(lower))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use diameter::proto::Routing;
    use diameter::proto::known;
    use diameter::proto::{MessageBuilder, MessageMut};

    fn text(make: impl FnOnce(&mut TextCondition)) -> Option<TextCondition> {
        let mut condition = TextCondition::default();
        make(&mut condition);
        Some(condition)
    }

    fn request(host: Option<&str>, realm: &str, user: &str) -> MessageMut {
        let mut builder = MessageBuilder::request(316, 16_777_251);
        builder.maybe(known::DESTINATION_HOST, host);
        builder
            .put(known::DESTINATION_REALM, realm)
            .put(known::USER_NAME, user);
        builder.put(known::ORIGIN_HOST, "mme1.visited.example");
        builder.finish().unwrap()
    }

    fn answers(rules: &Rules<u32>, host: Option<&str>, realm: &str, user: &str) -> Option<u32> {
        let message = request(host, realm, user);
        let routing = Routing::scan(&message, b"").unwrap();
        rules.find(&View::new(16_777_251, 316, 10, &routing)).copied()
    }

    #[test]
    fn the_first_rule_that_fits_counts_wherever_it_is_filed() {
        let exact = Conditions {
            destination_realm: text(|t| t.equals = vec!["Home.example".to_owned()]),
            ..Conditions::default()
        };
        let prefix = Conditions {
            imsi: text(|t| t.starts_with = vec!["00101".to_owned(), "00102".to_owned()]),
            ..Conditions::default()
        };
        let absent = Conditions {
            destination_host: text(|t| t.present = Some(false)),
            applications: vec![16_777_251],
            ..Conditions::default()
        };
        let ends = Conditions {
            destination_realm: text(|t| t.ends_with = vec![".example".to_owned()]),
            origin_host: text(|t| t.starts_with = vec!["MME".to_owned()]),
            ..Conditions::default()
        };
        let other = Conditions {
            commands: vec![318],
            ..Conditions::default()
        };
        let rules = Rules::new(vec![
            (40, &ends, 4),
            (20, &prefix, 2),
            (10, &exact, 1),
            (30, &absent, 3),
            (5, &other, 0),
        ]);
        assert_eq!(rules.rules.len(), 5);
        assert_eq!(answers(&rules, None, "HOME.example", "001010000000001"), Some(1));
        assert_eq!(answers(&rules, None, "x.example", "001020000000001"), Some(2));
        assert_eq!(answers(&rules, None, "x.example", "001030000000001"), Some(3));
        assert_eq!(
            answers(&rules, Some("hss"), "x.example", "001030000000001"),
            Some(4)
        );
        assert_eq!(answers(&rules, Some("hss"), "example", "bob"), None);
    }

    #[test]
    fn filed_rules_match_as_a_comparison_with_every_rule() {
        let realms = ["a.example", "b.example", "c.example"];
        let mut state = 7u64;
        let mut dice = |sides: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % sides
        };
        let conditions: Vec<Conditions> = (0..300)
            .map(|_| Conditions {
                destination_realm: (dice(3) == 0)
                    .then(|| text(|t| t.equals = vec![realms[dice(3) as usize].to_owned()]))
                    .flatten(),
                imsi: (dice(2) == 0)
                    .then(|| text(|t| t.starts_with = vec![format!("0010{}", dice(10))]))
                    .flatten(),
                applications: if dice(2) == 0 {
                    vec![16_777_251 + dice(2) as u32]
                } else {
                    Vec::new()
                },
                commands: if dice(4) == 0 {
                    Vec::new()
                } else {
                    vec![316 + dice(3) as u32]
                },
                ..Conditions::default()
            })
            .collect();
        let numbered = conditions
            .iter()
            .enumerate()
            .map(|(n, c)| ((n / 3) as u32, c, n as u32))
            .collect();
        let rules = Rules::new(numbered);
        for n in 0..200 {
            let message = request(None, realms[n % 3], &format!("0010{}0000000001", n % 10));
            let routing = Routing::scan(&message, b"").unwrap();
            let view = View::new(16_777_251, 316 + (n % 2) as u32, 10, &routing);
            let plain = rules
                .rules
                .iter()
                .find(|rule| rule.fits(&view))
                .map(|rule| rule.action);
            assert_eq!(rules.find(&view).copied(), plain);
        }
    }
}
