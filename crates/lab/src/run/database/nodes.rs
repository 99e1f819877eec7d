//! The processes: a subscriber database server, and database processors that follow it.

use std::fs::File;
use std::io::{self, BufWriter};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::run::admin::ask;
use crate::run::children::Guarded;
use crate::run::dsr::start_function;
use crate::run::files;
use crate::run::rig::{Place, RigError, free_address};
use report::measure::{Metrics, Usage};

/// Time in which a processor has to have its data.
const PATIENCE: Duration = Duration::from_secs(600);
/// Pause between two requests whether it has.
const PAUSE: Duration = Duration::from_millis(10);

/// A function that may be killed and started again.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
    function: &'static str,
    settings: Value,
    place: Place,
    /// None while it is dead.
    process: Option<Guarded>,
}

impl Node {
    /// Starts it, and waits until it is ready.
    ///
    /// # Errors
    /// When it does not listen, or has no data in time.
    pub(crate) fn start(&mut self) -> Result<(), RigError> {
        let names = (self.function, &*self.name);
        let started = start_function(&self.place, names, self.settings.clone(), None, self.address)?;
        let process = self.process.insert(started);
        let end = Instant::now() + PATIENCE;
        while ask(self.admin, "GET", "/readyz").is_none_or(|(status, _)| status != 200) {
            if Instant::now() > end || !process.is_alive() {
                return Err(process.gone("is not ready".to_owned()).into());
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Kills it (SIGKILL).
    pub(crate) fn kill(&mut self) {
        self.process = None;
    }

    /// Ends it in order.
    pub(crate) fn stop(&mut self) {
        if let Some(process) = self.process.take() {
            process.stop();
        }
    }

    /// What it has used since its last start.
    pub(crate) fn usage(&self) -> Option<Usage> {
        self.process.as_ref()?.process().usage()
    }

    /// Hands the process over to the caller.
    pub(crate) fn take(&mut self) -> Option<Guarded> {
        self.process.take()
    }

    /// The value of a metric, over all series that have these labels. NaN without an answer.
    pub(crate) fn metric(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        Metrics::read(self.admin).map_or(f64::NAN, |metrics| metrics.sum(name, labels))
    }
}

/// A server, and processors that follow it.
#[derive(Debug)]
pub(crate) struct Database {
    pub(crate) server: Node,
    pub(crate) processors: Vec<Node>,
}

impl Database {
    /// Starts a server with the text that `fill` writes (numbers ascending, then names), and processors that have taken it.
    ///
    /// # Errors
    /// When a process does not start, or the text is refused.
    pub(crate) fn start(
        (server, processor): (&Place, &Place),
        processors: u16,
        fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<Self, RigError> {
        let folder = server.empty_folder("sds")?;
        std::fs::create_dir_all(&folder).map_err(RigError::io(format!("making {}", folder.display())))?;
        files::write(&folder.join("load.csv"), fill)?;
        let mut sds = node(server, "sds", "sds", |address, admin| {
            json!({ "sds": {
                "listen": [address.to_string()],
                "admin": admin.to_string(),
                "workers": 1,
                "directory": folder,
                "store": { "embedded": { "directory": folder.join("journal") } },
            }})
        })?;
        sds.start()?;
        let mut all = Vec::new();
        for number in 0..processors {
            let name = format!("dp-{number}");
            let directory = processor.empty_folder(&name)?;
            let root = format!("http://{}", sds.address);
            let mut dp = node(processor, "dp", &name, |address, admin| {
                json!({ "dp": {
                    "listen": [address.to_string()],
                    "admin": admin.to_string(),
                    "workers": 1,
                    "sds": { "addresses": [root], "name": name },
                    "directory": directory,
                }})
            })?;
            dp.start()?;
            all.push(dp);
        }
        Ok(Self {
            server: sds,
            processors: all,
        })
    }

    /// What each process has used since its last start.
    pub(crate) fn usages(&self) -> Vec<(String, Usage)> {
        let all = std::iter::once(&self.server).chain(&self.processors);
        all.filter_map(|node| Some((node.name.clone(), node.usage()?)))
            .collect()
    }
}

fn node(
    place: &Place,
    function: &'static str,
    name: &str,
    settings: impl FnOnce(SocketAddr, SocketAddr) -> Value,
) -> Result<Node, RigError> {
    let (address, admin) = (free_address()?, free_address()?);
    Ok(Node {
        name: name.to_owned(),
        address,
        admin,
        function,
        settings: settings(address, admin),
        place: place.clone(),
        process: None,
    })
}
