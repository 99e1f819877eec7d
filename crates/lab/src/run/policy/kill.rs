//! The PCF is killed under load and started again on its store: associations survive, and requests for them succeed.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::PATIENCE;
use crate::run::children::{Guarded, Simulator};
use crate::run::drill::{Drill, Judgement, Outcome, Part};
use crate::run::figure;
use crate::run::rig::{Place, RigError};
use ::report::Check;
use loadgen::FailureKind;
use loadgen::client::{Client, Request};
use workload::policy::{Documents, Kind, Service, Standing, setup};

/// Associations that the drill creates before the kill, and reads, updates and deletes after it.
const KEPT: u32 = 24;
/// Their numbers, which no generator thread reaches; they are another PDU session of their subscribers than the first numbers are.
const FIRST: u32 = 3_000_700_000;
/// Seconds of requests that may be in flight when the PCF dies.
const IN_FLIGHT: f64 = 1.0;
const PARTS: [&str; 3] = ["before", "the kill and the restart", "after"];
/// Failures that a kill explains: the connection was lost, or there was none.
const EXPLAINED: [FailureKind; 4] = [
    FailureKind::Connection,
    FailureKind::Reset,
    FailureKind::Timeout,
    FailureKind::Overflow,
];

/// How a PCF is started.
#[derive(Clone)]
pub(super) struct Launch {
    pub(super) file: PathBuf,
    pub(super) place: Place,
    pub(super) address: SocketAddr,
}

impl Launch {
    /// Starts the PCF and waits until it serves a connection; how long that took.
    pub(super) fn start(&self) -> Result<(Guarded, Duration), RigError> {
        let Self { place, address, .. } = self;
        let begun = Instant::now();
        let mut process = place.start("pcf", &self.file, &place.function_cpus)?;
        process.wait_for(*address)?;
        Client::connect(*address, PATIENCE)
            .map_err(|error| process.gone(format!("does not serve {address}: {error}")))?;
        Ok((process, begun.elapsed()))
    }
}

/// The drill.
pub(super) struct KillPcf {
    launch: Launch,
    documents: Arc<Documents>,
    kind: Kind,
    state: Rc<RefCell<State>>,
}

/// What has happened.
#[derive(Default)]
struct State {
    /// None while it is dead.
    process: Option<Guarded>,
    /// Associations that were acknowledged before the kill.
    kept: Vec<Standing>,
    /// From the restart to the first connection that is served.
    ready: Option<Duration>,
    /// Requests for them that were answered right, of each of them one to read, update and delete it.
    right: u32,
    /// The first that was not.
    wrong: Option<String>,
}

impl KillPcf {
    pub(super) fn new(launch: Launch, process: Guarded, documents: &Arc<Documents>, kind: &Kind) -> Self {
        let state = State {
            process: Some(process),
            ..State::default()
        };
        Self {
            launch,
            documents: documents.clone(),
            kind: kind.clone(),
            state: Rc::new(RefCell::new(state)),
        }
    }

    /// Starts the PCF again and uses the associations of before.
    fn restart(&self, state: &mut State) -> Result<(), RigError> {
        let (process, ready) = self.launch.start()?;
        state.process = Some(process);
        state.ready = Some(ready);
        let failed = || RigError::io("using the associations of before the kill");
        let mut client = Client::connect(self.launch.address, PATIENCE).map_err(failed())?;
        for (number, one) in (0..).zip(&state.kept) {
            let path = format!("{}/{}", Service::Sm.collection(), one.id);
            let post = |suffix: &str, body: bytes::Bytes| {
                Request::new("POST", format!("{path}/{suffix}")).with("application/json", body)
            };
            let requests = [
                (Request::new("GET", path.clone()), 200),
                (post("update", Documents::update(&self.kind, number)), 200),
                (post("delete", bytes::Bytes::from_static(b"{}")), 204),
                (Request::new("GET", path.clone()), 404),
            ];
            for (request, status) in requests {
                let method = format!("{} {}", request.method, request.path);
                let answers = client.exchange(&[request]).map_err(failed())?;
                match answers.first() {
                    Some(answer) if answer.status == status => state.right += 1,
                    Some(answer) => {
                        let why = format!("{method} was answered {}: {}", answer.status, answer.text());
                        state.wrong.get_or_insert(why);
                    }
                    None => {}
                }
            }
        }
        Ok(())
    }
}

impl Drill for KillPcf {
    fn parts(&self) -> Vec<Part> {
        let (state, documents, kind) = (self.state.clone(), self.documents.clone(), self.kind.clone());
        let address = self.launch.address;
        let kill = move |_: &mut [Simulator]| {
            let mut state = state.borrow_mut();
            state.kept = setup::create(address, &documents, &kind, FIRST..FIRST + KEPT)?;
            // Dropping it kills it (SIGKILL).
            state.process = None;
            Ok(())
        };
        vec![
            Part::new(PARTS[0], 0.3, 1.0),
            Part::new(PARTS[1], 0.4, 1.0).beginning(kill),
            Part::new(PARTS[2], 0.3, 1.0),
        ]
    }

    fn act(&mut self, _: Duration, _: Duration, _: &mut [Simulator]) -> Result<(), RigError> {
        let state = self.state.clone();
        let mut state = state.borrow_mut();
        if state.process.is_none() {
            self.restart(&mut state)?;
        }
        Ok(())
    }

    fn judge(&mut self, outcome: &Outcome<'_>) -> Judgement {
        let state = self.state.borrow();
        let total = outcome.window.record.total();
        let explained = total.failures_of(&EXPLAINED);
        let others = total.failures() - explained;
        let survived = Check::new(
            "associations of before the kill",
            format!("{KEPT} are read, updated and deleted after it, and then gone"),
            match &state.wrong {
                Some(wrong) => format!("{} requests right; {wrong}", state.right),
                None => format!("{} requests right", state.right),
            },
            state.right == KEPT * 4 && state.wrong.is_none(),
        );
        let mut checks = vec![
            survived,
            Check::new(
                "requests that failed",
                "only for their connection",
                format!(
                    "{explained} of {} for their connection; {others} otherwise",
                    total.offered
                ),
                others == 0,
            ),
            Check::new(
                "the PCF died and came back",
                "killed and restarted",
                match state.ready {
                    Some(ready) => format!("ready {} s after its start", figure(ready.as_secs_f64())),
                    None => "it did not".to_owned(),
                },
                state.ready.is_some(),
            ),
        ];
        for (name, seconds) in [(PARTS[0], IN_FLIGHT), (PARTS[2], 0.0)] {
            let part = outcome.parts.iter().find(|part| part.name == name);
            let record = part.map(|part| part.record.total()).unwrap_or_default();
            let length = part.map_or(1.0, |part| part.length.as_secs_f64());
            let lost = record.offered as f64 / length * seconds;
            checks.push(Check::new(
                format!("requests {name}"),
                match seconds > 0.0 {
                    true => "every one right, but those in flight when the PCF died",
                    false => "every one right",
                },
                format!("{} of {} right", record.succeeded, record.offered),
                record.offered > 0 && record.failures() as f64 <= lost,
            ));
        }
        Judgement {
            checks,
            notes: vec![
                "the PCF was killed (SIGKILL) under load and started again at once; its processor time is not measured"
                    .to_owned(),
            ],
            spares_bounds: true,
            destinations: None,
        }
    }
}
