//! Peers that are down: those that functions list on pages of their own, and failing dependencies.

use serde_json::{Value, json};

use crate::observation::{Down, Observation, Reach, cut};

/// Peers of one function that are shown.
const MOST: usize = 100;

/// The page of a function that lists its peers, and how a peer that is down is known by.
pub(crate) struct Listing {
    function: &'static str,
    pub(crate) path: &'static str,
    name: &'static str,
    /// States in which nothing is wrong, or that an operator has asked for.
    good: &'static [&'static str],
    reason: &'static str,
    since: &'static str,
}

const LISTINGS: &[Listing] = &[
    Listing {
        function: "dsr",
        path: "/dsr/peers",
        name: "host",
        good: &["available", "degraded"],
        reason: "lastError",
        since: "downSince",
    },
    Listing {
        function: "stp",
        path: "/stp/links",
        name: "name",
        good: &["active"],
        reason: "reason",
        since: "",
    },
    Listing {
        function: "ipfe",
        path: "/ipfe/backends",
        name: "name",
        good: &["available", "stasis"],
        reason: "",
        since: "",
    },
];

/// The page that lists the peers of a kind of function.
pub(crate) fn listing(kind: &str) -> Option<&'static Listing> {
    LISTINGS.iter().find(|listing| listing.function == kind)
}

impl Listing {
    /// What of its rows is down. Several workers have a row of one peer.
    pub(crate) fn down(&self, rows: &Value) -> Down {
        let mut down = Down::default();
        for row in rows.as_array().into_iter().flatten() {
            let state = row["state"].as_str().unwrap_or_default();
            let is_wanted = row["administration"]
                .as_str()
                .is_none_or(|wanted| wanted == "enabled");
            if !is_wanted || self.good.contains(&state) {
                continue;
            }
            let word = |member: &str| {
                row[member]
                    .as_str()
                    .map(|text| cut(text, 500))
                    .unwrap_or_default()
            };
            let reason = match word(self.reason) {
                reason if reason.is_empty() => cut(state, 64),
                reason => reason,
            };
            let since = row[self.since].as_str().filter(|since| !since.is_empty());
            let peer =
                json!({ "peer": word(self.name), "reason": reason, "since": since.map(|at| cut(at, 40)) });
            if down.peers.iter().any(|known| known["peer"] == peer["peer"]) {
                continue;
            }
            if down.peers.len() < MOST {
                down.peers.push(peer);
            } else {
                down.more += 1;
            }
        }
        down
    }
}

/// The peers of a function that are down: those it lists, and dependencies that fail.
pub(crate) fn down(known: &Observation) -> (Vec<Value>, usize) {
    if known.reach != Reach::Answers {
        return (Vec::new(), 0);
    }
    let mut all = known.down.peers.clone();
    let dependencies = known.status["dependencies"].as_array().into_iter().flatten();
    for one in dependencies.filter(|one| one["state"] == "failing").take(MOST) {
        let text = |member: &str| one[member].as_str().map(|text| cut(text, 500));
        all.push(json!({
            "peer": text("name"),
            "reason": text("lastError"),
            "since": text("since"),
            "lastSuccess": text("lastSuccess"),
        }));
    }
    for peer in &mut all {
        peer["function"] = known.name.clone().into();
    }
    (all, known.down.more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_down_unless_it_works_or_an_operator_wants_it_so() {
        let rows = json!([
            {"host": "a", "state": "available", "administration": "enabled"},
            {"host": "b", "state": "unavailable", "administration": "enabled", "lastError": "refused", "downSince": "T"},
            {"host": "b", "state": "unavailable", "administration": "enabled"},
            {"host": "c", "state": "unavailable", "administration": "disabled"},
            {"host": "d", "state": "disabled"}, 7,
        ]);
        let down = listing("dsr").unwrap().down(&rows).peers;
        assert_eq!(down[0], json!({"peer": "b", "reason": "refused", "since": "T"}));
        assert_eq!(down[1]["reason"], "disabled");
    }

    #[test]
    fn many_are_counted() {
        let rows: Vec<Value> = (0..4_096)
            .map(|n| json!({"host": n.to_string(), "state": "unavailable"}))
            .collect();
        let down = listing("dsr").unwrap().down(&Value::Array(rows));
        assert_eq!((down.peers.len(), down.more), (100, 3_996));
        assert!(listing("nrf").is_none());
    }
}
