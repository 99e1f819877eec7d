//! Screening lists, compiled.

use settings::Faults;
use ss7_proto::m3ua::{Data, ServiceIndicator};
use ss7_proto::sccp::{self, Address, Format};
use ss7_proto::{Digits, Plan};

use super::Cluster;
use super::content::{Content, Operations, Party};
use crate::config::{self, Action, Rule, ScreeningList};

/// A screening list.
#[derive(Debug)]
pub(crate) struct Screen {
    pub(crate) name: String,
    otherwise: Action,
    rules: Vec<Compiled>,
    /// Whether a rule has conditions on addresses of SCCP, or on what it carries.
    needs_content: bool,
}

#[derive(Debug)]
struct Compiled {
    name: String,
    action: Action,
    opc: Vec<Cluster>,
    dpc: Vec<Cluster>,
    /// A bit for each service indicator; none: any.
    services: u16,
    networks: u8,
    /// A bit for each type of SCCP message; none: any, of other users too.
    messages: u32,
    operations: Vec<i32>,
    called: Option<Condition>,
    calling: Option<Condition>,
}

#[derive(Debug)]
struct Condition {
    digits: Vec<Digits>,
    translation_types: Vec<u8>,
    subsystems: Vec<u8>,
}

/// Whether a rule fits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fit {
    Yes,
    No,
    /// It would depend on what cannot be read.
    Unknown,
}

/// What is screened.
pub(crate) struct Message<'a> {
    pub(crate) data: &'a Data<'a>,
    pub(crate) format: Format,
}

impl Screen {
    pub(super) fn compile(list: &ScreeningList, plan: Plan, index: usize, faults: &mut Faults) -> Self {
        let rules: Vec<Compiled> = list
            .rules
            .iter()
            .enumerate()
            .map(|(number, rule)| {
                let at = format!("screening[{index}].rules[{number}]");
                Compiled::new(rule, number, plan, &at, faults)
            })
            .collect();
        Self {
            name: list.name.clone(),
            otherwise: list.otherwise,
            needs_content: rules.iter().any(Compiled::needs_content),
            rules,
        }
    }

    /// The names of the rules; behind them those of what happens when none fits, and of what cannot be read.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &str> {
        let rules = self.rules.iter().map(|rule| rule.name.as_str());
        rules.chain(["otherwise", "unreadable"])
    }

    /// What happens with a message, and the position of the rule that says so, as in [`Self::rules`].
    pub(crate) fn judge(&self, message: &Message<'_>) -> (Action, usize) {
        let data = message.data;
        let content = if self.needs_content && data.si == ServiceIndicator::SCCP {
            Content::read(message)
        } else {
            Content::NONE
        };
        for (at, rule) in self.rules.iter().enumerate() {
            match rule.fits(data, &content) {
                Fit::Yes => return (rule.action, at),
                Fit::No => {}
                // A rule that might have refused it does not let it pass to a node that reads it otherwise.
                Fit::Unknown => return (Action::Block, self.rules.len() + 1),
            }
        }
        (self.otherwise, self.rules.len())
    }
}

impl Compiled {
    fn new(rule: &Rule, number: usize, plan: Plan, at: &str, faults: &mut Faults) -> Self {
        let services = bits(
            &rule.service_indicators,
            15,
            &format!("{at}.serviceIndicators"),
            faults,
        );
        let networks = bits(
            &rule.network_indicators,
            3,
            &format!("{at}.networkIndicators"),
            faults,
        );
        Self {
            name: match rule.name.as_str() {
                "" => number.to_string(),
                name => name.to_owned(),
            },
            action: rule.action,
            opc: clusters(&rule.opc, plan, &format!("{at}.opc"), faults),
            dpc: clusters(&rule.dpc, plan, &format!("{at}.dpc"), faults),
            services,
            networks: networks as u8,
            messages: message_types(&rule.message_types, at, faults),
            operations: rule.operations.clone(),
            called: rule
                .called
                .as_ref()
                .map(|party| Condition::new(party, &format!("{at}.called"), faults)),
            calling: rule
                .calling
                .as_ref()
                .map(|party| Condition::new(party, &format!("{at}.calling"), faults)),
        }
    }

