//! The compiled lists decide as their rules do, tried in order.

use ss7_proto::PointCode;
use ss7_proto::m3ua::ServiceIndicator;
use ss7_proto::tcap::element;

use super::*;
use crate::config;

/// The same numbers in each run (Knuth's multiplier).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % end
    }

    /// A few of some values, or none, which is more likely.
    fn some<T: Clone>(&mut self, all: &[T]) -> Vec<T> {
        let count = self.below(7).saturating_sub(3).min(all.len());
        (0..count).map(|_| all[self.below(all.len())].clone()).collect()
    }

    fn texts(&mut self, all: &[&str]) -> Vec<String> {
        self.some(all).into_iter().map(str::to_owned).collect()
    }

    fn codes(&mut self) -> Vec<String> {
        self.texts(&["0", "1", "2", "3", "4", "5", "0/1", "0/2", "4/2", "0/14", "16383"])
    }

    fn party(&mut self) -> Option<config::Party> {
        let numbers = [
            "",
            "4",
            "43",
            "436",
            "4366-4368",
            "436610-436649",
            "43f",
            "5",
            "99-99",
        ];
        (self.below(3) == 0).then(|| config::Party {
            digits: self.texts(&numbers),
            translation_types: self.some(&[0, 1, 9]),
            subsystems: self.some(&[6, 7, 8]),
            point_codes: self.codes(),
        })
    }

    fn rule(&mut self, lists: usize, list: usize) -> config::Rule {
        let leads = self.below(6) == 0 && list + 1 < lists;
        config::Rule {
            action: [Action::Allow, Action::Block, Action::Return][self.below(3)],
            list: leads.then(|| format!("list-{}", list + 1 + self.below(lists - list - 1))),
            opc: self.codes(),
            dpc: self.codes(),
            service_indicators: self.some(&[0, 3, 5]),
            network_indicators: self.some(&[0, 2, 3]),
            management: self.texts(&["TFP", "TFA", "TRA"]),
            affected: self.codes(),
            message_types: self.texts(&["UDT", "XUDT", "CR"]),
            operations: self.some(&[2, 22, 71]),
            called: self.party(),
            calling: self.party(),
            ..config::Rule::default()
        }
    }

    fn lists(&mut self) -> Vec<ScreeningList> {
        let count = 1 + self.below(4);
        let list = |at: usize, random: &mut Self| {
            let rules = random.below(150);
            ScreeningList {
                name: format!("list-{at}"),
                otherwise: [Action::Allow, Action::Block][random.below(2)],
                rules: (0..rules).map(|_| random.rule(count, at)).collect(),
            }
        };
        (0..count).map(|at| list(at, self)).collect()
    }

    /// An address of SCCP: with and without title and point code, of a form that cannot be read, empty.
    fn address(&mut self) -> Vec<u8> {
        let ssn = [6, 7, 8, 9][self.below(4)];
        let number: &[u8] = [
            &[0x34, 0x66][..],
            &[0x34, 0x66, 0x01],
            &[0x34, 0xf6],
            &[0x05],
            &[],
        ][self.below(5)];
        match self.below(8) {
            // A point code and a subsystem, or the other way round with ANSI.
            6 | 7 => vec![0x43, self.below(8) as u8, 0, ssn, 0],
            0 => vec![0x42, ssn],
            1 => vec![0x43, 1],
            2 => vec![0x26, ssn, 0x43],
            3 => Vec::new(),
            _ => [&[0x12, ssn, [0, 1, 9][self.below(3)], 0x12, 4], number].concat(),
        }
    }

    fn user_data(&mut self, si: ServiceIndicator, plan: Plan) -> Vec<u8> {
        match si {
            ServiceIndicator::SNM => {
                // TCP and TCA, which ITU does not have, among them.
                let heading = [0x14, 0x54, 0x17, 0x11, 0x24, 0x64][self.below(6)];
                let whole = [heading, self.below(6) as u8, 0, 0];
                let length = if plan == Plan::Ansi { 5 } else { 4 };
                whole[..self.below(length)].to_vec()
            }
            ServiceIndicator::SCCP => {
                let (called, calling) = (self.address(), self.address());
                let mut data = Vec::new();
                element(0x62, &mut data, |out| {
                    out.extend([0x48, 1, 7]);
                    element(0x6c, out, |out| {
                        for _ in 0..self.below(4) {
                            out.extend([0xa1, 6, 2, 1, 1, 2, 1, [2, 22, 71, 5][self.below(4)]]);
                        }
                    });
                });
                if self.below(3) == 0 {
                    data.truncate(self.below(data.len()));
                }
                let pointers = [3, 3 + called.len(), 3 + called.len() + calling.len()];
                let mut out = vec![9, 0];
                out.extend(pointers.map(|pointer| pointer as u8));
                for part in [&called, &calling, &data] {
                    out.push(part.len() as u8);
                    out.extend(part);
                }
                if self.below(9) == 0 {
                    out.truncate(self.below(out.len()));
                }
                out
            }
            _ => vec![9, 9],
        }
    }
}

