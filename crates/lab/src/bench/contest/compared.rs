//! The processor time of one subject by another's, as a check.

use std::fmt;

use super::rows::{Row, Section};
use ::report::Check;

/// Shares at which processor times are compared; `None` is the closed loop.
pub(in crate::bench) const COMPARED: [Option<f64>; 4] = [None, Some(0.10), Some(0.25), Some(0.50)];

/// Two subjects under one load.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Compared<'a> {
    /// Both served what was offered: processor time of the one by that of the other.
    Ratio(f64),
    /// This one served it in no round.
    Collapsed(&'a str),
    /// This one has no figure.
    Absent(&'a str),
}

impl fmt::Display for Compared<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ratio(ratio) => write!(f, "{ratio:.2}"),
            Self::Collapsed(name) => write!(f, "{name} collapsed"),
            Self::Absent(name) => write!(f, "no figure of {name}"),
        }
    }
}

impl Section {
    /// Checks that `ours` takes at most `bar` times the processor time of `other`, saturated and at 10, 25 and 50 %. Where
    /// `other` collapsed and `ours` served the same load, `ours` is ahead; the check says so in place of a ratio.
    pub(in crate::bench) fn compare(&self, what: String, (ours, other): (&str, &str), bar: f64) -> Check {
        self.check(what, (ours, other), bar, Some(other))
    }

    /// As [`Section::compare`], where both are ours: no load may make either of them collapse.
    pub(in crate::bench) fn compare_own(&self, what: String, pair: (&str, &str), bar: f64) -> Check {
        self.check(what, pair, bar, None)
    }

    /// The check; the collapse of `may_collapse` does not miss it.
    fn check(
        &self,
        what: String,
        (ours, other): (&str, &str),
        bar: f64,
        may_collapse: Option<&str>,
    ) -> Check {
        let found = COMPARED.map(|share| self.compared(ours, other, share));
        let is_met = |one: &Compared<'_>| match *one {
            Compared::Ratio(ratio) => ratio <= bar,
            Compared::Collapsed(name) => may_collapse == Some(name),
            Compared::Absent(_) => false,
        };
        Check::new(
            format!("{what}, saturated and at 10, 25 and 50 %"),
            format!("at most {bar:.2} each"),
            found.map(|one| one.to_string()).join(", "),
            found.iter().all(is_met),
        )
    }

    fn compared<'a>(&self, ours: &'a str, other: &'a str, share: Option<f64>) -> Compared<'a> {
        let cpu = |name: &'a str| {
            let row: &Row = self.row(name, share).ok_or(Compared::Absent(name))?;
            match row.cpu_us_per_request {
                Some(cpu) => Ok(cpu),
                None if row.collapsed_rounds > 0 => Err(Compared::Collapsed(name)),
                None => Err(Compared::Absent(name)),
            }
        };
        let ratio = || Ok(Compared::Ratio(cpu(ours)? / cpu(other)?));
        ratio().unwrap_or_else(|without| without)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A section in which each subject takes this much at each load; `None`: it collapsed in both rounds.
    fn section(subjects: &[(&str, [Option<f64>; 4])]) -> Section {
        let rows = |at: usize| {
            subjects.iter().map(move |(name, figures)| Row {
                name: (*name).to_owned(),
                share: COMPARED[at],
                cpu_us_per_request: figures[at],
                collapsed_rounds: if figures[at].is_some() { 0 } else { 2 },
                ..Row::default()
            })
        };
        Section {
            title: "1 producer".to_owned(),
            reference: "other".to_owned(),
            most_rps: 54_000.0,
            saturated: rows(0).collect(),
            open: (1..4).flat_map(rows).collect(),
            bursts: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn check(ours: [Option<f64>; 4], other: [Option<f64>; 4]) -> (bool, String) {
        let section = section(&[("ours", ours), ("other", other)]);
        let check = section.compare("processor time".to_owned(), ("ours", "other"), 1.0);
        (check.pass, check.got)
    }

    const TEN: [Option<f64>; 4] = [Some(10.0); 4];
    const LAST_COLLAPSED: [Option<f64>; 4] = [Some(10.0), Some(10.0), Some(10.0), None];

    #[test]
    fn the_larger_of_two_figures_misses_the_bar() {
        assert_eq!(check(TEN, TEN), (true, "1.00, 1.00, 1.00, 1.00".to_owned()));
        let more = [Some(9.0), Some(10.1), Some(10.0), Some(10.0)];
        assert_eq!(check(more, TEN), (false, "0.90, 1.01, 1.00, 1.00".to_owned()));
    }

    #[test]
    fn a_subject_that_collapsed_is_behind_one_that_held() {
        assert_eq!(
            check(TEN, LAST_COLLAPSED),
            (true, "1.00, 1.00, 1.00, other collapsed".to_owned())
        );
        assert_eq!(
            check(LAST_COLLAPSED, TEN),
            (false, "1.00, 1.00, 1.00, ours collapsed".to_owned())
        );
        let section = section(&[("ours", TEN), ("also ours", LAST_COLLAPSED)]);
        let own = section.compare_own("processor time".to_owned(), ("ours", "also ours"), 1.0);
        assert!(!own.pass && own.got.ends_with("also ours collapsed"), "{own:?}");
        let both = check(LAST_COLLAPSED, LAST_COLLAPSED);
        assert_eq!(both, (false, "1.00, 1.00, 1.00, ours collapsed".to_owned()));
    }

    #[test]
    fn a_subject_without_a_figure_is_not_met() {
        let section = section(&[("ours", TEN)]);
        let check = section.compare("processor time".to_owned(), ("ours", "other"), 1.0);
        assert!(
            !check.pass && check.got.starts_with("no figure of other"),
            "{check:?}"
        );
    }
}
