//! `signalbox up` and `signalbox run`: functions in this process, until a signal ends them.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};

use crate::check::print;
use crate::config::{ALL, Config, Function};
use crate::{USAGE, admin};

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The configuration: every mistake, told already with its place.
    Config(Box<settings::Report>),
    /// Something else.
    Other(anyhow::Error),
}

impl Failure {
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Config(_) => USAGE,
            Self::Other(_) => 1,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(report) => report.fmt(f),
            Self::Other(error) => write!(f, "{error:#}"),
        }
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

/// Reads the configuration; without a file the defaults.
pub(crate) fn load(file: Option<&Path>) -> Result<Config, Failure> {
    match file {
        None => Ok(Config::default()),
        Some(file) => settings::from_file(file).map_err(|report| Failure::Config(Box::new(report))),
    }
}

/// The whole core, and with it simulated traffic where wanted.
pub(crate) fn up(file: Option<&Path>, traffic: bool) -> Result<(), Failure> {
    let config = load(file)?;
    let running = start(ALL, &config)?;
    print(&welcome(&running, traffic));
    let simulated = traffic
        .then_some(running.nrf.as_ref())
        .flatten()
        .and_then(|nrf| nrf.addresses().first());
    let simulated = simulated.map(|address| lab::traffic::start(*address));
    wait(&config, running)?;
    drop(simulated);
    Ok(())
}

/// Some functions.
pub(crate) fn functions(functions: &[Function], file: Option<&Path>) -> Result<(), Failure> {
    let config = load(file)?;
    let running = start(functions, &config)?;
    wait(&config, running)
}

/// Functions that run in this process.
#[derive(Default)]
struct Running {
    nrf: Option<Arc<nrf::Running>>,
}

fn start(functions: &[Function], config: &Config) -> Result<Running, Failure> {
    log_as(config);
    let mut running = Running::default();
    for function in functions {
        match function {
            Function::Nrf => running.nrf = Some(Arc::new(nrf::start(config.nrf.clone())?)),
        }
    }
    Ok(running)
}

fn log_as(config: &Config) {
    use tracing_subscriber::EnvFilter;
    // The filter was validated with the configuration.
    let filter = EnvFilter::try_from_default_env()
        .or_else(|_| EnvFilter::try_new(&config.log.filter))
        .unwrap_or_default();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // A second subscriber in one process would be a second start; the first one stays.
    let _ = match config.log.json {
        true => subscriber.json().try_init(),
        false => subscriber.try_init(),
    };
}

/// Serves the admin endpoints until a signal, then stops everything in order.
fn wait(config: &Config, running: Running) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        if let Some(nrf) = &running.nrf {
            admin::serve(config.nrf.admin, admin::of_nrf(nrf.clone(), config)).await?;
        }
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        Ok::<(), anyhow::Error>(())
    })?;
    // The admin endpoint holds a handle; it goes with its runtime.
    drop(runtime);
    if let Some(nrf) = running.nrf
        && let Ok(nrf) = Arc::try_unwrap(nrf).map_err(|_| ())
    {
        nrf.stop()?;
    }
    Ok(())
}

fn welcome(running: &Running, traffic: bool) -> String {
    let mut out = String::from("\nSignalbox is up. Ctrl-C ends it.\n\n");
    if let Some(address) = running.nrf.as_ref().and_then(|nrf| nrf.addresses().first()) {
        out.push_str(&format!(
            "  NRF    http://{address}   (HTTP/2 with prior knowledge)\n\
             \n  try:   curl --http2-prior-knowledge http://{address}/nnrf-nfm/v1/nf-instances\n\
             \x20        curl --http2-prior-knowledge 'http://{address}/nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type=AMF'\n\
             \x20        signalbox nrf instances\n\
             \x20        curl http://127.0.0.1:9010/metrics\n"
        ));
    }
    if traffic {
        out.push_str("\n  Simulated network functions register, heart-beat and discover one another.\n");
    }
    out
}
