//! Two mated STPs behind the one that has the nodes: both take messages for one capability point code and translate them. One is
//! killed, the other carries on.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::drills::{AFTER, BEFORE, PATIENCE, all_right, explained};
use crate::run::children::{Guarded, Simulator};
use crate::run::drill::{Act, Drill, Judgement, Outcome, Part};
use crate::run::dsr::start_function;
use crate::run::figure;
use crate::run::rig::{Place, RigError, free_address};
use ::report::Check;
use report::measure::Metrics;
use ss7_proto::PointCode;
use workload::stp::{MATES, Network, OWN};

/// The point code of the STP that has the nodes. That of the model is the capability point code of the mates.
const EDGE: PointCode = PointCode(2);
/// Their names, and those of the links and link sets to them.
const NAMES: [&str; 2] = ["mate-1", "mate-2"];
const TO_EDGE: &str = "edge";
const TO_MATE: &str = "mate";

/// Two mated STPs.
pub(super) struct Pair {
    mates: Vec<Mate>,
    edge: SocketAddr,
}

struct Mate {
    name: &'static str,
    place: Place,
    made: Value,
    address: SocketAddr,
    admin: SocketAddr,
    /// None while it is dead.
    process: Option<Guarded>,
}

impl Mate {
    fn start(&mut self) -> Result<(), RigError> {
        let settings = self.made.clone();
        let process = start_function(&self.place, ("stp", self.name), settings, None, self.address)?;
        self.process = Some(process);
        Ok(())
    }
}

impl Pair {
    /// Starts both, and changes the settings of the first STP: that keeps the nodes, and the mates translate. Of each pair of
    /// STPs one connects, so that the other knows it by its address.
    pub(super) fn start(
        network: &Network,
        place: &Place,
        (made, edge, edge_admin): (&mut Value, SocketAddr, SocketAddr),
    ) -> Result<Self, RigError> {
        let translation = made["stp"]["translation"].take();
        let mut addresses = Vec::new();
        for _ in NAMES {
            addresses.push((free_address()?, free_address()?));
        }
        let ports: Vec<u16> = addresses.iter().map(|(address, _)| address.port()).collect();
        let (first, second) = (ports.first().copied(), ports.get(1).copied());
        join_edge(&mut made["stp"], first);
        let mut mates = Vec::new();
        for (at, (address, admin)) in addresses.into_iter().enumerate() {
            let links = match at {
                0 => [link(TO_EDGE, None), link(TO_MATE, second)],
                _ => [link(TO_EDGE, Some(edge.port())), link(TO_MATE, None)],
            };
            let mut settings = mate(network, at, links);
            settings["translation"] = translation.clone();
            settings["admin"] = json!(admin.to_string());
            settings["listen"] = json!(address.to_string());
            settings["workers"] = json!(place.function_cpus.len());
            let mut mate = Mate {
                name: NAMES.get(at).copied().unwrap_or(TO_MATE),
                place: place.clone(),
                made: json!({ "stp": settings }),
                address,
                admin,
                process: None,
            };
            mate.start()?;
            mates.push(mate);
        }
        Ok(Self {
            mates,
            edge: edge_admin,
        })
    }

    /// The drill that kills the first of them.
    pub(super) fn into_drill(self) -> Box<dyn Drill> {
        Box::new(LostMate {
            edge: self.edge,
            mates: Rc::new(RefCell::new(self.mates)),
            before: Rc::default(),
            returned: Rc::default(),
        })
    }
}

/// A link to another STP of this machine; with a port this side connects.
fn link(name: &str, port: Option<u16>) -> Value {
    let mut link = json!({ "name": name, "role": "m2pa", "transport": "tcp", "peer": ["127.0.0.1"] });
    if let Some(port) = port {
        link["connect"] = json!(true);
        link["port"] = json!(port);
    }
    link
}

fn link_set(name: &str, adjacent: PointCode) -> Value {
    json!({ "name": name, "pointCode": adjacent.0.to_string(), "links": [name] })
}

/// Timers of links that fail within a short run, and of nodes that all start at one moment.
fn hurry(stp: &mut Value) {
    stp["m2pa"] = json!({ "t4n": "1s" });
    stp["mtp"] = json!({ "t18": "2s" });
    stp["reconnect"] = json!("200ms");
}

/// The STP that has the nodes: both mates share what is for the capability point code.
fn join_edge(stp: &mut Value, first: Option<u16>) {
    stp["pointCodes"]["own"] = json!(EDGE.0.to_string());
    if let Some(settings) = stp.as_object_mut() {
        settings.remove("translation");
    }
    if let Some(links) = stp["links"].as_array_mut() {
        let ports = [first, None];
        links.extend(NAMES.iter().zip(ports).map(|(name, port)| link(name, port)));
    }
    let sets = NAMES.iter().zip(MATES).map(|(name, code)| link_set(name, code));
    stp["linkSets"] = json!(sets.collect::<Vec<Value>>());
    let routes = NAMES.map(|name| json!({ "destination": OWN.0.to_string(), "via": name }));
    stp["routes"] = json!(routes);
    hurry(stp);
}

