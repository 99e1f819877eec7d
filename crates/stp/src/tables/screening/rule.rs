//! One screening rule: what it fits, message by message. The index of its list finds the same rules without trying each.

use settings::Faults;
use ss7_proto::m3ua::{Data, ServiceIndicator};
use ss7_proto::mtp3::Management;
use ss7_proto::sccp::{self, Address};
use ss7_proto::{Digits, MAX_DIGITS, Plan};

use super::content::{Affected, Content, Operations, Party};
use crate::config::{self, Action};
use crate::tables::Cluster;

/// A rule. Of each field the values that it admits; none: any.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) name: String,
    pub(super) outcome: Outcome,
    pub(super) opc: Vec<Cluster>,
    pub(super) dpc: Vec<Cluster>,
    pub(super) services: Vec<u8>,
    pub(super) networks: Vec<u8>,
    /// Heading codes of network management.
    pub(super) management: Vec<u8>,
    pub(super) affected: Vec<Cluster>,
    /// Types of SCCP messages.
    pub(super) messages: Vec<u8>,
    pub(super) operations: Vec<i32>,
    pub(super) called: Option<Condition>,
    pub(super) calling: Option<Condition>,
}

/// What follows when a rule fits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Act(Action),
    /// Another list decides, by its position.
    List(usize),
}

/// Conditions on an address.
#[derive(Debug)]
pub(super) struct Condition {
    pub(super) digits: Vec<Range>,
    pub(super) translation_types: Vec<u8>,
    pub(super) subsystems: Vec<u8>,
    pub(super) point_codes: Vec<Cluster>,
}

/// What numbers begin with: from one prefix to another of the same length.
#[derive(Debug)]
pub(super) struct Range {
    pub(super) first: Digits,
    pub(super) last: Digits,
}

/// Numbers in the order of their digits: one before those that it begins.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Key([u8; MAX_DIGITS / 2], u8);

/// Whether a rule fits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fit {
    Yes,
    No,
    /// It would depend on what cannot be read.
    Unknown,
}

impl Rule {
    /// `lists` finds a list by its name.
    pub(super) fn compile(
        rule: &config::Rule,
        number: usize,
        plan: Plan,
        lists: impl Fn(&str) -> Option<usize>,
        at: &mut At<'_, '_>,
    ) -> Self {
        let outcome = match rule.list.as_deref().map(&lists) {
            None => Outcome::Act(rule.action),
            Some(Some(list)) => Outcome::List(list),
            Some(None) => {
                let right = "the name of a list of `screening`";
                at.fault("list", "names no screening list", right);
                Outcome::Act(Action::Block)
            }
        };
        Self {
            name: match rule.name.as_str() {
                "" => number.to_string(),
                name => name.to_owned(),
            },
            outcome,
            opc: at.clusters("opc", &rule.opc, plan),
            dpc: at.clusters("dpc", &rule.dpc, plan),
            services: at.up_to("serviceIndicators", &rule.service_indicators, 15),
            networks: at.up_to("networkIndicators", &rule.network_indicators, 3),
            management: at.each("management", &rule.management, |name| {
                Management::heading(name, plan)
                    .ok_or(("is not a message of Q.704 §15", "an abbreviation such as TFP"))
            }),
            affected: at.clusters("affected", &rule.affected, plan),
            messages: at.each("messageTypes", &rule.message_types, |name| {
                let mut all = sccp::MessageType::ALL.iter();
                let found = all.find(|kind| kind.name() == name).map(|kind| *kind as u8);
                found.ok_or(("is not a message of SCCP", "an abbreviation of Q.713 such as UDT"))
            }),
            operations: rule.operations.clone(),
            called: at.condition("called", rule.called.as_ref(), plan),
            calling: at.condition("calling", rule.calling.as_ref(), plan),
        }
    }

