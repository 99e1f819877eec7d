//! The rules of a list by the values that they admit: the rules that fit a message are those that stand in one set for each field.

use smallvec::SmallVec;
use ss7_proto::m3ua::Data;

use super::content::{Affected, Content, Operations, Party};
use super::rule::{Condition, Key, Rule, heading};
use super::sets::{Bits, Full, Intervals, SetId, Sets, SetsBuilder, Span, Values, first_of_all};
use crate::tables::Cluster;

/// Of each field the rules that admit a value; `None` for a field that no rule restricts.
#[derive(Debug)]
pub(super) struct Index {
    sets: Sets,
    all: SetId,
    opc: Option<Intervals<u32>>,
    dpc: Option<Intervals<u32>>,
    services: Option<Values<u8>>,
    networks: Option<Values<u8>>,
    management: Option<Values<u8>>,
    affected: Option<Optional<Intervals<u32>>>,
    messages: Option<Values<u8>>,
    operations: Option<Values<i32>>,
    called: Option<Optional<PartyIndex>>,
    calling: Option<Optional<PartyIndex>>,
}

/// A field that messages may lack.
#[derive(Debug)]
struct Optional<T> {
    /// The rules that do not ask for it.
    absent: SetId,
    known: T,
}

#[derive(Debug)]
struct PartyIndex {
    subsystems: Option<Values<u8>>,
    translation_types: Option<Values<u8>>,
    digits: Option<Optional<Intervals<Key>>>,
    point_codes: Option<Optional<Intervals<u32>>>,
}

/// The sets of a message. There are at most 16.
type Found<'i> = SmallVec<[&'i Bits; 16]>;
/// Rules of several sets.
type United = SmallVec<[u64; 16]>;

impl Index {
    /// Compiles rules within a number of words, and returns those that are left.
    pub(super) fn compile(rules: &[Rule], left: usize) -> Result<(Self, usize), Full> {
        let mut sets = SetsBuilder::new(rules.len(), left);
        let all = sets.all()?;
        let clusters = |of: fn(&Rule) -> &[Cluster], sets: &mut SetsBuilder| {
            Intervals::compile(rules.iter().map(|rule| spans(of(rule))), sets)
        };
        let values =
            |of: fn(&Rule) -> &[u8], sets: &mut SetsBuilder| Values::compile(rules.iter().map(of), sets);
        let affected = clusters(|rule| &rule.affected, &mut sets)?;
        let without = |without: fn(&Rule) -> bool, sets: &mut SetsBuilder| {
            let those = rules.iter().enumerate().filter(|(_, rule)| without(rule));
            let bits = sets.bits(those.map(|(at, _)| at));
            sets.set(&bits)
        };
        let mut index = Self {
            all,
            opc: clusters(|rule| &rule.opc, &mut sets)?,
            dpc: clusters(|rule| &rule.dpc, &mut sets)?,
            services: values(|rule| &rule.services, &mut sets)?,
            networks: values(|rule| &rule.networks, &mut sets)?,
            management: values(|rule| &rule.management, &mut sets)?,
            affected: match affected {
                None => None,
                Some(known) => Some(Optional {
                    absent: without(|rule| rule.affected.is_empty(), &mut sets)?,
                    known,
                }),
            },
            messages: values(|rule| &rule.messages, &mut sets)?,
            operations: Values::compile(rules.iter().map(|rule| &rule.operations[..]), &mut sets)?,
            called: PartyIndex::compile(rules, |rule| rule.called.as_ref(), &mut sets)?,
            calling: PartyIndex::compile(rules, |rule| rule.calling.as_ref(), &mut sets)?,
            sets: Sets::default(),
        };
        let (sets, left) = sets.finish();
        index.sets = sets;
        Ok((index, left))
    }

    /// The first rule that fits a message, or would but for what cannot be read.
    pub(super) fn first(&self, data: &Data<'_>, content: &Content<'_>) -> Option<usize> {
        let operations = self.operations(&content.operations);
        let within = self.within(content.affected);
        let mut found: Found<'_> = SmallVec::new();
        let mut add = |set: Option<SetId>| found.extend(set.map(|set| self.sets.get(set)));
        add(Some(self.all));
        add(self.opc.as_ref().and_then(|opc| opc.find(&data.opc.0)));
        add(self.dpc.as_ref().and_then(|dpc| dpc.find(&data.dpc.0)));
        add(self.services.as_ref().map(|all| all.find(Some(data.si.0))));
        add(self.networks.as_ref().map(|all| all.find(Some(data.ni))));
        add(self.management.as_ref().map(|all| all.find(heading(data))));
        let kind = content.message_type.map(|kind| kind as u8);
        add(self.messages.as_ref().map(|all| all.find(kind)));
        // What cannot be read excludes no rule.
        if let Some(affected) = &self.affected {
            add(match content.affected {
                Affected::Absent => Some(affected.absent),
                Affected::Known(one) if one.wild == 0 => affected.known.find(&one.code.0),
                Affected::Known(_) | Affected::Unreadable => None,
            });
        }
        self.add_party(self.called.as_ref(), &content.called, &mut found);
        self.add_party(self.calling.as_ref(), &content.calling, &mut found);
        found.extend(operations.as_deref());
        found.extend(within.as_deref());
        first_of_all(&found)
    }

