//! A second STP, which has the HLRs and SMSCs: two links of M2PA lead there, through cables that can be cut.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::cable::Cable;
use super::config;
use super::drills::{AFTER, BEFORE, PATIENCE, all_right};
use crate::run::children::{Guarded, Simulator};
use crate::run::drill::{Act, Drill, Judgement, Outcome, Part};
use crate::run::dsr::start_function;
use crate::run::figure;
use crate::run::rig::{Place, RigError, free_address};
use ::report::Check;
use report::measure::Metrics;
use ss7_proto::PointCode;
use workload::stp::{Network, OWN, Party, Role};

/// The point code of the second STP.
const MATE: PointCode = PointCode(2);
/// Its name.
const NAME: &str = "mate";
/// Time between two cuts. A run of less than ten times as long has them closer.
const INTERVAL: Duration = Duration::from_secs(10);
/// The part of the run in which links are cut.
const CUTS: [f64; 2] = [0.2, 0.75];

/// The second STP of a run.
pub(super) struct Mate {
    process: Guarded,
    address: SocketAddr,
    admin: SocketAddr,
    cables: Vec<Cable>,
}

/// The nodes that an STP has: MSCs or the others.
fn side(network: &Network, has_mscs: bool) -> Vec<Party> {
    let mine = |party: &Party| (party.role == Role::Msc) == has_mscs;
    network.parties().filter(mine).collect()
}

impl Mate {
    /// Starts it, and changes the settings of the first STP: that has the MSCs and translates.
    pub(super) fn start(
        network: &Network,
        place: &Place,
        (made, first): (&mut Value, SocketAddr),
    ) -> Result<Self, RigError> {
        let (address, admin) = (free_address()?, free_address()?);
        let cable = |far| Cable::to(far).map_err(RigError::io("making a cable"));
        // One link is connected by the first STP, the other by the second: each knows its peer by the address.
        let cables = vec![cable(address)?, cable(first)?];
        let [ours, theirs] = [true, false].map(|has_mscs| side(network, has_mscs));
        let mut own = json!({ "stp": {
            "admin": admin.to_string(),
            "listen": address.to_string(),
            "workers": place.function_cpus.len(),
        }});
        add(&mut own["stp"], MATE, (&theirs, &ours), (OWN, &cables, 1));
        add(&mut made["stp"], OWN, (&ours, &theirs), (MATE, &cables, 0));
        let process = start_function(place, ("stp", NAME), own, None, address)?;
        Ok(Self {
            process,
            address,
            admin,
            cables,
        })
    }

    /// Where a node connects.
    pub(super) fn address_of(&self, party: Party, first: SocketAddr) -> SocketAddr {
        match party.role {
            Role::Msc => first,
            Role::Hlr | Role::Smsc | Role::Gateway | Role::Scp => self.address,
        }
    }

    /// Its process, and the drill that cuts its links.
    pub(super) fn into_drill(self, first: SocketAddr) -> (Guarded, SocketAddr, Box<dyn Drill>) {
        let drill = Cuts {
            stps: [first, self.admin],
            cables: self.cables,
            next: None,
            cuts: 0,
            before: Rc::default(),
        };
        (self.process, self.address, Box::new(drill))
    }
}

/// Adds nodes of its own, links to the other STP, and routes by them to the nodes of that.
fn add(
    stp: &mut Value,
    own: PointCode,
    (mine, others): (&[Party], &[Party]),
    (adjacent, cables, connected): (PointCode, &[Cable], usize),
) {
    if let (Some(settings), Value::Object(around)) = (stp.as_object_mut(), config::around(own, mine, None)) {
        settings.extend(around);
    }
    let link = |(at, cable): (usize, &Cable)| {
        let mut link = json!({ "name": name(at), "role": "m2pa", "transport": "tcp", "peer": ["127.0.0.1"] });
        if at == connected {
            link["connect"] = json!(true);
            link["port"] = json!(cable.address().port());
        }
        link
    };
    if let Some(links) = stp["links"].as_array_mut() {
        links.extend(cables.iter().enumerate().map(link));
    }
    let names: Vec<String> = (0..cables.len()).map(name).collect();
    stp["linkSets"] = json!([{ "name": NAME, "pointCode": adjacent.0.to_string(), "links": names }]);
    let route = |party: &Party| json!({ "destination": party.point_code().0.to_string(), "via": NAME });
    stp["routes"] = json!(others.iter().map(route).collect::<Vec<Value>>());
    // A link is cut again before the usual 30 s of proving are over.
    stp["m2pa"] = json!({ "t4n": "1s" });
    stp["reconnect"] = json!("200ms");
}

