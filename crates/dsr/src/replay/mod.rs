//! A capture through the security application: what its measures would find in the messages of a file.
//!
//! The file is read twice: for the names of peers, and for the messages. A request that a router has sent on is there twice as
//! well; the application sees it once, as it does in a router.
//!
//! | file | what is there |
//! |---|---|
//! | `names` | who is at which address |
//! | `report` | what is said of a file |

mod names;
mod report;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use ahash::RandomState;
use bounded::{Cache, Limits};
use bytes::BytesMut;
use capture::Captured;
use diameter::proto::overload::priority;
use diameter::proto::{Message, MessageMut, Origin, Routing};
use dsr_app::{Answered, Memo, Request, View};
use dsr_dsa::Replay;
use dsr_dsa::config::Dsa;
use settings::Period;

pub use names::{Named, Shown};
pub use report::{Report, Row};

use crate::config::Config;
use names::{Names, of_trace};

/// Bound on requests whose answers have not come, and on those that are known when they come again.
const MAX_REQUESTS: usize = 100_000;

/// How a file is replayed.
#[derive(Debug, Default)]
pub struct Options {
    /// The security application of the configuration; none: the only one.
    pub application: Option<String>,
    /// Peers that the operator names.
    pub peers: Vec<Named>,
    /// In place of the setting `learning`.
    pub learning: Option<Duration>,
    /// Bound on the lines of each partner, measure and outcome in the report.
    pub examples: usize,
}

/// Why a file is not replayed.
#[derive(Debug)]
pub enum Refused {
    /// The configuration or the options.
    Usage(String),
    /// The file.
    File(String),
}

/// Shows the messages of a capture to the security application of a configuration.
///
/// # Errors
/// When the configuration has no such application, its tables have mistakes, or the file is not a capture.
pub fn replay(config: &Config, file: &Path, options: &Options) -> Result<Report, Refused> {
    let settings = settings(config, options)?;
    let application = Replay::load(&settings).map_err(Refused::Usage)?;
    let wrong = |error: capture::Error| Refused::File(format!("{}: {error}", file.display()));
    let mut names = Names::new(config, &options.peers);
    capture::read(file, &mut |captured| names.learn(captured)).map_err(wrong)?;
    let node = config.local_nodes.first();
    let mut run = Run {
        application,
        names,
        ours: node.map_or_else(
            || Origin::new("", ""),
            |node| Origin::new(node.host.clone(), node.realm.clone()),
        ),
        pending: Cache::new(Limits::entries(MAX_REQUESTS)),
        traced: Cache::new(Limits::entries(MAX_REQUESTS)),
        seen: Cache::new(Limits::entries(MAX_REQUESTS)),
        hasher: RandomState::new(),
        report: Report::new(file, options.examples),
    };
    let summary = capture::read(file, &mut |captured| run.take(captured)).map_err(wrong)?;
    Ok(run.finish(summary))
}

fn settings(config: &Config, options: &Options) -> Result<Dsa, Refused> {
    let wanted = options.application.as_deref();
    let named = config
        .applications
        .iter()
        .filter(|application| wanted.is_none_or(|name| name == application.name));
    let found: Vec<_> = named.filter_map(|application| application.dsa.as_ref()).collect();
    let [settings] = found.as_slice() else {
        let which = match (wanted, found.len()) {
            (Some(name), _) => format!("the configuration has none of the name `{name}`"),
            (None, 0) => "the configuration has none".to_owned(),
            (None, count) => format!("the configuration has {count}: name one with --application"),
        };
        return Err(Refused::Usage(format!(
            "dsr.applications: one security application (dsa) is needed; {which}"
        )));
    };
    let mut settings = Dsa::clone(settings);
    if let Some(learning) = options.learning {
        settings.learning = Period(learning);
    }
    Ok(settings)
}

/// A request is that of its sender, its receiver and its Hop-by-Hop Identifier.
type Hop = (SocketAddr, SocketAddr, u32);

/// A request that an answer may follow.
enum Pending {
    /// The application has seen it, and let it go on.
    Shown(Box<(Message, Memo)>),
    /// It has seen it on another connection, has stopped it, or could not read it.
    Other,
}