    pub(super) fn fits(&self, data: &Data<'_>, content: &Content<'_>) -> Fit {
        let is_among =
            |all: &[u8], one: Option<u8>| all.is_empty() || one.is_some_and(|one| all.contains(&one));
        let label = is_among(&self.services, Some(data.si.0))
            && is_among(&self.networks, Some(data.ni))
            && covers(&self.opc, data.opc)
            && covers(&self.dpc, data.dpc)
            && is_among(&self.management, heading(data))
            && is_among(&self.messages, content.message_type.map(|kind| kind as u8));
        if !label {
            return Fit::No;
        }
        let party = |condition: Option<&Condition>, party: &Party<'_>| match (condition, party) {
            (None, _) => Fit::Yes,
            (Some(_), Party::Absent) => Fit::No,
            (Some(_), Party::Unreadable) => Fit::Unknown,
            (Some(condition), Party::Known { address, digits }) => condition.fits(address, digits.as_ref()),
        };
        // One condition that does not fit says enough, whatever the others cannot read.
        party(self.called.as_ref(), &content.called)
            .and(party(self.calling.as_ref(), &content.calling))
            .and(self.concerns(content.affected))
            .and(self.invokes(&content.operations))
    }

    fn concerns(&self, affected: Affected) -> Fit {
        match affected {
            _ if self.affected.is_empty() => Fit::Yes,
            Affected::Absent => Fit::No,
            Affected::Unreadable => Fit::Unknown,
            Affected::Known(concerned) => {
                let mut all = self.affected.iter();
                if all.clone().any(|one| one.has(concerned)) {
                    return Fit::Yes;
                }
                // Of a cluster that has more than the rule names a part would be judged with the rest.
                if all.any(|one| concerned.has(*one)) {
                    return Fit::Unknown;
                }
                Fit::No
            }
        }
    }

    fn invokes(&self, operations: &Operations) -> Fit {
        match operations {
            _ if self.operations.is_empty() => Fit::Yes,
            Operations::Absent => Fit::No,
            Operations::Unreadable => Fit::Unknown,
            Operations::Known(found) => Fit::when(found.iter().any(|one| self.operations.contains(one))),
        }
    }
}

/// The heading code of a message of network management.
pub(super) fn heading(data: &Data<'_>) -> Option<u8> {
    let first = data.user_data.first().copied();
    first.filter(|_| data.si == ServiceIndicator::SNM)
}

fn covers(clusters: &[Cluster], code: ss7_proto::PointCode) -> bool {
    clusters.is_empty() || clusters.iter().any(|one| one.covers(code))
}

impl Condition {
    fn fits(&self, address: &Address<'_>, digits: Option<&Digits>) -> Fit {
        let title = address.title.as_ref();
        let is_among =
            |all: &[u8], one: Option<u8>| all.is_empty() || one.is_some_and(|one| all.contains(&one));
        let translation_type = title.and_then(|title| title.translation_type);
        let is_at = |code| covers(&self.point_codes, code);
        if !is_among(&self.subsystems, address.ssn)
            || !is_among(&self.translation_types, translation_type)
            || !self.point_codes.is_empty() && !address.point_code.is_some_and(is_at)
        {
            return Fit::No;
        }
        match title {
            _ if self.digits.is_empty() => Fit::Yes,
            None => Fit::No,
            Some(_) => digits.map_or(Fit::Unknown, |number| {
                Fit::when(self.digits.iter().any(|range| range.covers(number)))
            }),
        }
    }
}

impl Range {
    /// Reads `4366`, `436610-436649`.
    fn parse(text: &str) -> Option<Self> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (Digits::parse(first)?, Digits::parse(last)?);
        let is_range = first.len() == last.len() && Key::new(&first) <= Key::new(&last);
        is_range.then_some(Self { first, last })
    }

    fn covers(&self, number: &Digits) -> bool {
        let beginning = Key::new(&number.first(self.first.len()));
        number.len() >= self.first.len()
            && Key::new(&self.first) <= beginning
            && beginning <= Key::new(&self.last)
    }

    /// The first number behind all that begin so; none: they are the last.
    pub(super) fn behind(&self) -> Option<Key> {
        let digits: Vec<u8> = self.last.iter().collect();
        let at = digits.iter().rposition(|digit| *digit != 0x0f)?;
        let mut next = self.last.first(at);
        next.push(digits.get(at)? + 1)?;
        Some(Key::new(&next))
    }
}

