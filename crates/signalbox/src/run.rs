//! `signalbox up` and `signalbox run`: functions in this process, until a signal ends them.
//!
//! Starting: logs → each function (blocks until it is ready) → its admin endpoint. Running: signals. Ending:
//! not ready any more → admin endpoints → functions, requests in flight first.

use std::future::pending;
use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use lab::traffic::Traffic;
use telemetry::admin::{Limits, Serving, serve_within};
use telemetry::{Admin, Registry, logging};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::config::Config;
use crate::failure::Failure;
use crate::functions::{self, Function, Mounted};
use crate::reload::Reloader;
use crate::secure::Secure;
use crate::wiring::Core;
use crate::{print, welcome};

/// The whole core, and with it simulated traffic where wanted.
pub(crate) fn up(file: Option<PathBuf>, traffic: bool, secure: bool) -> Result<(), Failure> {
    let all: Vec<&'static Function> = functions::ALL.iter().collect();
    let kind = match secure {
        true => Kind::SecureCore,
        false => Kind::Core,
    };
    let mut running = Running::start(&all, file, kind)?;
    print(&welcome::page(&running, traffic))?;
    let nrf = running.interface("nrf", "SBI").filter(|_| traffic);
    let wanted = nrf.map(|nrf| Traffic {
        secure: running.secure.as_ref().map(|secure| secure.traffic()),
        ..Traffic::new(nrf)
    });
    let traffic = wanted
        .map(|wanted| lab::traffic::start(wanted).context("starting simulated traffic"))
        .transpose()?;
    running.until_signal(traffic.as_ref())?;
    // Simulated functions deregister while the core still runs.
    drop(traffic);
    running.stop()
}

/// Some functions, for production.
pub(crate) fn functions(wanted: &[&'static Function], file: Option<PathBuf>) -> Result<(), Failure> {
    let mut running = Running::start(wanted, file, Kind::Functions)?;
    let mut said = String::new();
    for function in &running.functions {
        for (interface, address) in &function.mounted.interfaces {
            said.push_str(&format!("{} {interface} {address}\n", function.name));
        }
        said.push_str(&format!(
            "{} admin http://{}\n",
            function.name,
            function.admin.address()
        ));
    }
    print(&(said + "ready\n"))?;
    running.until_signal(None)?;
    running.stop()
}

/// Functions that run in this process, with their admin endpoints.
pub(crate) struct Running {
    pub(crate) functions: Vec<One>,
    runtime: Runtime,
    reloader: Arc<Reloader>,
    signals: Signals,
    /// What makes it secure, where it is `up --secure`.
    pub(crate) secure: Option<Arc<Secure>>,
}

/// What is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Functions as their configuration says.
    Functions,
    /// A core whose functions find each other.
    Core,
    /// The same, secure whatever the configuration says.
    SecureCore,
}

