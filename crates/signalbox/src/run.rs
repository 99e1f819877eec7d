//! `signalbox up` and `signalbox run`: functions in this process, until a signal ends them.
//!
//! Starting: logs → admin endpoints, which answer "starting" → each function (blocks until it is ready). Running: signals. Ending:
//! not ready any more → admin endpoints → functions, requests in flight first.

use std::future::pending;
use std::io::{ErrorKind, IsTerminal as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use console::config::Target;
use function::Frame;
use telemetry::admin::{Entrance, Limits, Serving, serve_within};
use telemetry::{Admin, Alarms, Registry, journal, logging};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::administration::Administration;
use crate::config::Config;
use crate::failure::Failure;
use crate::functions::{self, CONSOLE, Function, Mounted};
use crate::laboratory::{self, traffic};
use crate::reload::Reloader;
use crate::secure::Secure;
use crate::started::{self, RELEASE, Started};
use crate::supervisor::Supervisor;
use crate::terminal::Screen;
use crate::welcome::State;
use crate::wiring::Core;
use crate::{complain, print, running, welcome};

/// The whole core, and with it simulated traffic where wanted.
pub(crate) fn up(file: Option<PathBuf>, traffic: bool, secure: bool, fresh: bool) -> Result<(), Failure> {
    if traffic && !laboratory::PRESENT {
        complain(&format!(
            "starting without simulated traffic: {}",
            laboratory::ABSENT
        ));
    }
    let simulated = traffic && laboratory::PRESENT;
    let all: Vec<&'static Function> = functions::ALL.iter().collect();
    let kind = match (secure, simulated) {
        (true, _) => Kind::SecureCore,
        (false, true) => Kind::SimulatedCore,
        (false, false) => Kind::Core,
    };
    if fresh {
        let config = Config::load(file.as_deref())?;
        running::refuse_second(&settled(&all, kind), &config)?;
        State::of(&config).set_aside()?;
    }
    let mut running = Running::start(&all, file, kind)?;
    let page = welcome::page(
        &running.functions,
        running.secure.as_deref(),
        &running.state,
        welcome::Simulated {
            has_functions: simulated,
            has_transfer_point: running.core.simulates_stp(),
        },
    );
    let mut screen = running.show(&page)?;
    let nrf = running.interface("nrf", "SBI").filter(|_| simulated);
    let calls = || {
        Some(traffic::Calls {
            scp: running.interface("scp", "SBI")?,
            bsf: running.interface("bsf", "SBI")?,
            router: running.interface("dsr", "Diameter")?,
            realm: running.reloader.realm_of_pcf(),
        })
    };
    let wanted = nrf.map(|nrf| traffic::Traffic {
        calls: calls(),
        router: running.interface("dsr", "Diameter"),
        stp: running
            .interface("stp", "M3UA over TCP")
            .filter(|_| running.core.simulates_stp()),
        secure: running.secure.as_ref().map(|secure| secure.traffic()),
        ..traffic::Traffic::new(nrf)
    });
    let traffic = wanted
        .map(|wanted| traffic::start(wanted).context("starting simulated traffic"))
        .transpose()?;
    running.until_signal(traffic.as_ref(), screen.as_mut())?;
    drop(screen);
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
    running.until_signal(None, None)?;
    running.stop()
}

/// Functions that run in this process, with their admin endpoints.
struct Running {
    functions: Vec<Started>,
    runtime: Runtime,
    reloader: Arc<Reloader>,
    signals: Signals,
    /// What makes it secure, where it is `up --secure`.
    secure: Option<Arc<Secure>>,
    state: State,
    supervisor: Arc<Supervisor>,
    core: Arc<Core>,
}

/// What is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Functions as their configuration says.
    Functions,
    /// A core whose functions find each other.
    Core,
    /// The same, with simulated nodes around its STP.
    SimulatedCore,
    /// The same, secure whatever the configuration says.
    SecureCore,
}

