//! The options of a run.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use settings::Period;

use super::Database;

/// The most times that latencies are induced.
const MOST_LATENCY: f64 = 10.0;

/// Rate of the load.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Rate {
    /// The rate of the model.
    #[default]
    Model,
    /// This many ingress transactions per second.
    Tps(f64),
    /// This many times the rate of the model.
    Times(f64),
    /// The capacity of the function: search for the knee.
    Max,
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is not a rate; use a number of transactions per second, a factor such as 0.2x, or max"
            )
        };
        if text == "max" {
            return Ok(Self::Max);
        }
        let (number, factor) = match text.strip_suffix('x') {
            Some(number) => (number, true),
            None => (text, false),
        };
        let number: f64 = number.replace('_', "").parse().map_err(|_| wrong())?;
        if !number.is_finite() || number <= 0.0 {
            return Err(wrong());
        }
        Ok(if factor {
            Self::Times(number)
        } else {
            Self::Tps(number)
        })
    }
}

/// How a run is to be made.
#[derive(Clone, Debug)]
pub struct Options {
    /// Rate of the load.
    pub rate: Rate,
    /// Length of the measured part, after the warm-up.
    pub duration: Duration,
    /// Length of the warm-up.
    pub warmup: Duration,
    /// Cores of the function under test; all else runs on the others. Empty: the scheduler decides.
    pub pin: Vec<usize>,
    /// Connections to the function, instead of the model's.
    pub connections: Option<u32>,
    /// Sessions that stand when the load begins, for functions that keep some.
    pub sessions: Option<u64>,
    /// A folder for the stores of sessions, which are kept after the run and used again by later ones.
    pub store: Option<PathBuf>,
    /// What keeps the sessions of functions that can have them in a database.
    pub database: Database,
    /// Generator threads.
    pub generators: usize,
    /// Where reports go.
    pub out: PathBuf,
    /// The program that runs functions and simulators; this one if not given.
    pub program: Option<PathBuf>,
    /// Address of a function that runs already. Its processor time is not measured.
    pub target: Option<std::net::SocketAddr>,
    /// Settings of the function, merged over those that the lab makes (YAML file).
    pub function_config: Option<PathBuf>,
    /// Whether SBI is over TLS, instead of what the model says.
    pub tls: Option<bool>,
    /// How many times the latencies that a model of an SCP induces; 0: none.
    pub latency: f64,
    /// What relays before each site of a BSF add to the time of its answers; 0: no relays.
    pub site_latency: Period,
    /// Whether a process that never sleeps competes for each core of the function.
    pub contend: bool,
    /// A Kafka broker for models that copy messages, instead of one of the run.
    pub kafka: Option<std::net::SocketAddr>,
}

impl Default for Options {
    /// A minute at the model's rate, as the model has it; reports go to the current folder.
    fn default() -> Self {
        Self {
            rate: Rate::Model,
            duration: Duration::from_secs(60),
            warmup: Duration::from_secs(5),
            pin: Vec::new(),
            connections: None,
            sessions: None,
            store: None,
            database: Database::default(),
            generators: 1,
            out: PathBuf::new(),
            program: None,
            target: None,
            function_config: None,
            tls: None,
            latency: 1.0,
            site_latency: Period::from_millis(0),
            contend: false,
            kafka: None,
        }
    }
}

impl Options {
    /// Ingress transactions per second for a model of `model_tps`; `None` when the knee is searched for.
    #[must_use]
    pub fn tps(&self, model_tps: f64) -> Option<f64> {
        match self.rate {
            Rate::Model => Some(model_tps),
            Rate::Tps(tps) => Some(tps),
            Rate::Times(factor) => Some(model_tps * factor),
            Rate::Max => None,
        }
    }
}

/// Reads how many times a model's latencies are induced: `0.1x`, `2`, `0` for none.
///
/// # Errors
/// What is wrong with it.
pub fn latency(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('x').unwrap_or(text).parse::<f64>();
    number
        .ok()
        .filter(|number| (0.0..=MOST_LATENCY).contains(number))
        .ok_or_else(|| format!("{text:?} is not a factor from 0 to {MOST_LATENCY}, such as 0.1x"))
}

/// Reads a list of cores: `0`, `0,2`, `0-3,6`.
///
/// # Errors
/// What is wrong with it.
pub fn cpu_list(text: &str) -> Result<Vec<usize>, String> {
    let wrong = || format!("{text:?} is not a list of cores, such as 0 or 0-3,6");
    let mut cpus = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: usize = first.parse().map_err(|_| wrong())?;
        let last: usize = last.parse().map_err(|_| wrong())?;
        if first > last || last >= 1024 {
            return Err(wrong());
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        assert_eq!("max".parse(), Ok(Rate::Max));
        assert_eq!("0.2x".parse(), Ok(Rate::Times(0.2)));
        assert_eq!("10_000".parse(), Ok(Rate::Tps(10_000.0)));
        for wrong in ["", "x", "-1", "0", "nan", "fast", "inf"] {
            assert!(wrong.parse::<Rate>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn latencies() {
        assert_eq!(
            (latency("0.1x"), latency("0"), latency("2")),
            (Ok(0.1), Ok(0.0), Ok(2.0))
        );
        for wrong in ["", "x", "-1", "nan", "inf", "11x"] {
            assert!(latency(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn cores() {
        assert_eq!(cpu_list("0-2, 5,1").unwrap(), [0, 1, 2, 5]);
        for wrong in ["", "a", "3-1", "0-99999"] {
            assert!(cpu_list(wrong).is_err(), "{wrong}");
        }
    }
}
