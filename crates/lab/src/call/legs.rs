//! The legs of a call: how long each took, how many failed.

use std::time::Instant;

use loadgen::{FailureKind, Record};

/// A leg of a call, named by the function or the consumer at which it is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leg {
    /// The AMF creates an AM policy association through the SCP (Model D).
    AmCreate,
    /// The AMF creates a UE policy association through the SCP (Model D).
    UeCreate,
    /// The SMF discovers PCFs at the NRF.
    NrfDiscover,
    /// The SMF creates an SM policy association through the SCP (Model C).
    SmCreate,
    /// The AF finds the binding of the session at the BSF.
    BsfDiscover,
    /// The P-CSCF's AAR through the router and the BSF.
    Aar,
    /// The SMF receives the rules of the AAR's media.
    RulesOfAar,
    /// The AF creates an application session at the PCF of the binding.
    AfCreate,
    /// The SMF receives the rules of the application session.
    RulesOfAf,
    /// The AF deletes the application session.
    AfDelete,
    /// The SMF is notified that its rules are removed.
    RemovalOfAf,
    /// The P-CSCF's STR.
    Str,
    /// The SMF is notified that the rules of the AAR are removed.
    RemovalOfStr,
    /// The SMF deletes the SM policy association.
    SmDelete,
    /// The BSF has no binding of the session any longer.
    BsfRemoved,
    /// The AMF deletes the UE policy association.
    UeDelete,
    /// The AMF deletes the AM policy association.
    AmDelete,
    /// The PCF does not know the SM policy association any longer.
    PcfRemoved,
}

/// All legs in their order, with the names that reports show.
pub(crate) const LEGS: [(Leg, &str); 18] = [
    (Leg::AmCreate, "scp.amCreate"),
    (Leg::UeCreate, "scp.ueCreate"),
    (Leg::NrfDiscover, "nrf.discoverPcf"),
    (Leg::SmCreate, "scp.smCreate"),
    (Leg::BsfDiscover, "bsf.discoverBinding"),
    (Leg::Aar, "dsr.aar"),
    (Leg::RulesOfAar, "smf.rulesOfAar"),
    (Leg::AfCreate, "scp.afCreate"),
    (Leg::RulesOfAf, "smf.rulesOfAf"),
    (Leg::AfDelete, "scp.afDelete"),
    (Leg::RemovalOfAf, "smf.removalOfAf"),
    (Leg::Str, "dsr.str"),
    (Leg::RemovalOfStr, "smf.removalOfStr"),
    (Leg::SmDelete, "scp.smDelete"),
    (Leg::BsfRemoved, "bsf.bindingRemoved"),
    (Leg::UeDelete, "scp.ueDelete"),
    (Leg::AmDelete, "scp.amDelete"),
    (Leg::PcfRemoved, "pcf.sessionRemoved"),
];
/// Failures described in words, per record.
const EXAMPLES: usize = 20;

/// What came of each leg, in the order of [`LEGS`].
#[derive(Clone, Debug)]
pub(crate) struct Legs {
    record: Record,
}

impl Default for Legs {
    fn default() -> Self {
        Self {
            record: Record::new(LEGS.len()),
        }
    }
}

impl Legs {
    /// Does what a leg consists of, and records it. An error gets the name of the leg.
    pub(crate) fn time<T>(
        &mut self,
        leg: Leg,
        work: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, String> {
        let begun = Instant::now();
        let done = work();
        let took = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        let name = LEGS.get(leg as usize).map_or("", |(_, name)| name);
        let done = done.map_err(|why| format!("{name}: {why}"));
        if let Some(one) = self.record.operations.get_mut(leg as usize) {
            one.offered += 1;
            one.time(took);
            match &done {
                Ok(_) => one.succeeded += 1,
                Err(why) => {
                    one.fail(FailureKind::Wrong);
                    if self.record.examples.len() < EXAMPLES {
                        self.record.examples.push(why.clone());
                    }
                }
            }
        }
        done
    }

    pub(crate) fn record(&self) -> &Record {
        &self.record
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.record.merge(&other.record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_leg_has_a_record_at_its_position() {
        for (at, (leg, _)) in LEGS.iter().enumerate() {
            assert_eq!(*leg as usize, at);
        }
        let mut legs = Legs::default();
        assert_eq!(legs.time(Leg::Aar, || Ok(1)), Ok(1));
        let failed = legs.time::<()>(Leg::Str, || Err("no answer".to_owned()));
        assert_eq!(failed, Err("dsr.str: no answer".to_owned()));
        let mut sum = legs.clone();
        sum.merge(&legs);
        let total = sum.record().total();
        assert_eq!((total.offered, total.succeeded, total.failures()), (4, 2, 2));
        let str = &sum.record().operations[Leg::Str as usize];
        assert_eq!((str.offered, str.failures(), str.latency.len()), (2, 2, 2));
        assert_eq!(legs.record().examples, ["dsr.str: no answer"]);
    }
}
