//! Mediation: requests and answers that fit a rule are changed on their way.
//!
//! Rules are compiled once and filed by command, so a message meets only those of its command and those of any. A message
//! that fits none is not copied; one that fits several is copied once, after the last.

mod compiled;
mod draft;

use ahash::AHashMap;
use diameter::proto::{BuildError, Message, MessageMut};

pub(crate) use compiled::Misfit;

use self::compiled::Compiled;
use self::draft::Draft;
use crate::config::{self, Messages};
use crate::measures::{Count, Names, Subject};

/// The rules, ready for messages.
#[derive(Debug, Default)]
pub(crate) struct Mediation {
    rules: Vec<Compiled>,
    requests: Filed,
    answers: Filed,
}

/// Positions of rules, in their order.
#[derive(Debug, Default)]
struct Filed {
    /// Of the rules for a command, those for any command included.
    by_command: AHashMap<u32, Box<[u16]>>,
    /// Of the rules for any command.
    others: Box<[u16]>,
}

impl Filed {
    fn new(rules: &[config::MediationRule], messages: Messages) -> Self {
        let ours = |commands: &dyn Fn(&[u32]) -> bool| {
            let all = rules.iter().enumerate();
            let fitting = all.filter(|(_, rule)| rule.messages == messages && commands(&rule.when.commands));
            fitting.map(|(index, _)| index as u16).collect::<Box<[u16]>>()
        };
        let named = rules.iter().flat_map(|rule| &rule.when.commands);
        let file = |command: u32| ours(&|of: &[u32]| of.is_empty() || of.contains(&command));
        Self {
            by_command: named.map(|command| (*command, file(*command))).collect(),
            others: ours(&<[u32]>::is_empty),
        }
    }

    #[inline]
    fn of(&self, command: u32) -> &[u16] {
        match self.by_command.is_empty() {
            true => &self.others,
            false => self.by_command.get(&command).unwrap_or(&self.others),
        }
    }
}

/// What a rule made of a message.
#[derive(Debug)]
pub(crate) struct Outcome<'r> {
    /// Name of the rule.
    pub(crate) rule: &'r str,
    /// Its position in the configuration.
    pub(crate) position: usize,
    /// Why it does not fit; none: it changed the message.
    pub(crate) misfit: Option<Misfit>,
}

impl Mediation {
    /// Compiles the rules.
    ///
    /// # Errors
    /// When one is not valid, with its position.
    pub(crate) fn new(settings: &config::Mediation, measured: &mut Names) -> Result<Self, String> {
        let compile = |(index, rule): (usize, &config::MediationRule)| {
            let count = measured.add(Subject::MediationRule, &rule.name);
            Compiled::new(rule, count).map_err(|wrong| format!("mediation.rules[{index}]: {wrong}"))
        };
        let rules: Vec<Compiled> = settings
            .rules
            .iter()
            .enumerate()
            .map(compile)
            .collect::<Result<_, _>>()?;
        Ok(Self {
            rules,
            requests: Filed::new(&settings.rules, Messages::Requests),
            answers: Filed::new(&settings.rules, Messages::Answers),
        })
    }

    /// Whether no message of that kind and command meets a rule.
    #[inline]
    #[must_use]
    pub(crate) fn is_idle(&self, messages: Messages, command: u32) -> bool {
        self.filed(messages).of(command).is_empty()
    }

    fn filed(&self, messages: Messages) -> &Filed {
        match messages {
            Messages::Requests => &self.requests,
            Messages::Answers => &self.answers,
        }
    }

    /// The message with the changes of all rules that fit; none: none fits. `met` gets the count of each that does.
    ///
    /// # Errors
    /// When it gets longer than a message can be.
    pub(crate) fn change<B: AsRef<[u8]>>(
        &self,
        messages: Messages,
        message: &Message<B>,
        from: &str,
        mut met: impl FnMut(Count),
    ) -> Option<Result<MessageMut, BuildError>> {
        let each = |_, rule: &Compiled, misfit: Option<Misfit>| {
            if misfit.is_none() {
                met(rule.count);
            }
        };
        self.apply(messages, message, from, each).finish()
    }

