//! Calls through every function of this project, each a process of its own: who is where, the calls, the report.

mod calls;
mod functions;
mod judge;
mod timeline;

use std::time::Duration;

use time::OffsetDateTime;

use self::functions::Core;
use super::rig::Place;
use super::{Options, Progress, RigError, RunError, figure};
use crate::call::{Board, Caller, Legs, Peers, Ue};
use ::report::{Report, Series};
use callmodel::Found;
use callmodel::whole::CoreModel;
use workload::policy::FIRST_IMSI;

/// How long the functions may take until a first call passes them all.
const PATIENCE: Duration = Duration::from_secs(60);
/// Addresses of sessions begin here.
const FIRST_ADDRESS: u32 = 0x0a80_0000;
/// Addresses of sessions; a later call has one of an earlier call that has ended.
const ADDRESSES: u64 = 1 << 20;

/// Runs calls at this rate.
///
/// # Errors
/// When a function does not start, or no call passes.
pub(super) fn run(
    found: &Found,
    model: &CoreModel,
    options: &Options,
    place: &Place,
    rate: Option<f64>,
    progress: &mut Progress,
) -> Result<(Report, Series), RunError> {
    let refuse = |why: &str| RunError::from(RigError::Settings(why.to_owned()));
    let rate = rate.ok_or_else(|| {
        refuse(
            "--rate max: a call passes five functions, of which no single one is at its limit; give a rate",
        )
    })?;
    if options.target.is_some() {
        return Err(refuse(
            "--target: a call passes five functions; the lab starts all of them",
        ));
    }
    progress.status("starting five functions and their simulated peers …");
    let board = Board::start(None).map_err(RigError::io("starting the simulated consumers"))?;
    let core = Core::start(model, place, board.address())?;
    let peers = core.peers(found.model.load.timeout.duration());
    first_call(model, &peers, &board, progress)?;
    let plan = calls::Plan {
        rate,
        duration: options.duration,
        warmup: options.warmup,
        subscribers: model.subscribers,
        cpus: place.lab_cpus.clone(),
    };
    let started = OffsetDateTime::now_utc();
    let made = calls::make(&plan, &peers, &board, &core, progress)?;
    let facts = judge::Facts {
        found,
        model,
        options,
        place,
        core: &core,
        started,
        rate,
        made: &made,
    };
    let judged = judge::report(&facts);
    core.stop();
    Ok(judged)
}

/// The subscriber and the address of a call, by its number.
fn ue(call: u64, subscribers: u64) -> Ue {
    let address = FIRST_ADDRESS + (call % ADDRESSES) as u32;
    Ue {
        imsi: FIRST_IMSI + call % subscribers.max(1),
        address: address.into(),
        call,
    }
}

/// Makes calls until one passes: functions find each other and connect when they have started.
fn first_call(
    model: &CoreModel,
    peers: &Peers,
    board: &Board,
    progress: &mut Progress,
) -> Result<(), RunError> {
    progress.status("waiting until a call passes all functions …");
    let end = std::time::Instant::now() + PATIENCE;
    // P-CSCFs of the run have numbers from 1 on.
    let mut caller = Caller::new(peers.clone(), 0, board.address(), board.notices());
    for attempt in 0.. {
        let ue = ue(ADDRESSES - 1 - attempt, model.subscribers);
        let mut legs = Legs::default();
        let made = caller
            .begin(ue, &mut legs)
            .and_then(|call| caller.end(&call, &mut legs));
        match made {
            Ok(()) => break,
            Err(why) if std::time::Instant::now() > end => {
                let why = format!(
                    "no call passed within {} s: {why}",
                    figure(PATIENCE.as_secs_f64())
                );
                return Err(RigError::Settings(why).into());
            }
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
    Ok(())
}
