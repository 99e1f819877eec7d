//! Database processors that a router asks, with the subscriber database server that they follow, and what is provisioned at it beside
//! the load.

use std::cell::{OnceCell, RefCell};
use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use numbers::{Key, Load, Map};
use serde_json::{Value, json};

use super::Asking;
use super::applications::home;
use crate::run::database::{Database, Node, Outcome as Writes, Provisioning, Record};
use crate::run::rig::{Place, Probe, RigError};
use ::report::Check;
use callmodel::dsr::{Drill as Wanted, DsrModel};
use callmodel::resolution::{Address, Resolution};
use dp_proto::Kind;
use report::measure::Metrics;
use workload::dsr::Plan;

/// Time from a query of the router to its answer: below the timeout of the load, and longer than a busy machine needs.
const DEADLINE: &str = "4s";
/// The processor that a drill is about.
pub(super) const VICTIM: usize = 0;

/// The processes beside the router, and what is written at the server.
pub(super) struct Beside {
    pub(super) database: Rc<RefCell<Database>>,
    /// Admin endpoint of the router.
    router: SocketAddr,
    writing: RefCell<Option<Provisioning>>,
    writes: OnceCell<Writes>,
}

/// Starts server and processors, where the model has some.
pub(super) fn start(
    model: &DsrModel,
    place: &Place,
    router: SocketAddr,
) -> Result<Option<Rc<Beside>>, RigError> {
    let resolution = model.fabr.as_ref().filter(|fabr| fabr.processors > 0);
    let Some(resolution) = resolution else {
        return Ok(None);
    };
    let hss = u64::from(model.hss.max(1));
    let place = Place {
        function_cpus: place.lab_cpus.clone(),
        ..place.clone()
    };
    let count = if resolution.has_identities() { 3 } else { 1 };
    let mut database = Database::start((&place, &place), resolution.processors, |out| {
        let home_of = |subscriber: u64| home(subscriber % hss);
        resolution.write(&Address::ALL[..count], Address::kind, home_of, out)
    })?;
    if let (Some(Wanted::DamageBlock(_)), Some(victim)) = (&model.drill, database.processors.get_mut(VICTIM))
    {
        victim.stop();
        damage(&place.folder.join(&victim.name), first_damaged(resolution))?;
        victim.start()?;
    }
    Ok(Some(Rc::new(Beside {
        database: Rc::new(RefCell::new(database)),
        router,
        writing: RefCell::default(),
        writes: OnceCell::new(),
    })))
}

/// The first IMSI of the block that is damaged.
pub(super) fn first_damaged(resolution: &Resolution) -> String {
    Address::Imsi.of(resolution.whole_block().start)
}

/// Changes an octet of the block that has this IMSI, in the numbers of a processor.
fn damage(folder: &Path, imsi: String) -> Result<(), RigError> {
    let numbers = numbers_in(folder).map_err(RigError::io(format!("reading {}", folder.display())))?;
    let failed = |why: String| RigError::Settings(format!("{}: {why}", numbers.display()));
    let key = Key::new(numbers::Kind::Imsi, imsi.as_bytes()).map_err(|error| failed(error.to_string()))?;
    let map = Map::open(&numbers, None, Load::Mapped).map_err(|error| failed(error.to_string()))?;
    let numbers::Place::Base(offset) = map.explain(key).place else {
        return Err(failed(format!("no block has IMSI {imsi}")));
    };
    drop(map);
    let flipped = File::options()
        .read(true)
        .write(true)
        .open(&numbers)
        .and_then(|file| {
            let mut octet = [0];
            file.read_exact_at(&mut octet, offset)?;
            file.write_all_at(&octet.map(|octet| !octet), offset)
        });
    flipped.map_err(RigError::io(format!("writing {}", numbers.display())))
}

/// The numbers of a processor, which has one file of them.
fn numbers_in(folder: &Path) -> std::io::Result<PathBuf> {
    let entries = std::fs::read_dir(folder)?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut numbers = paths.filter(|path| path.extension().is_some_and(|ending| ending == "num"));
    numbers.next().ok_or_else(|| std::io::ErrorKind::NotFound.into())
}

