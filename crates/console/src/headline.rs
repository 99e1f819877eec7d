//! The sentence above everything: how many functions serve, and which needs a person, with the remedy. Silence is never
//! taken for health.

use serde_json::{Value, json};

use crate::row::{Level, Row, Wrong};

/// Things that need a person and are listed; the rest is counted.
const MOST: usize = 50;

/// Something that needs a person.
struct Need<'a> {
    row: &'a Row,
    wrong: &'a Wrong,
    /// What else is wrong because of it, most likely.
    affects: Vec<String>,
}

/// The headline of these functions.
pub(crate) fn headline(rows: &[Row], alarms: usize) -> Value {
    let all = rows.len();
    let unknown = rows.iter().filter(|row| row.level == Level::Unknown).count();
    let serving = rows
        .iter()
        .filter(|row| matches!(row.level, Level::Good | Level::Attention))
        .count();
    let needs = needs(rows);
    let level = rows.iter().map(|row| row.level).max().unwrap_or(Level::Unknown);
    let mut text = match (all, serving) {
        (0, _) => "The console follows no function: name some in console.functions.".to_owned(),
        (1, 1) => "The function serves".to_owned(),
        (all, serving) if serving == all => format!("All {all} functions serve"),
        (all, serving) => format!(
            "{serving} of {all} functions {}",
            if serving == 1 { "serves" } else { "serve" }
        ),
    };
    if unknown > 0 {
        text.push_str(&format!("; {unknown} not asked yet"));
    }
    match needs.first() {
        Some(first) => {
            let verb = if needs.len() == 1 { "needs" } else { "need" };
            let things = if needs.len() == 1 {
                "1 thing".to_owned()
            } else {
                format!("{} things", needs.len())
            };
            text.push_str(&format!("; {things} {verb} you: {}.", first.sentence()));
        }
        None if alarms > 0 => {
            let s = if alarms == 1 { " is" } else { "s are" };
            text.push_str(&format!("; {alarms} minor alarm{s} active."));
        }
        None if all > 0 => text.push('.'),
        None => {}
    }
    let more = needs.len().saturating_sub(MOST) + rows.iter().map(|row| row.more_wrong).sum::<usize>();
    let needs: Vec<Value> = needs.iter().take(MOST).map(Need::json).collect();
    json!({ "level": level, "text": text, "needs": needs, "more": more })
}

/// What needs a person, the worst first. What an NRF that does not serve explains is not listed apart from it.
fn needs(rows: &[Row]) -> Vec<Need<'_>> {
    let is_lost_nrf = |row: &&Row| row.function == "nrf" && row.level == Level::Bad;
    let lost: Vec<&Row> = rows.iter().filter(is_lost_nrf).collect();
    let follows = |wrong: &Wrong| wrong.what == "registration" || wrong.what.contains("NRF");
    let mut needs: Vec<Need<'_>> = Vec::new();
    let mut affects = Vec::new();
    for row in rows {
        let is_cause = lost.iter().any(|one| std::ptr::eq(*one, row));
        for wrong in &row.wrong {
            if !lost.is_empty() && !is_cause && follows(wrong) {
                affects.push(format!("{}: {}", row.name, wrong.what));
                continue;
            }
            needs.push(Need {
                row,
                wrong,
                affects: Vec::new(),
            });
        }
    }
    // By how bad it is; within one function in its own order.
    needs.sort_by_key(|need| std::cmp::Reverse(need.row.level));
    if let Some(cause) = needs
        .iter_mut()
        .find(|need| lost.iter().any(|row| std::ptr::eq(*row, need.row)))
    {
        cause.affects = affects;
    }
    needs
}

