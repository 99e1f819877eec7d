//! A database processor that follows a subscriber database server, under an open loop of look-ups, with changes of subscribers beside
//! it.
//!
//! Processor and server are processes as an operator runs them. The processor is loaded without changes first, then with them, in
//! parts of a minute. In the end each change that the server has acknowledged is looked up once more.

mod population;
mod result;

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Site;
use super::phase::{Loaded, Phase};
use super::turns::{TIMEOUT, generator_with};
use crate::run::database::{Database, Provisioning};
use crate::run::{Place, Progress, RigError, RunError, figure};
use loadgen::Traffic;
use loadgen::lookups::Routers;
use population::Population;

use result::Around;
pub use result::{Figures, Part, Visible};

/// Look-ups per second of the guide's database processor.
pub const USUAL_RATE: f64 = 80_000.0;
/// Look-ups of a connection that may be without an answer at once.
const MOST_OF_CONNECTION: u32 = 65_536;
/// The longest part of the load.
const MINUTE: Duration = Duration::from_secs(60);

/// How to load.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Look-ups per second.
    pub rate: f64,
    /// How long with changes.
    pub duration: Duration,
    /// Connections to the processor, each that of a worker of a router.
    pub connections: u32,
    /// Numbers that the processor has.
    pub numbers: u64,
    /// Changes per second; 0: none.
    pub writes: u32,
    /// Where it runs.
    pub site: Site,
}

/// Loads a database processor.
///
/// # Errors
/// When something does not start, or ends under load.
pub fn load(settings: &Settings, progress: &mut Progress) -> Result<Figures, RunError> {
    let place = settings.site.place()?;
    let population = Population::new(settings.numbers);
    let begun = Instant::now();
    let (database, mut loaded) = start(settings, population, &place, progress)?;
    let ready_seconds = begun.elapsed().as_secs_f64();
    loaded.await_answers(progress)?;
    let mut minutes = Minutes {
        settings,
        place: &place,
        progress,
        parts: Vec::new(),
    };
    minutes.load(&mut loaded, "without changes", settings.duration.min(MINUTE))?;
    let server_cpu = || database.server.usage().map_or(Duration::ZERO, |usage| usage.cpu);
    let (begun, before) = (Instant::now(), server_cpu());
    let writing = (settings.writes > 0).then(|| {
        let (changes, rate) = (Arc::new(population.changes()), f64::from(settings.writes));
        Provisioning::start(&database, changes, rate, Box::new(|_| ()))
    });
    let mut left = match writing {
        Some(_) => settings.duration,
        None => settings.duration.saturating_sub(MINUTE),
    };
    while !left.is_zero() {
        let name = format!("minute {}", minutes.parts.len());
        minutes.load(&mut loaded, &name, left.min(MINUTE))?;
        left = left.saturating_sub(MINUTE);
    }
    let server_cores = server_cpu().saturating_sub(before).as_secs_f64() / begun.elapsed().as_secs_f64();
    let resident_bytes = loaded.usage().map_or(0, |usage| usage.rss);
    let parts = minutes.parts;
    progress.status("comparing each change with what server and processor answer …");
    let writes = writing.map(Provisioning::finish);
    loaded.stop()?;
    let around = Around {
        ready_seconds,
        resident_bytes,
        server_cores,
    };
    Ok(result::figures(settings, &parts, writes.as_ref(), &around))
}

/// Starts a server, a processor that has taken its numbers, and the routers, which ask nothing yet.
fn start(
    settings: &Settings,
    population: Population,
    place: &Place,
    progress: &mut Progress,
) -> Result<(Database, Loaded), RunError> {
    progress.status(&format!(
        "starting a server and a processor with {} numbers …",
        figure(settings.numbers as f64)
    ));
    let beside = Place {
        function_cpus: place.lab_cpus.clone(),
        ..place.clone()
    };
    let mut database = Database::start((&beside, place), 1, |out| population.write(out))?;
    let processor = database.processors.first_mut();
    let taken = processor.and_then(|processor| Some((processor.address, processor.take()?)));
    let none = || RigError::Settings("no processor was started".to_owned());
    let (address, process) = taken.ok_or_else(none)?;
    let connections = settings.connections;
    let lookups = Box::new(population.lookups());
    let routers = Routers::new(address, connections as usize, lookups, TIMEOUT);
    let traffic = vec![Traffic::from(routers)];
    let most = connections.saturating_mul(MOST_OF_CONNECTION);
    let generator = generator_with(most, (address, connections), traffic, place)?;
    Ok((database, Loaded::new("dp", process, generator)))
}

/// The parts of the load so far.
struct Minutes<'a> {
    settings: &'a Settings,
    place: &'a Place,
    progress: &'a mut Progress,
    parts: Vec<(String, Phase)>,
}

impl Minutes<'_> {
    /// Loads for this long.
    fn load(&mut self, loaded: &mut Loaded, name: &str, length: Duration) -> Result<(), RunError> {
        let rate = self.settings.rate;
        self.progress
            .status(&format!("{name}: {} look-ups per second …", figure(rate)));
        let phase = loaded.load(rate, length, self.place)?;
        self.progress.note(&format!("{name:<16} {}", phase.in_words()));
        self.parts.push((name.to_owned(), phase));
        Ok(())
    }
}