/// Functions that must have their ports. The console of `up` takes the next free ones: a core does not fail for its page.
fn settled(wanted: &[&'static Function], kind: Kind) -> Vec<&'static Function> {
    let must = |function: &&&Function| kind == Kind::Functions || function.name != CONSOLE;
    wanted.iter().filter(must).copied().collect()
}

/// What a console follows whose settings name no function: those of this process, and others that the file has. One that is
/// alone and has no such file follows all at their default addresses.
fn followed(doors: &[Door], config: &Config, text: Option<&str>) -> Vec<Target> {
    let named: Vec<&str> = functions::sections(text.unwrap_or_default())
        .map(|one| one.name)
        .filter(|name| *name != CONSOLE)
        .collect();
    let is_alone = doors.iter().all(|door| door.function.name == CONSOLE);
    let others = functions::ALL.iter().filter(|function| function.name != CONSOLE);
    let all = others.filter_map(|function| {
        let door = doors.iter().find(|door| door.function.name == function.name);
        let admin = match door {
            Some(door) => door.serving.address(),
            None => (function.admin)(config),
        };
        let is_meant = door.is_some() || named.contains(&function.name) || (named.is_empty() && is_alone);
        // Port 0 stands for one that is not known here.
        (is_meant && admin.port() != 0).then(|| Target {
            name: function.name.to_owned(),
            admin,
        })
    });
    all.collect()
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    /// Whether one that ends the process came during the start.
    have_come: bool,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            have_come: false,
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
        let (mut config, text) = Config::load_with_text(file.as_deref())?;
        let secure = match kind {
            Kind::SecureCore => Some(Arc::new(Secure::open(&config)?)),
            Kind::Functions | Kind::Core | Kind::SimulatedCore => None,
        };
        let core = Arc::new(Core::new(
            kind != Kind::Functions,
            kind == Kind::SimulatedCore,
            secure.clone(),
        ));
        core.adapt(&mut config);
        running::refuse_second(&settled(wanted, kind), &config)?;
        let state = State::of(&config);
        logging::init(&config.log);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("admin")
            .enable_all()
            .build()?;
        // From here on a signal ends the start in order, not in the middle.
        let signals = runtime.block_on(async { Signals::new() })?;
        let process = Registry::new();
        telemetry::process::register(&process, env!("CARGO_PKG_VERSION"), env!("SIGNALBOX_COMMIT"));
        logging::register(&process);
        telemetry::admin::register(&process);
        telemetry::trace::init(&config.traces, &process, env!("CARGO_PKG_VERSION"))?;
        let functions = functions::ALL.iter();
        let functions = functions.filter(|function| wanted.iter().any(|one| one.name == function.name));
        let doors: Result<Vec<Door>, _> = functions
            .map(|function| Door::open(function, &config, &runtime, kind))
            .collect();
        let doors = doors?;
        telemetry::webhook::start(&config.alarms, &process, &raisers(&doors))?;
        core.follow(followed(&doors, &config, text.as_deref()));
        core.adapt(&mut config);
        let (mounted, signals) = mount(&doors, &mut config, &core, &runtime, signals)?;
        let supervisor = Arc::new(Supervisor::of_environment());
        let watched = (core.clone(), supervisor.clone());
        let (running, reloader) = open(doors, mounted, (file, text), &config, watched, &process);
        Ok(Self {
            functions: running,
            runtime,
            reloader,
            signals,
            secure,
            state,
            supervisor,
            core,
        })
    }

    /// The first address of an interface.
    fn interface(&self, function: &str, interface: &str) -> Option<SocketAddr> {
        let uri = started::interface(&self.functions, function, interface)?;
        uri.rsplit('/').next()?.parse().ok()
    }

    /// Prints the page of `up`. A terminal shows a short one, while the whole one and what is logged go to files.
    fn show(&self, page: &str) -> Result<Option<Screen>, Failure> {
        if !std::io::stdout().is_terminal() || !std::io::stderr().is_terminal() {
            print(page)?;
            return Ok(None);
        }
        let [whole, log] = ["up.txt", "up.log"].map(|name| self.state.file(name));
        std::fs::write(&whole, page).with_context(|| format!("writing {}", whole.display()))?;
        let here = std::env::current_dir().unwrap_or_default();
        let shown = |path: &Path| path.strip_prefix(&here).unwrap_or(path).display().to_string();
        print(&welcome::short(&self.functions, [&shown(&whole), &shown(&log)]))?;
        Ok(Some(Screen::take(&log)?))
    }

    /// Waits for the end; SIGHUP reloads the configuration. On a terminal it shows the counts of simulated traffic.
    fn until_signal(
        &mut self,
        traffic: Option<&traffic::Running>,
        mut screen: Option<&mut Screen>,
    ) -> Result<(), Failure> {
        if self.signals.have_come {
            return Ok(());
        }
        let reloader = self.reloader.clone();
        let has_screen = screen.is_some();
        let supervisor = self.supervisor.clone();
        supervisor.notify("READY=1");
        let health: Vec<_> = self
            .functions
            .iter()
            .map(|one| one.mounted.health.clone())
            .collect();
        let Signals {
            terminate,
            interrupt,
            hang_up,
            ..
        } = &mut self.signals;
        self.runtime.block_on(async {
            let mut second = tokio::time::interval(Duration::from_secs(1));
            let mut beats = supervisor.interval().map(tokio::time::interval);
            loop {
                let beat = async {
                    match &mut beats {
                        Some(beats) => drop(beats.tick().await),
                        None => pending().await,
                    }
                };
                let report = async {
                    match has_screen {
                        true => {
                            second.tick().await;
                            traffic.map(traffic::Running::counts)
                        }
                        false => pending().await,
                    }
                };
                tokio::select! {
                    _ = terminate.recv() => break,
                    _ = interrupt.recv() => break,
                    _ = hang_up.recv() => {
                        let reloader = reloader.clone();
                        // What has changed, or why nothing has, is in the log.
                        let _ = tokio::task::spawn_blocking(move || reloader.reload("SIGHUP").map(drop)).await;
                    }
                    () = beat => supervisor.beat(health.iter()),
                    counts = report => {
                        let line = counts.map(|(right, wrong)| {
                            format!("simulated traffic: {right} answered, {wrong} failed")
                        });
                        if let Some(screen) = &mut screen {
                            screen.tick(line.as_deref());
                        }
                    }
                }
            }
        });
        supervisor.notify("STOPPING=1");
        Ok(())
    }

    /// Ends everything in order. A second signal ends it at once.
    fn stop(self) -> Result<(), Failure> {
        let Self {
            functions,
            runtime,
            reloader,
            mut signals,
            ..
        } = self;
        for one in &functions {
            one.mounted.health.stop();
            let journal = one.mounted.alarms.journal();
            journal.record(journal::Kind::Stopped, one.name, "requests in flight finish");
        }
        tracing::info!("stopping: requests in flight finish");
        let mut stops = Vec::new();
        let outcome = runtime.block_on(async {
            for one in functions {
                one.admin.stop().await;
                stops.push((one.name, one.mounted.stop, one.journal));
            }
            drop(reloader);
            // Functions block until their workers have ended.
            let stopped = tokio::task::spawn_blocking(move || {
                for (name, stop, journal) in stops {
                    stop().with_context(|| format!("stopping {name}"))?;
                    // Its last entries are written by then.
                    drop(journal);
                }
                anyhow::Ok(())
            });
            tokio::select! {
                stopped = stopped => stopped.context("stopping")?,
                () = signals.end() => Err(anyhow::anyhow!("received second signal; exiting immediately")),
            }
        });
        // Whatever still blocks ends with the process.
        runtime.shutdown_background();
        Ok(outcome?)
    }
}

/// The admin endpoint of a function: it answers from before the start on, so that probes see how that goes.
struct Door {
    function: &'static Function,
    frame: Frame,
    entrance: Entrance,
    serving: Serving,
    /// Where its journal is kept; the last entries are written when it is dropped.
    journal: Option<Arc<function::journal::Journal>>,
}

impl Door {
    fn open(
        function: &'static Function,
        config: &Config,
        runtime: &Runtime,
        kind: Kind,
    ) -> Result<Self, Failure> {
        let address = (function.admin)(config);
        if !address.ip().is_loopback() {
            tracing::warn!(
                function = function.name,
                %address,
                "the admin endpoint asks for no credentials and other machines may reach it: \
                 let a firewall decide which"
            );
        }
        let frame = (function.frame)();
        frame.follow.limit(config.admin.follow_bytes.as_usize());
        let journal = (function.journal)(config)
            .map(|directory| function::journal_file::keep(&frame.alarms, &directory, function.journal_name))
            .transpose()?;
        started::record(function.name, frame.alarms.journal());
        // Not ready until it has started.
        let _ = frame.health.component("start");
        let pages = Admin::new(function.name, frame.registry.clone())
            .release(RELEASE)
            .health(frame.health.clone())
            .alarms(frame.alarms.clone())
            .hosts(&config.admin.hosts);
        let (name, own) = (function.name, function.pages);
        let pages = pages.wrap(move |router| function::browser::pages(router, name, own));
        let entrance = Entrance::new(pages);
        let limits = Limits::from(&config.admin);
        let mut serving = runtime.block_on(serve_within(address, entrance.router(), limits));
        let may_move = settled(&[function], kind).is_empty();
        if may_move
            && serving
                .as_ref()
                .is_err_and(|error| error.kind() == ErrorKind::AddrInUse)
        {
            let free = SocketAddr::new(address.ip(), 0);
            serving = runtime.block_on(serve_within(free, entrance.router(), limits));
        }
        let serving = serving?;
        Ok(Self {
            function,
            frame,
            entrance,
            serving,
            journal,
        })
    }
}

/// Starts the functions, one after the other. A signal ends a start that waits, for a database say; a start that has
/// succeeded all the same ends in order.
fn mount(
    doors: &[Door],
    config: &mut Config,
    core: &Core,
    runtime: &Runtime,
    mut signals: Signals,
) -> Result<(Vec<Mounted>, Signals), Failure> {
    let (done, finished) = tokio::sync::oneshot::channel::<()>();
    let frames: Vec<Frame> = doors.iter().map(|door| door.frame.clone()).collect();
    let watcher = runtime.spawn(async move {
        tokio::select! {
            () = signals.end() => {
                signals.have_come = true;
                frames.iter().for_each(|frame| frame.health.stop());
            }
            _ = finished => {}
        }
        signals
    });
    let mut mounted = Vec::new();
    let mut failed = None;
    for door in doors {
        match (door.function.start)(config, door.frame.clone()) {
            Ok(started) => {
                // Those that start after it get its real addresses.
                core.found(door.function.name, &started.interfaces);
                core.adapt(config);
                door.frame.health.component("start").ready();
                mounted.push(started);
            }
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    drop(done);
    let signals = runtime.block_on(watcher)?;
    match failed {
        Some(error) if signals.have_come => Err(Failure::Stopped(error)),
        Some(error) => Err(error.into()),
        None => Ok((mounted, signals)),
    }
}

/// The alarms of each function.
fn raisers(doors: &[Door]) -> Vec<(&'static str, Alarms)> {
    let each = doors.iter();
    each.map(|door| (door.function.name, door.frame.alarms.clone()))
        .collect()
}

/// Opens the pages of functions that have started.
fn open(
    doors: Vec<Door>,
    mut mounted: Vec<Mounted>,
    file: (Option<PathBuf>, Option<String>),
    config: &Config,
    (core, supervisor): (Arc<Core>, Arc<Supervisor>),
    process: &Registry,
) -> (Vec<Started>, Arc<Reloader>) {
    let named = doors.iter().map(|door| door.function.name).zip(&mut mounted);
    let live = named.filter_map(|(name, mounted)| Some((name, mounted.live.take()?)));
    let live = live.collect();
    let name = file.0.clone();
    let reloader = Reloader::new(file, config.clone(), live, raisers(&doors), core, supervisor);
    reloader.observe(process);
    let administration = Administration::new(name, config.changes.clone(), reloader.clone());
    let mut running = Vec::new();
    for (door, mounted) in doors.into_iter().zip(mounted) {
        let mut pages = admin_pages(door.function, &mounted, &reloader)
            .routes(administration.routes())
            .hosts(&config.admin.hosts);
        // At one endpoint only, or sums over all endpoints would count the process several times.
        if running.is_empty() {
            pages = pages.also(process.clone());
        }
        door.entrance.open(pages);
        running.push(Started {
            name: door.function.name,
            mounted,
            admin: door.serving,
            journal: door.journal,
        });
    }
    (running, reloader)
}

fn admin_pages(function: &'static Function, mounted: &Mounted, reloader: &Arc<Reloader>) -> Admin {
    let (name, shown, again, known) = (
        function.name,
        reloader.clone(),
        reloader.clone(),
        reloader.clone(),
    );
    let own = function.pages;
    let pages = Admin::new(name, mounted.registry.clone()).release(RELEASE);
    let pages = function
        .pages
        .iter()
        .fold(pages, |pages, page| pages.page(page.path, page.about));
    pages
        .page(
            "/follow",
            "followed subscribers; their messages: /follow/messages",
        )
        .health(mounted.health.clone())
        .alarms(mounted.alarms.clone())
        .config(move || shown.current(name))
        .configuration(move || known.standing())
        .reload(Arc::new(move |by| {
            again.reload(by).map_err(|refusal| refusal.text)
        }))
        .routes(mounted.routes.clone())
        .wrap(move |router| function::browser::pages(router, name, own))
}