#[test]
fn compiled_lists_decide_as_their_rules_in_order() {
    let mut random = Random(7);
    let mut decided = [0; 3];
    for round in 0..60 {
        let (plan, format) = [(Plan::Itu, Format::Itu), (Plan::Ansi, Format::Ansi)][round % 2];
        let lists = random.lists();
        let names = lists
            .iter()
            .enumerate()
            .map(|(at, list)| (list.name.as_str(), at));
        let names = names.collect();
        let mut faults = Faults::default();
        let screens = Screen::compile(&lists, &names, plan, &mut faults);
        assert!(faults.into_vec().is_empty());
        for _ in 0..200 {
            let si = [
                ServiceIndicator::SNM,
                ServiceIndicator::SCCP,
                ServiceIndicator::ISUP,
            ][random.below(3)];
            let user_data = random.user_data(si, plan);
            let data = Data {
                network_appearance: None,
                routing_context: None,
                opc: PointCode([0, 1, 3, 5, 7, 16_383][random.below(6)]),
                dpc: PointCode(random.below(8) as u32),
                si,
                ni: [0, 1, 2, 3][random.below(4)],
                mp: 0,
                sls: 0,
                user_data: &user_data,
                correlation_id: None,
            };
            let message = Message {
                data: &data,
                format,
                plan,
            };
            let verdict = Screen::judge(&screens, 0, &message);
            let content = Content::read(&message, screens[0].needs);
            let in_order = |screen: &Screen| {
                let mut rules = screen.rules.iter();
                rules.position(|rule| rule.fits(&data, &content) != Fit::No)
            };
            let wanted = walk(&screens, 0, &message, &content, in_order);
            assert_eq!(verdict, wanted, "{data:?} {lists:?}");
            let (list, at) = wanted.rules[wanted.rules.len() - 1];
            decided[at
                .saturating_sub(screens[list].rules.len().saturating_sub(1))
                .min(2)] += 1;
        }
    }
    // Rules, no rule, and what cannot be read have decided, each often.
    assert!(decided.iter().all(|count| *count > 300), "{decided:?}");
}

/// A rule about a part of a cluster neither admits nor passes over a message about the whole.
#[test]
fn a_message_about_a_cluster_is_judged_as_a_whole() {
    let rule = |action, codes: &[&str]| config::Rule {
        action,
        affected: codes.iter().map(|code| (*code).to_owned()).collect(),
        ..config::Rule::default()
    };
    let verdict = |rules: &[config::Rule], user_data: &[u8]| {
        let list = ScreeningList {
            name: "list".to_owned(),
            otherwise: Action::Return,
            rules: rules.to_vec(),
        };
        let mut faults = Faults::default();
        let names = [("list", 0)].into();
        let screens = Screen::compile(&[list], &names, Plan::Ansi, &mut faults);
        let data = Data {
            network_appearance: None,
            routing_context: None,
            opc: PointCode(1),
            dpc: PointCode(2),
            si: ServiceIndicator::SNM,
            ni: 2,
            mp: 0,
            sls: 0,
            user_data,
            correlation_id: None,
        };
        let message = Message {
            data: &data,
            format: Format::Ansi,
            plan: Plan::Ansi,
        };
        let verdict = Screen::judge(&screens, 0, &message);
        (verdict.action, verdict.rules[0].1)
    };
    // TCP about 5-20, with a member that does not count, and TFP about 5-20-1.
    let (cluster, code) = (&[0x24, 1, 20, 5], &[0x14, 1, 20, 5]);
    let part = [rule(Action::Allow, &["5-20-1"])];
    assert_eq!(verdict(&part, code), (Action::Allow, 0));
    assert_eq!(verdict(&part, cluster), (Action::Block, 2));
    let other = [rule(Action::Block, &["5-20-200", "5-21-0/8"])];
    assert_eq!(verdict(&other, code), (Action::Return, 1));
    assert_eq!(verdict(&other, cluster), (Action::Block, 2));
    let whole = [rule(Action::Allow, &["5-21-1", "5-20-0/8"])];
    assert_eq!(verdict(&whole, code), (Action::Allow, 0));
    assert_eq!(verdict(&whole, cluster), (Action::Allow, 0));
    let none = [rule(Action::Block, &["5-21-0/8"])];
    assert_eq!(verdict(&none, cluster), (Action::Return, 1));
}

#[test]
fn chains_in_circles_and_long_ones_are_refused() {
    let list = |name: &str, to: &str| ScreeningList {
        name: name.to_owned(),
        rules: vec![config::Rule {
            list: (!to.is_empty()).then(|| to.to_owned()),
            ..config::Rule::default()
        }],
        ..ScreeningList::default()
    };
    let faults = |lists: &[ScreeningList]| {
        let names = lists
            .iter()
            .enumerate()
            .map(|(at, list)| (list.name.as_str(), at));
        let mut faults = Faults::default();
        Screen::compile(lists, &names.collect(), Plan::Itu, &mut faults);
        let paths = faults.into_vec().into_iter().map(|fault| fault.path);
        paths.collect::<Vec<_>>()
    };
    assert_eq!(
        faults(&[list("a", "b"), list("b", "a")]),
        ["screening[0].rules", "screening[1].rules"]
    );
    assert_eq!(faults(&[list("a", "a")]), ["screening[0].rules"]);
    assert_eq!(faults(&[list("a", "z")]), ["screening[0].rules[0].list"]);
    let chain = |length: usize| {
        let to = |at: usize| {
            if at + 1 < length {
                (at + 1).to_string()
            } else {
                String::new()
            }
        };
        (0..length)
            .map(|at| list(&at.to_string(), &to(at)))
            .collect::<Vec<_>>()
    };
    assert!(faults(&chain(LONGEST_CHAIN)).is_empty());
    assert_eq!(faults(&chain(LONGEST_CHAIN + 1)), ["screening[0].rules"]);
}