impl Key {
    pub(super) fn new(digits: &Digits) -> Self {
        let mut octets = [0; MAX_DIGITS / 2];
        for (octet, packed) in octets.iter_mut().zip(digits.packed()) {
            *octet = packed.rotate_left(4);
        }
        Self(octets, digits.len() as u8)
    }
}

impl Fit {
    const fn when(fits: bool) -> Self {
        if fits { Self::Yes } else { Self::No }
    }

    const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Yes, Self::Yes) => Self::Yes,
        }
    }
}

/// Where a rule stands in the settings, and what is wrong with them.
pub(super) struct At<'p, 'f> {
    pub(super) path: &'p str,
    pub(super) faults: &'f mut Faults,
}

impl At<'_, '_> {
    fn fault(&mut self, key: &str, what: impl Into<String>, right: &str) {
        let key = format!("{}.{key}", self.path);
        self.faults.at(key).say(what.into(), right);
    }

    /// Reads each value of a key; `read` returns what is wrong and what would be right.
    fn each<V, T>(
        &mut self,
        key: &str,
        values: &[V],
        read: impl Fn(&V) -> Result<T, (&'static str, &'static str)>,
    ) -> Vec<T> {
        let mut found = Vec::with_capacity(values.len());
        for (number, value) in values.iter().enumerate() {
            match read(value) {
                Ok(one) => found.push(one),
                Err((what, right)) => self.fault(&format!("{key}[{number}]"), what, right),
            }
        }
        found
    }

    fn up_to(&mut self, key: &str, numbers: &[u8], most: u8) -> Vec<u8> {
        for (number, value) in numbers.iter().enumerate() {
            if *value > most {
                let right = format!("0 to {most}");
                self.fault(&format!("{key}[{number}]"), "is too large", &right);
            }
        }
        numbers.to_vec()
    }

    fn clusters(&mut self, key: &str, texts: &[String], plan: Plan) -> Vec<Cluster> {
        let mut found = Vec::with_capacity(texts.len());
        for (number, text) in texts.iter().enumerate() {
            match Cluster::parse(plan, text) {
                Ok(cluster) => found.push(cluster),
                Err(error) => {
                    let right = "a point code, or a cluster such as 3-48-0/3";
                    self.fault(&format!("{key}[{number}]"), error, right);
                }
            }
        }
        found
    }

    fn condition(&mut self, key: &str, party: Option<&config::Party>, plan: Plan) -> Option<Condition> {
        let party = party?;
        Some(Condition {
            digits: self.each(&format!("{key}.digits"), &party.digits, |text| {
                let right =
                    "at most 40 digits, 0 to 9 and a to f, or two of one length in order, as 436610-436649";
                Range::parse(text).ok_or(("cannot begin a number", right))
            }),
            translation_types: party.translation_types.clone(),
            subsystems: party.subsystems.clone(),
            point_codes: self.clusters(&format!("{key}.pointCodes"), &party.point_codes, plan),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_intervals_of_numbers() {
        for (range, first, last, others) in [
            ("43", "43", "43fffff", ["42fff", "44", "4"]),
            ("4310-4319", "4310", "4319ff", ["431", "430f", "431a"]),
            ("4f", "4f0", "4fff", ["4e", "5", "4"]),
        ] {
            let range = Range::parse(range).unwrap();
            let digits = |text: &str| Digits::parse(text).unwrap();
            let inside = |text: &str| {
                let key = Key::new(&digits(text));
                Key::new(&range.first) <= key && range.behind().is_none_or(|behind| key < behind)
            };
            for text in [first, last] {
                assert!(range.covers(&digits(text)) && inside(text), "{range:?} {text}");
            }
            for text in others {
                assert!(!range.covers(&digits(text)) && !inside(text), "{range:?} {text}");
            }
        }
        assert!(Range::parse("ff").unwrap().behind().is_none());
        assert!(Range::parse("").unwrap().covers(&Digits::EMPTY));
        for wrong in ["43-4", "44-43", "4x", "1-2-3"] {
            assert!(Range::parse(wrong).is_none(), "{wrong}");
        }
    }
}