/// Sender and receiver of a request that was seen first.
#[derive(Clone, Copy)]
struct First {
    from: SocketAddr,
    to: SocketAddr,
}

/// A replay.
struct Run {
    application: Replay,
    names: Names,
    ours: Origin,
    pending: Cache<Hop, Pending>,
    /// Hop-by-Hop Identifiers by End-to-End Identifiers, for traces.
    traced: Cache<Hop, u32>,
    /// By command, End-to-End Identifier and Origin-Host: these are the same on each connection (RFC 6733 §3).
    seen: Cache<(u32, u32, u64), First>,
    hasher: RandomState,
    report: Report,
}

impl Run {
    fn take(&mut self, captured: &Captured<'_>) {
        let Ok(message) = Message::parse(BytesMut::from(captured.bytes)) else {
            self.report.malformed += 1;
            return;
        };
        self.report.message(captured.at);
        // Messages between neighbours do not reach applications.
        if message.application() == 0 {
            self.report.of_neighbours += 1;
        } else if message.is_request() {
            self.request(captured, message);
        } else {
            self.answer(captured, &message);
        }
    }

    fn request(&mut self, captured: &Captured<'_>, message: MessageMut) {
        self.report.requests += 1;
        let hop = (captured.from, captured.to, message.hop_by_hop());
        if of_trace(captured).is_some() {
            let end = (captured.from, captured.to, message.end_to_end());
            self.traced.insert(end, message.hop_by_hop());
        }
        let pending = self.judge(captured, message);
        self.pending.insert(hop, pending);
    }

    fn judge(&mut self, captured: &Captured<'_>, message: MessageMut) -> Pending {
        let Ok(routing) = Routing::scan_as(&message, |_| false) else {
            self.report.malformed += 1;
            return Pending::Other;
        };
        let origin = self.hasher.hash_one(routing.origin_host);
        let key = (message.command(), message.end_to_end(), origin);
        let first = self.seen.get(&key).copied();
        if first.is_some_and(|first| self.is_copy(first, captured)) {
            self.report.copies += 1;
            return Pending::Other;
        }
        let (from, to) = (captured.from, captured.to);
        self.seen.insert(key, First { from, to });
        let peer = self.names.of(captured.from, &mut self.report.unnamed);
        let priority = routing.priority.unwrap_or(priority::DEFAULT);
        let request = Request {
            message: &message,
            view: &View::new(message.application(), message.command(), priority, &routing),
            peer: &peer,
            names: &self.ours,
        };
        let mut memo = Memo::default();
        let judged = self.application.request(captured.at, &request, &mut memo);
        self.report.take(&judged);
        if judged.is_blocked {
            return Pending::Other;
        }
        Pending::Shown(Box::new((message.freeze(), memo)))
    }

    /// Whether a request is what a node made of one that it had received.
    fn is_copy(&self, first: First, captured: &Captured<'_>) -> bool {
        let is_same_node = first.to.ip() == captured.from.ip() || self.names.are_one(first.to, captured.from);
        first.from != captured.from && is_same_node
    }

    fn answer(&mut self, captured: &Captured<'_>, answer: &MessageMut) {
        self.report.answers += 1;
        let mut hop = (captured.to, captured.from, answer.hop_by_hop());
        // A router traces messages before they get the Hop-by-Hop Identifier of their connection.
        if of_trace(captured).is_some() {
            let end = (captured.to, captured.from, answer.end_to_end());
            hop.2 = self.traced.remove(&end).unwrap_or(hop.2);
        }
        match self.pending.remove(&hop) {
            None => self.report.answers_without_request += 1,
            Some(Pending::Other) => {}
            Some(Pending::Shown(shown)) => {
                let (request, mut memo) = *shown;
                let answered = Answered {
                    request: &request,
                    answer,
                    names: &self.ours,
                };
                let judged = self.application.answer(captured.at, &answered, &mut memo);
                self.report.take(&judged);
            }
        }
    }

    fn finish(self, summary: capture::Summary) -> Report {
        let mut report = self.report;
        report.subscribers = self.application.subscribers();
        report.rows(&self.application.findings());
        report.peers = self.names.shown();
        report.capture = summary;
        report
    }
}
