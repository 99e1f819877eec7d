//! Screening lists, compiled: a message costs a look-up for each field that rules restrict, however many there are.

mod content;
mod index;
mod rule;
mod sets;

use std::collections::HashMap;

use settings::Faults;
use smallvec::SmallVec;
use ss7_proto::Plan;
use ss7_proto::m3ua::Data;
use ss7_proto::sccp::Format;

use content::{Content, Needs};
use index::Index;
use rule::{At, Fit, Outcome, Rule};
use sets::MOST_WORDS;

use crate::config::{Action, ScreeningList};

/// Lists that decide on one message, at most.
const LONGEST_CHAIN: usize = 8;

/// A screening list.
#[derive(Debug)]
pub(crate) struct Screen {
    pub(crate) name: String,
    otherwise: Action,
    rules: Vec<Rule>,
    /// `None` without rules.
    index: Option<Index>,
    /// What its rules read, and those of the lists that they lead to.
    needs: Needs,
}

/// What is screened.
pub(crate) struct Message<'a> {
    pub(crate) data: &'a Data<'a>,
    pub(crate) format: Format,
    pub(crate) plan: Plan,
}

/// What happens with a message.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Verdict {
    pub(crate) action: Action,
    /// The rules that fitted, by list and position as in [`Screen::rules`]; the last one decides.
    pub(crate) rules: Passed,
}

/// Rules by list and position.
pub(crate) type Passed = SmallVec<[(usize, usize); 2]>;

impl Screen {
    /// Compiles all lists; `names` has their positions.
    pub(super) fn compile(
        lists: &[ScreeningList],
        names: &HashMap<&str, usize>,
        plan: Plan,
        faults: &mut Faults,
    ) -> Vec<Self> {
        let mut left = MOST_WORDS;
        let mut screens: Vec<Self> = Vec::with_capacity(lists.len());
        for (number, list) in lists.iter().enumerate() {
            let rules = list.rules.iter().enumerate().map(|(at, rule)| {
                let path = format!("screening[{number}].rules[{at}]");
                let mut at_rule = At {
                    path: &path,
                    faults: &mut *faults,
                };
                let find = |name: &str| names.get(name).copied();
                Rule::compile(rule, at, plan, find, &mut at_rule)
            });
            let rules: Vec<Rule> = rules.collect();
            let index = match Index::compile(&rules, left) {
                Ok((index, rest)) => {
                    left = rest;
                    Some(index).filter(|_| !rules.is_empty())
                }
                Err(_) => {
                    faults.at(format!("screening[{number}].rules")).say(
                        "need, with the lists before, more than 64 MiB as tables",
                        "fewer rules, or short lists to which rules lead by `list`",
                    );
                    None
                }
            };
            screens.push(Self {
                name: list.name.clone(),
                otherwise: list.otherwise,
                needs: Needs::of(&rules),
                index,
                rules,
            });
        }
        check_chains(&mut screens, faults);
        screens
    }

    /// The names of the rules; behind them those of what happens when none fits, and of what cannot be read.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &str> {
        let rules = self.rules.iter().map(|rule| rule.name.as_str());
        rules.chain(["otherwise", "unreadable"])
    }

    /// What happens with a message that a list decides on first.
    pub(crate) fn judge(screens: &[Self], list: usize, message: &Message<'_>) -> Verdict {
        let needs = screens.get(list).map(|screen| screen.needs).unwrap_or_default();
        let content = Content::read(message, needs);
        let first = |screen: &Self| screen.index.as_ref()?.first(message.data, &content);
        walk(screens, list, message, &content, first)
    }
}

/// Goes from list to list; `first` finds the first rule of one that fits, or would but for what cannot be read.
fn walk(
    screens: &[Screen],
    mut list: usize,
    message: &Message<'_>,
    content: &Content<'_>,
    first: impl Fn(&Screen) -> Option<usize>,
) -> Verdict {
    let mut rules = Passed::new();
    while let Some(screen) = screens.get(list).filter(|_| rules.len() < LONGEST_CHAIN) {
        let found = first(screen).and_then(|at| Some((at, screen.rules.get(at)?)));
        let Some((at, rule)) = found else {
            rules.push((list, screen.rules.len()));
            let action = screen.otherwise;
            return Verdict { action, rules };
        };
        // A rule that might have refused it does not let it pass to a node that reads it otherwise.
        if rule.fits(message.data, content) == Fit::Unknown {
            rules.push((list, screen.rules.len() + 1));
            let action = Action::Block;
            return Verdict { action, rules };
        }
        rules.push((list, at));
        match rule.outcome {
            Outcome::Act(action) => return Verdict { action, rules },
            Outcome::List(next) => list = next,
        }
    }
    // No settings that `check` accepts lead here.
    let action = Action::Block;
    Verdict { action, rules }
}

/// Reports lists that lead to themselves, and chains that are too long; each list reads what those behind it need.
fn check_chains(screens: &mut [Screen], faults: &mut Faults) {
    for list in 0..screens.len() {
        let (mut reached, mut all) = (vec![list], vec![list]);
        for _ in 1..LONGEST_CHAIN {
            reached = next_lists(screens, &reached);
            all.extend(&reached);
        }
        if !next_lists(screens, &reached).is_empty() {
            faults.at(format!("screening[{list}].rules")).say(
                format!("lead through more than {LONGEST_CHAIN} lists, or in a circle"),
                format!("chains of at most {LONGEST_CHAIN} lists"),
            );
        }
        let needs = all.iter().filter_map(|at| Some(screens.get(*at)?.needs));
        let needs = needs.fold(Needs::default(), Needs::or);
        if let Some(screen) = screens.get_mut(list) {
            screen.needs = needs;
        }
    }
}

/// The lists that rules of some lists lead to, each once.
fn next_lists(screens: &[Screen], from: &[usize]) -> Vec<usize> {
    let rules = from
        .iter()
        .filter_map(|at| screens.get(*at))
        .flat_map(|screen| &screen.rules);
    let lists = rules.filter_map(|rule| match rule.outcome {
        Outcome::List(list) => Some(list),
        Outcome::Act(_) => None,
    });
    let mut lists: Vec<usize> = lists.collect();
    lists.sort_unstable();
    lists.dedup();
    lists
}

#[cfg(test)]
mod tests;