impl Beside {
    /// Has the router ask the processors.
    pub(super) fn settings(&self, router: &mut Value) {
        let database = self.database.borrow();
        let nodes = database.processors.iter();
        let addresses: Vec<Value> = nodes.map(|one| json!({ "address": one.address })).collect();
        let fabr = &mut router["applications"][0]["fabr"];
        fabr["processors"] = json!(addresses);
        fabr["processorDeadline"] = json!(DEADLINE);
    }

    /// Begins to write new subscribers at the server, which requests name as soon as the processors answer their addresses. What has
    /// to hold in the end.
    pub(super) fn provision(self: &Rc<Self>, model: &DsrModel, asking: &Asking) -> Vec<Probe> {
        if let (Some(resolution), Asking::Subscribers(plan, _)) = (&model.fabr, asking)
            && resolution.writes > 0
        {
            self.write(resolution, model.hss, plan);
        }
        probes(self, model)
    }

    fn write(&self, resolution: &Resolution, hss: u16, plan: &Plan) {
        let (known, hss) = (resolution.subscribers, u64::from(hss.max(1)));
        let each = Address::ALL.len() as u64;
        let records = Arc::new(move |number: u64| {
            let subscriber = known + number / each;
            let address = Address::ALL[(number % each) as usize];
            Record {
                kind: match address {
                    Address::Imsi => Kind::Imsi,
                    Address::Msisdn => Kind::Msisdn,
                    Address::Name => Kind::Name,
                },
                value: address.of(subscriber),
                destination: home(subscriber % hss),
            }
        });
        let provisioned = plan.provisioned().clone();
        let visible = Box::new(move |count: u64| {
            provisioned.fetch_max(count / each, Ordering::AcqRel);
        });
        let rate = f64::from(resolution.writes);
        let writing = Provisioning::start(&self.database.borrow(), records, rate, visible);
        self.writing.replace(Some(writing));
    }

    /// The count of writes that were acknowledged so far.
    pub(super) fn acknowledged(&self) -> u64 {
        self.writing
            .borrow()
            .as_ref()
            .map_or(0, Provisioning::acknowledged)
    }

    /// What came of the writes, which end now; none: nothing was written.
    pub(super) fn writes(&self) -> Option<&Writes> {
        if self.writes.get().is_none() {
            let writes = self.writing.take()?.finish();
            let _ = self.writes.set(writes);
        }
        self.writes.get()
    }

    /// Does something with the processor that a drill is about.
    pub(super) fn with_victim<T>(&self, act: impl FnOnce(&mut Node) -> T) -> Result<T, RigError> {
        let mut database = self.database.borrow_mut();
        let victim = database.processors.get_mut(VICTIM);
        let none = || RigError::Settings("the model has no database processor".to_owned());
        victim.map(act).ok_or_else(none)
    }
}

/// What has to hold in the end.
fn probes(beside: &Rc<Beside>, model: &DsrModel) -> Vec<Probe> {
    let of = |judge: fn(&Writes) -> Check| -> Probe {
        let beside = beside.clone();
        Box::new(move || {
            let nothing = || Check::new("provisioning", "writes beside the load", "none", false);
            beside.writes().map_or_else(nothing, judge)
        })
    };
    let mut probes = Vec::new();
    if model.fabr.as_ref().is_some_and(|fabr| fabr.writes > 0) {
        probes.push(of(Writes::judge_lost));
        if model.drill.is_none() {
            probes.push(of(Writes::judge_rate));
            probes.push(of(Writes::judge_visibility));
        }
    }
    if model.drill.is_none() {
        let router = beside.router;
        probes.push(Box::new(move || found(router)));
    }
    probes
}

/// The share of requests whose address the processors have found.
fn found(router: SocketAddr) -> Check {
    let counted = Metrics::read(router).map(|metrics| {
        ["exact", "ranged"]
            .map(|how| metrics.sum(&format!("signalbox_dsr_subscriber_resolutions_{how}_total"), &[]))
            .iter()
            .sum::<f64>()
            / metrics.sum("signalbox_dsr_subscriber_resolutions_total", &[])
    });
    Check::new(
        "share found",
        "the address of every request that is resolved",
        counted.map_or_else(
            || "the router does not report its metrics".to_owned(),
            |share| format!("{:.3}%", share * 100.0),
        ),
        counted.is_some_and(|share| share >= 1.0),
    )
}