/// A mate: the nodes are behind the edge, and behind the other mate where no link leads there.
fn mate(network: &Network, at: usize, links: [Value; 2]) -> Value {
    let own = MATES.get(at).copied().unwrap_or(EDGE);
    let other = MATES.get(1 - at.min(1)).copied().unwrap_or(EDGE);
    let routes = network.parties().flat_map(|party| {
        let destination = party.point_code().0.to_string();
        [(TO_EDGE, 0), (TO_MATE, 1)]
            .map(|(via, priority)| json!({ "destination": destination, "via": via, "priority": priority }))
    });
    let mut stp = json!({
        "pointCodes": { "own": own.0.to_string(), "also": [OWN.0.to_string()] },
        "links": links,
        "linkSets": [link_set(TO_EDGE, EDGE), link_set(TO_MATE, other)],
        "routes": routes.collect::<Vec<Value>>(),
    });
    hurry(&mut stp);
    stp
}

/// What the edge counts: messages lost with an association, and otherwise undelivered ones.
fn undelivered(edge: SocketAddr) -> [f64; 2] {
    let read = Metrics::read(edge);
    read.map_or([f64::NAN; 2], |all| {
        let name = "signalbox_stp_undelivered_messages_total";
        let lost = all.sum(name, &[("why", "association")]);
        [lost, all.sum(name, &[]) - lost]
    })
}

/// One of two mates is killed, and comes back.
struct LostMate {
    edge: SocketAddr,
    mates: Rc<RefCell<Vec<Mate>>>,
    /// What the edge had not delivered when the load began.
    before: Rc<Cell<[f64; 2]>>,
    /// From the start of the mate until it carries traffic again.
    returned: Rc<Cell<Option<Duration>>>,
}

const WITHOUT: &str = "without the mate";
const RETURN: &str = "while the mate comes back";

impl LostMate {
    /// Waits until the link sets of all STPs carry traffic: restarts have ended (TRA).
    fn wait(edge: SocketAddr, mates: &[Mate]) -> Result<(), RigError> {
        let end = Instant::now() + PATIENCE;
        let is_open = |admin: SocketAddr, names: [&str; 2]| {
            let all = Metrics::read(admin);
            let open = |name| {
                let label = [("hop", name)];
                all.as_ref()
                    .is_some_and(|all| all.sum("signalbox_stp_hop_available", &label) == 1.0)
            };
            names.into_iter().all(open)
        };
        let both = |mate: &Mate| is_open(mate.admin, [TO_EDGE, TO_MATE]);
        while !(is_open(edge, NAMES) && mates.iter().all(both)) {
            if Instant::now() > end {
                let words = "the link sets between the STPs did not carry traffic in time";
                return Err(RigError::Settings(words.to_owned()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn on_mates(&self, act: impl Fn(&mut Vec<Mate>) -> Result<(), RigError> + 'static) -> Act {
        let mates = self.mates.clone();
        Box::new(move |_: &mut [Simulator]| act(&mut mates.borrow_mut()))
    }
}

impl Drill for LostMate {
    fn parts(&self) -> Vec<Part> {
        let (edge, before, returned) = (self.edge, self.before.clone(), self.returned.clone());
        let begun = Rc::new(Cell::new(Instant::now()));
        let start_of = begun.clone();
        let whole = self.on_mates(move |mates| {
            Self::wait(edge, mates)?;
            before.set(undelivered(edge));
            Ok(())
        });
        let kill = self.on_mates(|mates| {
            // Dropping it kills it (SIGKILL).
            mates.iter_mut().take(1).for_each(|mate| mate.process = None);
            Ok(())
        });
        let start = self.on_mates(move |mates| {
            begun.set(Instant::now());
            mates.iter_mut().take(1).try_for_each(Mate::start)
        });
        let back = self.on_mates(move |mates| {
            Self::wait(edge, mates)?;
            returned.set(Some(start_of.get().elapsed()));
            Ok(())
        });
        vec![
            Part::new(BEFORE, 0.2, 1.0).beginning(whole),
            Part::new(WITHOUT, 0.4, 1.0).beginning(kill),
            Part::new(RETURN, 0.2, 1.0).beginning(start),
            Part::new(AFTER, 0.2, 1.0).beginning(back),
        ]
    }

    fn judge(&mut self, outcome: &Outcome<'_>) -> Judgement {
        let back = Check::new(
            "the mate died and came back",
            "killed, restarted, and every link set carries traffic again",
            self.returned.get().map_or_else(
                || "it did not".to_owned(),
                |time| format!("at most {} s after its start", figure(time.as_secs_f64())),
            ),
            self.returned.get().is_some(),
        );
        let [lost, others] = undelivered(self.edge);
        let [lost_before, others_before] = self.before.get();
        let routed = Check::new(
            "messages that the STP of the nodes could not send on",
            "none but those that were sent to the lost mate and not acknowledged",
            format!(
                "{} sent and not acknowledged, {} otherwise",
                figure(lost - lost_before),
                figure(others - others_before)
            ),
            others - others_before == 0.0,
        );
        let parts = [(BEFORE, true), (WITHOUT, true), (RETURN, false), (AFTER, false)];
        let parts = parts.map(|(part, in_flight)| all_right(outcome, part, in_flight));
        Judgement {
            checks: [vec![back, routed, explained(outcome)], parts.to_vec()].concat(),
            spares_bounds: true,
            ..Judgement::default()
        }
    }
}