fn name(cable: usize) -> String {
    format!("cable-{cable}")
}

/// Messages that the STPs count as undelivered.
fn undelivered(stps: [SocketAddr; 2]) -> [f64; 2] {
    stps.map(|stp| {
        let read = Metrics::read(stp);
        read.map_or(f64::NAN, |all| {
            all.sum("signalbox_stp_undelivered_messages_total", &[])
        })
    })
}

/// Links are cut, one after the other.
struct Cuts {
    /// Admin endpoints.
    stps: [SocketAddr; 2],
    cables: Vec<Cable>,
    /// When the next is due; none before the first.
    next: Option<Duration>,
    cuts: u32,
    /// What the STPs had not delivered when the load began: the first messages may be sent before the links are aligned.
    before: Rc<Cell<[f64; 2]>>,
}

const CUT: &str = "while links are cut";

impl Cuts {
    /// Whether both STPs have all links.
    fn is_whole(stps: [SocketAddr; 2], cables: usize) -> bool {
        stps.into_iter().all(|stp| {
            let all = Metrics::read(stp);
            let has = |at: usize| {
                let label = [("link", &*name(at))];
                all.as_ref()
                    .is_some_and(|all| all.sum("signalbox_stp_link_available", &label) == 1.0)
            };
            (0..cables).all(has)
        })
    }
}

impl Drill for Cuts {
    fn parts(&self) -> Vec<Part> {
        let (stps, cables, before) = (self.stps, self.cables.len(), self.before.clone());
        let whole: Act = Box::new(move |_: &mut [Simulator]| {
            let end = Instant::now() + PATIENCE;
            while !Self::is_whole(stps, cables) {
                if Instant::now() > end {
                    let words = "the links between the STPs did not return";
                    return Err(RigError::Settings(words.to_owned()));
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            Ok(())
        });
        vec![
            Part::new(BEFORE, 0.2, 1.0).beginning(move |_| {
                before.set(undelivered(stps));
                Ok(())
            }),
            Part::new(CUT, 0.6, 1.0),
            Part::new(AFTER, 0.2, 1.0).beginning(whole),
        ]
    }

    fn act(&mut self, at: Duration, length: Duration, _: &mut [Simulator]) -> Result<(), RigError> {
        let [from, to] = CUTS.map(|share| length.mul_f64(share));
        let is_due = (from..to).contains(&at) && self.next.is_none_or(|next| next <= at);
        // Where one of two links is missing at either end, a cut would take the last one.
        if !is_due || !Self::is_whole(self.stps, self.cables.len()) {
            return Ok(());
        }
        let turn = self.cuts as usize % self.cables.len().max(1);
        if let Some(cable) = self.cables.get(turn) {
            cable.cut();
            self.cuts += 1;
        }
        self.next = Some(at + INTERVAL.min(length / 10));
        Ok(())
    }

    fn judge(&mut self, outcome: &Outcome<'_>) -> Judgement {
        let cut = Check::new(
            "links are cut",
            "at least once, each time with another link to take its messages",
            format!("{} times", self.cuts),
            self.cuts > 0,
        );
        let [own, mates] = undelivered(self.stps);
        let [own_before, mates_before] = self.before.get();
        let undelivered = [own - own_before, mates - mates_before];
        let kept = Check::new(
            "messages that the STPs count as undelivered",
            "none: what a cut link had is retrieved",
            format!("{} and {}", figure(undelivered[0]), figure(undelivered[1])),
            undelivered.iter().all(|count| *count == 0.0),
        );
        let parts = [BEFORE, CUT, AFTER].map(|part| all_right(outcome, part, false));
        Judgement {
            checks: [vec![cut, kept], parts.to_vec()].concat(),
            spares_bounds: true,
            ..Judgement::default()
        }
    }
}