impl Need<'_> {
    fn sentence(&self) -> String {
        let name = self.row.name.to_uppercase();
        let Wrong {
            what, detail, since, ..
        } = self.wrong;
        let since = since
            .as_deref()
            .map(|since| format!(" since {}", clock(since)))
            .unwrap_or_default();
        let words = match self.row.level {
            Level::Bad if *what == self.row.state => format!("{name} {}{since} ({detail})", verb(what)),
            _ if what == "registration" => format!("{name} is not registered{since}: {detail}"),
            _ if self.wrong.is_unreachable => format!("{name} cannot reach {what}{since}: {detail}"),
            _ => format!("{name}: {what}{since}: {detail}"),
        };
        let words = words.trim_end_matches('.').to_owned();
        match self.affects.len() {
            0 => words,
            count => format!(
                "{words}; {count} other fault{} follow from it",
                if count == 1 { "" } else { "s" }
            ),
        }
    }

    fn json(&self) -> Value {
        json!({
            "function": self.row.name,
            "level": self.row.level,
            "text": self.sentence(),
            "since": self.wrong.since,
            "remedy": self.wrong.remedy,
            "command": self.wrong.command,
            "affects": self.affects,
        })
    }
}

/// A state of a function that says nothing of itself, as a predicate.
fn verb(state: &str) -> String {
    match state {
        "no answer" => "does not answer".to_owned(),
        "unknown" => "is not there".to_owned(),
        other => format!("is {other}"),
    }
}

/// The time of day of a moment; the page has the date.
fn clock(moment: &str) -> &str {
    moment.get(11..19).unwrap_or(moment)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::client::Failure;
    use crate::observation::Observation;

    fn known(name: &str, status: Value) -> Observation {
        let mut known = Observation::new(name, SocketAddr::from(([127, 0, 0, 1], 9)));
        let mut whole = json!({"function": name, "state": "serves", "alive": true, "ready": true});
        whole
            .as_object_mut()
            .unwrap()
            .extend(status.as_object().unwrap().clone());
        known.answers(whole);
        known
    }

    fn text(all: &[&Observation], alarms: usize) -> (String, Value) {
        let rows: Vec<Row> = all.iter().map(|known| Row::new(known)).collect();
        let headline = headline(&rows, alarms);
        (headline["text"].as_str().unwrap().to_owned(), headline)
    }

    #[test]
    fn silence_is_not_health() {
        assert_eq!(text(&[], 0).1["level"], "unknown");
        let unasked = Observation::new("nrf", SocketAddr::from(([127, 0, 0, 1], 9)));
        let (said, headline) = text(&[&unasked], 0);
        assert!(
            said.contains("0 of 1") && said.contains("1 not asked yet"),
            "{said}"
        );
        assert_eq!(headline["level"], "unknown");
        let serves = known("nrf", json!({}));
        assert_eq!(text(&[&serves], 0).0, "The function serves.");
        assert_eq!(
            text(&[&serves, &known("scp", json!({}))], 1).0,
            "All 2 functions serve; 1 minor alarm is active."
        );
    }

    #[test]
    fn what_a_dead_nrf_explains_is_one_thing() {
        let mut nrf = known("nrf", json!({}));
        nrf.is_lost(Failure::Refused);
        let wrong = |what: &str| json!({"what": what, "detail": "connection refused", "remedy": "r"});
        let scp = known(
            "scp",
            json!({"state": "serves, needs attention", "wrong": [wrong("NRF set 0"), wrong("registration")]}),
        );
        let (said, headline) = text(&[&scp, &nrf], 0);
        assert!(
            said.starts_with("1 of 2 functions serves; 1 thing needs you: NRF is not running since "),
            "{said}"
        );
        assert!(said.ends_with("; 2 other faults follow from it."), "{said}");
        let need = &headline["needs"][0];
        assert_eq!(need["command"], "signalbox run nrf");
        assert_eq!(need["affects"], json!(["scp: NRF set 0", "scp: registration"]));
        // While the NRF serves it is the SCP's own trouble, with since when.
        let since = json!([{"name": "NRF set 0", "state": "failing", "since": "2026-01-01T17:56:57.5Z"}]);
        let scp = known(
            "scp",
            json!({"state": "serves, needs attention", "wrong": [wrong("NRF set 0")], "dependencies": since}),
        );
        let (said, _) = text(&[&scp, &known("nrf", json!({}))], 0);
        assert_eq!(
            said,
            "All 2 functions serve; 1 thing needs you: SCP cannot reach NRF set 0 since 17:56:57: connection refused."
        );
    }
}