    const fn needs_content(&self) -> bool {
        self.called.is_some() || self.calling.is_some() || self.messages != 0 || !self.operations.is_empty()
    }

    fn fits(&self, data: &Data<'_>, content: &Content<'_>) -> Fit {
        let among = |codes: &[Cluster], code| codes.is_empty() || codes.iter().any(|one| one.covers(code));
        let has = |bits: u16, bit: u8| bits == 0 || bit < 16 && bits >> bit & 1 == 1;
        let is_type = |kind: sccp::MessageType| self.messages >> kind as u8 & 1 == 1;
        let label = has(self.services, data.si.0)
            && has(u16::from(self.networks), data.ni)
            && among(&self.opc, data.opc)
            && among(&self.dpc, data.dpc)
            && (self.messages == 0 || content.message_type.is_some_and(is_type));
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
            .and(self.invokes(&content.operations))
    }

    fn invokes(&self, operations: &Operations) -> Fit {
        match operations {
            _ if self.operations.is_empty() => Fit::Yes,
            Operations::Absent => Fit::No,
            Operations::Unreadable => Fit::Unknown,
            Operations::Known(found) if found.iter().any(|one| self.operations.contains(one)) => Fit::Yes,
            Operations::Known(_) => Fit::No,
        }
    }
}

impl Fit {
    const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Yes, Self::Yes) => Self::Yes,
        }
    }
}

impl Condition {
    fn new(party: &config::Party, at: &str, faults: &mut Faults) -> Self {
        let digits = party.digits.iter().enumerate().filter_map(|(number, text)| {
            let digits = Digits::parse(text);
            if digits.is_none() {
                let right = "at most 40 digits, 0 to 9 and a to f";
                faults
                    .at(format!("{at}.digits[{number}]"))
                    .say("cannot begin a number", right);
            }
            digits
        });
        Self {
            digits: digits.collect(),
            translation_types: party.translation_types.clone(),
            subsystems: party.subsystems.clone(),
        }
    }

    fn fits(&self, address: &Address<'_>, digits: Option<&Digits>) -> Fit {
        let title = address.title.as_ref();
        let begins = |number: &Digits| self.digits.iter().any(|prefix| number.starts_with(prefix));
        let is_among =
            |all: &[u8], one: Option<u8>| all.is_empty() || one.is_some_and(|one| all.contains(&one));
        let translation_type = title.and_then(|title| title.translation_type);
        if !is_among(&self.subsystems, address.ssn) || !is_among(&self.translation_types, translation_type) {
            return Fit::No;
        }
        let fits = |is| if is { Fit::Yes } else { Fit::No };
        match title {
            _ if self.digits.is_empty() => Fit::Yes,
            None => Fit::No,
            Some(_) => digits.map_or(Fit::Unknown, |number| fits(begins(number))),
        }
    }
}

/// A bit for each type of SCCP message.
fn message_types(names: &[String], at: &str, faults: &mut Faults) -> u32 {
    let mut bits = 0;
    for (index, name) in names.iter().enumerate() {
        let mut all = sccp::MessageType::ALL.iter();
        match all.find(|kind| kind.name() == name) {
            Some(kind) => bits |= 1 << *kind as u8,
            None => faults
                .at(format!("{at}.messageTypes[{index}]"))
                .say("is not a message of SCCP", "an abbreviation of Q.713 such as UDT"),
        }
    }
    bits
}

fn clusters(texts: &[String], plan: Plan, at: &str, faults: &mut Faults) -> Vec<Cluster> {
    let read = texts
        .iter()
        .enumerate()
        .filter_map(|(number, text)| match Cluster::parse(plan, text) {
            Ok(cluster) => Some(cluster),
            Err(error) => {
                let right = "a point code, or a cluster such as 3-48-0/3";
                faults.at(format!("{at}[{number}]")).say(error, right);
                None
            }
        });
    read.collect()
}

/// A bit for each number.
fn bits(numbers: &[u8], most: u8, at: &str, faults: &mut Faults) -> u16 {
    let mut bits = 0;
    for (index, number) in numbers.iter().enumerate() {
        if *number > most {
            faults
                .at(format!("{at}[{index}]"))
                .say("is too large", format!("0 to {most}"));
        } else {
            bits |= 1 << number;
        }
    }
    bits
}
