//! Drills of an SCP.

mod kill;
mod living;
mod nrf;
mod site;
mod wanted;

use std::net::SocketAddr;

use super::certificates::Tls;
use super::network::Network;
use crate::run::drill::{Drill, Judgement, Outcome};
use crate::run::overload::{Overload, Refused, Subject};
use crate::run::rig::{Place, RigError};
use ::callmodel::scp::{self as callmodel, ScpModel};
use ::report::Check;
use loadgen::OperationRecord;
use report::measure::Metrics;

/// An SCP under too much load.
const SUBJECT: Subject = Subject {
    name: "SCP",
    refused: &[
        Refused {
            words: "for overload",
            metric: REFUSED,
            labels: &[("reason", "overload")],
        },
        Refused {
            words: "because too many were under way",
            metric: REFUSED,
            labels: &[("reason", "inFlight")],
        },
    ],
};
const REFUSED: &str = "signalbox_scp_refused_total";

/// Drill of an SCP whose metrics are at `admin`, while the load runs. Takes from the network the producers that it will
/// kill.
pub(super) fn of(
    model: &ScpModel,
    place: &Place,
    admin: Option<SocketAddr>,
    network: &mut Network,
    tls: Option<&Tls>,
) -> Result<Option<Box<dyn Drill>>, RigError> {
    let Some(wanted) = model.drill else {
        let checks = wanted::names(model);
        if checks.is_empty() {
            return Ok(None);
        }
        let (Some(admin), Some(nrf)) = (admin, &network.nrf) else {
            let why = "the lab did not start this SCP (--target), and does not know its metrics";
            return Ok(Some(Box::new(wanted::NotRun { checks, why })));
        };
        let living = living::Living::new(model, admin, nrf.address, &network.population, network.feeds());
        return Ok(Some(Box::new(living)));
    };
    let admin = admin.ok_or_else(|| {
        RigError::Settings("a drill needs an SCP that the lab has started: not --target".to_owned())
    })?;
    Ok(Some(match wanted {
        callmodel::Drill::KillProducer => {
            let victim = network.producers.take_victim()?;
            let addresses = network.producers.addresses.clone();
            let tls = tls.map(|tls| &tls.producers);
            Box::new(kill::KillProducer::new(
                model, place, admin, victim, addresses, tls,
            ))
        }
        callmodel::Drill::StopNrf => {
            let nrf = network.nrf.take();
            let nrf = nrf.ok_or_else(|| RigError::Settings("the run has no NRF to kill".to_owned()))?;
            Box::new(nrf::StopNrf::new(place, admin, nrf))
        }
        callmodel::Drill::LoseSite => {
            let tls = tls.map(|tls| &tls.producers);
            Box::new(site::LoseSite::new(model, place, admin, tls)?)
        }
        callmodel::Drill::Overload => Box::new(Overload::new(SUBJECT, &model.priorities, admin)),
    }))
}

/// The metrics of the SCP now.
fn read(admin: SocketAddr) -> Result<Metrics, RigError> {
    Metrics::read(admin).ok_or_else(|| RigError::Settings("the SCP does not report its metrics".to_owned()))
}

/// The outcome of a drill that did not finish.
fn missed(expected: &str) -> Judgement {
    Judgement {
        checks: vec![Check::new("the drill", expected, "it did not", false)],
        ..Judgement::default()
    }
}

/// The operations whose names fit, added up.
fn total(outcome: &Outcome<'_>, fits: impl Fn(&str) -> bool) -> OperationRecord {
    sum(outcome.names, &outcome.window.record.operations, fits)
}

fn sum(names: &[String], records: &[OperationRecord], fits: impl Fn(&str) -> bool) -> OperationRecord {
    let mut total = OperationRecord::default();
    let fitting = names.iter().zip(records).filter(|(name, _)| fits(name));
    fitting.for_each(|(_, record)| total.merge(record));
    total
}
