//! What is asked of a router, by whom, and what has to come of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::{drills, ocdra, pdra, provisioning, security};
use crate::run::rig::{Counter, Outgoing, Place, Probe, RigError};
use callmodel::dsr::DsrModel;
use loadgen::diameter::{Introduction, Requests};
use workload::dsr::{Checkers, Checks, Mmes, Plan, Roamers, Roams, checker, roaming_mme};

/// What MMEs send, and what counts requests that an HSS has answered.
pub(crate) enum Asking {
    /// Requests about subscribers, to HSSs.
    Subscribers(Arc<Plan>, Arc<AtomicU64>),
    /// Requests about equipment, to the register of the router.
    Equipment(Arc<Checks>),
    /// Requests of foreign networks about roamers, to HSSs.
    Roaming(Arc<Roams>),
    /// Requests of gateways and applications, to PCRFs.
    Sessions(pdra::Gateways),
    /// Requests of gateways, to OCSs.
    Charging(ocdra::Ctfs),
}

impl Asking {
    /// What a model asks for.
    pub(crate) fn new(model: &DsrModel) -> Result<Self, RigError> {
        if let Some(sessions) = &model.pdra {
            return Ok(Self::Sessions(pdra::Gateways::new(sessions)));
        }
        if let Some(charging) = &model.ocdra {
            return ocdra::Ctfs::new(charging).map(Self::Charging);
        }
        let made = match (&model.equipment, &model.dsa) {
            (Some(lists), _) => Checks::new(lists).map(|checks| Self::Equipment(Arc::new(checks))),
            (None, Some(roaming)) => Roams::new(model, roaming).map(|roams| Self::Roaming(Arc::new(roams))),
            (None, None) => Plan::new(model).map(|plan| Self::Subscribers(Arc::new(plan), Arc::default())),
        };
        made.map_err(|error| RigError::Settings(error.to_string()))
    }

    pub(super) fn note(&self, clients: u32, servers: u16) -> String {
        match self {
            Self::Sessions(_) => format!("{clients} PCEFs, as many P-CSCFs, and {servers} PCRFs"),
            Self::Charging(_) => format!("{clients} gateways and {servers} OCSs"),
            _ => format!(
                "{clients} MMEs and {servers} HSSs; requests of {:.0} bytes on average",
                self.message_bytes()
            ),
        }
    }

    fn message_bytes(&self) -> f64 {
        match self {
            Self::Subscribers(plan, _) => plan.message_bytes(),
            Self::Equipment(checks) => checks.message_bytes() as f64,
            Self::Roaming(roams) => roams.message_bytes(),
            Self::Sessions(_) | Self::Charging(_) => 0.0,
        }
    }

    /// The nodes of a thread, a connection each: those of these numbers, and further ones that have the same numbers.
    pub(crate) fn nodes(&self, numbers: &[u16], thread: (usize, usize)) -> Vec<Introduction> {
        match self {
            Self::Subscribers(plan, _) => plan.nodes(numbers),
            Self::Equipment(_) => numbers.iter().map(|n| checker(usize::from(*n))).collect(),
            Self::Roaming(_) => numbers.iter().map(|n| roaming_mme(*n)).collect(),
            Self::Sessions(gateways) => gateways.nodes(numbers.len(), thread),
            Self::Charging(ctfs) => ctfs.nodes(numbers.len(), thread),
        }
    }

    /// The requests of a thread, with its number and that of all.
    pub(crate) fn requests(&self, numbers: Vec<u16>, thread: (usize, usize)) -> Box<dyn Requests> {
        match self {
            Self::Subscribers(plan, answered) => Box::new(Mmes::new(plan.clone(), numbers, answered.clone())),
            Self::Equipment(checks) => Box::new(Checkers::new(checks.clone(), numbers)),
            Self::Roaming(roams) => {
                let roamers = Roamers::new(roams.clone(), numbers, thread.0 as u32, thread.1 as u32);
                Box::new(roamers)
            }
            Self::Sessions(gateways) => gateways.requests(numbers.len(), thread),
            Self::Charging(ctfs) => ctfs.requests(numbers.len(), thread),
        }
    }

    /// What the answers imply that the servers have got; nothing where some of them may die.
    pub(super) fn outgoing(&self, model: &DsrModel) -> Vec<Outgoing> {
        match self {
            // Requests at HSSs that die are not counted.
            Self::Subscribers(_, answered) if drills::victims(model) == 0 => vec![Outgoing {
                name: "requests at the HSSs",
                simulator: 0,
                expected: Counter::of(answered, |answered| answered),
                in_rate: false,
            }],
            _ => Vec::new(),
        }
    }

    /// What is asked of the router with this admin endpoint when the load is over. Provisioning begins here.
    pub(super) fn probes(&self, model: &DsrModel, admin: SocketAddr, place: &Place) -> Vec<Probe> {
        match self {
            Self::Subscribers(plan, _) => provisioning::start(model, plan, admin).into_iter().collect(),
            Self::Roaming(roams) => vec![security::findings(model, roams, admin)],
            Self::Sessions(gateways) if model.drill.is_none() => vec![gateways.re_auths()],
            Self::Charging(ctfs) if model.drill.is_none() => ctfs.probes(ocdra::books(model, place)),
            Self::Equipment(_) | Self::Sessions(_) | Self::Charging(_) => Vec::new(),
        }
    }
}
