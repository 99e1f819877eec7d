//! The sentence above everything: how many functions serve, and which needs a person, with the remedy. Silence is never
//! taken for health.

use std::net::{IpAddr, SocketAddr};

use serde_json::{Value, json};
use telemetry::admin::REGISTRATION;

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
    let mut needs: Vec<Need<'_>> = Vec::new();
    let mut explained = Vec::new();
    for row in rows {
        for wrong in &row.wrong {
            match lost_nrf(rows, row, wrong) {
                Some(nrf) => explained.push((nrf, format!("{}: {}", row.name, wrong.what))),
                None => needs.push(Need {
                    row,
                    wrong,
                    affects: Vec::new(),
                }),
            }
        }
    }
    // By how bad it is; within one function in its own order.
    needs.sort_by_key(|need| std::cmp::Reverse(need.row.level));
    for (nrf, affected) in explained {
        if let Some(cause) = needs.iter_mut().find(|need| std::ptr::eq(need.row, nrf)) {
            cause.affects.push(affected);
        }
    }
    needs
}

/// The NRF that does not serve and most likely explains a fault. A fault that names addresses is about the NRFs there, where some
/// are followed, another is about any; while one of them serves, the fault is the function's own.
fn lost_nrf<'a>(rows: &'a [Row], row: &Row, wrong: &Wrong) -> Option<&'a Row> {
    let is_word = |word: &str| word.eq_ignore_ascii_case("nrf");
    let mut words = wrong
        .what
        .split(|c: char| !c.is_ascii_alphanumeric() && !"-_".contains(c));
    if row.function == "nrf" || !(wrong.what == REGISTRATION || words.any(is_word)) {
        return None;
    }
    let named = addresses(&wrong.detail);
    let is_named = |nrf: &&Row| {
        let admin = nrf.admin.parse::<SocketAddr>();
        admin.is_ok_and(|admin| named.contains(&admin.ip()))
    };
    let nrfs: Vec<&Row> = rows.iter().filter(|row| row.function == "nrf").collect();
    let mut meant: Vec<&Row> = nrfs.iter().copied().filter(is_named).collect();
    if meant.is_empty() {
        meant = nrfs;
    }
    let is_lost = |nrf: &&Row| nrf.level == Level::Bad && !nrf.wrong.is_empty();
    meant
        .iter()
        .all(is_lost)
        .then(|| meant.first().copied())
        .flatten()
}

/// IP addresses of the URIs in a text.
fn addresses(text: &str) -> Vec<IpAddr> {
    let authorities = text.split("://").skip(1).filter_map(|rest| {
        let is_end = |c: char| c.is_whitespace() || "/,;)\"'`".contains(c);
        rest.split(is_end).next()
    });
    let address = |authority: &str| match authority.parse::<SocketAddr>() {
        Ok(address) => Some(address.ip()),
        Err(_) => authority.trim_matches(['[', ']']).parse().ok(),
    };
    authorities.filter_map(address).collect()
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
            _ if what == REGISTRATION => format!("{name} is not registered{since}: {detail}"),
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

    #[test]
    fn a_lost_nrf_explains_only_what_names_it() {
        let at = |host: u8| SocketAddr::from(([192, 0, 2, host], 9010));
        let mut east = Observation::new("nrf-east", at(1));
        east.answers(json!({"function": "nrf", "state": "serves", "alive": true, "ready": true}));
        east.is_lost(Failure::Refused);
        let mut west = Observation::new("nrf-west", at(2));
        let alarm = json!({"what": "alarm 10001 NRF Store Unwritable, disk", "detail": "d", "remedy": "r"});
        let attention = "serves, needs attention";
        west.answers(
            json!({"function": "nrf", "state": attention, "alive": true, "ready": true, "wrong": [alarm]}),
        );
        let function = |what: &str, detail: &str| {
            let wrong = json!({"what": what, "detail": detail, "remedy": "r"});
            known("pcf", json!({"state": attention, "wrong": [wrong]}))
        };
        let affects = |of: &Observation| text(&[of, &east, &west], 0).1["needs"][0]["affects"].clone();
        for (what, detail, follows) in [
            (
                "registration",
                "no NRF has accepted it (http://192.0.2.1:8010): refused",
                true,
            ),
            (
                "alarm 10410 PCF Not Registered, nrf",
                "at https://192.0.2.1/",
                true,
            ),
            // The other one serves.
            (
                "registration",
                "no NRF has accepted it (http://192.0.2.2:8010): 403",
                false,
            ),
            (
                "registration",
                "no NRF (http://192.0.2.1:8010, http://192.0.2.2:8010): 403",
                false,
            ),
            ("registration", "no answer", false),
            ("alarm 1 signalbox_nrf_x, disk", "http://192.0.2.1:8010", false),
        ] {
            let expected = match follows {
                true => json!([format!("pcf: {what}")]),
                false => json!([]),
            };
            assert_eq!(affects(&function(what, detail)), expected, "{what}: {detail}");
        }
        // The alarm of an NRF is its own.
        assert_eq!(text(&[&east, &west], 0).1["needs"].as_array().unwrap().len(), 2);
        // None serves.
        west.is_lost(Failure::Refused);
        assert_eq!(
            text(&[&function("registration", "no answer"), &east, &west], 0).1["needs"][0]["affects"],
            json!(["pcf: registration"])
        );
    }
}