/// A running function.
pub(crate) struct One {
    pub(crate) name: &'static str,
    pub(crate) mounted: Mounted,
    pub(crate) admin: Serving,
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn end(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

impl Running {
    fn start(wanted: &[&'static Function], file: Option<PathBuf>, kind: Kind) -> Result<Self, Failure> {
        let mut config = Config::load(file.as_deref())?;
        let secure = match kind {
            Kind::SecureCore => Some(Arc::new(Secure::open(&config)?)),
            Kind::Functions | Kind::Core => None,
        };
        let core = Arc::new(Core::new(kind != Kind::Functions, secure.clone()));
        core.adapt(&mut config);
        logging::init(&config.log);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("admin")
            .enable_all()
            .build()?;
        // From here on a signal ends the start in order, not in the middle.
        let signals = runtime.block_on(async { Signals::new() })?;
        let process = Registry::new();
        telemetry::process::register(&process);
        logging::register(&process);
        telemetry::admin::register(&process);
        telemetry::trace::init(&config.traces, &process)?;
        let mut mounted = Vec::new();
        for function in functions::ALL {
            if wanted.iter().any(|one| one.name == function.name) {
                let started = (function.start)(&config)?;
                if function.name == "nrf" {
                    // Those that start after it ask it where it really is.
                    core.found_nrf(started.interfaces.first().map(|(_, root)| root.as_str()));
                    core.adapt(&mut config);
                }
                mounted.push((function, started));
            }
        }
        let live = mounted
            .iter_mut()
            .filter_map(|(function, mounted)| Some((function.name, mounted.live.take()?)))
            .collect();
        let reloader = Reloader::new(file, config.clone(), live, core);
        let mut running = Vec::new();
        for (function, mounted) in mounted {
            let address = (function.admin)(&config);
            if !address.ip().is_loopback() {
                tracing::warn!(
                    function = function.name,
                    %address,
                    "the admin endpoint asks for no credentials and other machines may reach it: \
                     let a firewall decide which"
                );
            }
            let pages = admin_pages(function.name, &mounted, &process, &reloader).hosts(&config.admin.hosts);
            let limits = Limits::from(&config.admin);
            let admin = runtime.block_on(serve_within(address, pages.router(), limits))?;
            running.push(One {
                name: function.name,
                mounted,
                admin,
            });
        }
        Ok(Self {
            functions: running,
            runtime,
            reloader,
            signals,
            secure,
        })
    }

    /// The root of the service-based interface of a function.
    pub(crate) fn root(&self, function: &str) -> Option<String> {
        let one = self.functions.iter().find(|one| one.name == function)?;
        let (_, root) = one.mounted.interfaces.iter().find(|(name, _)| *name == "SBI")?;
        Some(root.clone())
    }

    /// The first address of an interface.
    fn interface(&self, function: &str, interface: &str) -> Option<SocketAddr> {
        let one = self.functions.iter().find(|one| one.name == function)?;
        let (_, uri) = one
            .mounted
            .interfaces
            .iter()
            .find(|(name, _)| *name == interface)?;
        uri.rsplit('/').next()?.parse().ok()
    }

    /// Waits for the end; SIGHUP reads the configuration again. Tells how simulated traffic fares, on a
    /// terminal.
    fn until_signal(&mut self, traffic: Option<&lab::traffic::Running>) -> Result<(), Failure> {
        let reloader = self.reloader.clone();
        let traffic = traffic.filter(|_| std::io::stderr().is_terminal());
        let Signals {
            terminate,
            interrupt,
            hang_up,
        } = &mut self.signals;
        self.runtime.block_on(async {
            let mut second = tokio::time::interval(Duration::from_secs(1));
            loop {
                let tell = async {
                    match traffic {
                        Some(traffic) => {
                            second.tick().await;
                            traffic.counts()
                        }
                        None => pending().await,
                    }
                };
                tokio::select! {
                    _ = terminate.recv() => break,
                    _ = interrupt.recv() => break,
                    _ = hang_up.recv() => {
                        let reloader = reloader.clone();
                        // What has changed is in the log.
                        let read = tokio::task::spawn_blocking(move || reloader.reload()).await;
                        if let Ok(Err(report)) = read {
                            tracing::error!("configuration not read again, nothing changed");
                            for line in report.lines().filter(|line| !line.is_empty()) {
                                tracing::error!("{line}");
                            }
                        }
                    }
                    (right, wrong) = tell => eprint!("\r  simulated traffic: {right} answered, {wrong} failed "),
                }
            }
        });
        if traffic.is_some() {
            eprintln!();
        }
        Ok(())
    }

    /// Ends everything in order. A second signal ends it at once.
    fn stop(self) -> Result<(), Failure> {
        let Self {
            functions,
            runtime,
            reloader,
            mut signals,
            secure: _,
        } = self;
        for one in &functions {
            one.mounted.health.stop();
        }
        tracing::info!("stopping: requests in flight finish");
        let mut stops = Vec::new();
        let outcome = runtime.block_on(async {
            for one in functions {
                one.admin.stop().await;
                stops.push((one.name, one.mounted.stop));
            }
            drop(reloader);
            // Functions block until their workers have ended.
            let stopped = tokio::task::spawn_blocking(move || {
                for (name, stop) in stops {
                    stop().with_context(|| format!("stopping {name}"))?;
                }
                anyhow::Ok(())
            });
            tokio::select! {
                stopped = stopped => stopped.context("stopping")?,
                () = signals.end() => Err(anyhow::anyhow!("a second signal: ended at once")),
            }
        });
        // Whatever still blocks ends with the process.
        runtime.shutdown_background();
        Ok(outcome?)
    }
}

fn admin_pages(name: &'static str, mounted: &Mounted, process: &Registry, reloader: &Arc<Reloader>) -> Admin {
    let (shown, again) = (reloader.clone(), reloader.clone());
    Admin::new(name, mounted.registry.clone())
        .also(process.clone())
        .health(mounted.health.clone())
        .alarms(mounted.alarms.clone())
        .config(move || shown.current(name))
        .reload(Arc::new(move || again.reload()))
        .routes(mounted.routes.clone())
}
