//! Members of bodies that count as absent (`model::tolerance`): counted by member and sender, logged once for each.

use model::tolerance::Dropped;
use telemetry::{Counter, Declaration, Family, Registry};

/// Longest name of a sender in a label, in characters.
const SENDER_MAX: usize = 80;

/// Declares the metric of a function: `tolerated_members!("nrf")`.
#[macro_export]
macro_rules! tolerated_members {
    ($function:literal) => {
        $crate::telemetry::Declaration {
            name: concat!("signalbox_", $function, "_dropped_members_total"),
            kind: $crate::telemetry::metrics::Kind::Counter,
            help: "Members of received bodies that counted as absent, since they were null, empty or not readable and nothing depends on them (`strict` refuses them), by member and sender.",
            labels: &["member", "sender"],
            alert: None,
        }
    };
}

/// Counter of the members that were dropped. It takes a lock, which only bodies with such members reach.
#[derive(Clone, Debug)]
pub struct Tolerated(Family<Counter>);

impl Tolerated {
    /// The counter of a declaration made by [`tolerated_members!`](crate::tolerated_members).
    #[must_use]
    pub fn new(declaration: &Declaration, registry: &Registry) -> Self {
        Self(registry.counters(declaration))
    }

    /// Counts what was dropped out of a body of `sender`; logs what this sender sent for the first time.
    pub fn note(&self, sender: &str, dropped: &[Dropped]) {
        let sender = match sender.char_indices().nth(SENDER_MAX) {
            Some((end, _)) => &sender[..end],
            None => sender,
        };
        for one in dropped {
            let count = self.0.get(&[&one.member, sender]);
            if count.value() == 0 {
                let (member, why) = (&*one.member, one.why.as_str());
                tracing::warn!(
                    sender,
                    member,
                    why,
                    "member dropped, the rest of the body is used"
                );
            }
            count.inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use model::tolerance::Why;

    use super::*;

    #[test]
    fn counts_by_member_and_sender() {
        const DECLARATION: Declaration = tolerated_members!("example");
        let registry = Registry::new();
        let tolerated = Tolerated::new(&DECLARATION, &registry);
        let dropped = Dropped {
            pointer: "/list/0/since".to_owned(),
            member: "/list/*/since".to_owned(),
            why: Why::Null,
        };
        tolerated.note("AMF-1", &[dropped.clone(), dropped.clone()]);
        tolerated.note(&"x".repeat(500), &[dropped]);
        let counted: Vec<u64> = tolerated
            .0
            .series()
            .iter()
            .map(|(_, count)| count.value())
            .collect();
        assert_eq!(counted, [2, 1]);
        assert!(telemetry::metrics::lint(&[DECLARATION]).is_empty());
    }
}