    fn add_party<'i>(
        &'i self,
        index: Option<&Optional<PartyIndex>>,
        party: &Party<'_>,
        found: &mut Found<'i>,
    ) {
        let mut add = |set: Option<SetId>| found.extend(set.map(|set| self.sets.get(set)));
        match (index, party) {
            (None, _) | (_, Party::Unreadable) => {}
            (Some(index), Party::Absent) => add(Some(index.absent)),
            (Some(Optional { known, .. }), Party::Known { address, digits }) => {
                let title = address.title.as_ref();
                let translation_type = title.and_then(|title| title.translation_type);
                add(known.subsystems.as_ref().map(|all| all.find(address.ssn)));
                add(known
                    .translation_types
                    .as_ref()
                    .map(|all| all.find(translation_type)));
                if let Some(index) = &known.digits {
                    add(match (title, digits) {
                        (None, _) => Some(index.absent),
                        (Some(_), Some(digits)) => index.known.find(&Key::new(digits)),
                        (Some(_), None) => None,
                    });
                }
                if let Some(index) = &known.point_codes {
                    let code = address.point_code;
                    add(code.map_or(Some(index.absent), |code| index.known.find(&code.0)));
                }
            }
        }
    }

    /// The rules that admit one of the operations of a message; `None`: all.
    fn operations(&self, operations: &Operations) -> Option<United> {
        let index = self.operations.as_ref()?;
        let found: &[i32] = match operations {
            Operations::Absent => &[],
            Operations::Unreadable => return None,
            Operations::Known(found) => found,
        };
        let sets = found.iter().map(|operation| index.find(Some(*operation)));
        Some(self.union(index.find(None), sets))
    }

    /// The rules that admit the cluster that a message concerns, or a part of it; `None`: it concerns none.
    fn within(&self, affected: Affected) -> Option<United> {
        let index = self.affected.as_ref()?;
        let Affected::Known(Cluster {
            code,
            wild: wild @ 1..,
        }) = affected
        else {
            return None;
        };
        let last = code.0 | ((1 << wild) - 1);
        let sets = index.known.between(&code.0, &last);
        Some(self.union(index.absent, sets.iter().copied()))
    }

    fn union(&self, first: SetId, others: impl IntoIterator<Item = SetId>) -> United {
        let mut united = SmallVec::from_slice(self.sets.get(first));
        for other in others {
            let words = united.iter_mut().zip(self.sets.get(other));
            words.for_each(|(word, other)| *word |= other);
        }
        united
    }
}

impl PartyIndex {
    fn compile(
        rules: &[Rule],
        of: fn(&Rule) -> Option<&Condition>,
        sets: &mut SetsBuilder,
    ) -> Result<Option<Optional<Self>>, Full> {
        if rules.iter().all(|rule| of(rule).is_none()) {
            return Ok(None);
        }
        let conditions = || rules.iter().map(of);
        let without = |has: fn(Option<&Condition>) -> bool, sets: &mut SetsBuilder| {
            let those = conditions().enumerate().filter(|(_, condition)| !has(*condition));
            let bits = sets.bits(those.map(|(at, _)| at));
            sets.set(&bits)
        };
        let values = |of: fn(&Condition) -> &[u8], sets: &mut SetsBuilder| {
            Values::compile(conditions().map(|one| one.map_or(&[][..], of)), sets)
        };
        let digits = conditions().map(|condition| {
            let ranges = condition.into_iter().flat_map(|condition| &condition.digits);
            let spans = ranges.map(|range| Span {
                first: Key::new(&range.first),
                behind: range.behind(),
            });
            spans.collect::<Vec<_>>()
        });
        let digits = match Intervals::compile(digits, sets)? {
            None => None,
            Some(known) => Some(Optional {
                absent: without(|one| one.is_some_and(|one| !one.digits.is_empty()), sets)?,
                known,
            }),
        };
        let point_codes = conditions().map(|one| one.map_or_else(Vec::new, |one| spans(&one.point_codes)));
        let point_codes = match Intervals::compile(point_codes, sets)? {
            None => None,
            Some(known) => Some(Optional {
                absent: without(|one| one.is_some_and(|one| !one.point_codes.is_empty()), sets)?,
                known,
            }),
        };
        Ok(Some(Optional {
            absent: without(|one| one.is_some(), sets)?,
            known: Self {
                subsystems: values(|one| &one.subsystems, sets)?,
                translation_types: values(|one| &one.translation_types, sets)?,
                digits,
                point_codes,
            },
        }))
    }
}

fn spans(clusters: &[Cluster]) -> Vec<Span<u32>> {
    let span = |cluster: &Cluster| Span {
        first: cluster.code.0,
        behind: cluster.code.0.checked_add(1 << cluster.wild),
    };
    clusters.iter().map(span).collect()
}
