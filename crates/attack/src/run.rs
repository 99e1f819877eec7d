//! Runs an attack and judges.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::attack::Attack;
use crate::dose::Dose;
use crate::field::Field;
use crate::honest::{Fared, Honest, once};
use crate::measure::{self, Watch};
use crate::report::Outcome;
use crate::stage::{World, how_it_ended};

/// How long a script may take.
const SCRIPT: Duration = Duration::from_secs(75);

/// The process is killed when it holds more, in MiB: the machine is not the victim.
const fn limit_mib(dose: Dose) -> u64 {
    match dose {
        Dose::Quick => 1_024,
        Dose::Full => 3_072,
    }
}

/// Runs attacks one after the other, in the order given; those that can, share their stage in a quick run.
#[must_use]
pub fn run(attacks: &[Attack], binary: &Path, dose: Dose, mut each: impl FnMut(&Outcome)) -> Vec<Outcome> {
    take_descriptors();
    let mut outcomes = Vec::new();
    let mut world: Option<World> = None;
    for attack in attacks {
        if attack.full_only && dose == Dose::Quick {
            continue;
        }
        let usable = world
            .take()
            .filter(|world| dose == Dose::Quick && attack.shares() && world.stage == attack.stage);
        let (outcome, kept) = one(*attack, usable, binary, dose);
        each(&outcome);
        world = kept.filter(|_| attack.shares());
        outcomes.push(outcome);
    }
    outcomes
}

/// Thousands of connections need as many descriptors: as many as this process may have, and its children with it.
fn take_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Where that fails, attacks with many connections say so.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            ..limit
        },
    );
}

/// Runs one attack; the stage, if it stands after it.
fn one(attack: Attack, world: Option<World>, binary: &Path, dose: Dose) -> (Outcome, Option<World>) {
    let mut outcome = Outcome::of(&attack);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            outcome.missed.push(format!("no runtime: {error}"));
            return (outcome, None);
        }
    };
    let local = tokio::task::LocalSet::new();
    let stood = local.block_on(&runtime, attacked(attack, world, binary, dose, &mut outcome));
    match stood {
        Ok(world) => (outcome, world),
        Err(error) => {
            outcome.missed.push(format!("{error:#}"));
            (outcome, None)
        }
    }
}

async fn attacked(
    attack: Attack,
    world: Option<World>,
    binary: &Path,
    dose: Dose,
    outcome: &mut Outcome,
) -> anyhow::Result<Option<World>> {
    let world = match world {
        Some(world) => world,
        None => {
            let settings = attack.settings.map(|settings| settings());
            attack.stage.build(binary, settings, dose).await?
        }
    };
    let (pid, log) = (world.process.pid(), world.process.log.clone());
    let before = measure::rss_kib(pid).unwrap_or(0);
    let (log_before, cpu_before) = (measure::file_bytes(&log), measure::cpu_s(pid).unwrap_or(0.0));
    let watch = Watch::begin(pid, limit_mib(dose) * 1_024);
    let honest = match attack.accompanied {
        true => Some(Honest::begin(
            world.plan.clone(),
            world.origin()?,
            world.target,
            attack.newcomers,
        )?),
        false => None,
    };
    let begun = Instant::now();

    let world = Rc::new(RefCell::new(world));
    let field = Rc::new(Field::new(world.clone(), dose));
    match tokio::time::timeout(SCRIPT, (attack.script)(field.clone())).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => field.miss(format!("the script: {error:#}")),
        Err(_) => field.miss(format!("the script did not end within {} s", SCRIPT.as_secs())),
    }
    // Long enough that the honest client meets what the attack leaves behind.
    let least = match dose {
        Dose::Quick => Duration::from_millis(300),
        Dose::Full => Duration::from_secs(2),
    };
    tokio::time::sleep(least).await;
    let fared = tokio::task::spawn_blocking(move || honest.map(Honest::end).unwrap_or_default()).await?;

    // A script may have restarted the process: what it costs then is not the attack's.
    let now = world.borrow().process.pid();
    outcome.cpu_s = (measure::cpu_s(now).unwrap_or(0.0) - if now == pid { cpu_before } else { 0.0 }).max(0.0);
    outcome.seconds = begun.elapsed().as_secs_f64();
    outcome.rss_before_mib = before / 1_024;
    outcome.rss_peak_mib = watch.end().max(before) / 1_024;
    outcome.log_bytes = measure::file_bytes(&log).saturating_sub(log_before);
    let ended = world.borrow_mut().process.ended();
    let beside_ended = world
        .borrow_mut()
        .beside
        .iter_mut()
        .find_map(|process| process.ended());
    if let Some(status) = ended.or(beside_ended) {
        field.miss(format!(
            "{}: {}",
            how_it_ended(status),
            last_line(&world.borrow().process.last_words())
        ));
    } else if let Err(why) = served(&world).await {
        field.miss(format!("the honest client is not served after it: {why}"));
    }
    let (notes, misses) = field.found();
    outcome.notes = notes;
    outcome.missed.extend(misses);
    judge(&attack, &fared, dose, outcome);
    drop(field);
    let stands = ended.is_none() && outcome.missed.is_empty();
    Ok(Rc::try_unwrap(world)
        .ok()
        .map(RefCell::into_inner)
        .filter(|_| stands))
}

/// Whether the honest client is served; an attack may have changed where.
async fn served(world: &RefCell<World>) -> Result<(), String> {
    let (plan, origin, target) = {
        let world = world.borrow();
        (world.plan.clone(), world.origin(), world.target)
    };
    once(&plan, origin.map_err(|error| error.to_string())?, target).await
}

fn last_line(log: &str) -> String {
    log.lines().last().unwrap_or_default().chars().take(200).collect()
}

fn judge(attack: &Attack, fared: &Fared, dose: Dose, outcome: &mut Outcome) {
    outcome.take(fared);
    let mut miss = |text: String| outcome.missed.push(text);
    let bars = attack.bars;
    if fared.error_percent() > bars.honest_errors_percent {
        miss(format!(
            "honest errors {} of {} ({})",
            fared.errors,
            fared.errors + fared.answered,
            fared.why.join(", ")
        ));
    }
    let growth = outcome.rss_peak_mib.saturating_sub(outcome.rss_before_mib);
    let most = match dose {
        Dose::Quick => bars.quick_growth_mib,
        Dose::Full => bars.growth_mib,
    };
    if growth > most {
        miss(format!("memory grew by {growth} MiB, at most {most}"));
    }
    if outcome.log_bytes > bars.log_kib * 1_024 {
        miss(format!(
            "the log grew by {} KiB, at most {}",
            outcome.log_bytes / 1_024,
            bars.log_kib
        ));
    }
    if dose == Dose::Full {
        if outcome.p99_ms > bars.p99_ms {
            miss(format!(
                "honest p99 {:.0} ms, at most {:.0}",
                outcome.p99_ms, bars.p99_ms
            ));
        }
        if outcome.cpu_s > bars.cpu_s {
            miss(format!(
                "{:.1} s of CPU, at most {:.1}",
                outcome.cpu_s, bars.cpu_s
            ));
        }
    }
}