    /// What each rule that a message meets makes of it, and the message in the end; none: it is as it was.
    #[cold]
    pub(crate) fn explain<B: AsRef<[u8]>>(
        &self,
        messages: Messages,
        message: &Message<B>,
        from: &str,
    ) -> (Vec<Outcome<'_>>, Option<Result<MessageMut, BuildError>>) {
        let mut outcomes = Vec::new();
        let draft = self.apply(messages, message, from, |position, _, misfit| {
            outcomes.push((position, misfit));
        });
        let changed = draft.finish();
        let outcome = |(position, misfit): (usize, Option<Misfit>)| {
            let rule = &*self.rules.get(position)?.name;
            Some(Outcome {
                rule,
                position,
                misfit,
            })
        };
        (outcomes.into_iter().filter_map(outcome).collect(), changed)
    }

    /// Applies the rules in their order. `each` gets the position of every rule that the message meets, and why it does
    /// not fit.
    fn apply<'m, B: AsRef<[u8]>>(
        &'m self,
        messages: Messages,
        message: &'m Message<B>,
        from: &str,
        mut each: impl FnMut(usize, &Compiled, Option<Misfit>),
    ) -> Draft<'m> {
        let mut draft = Draft::new(message);
        for position in self.filed(messages).of(message.command()) {
            let position = usize::from(*position);
            let Some(rule) = self.rules.get(position) else {
                continue;
            };
            let misfit = rule.misfit(&draft, from);
            each(position, rule, misfit);
            if misfit.is_some() {
                continue;
            }
            rule.apply(&mut draft);
            if rule.last {
                break;
            }
        }
        draft
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{AvpValue, Change, MediationRule};
    use diameter::proto::{MessageBuilder, known};

    fn rule(changes: Vec<Change>) -> MediationRule {
        MediationRule {
            changes,
            ..MediationRule::default()
        }
    }

    fn add(avp: &str, value: &str) -> Change {
        Change::Add(AvpValue {
            avp: avp.to_owned(),
            value: value.to_owned(),
        })
    }

    #[test]
    fn a_rule_that_does_not_compile_drops_no_other() {
        let rules = vec![
            rule(vec![Change::Remove("User-Name".to_owned())]),
            rule(vec![add("No-Such", "1")]),
        ];
        let settings = config::Mediation { rules };
        let error = Mediation::new(&settings, &mut Names::default()).unwrap_err();
        assert_eq!(error, "mediation.rules[1]: unknown AVP `No-Such`");
    }

    #[test]
    fn each_rule_sees_the_changes_of_those_before() {
        let replace = |avp: &str, value: &str| {
            Change::Replace(AvpValue {
                avp: avp.to_owned(),
                value: value.to_owned(),
            })
        };
        let rules = vec![
            rule(vec![add("User-Name", "a"), replace("Origin-Realm", "b")]),
            rule(vec![replace("User-Name", "abc")]),
            rule(vec![
                Change::Remove("Origin-Realm".to_owned()),
                add("Class", "0x01"),
            ]),
        ];
        let settings = config::Mediation { rules };
        let mediation = Mediation::new(&settings, &mut Names::default()).unwrap();
        let mut builder = MessageBuilder::request(316, 1);
        builder
            .put(known::SESSION_ID, "s")
            .put(known::ORIGIN_REALM, "r")
            .put(known::ORIGIN_HOST, "h");
        let request = builder.finish().unwrap();
        let changed = mediation.change(Messages::Requests, &request, "", |_| ());
        let mut expected = MessageBuilder::request(316, 1);
        expected
            .put(known::SESSION_ID, "s")
            .put(known::ORIGIN_HOST, "h")
            .put(known::USER_NAME, "abc")
            .put(known::CLASS, &[1]);
        assert_eq!(
            changed.unwrap().unwrap().as_bytes(),
            expected.finish().unwrap().as_bytes()
        );
    }
}
