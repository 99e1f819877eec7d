//! Connections that were refused, cut off or could not be made: counted by reason, logged in words, and kept for a
//! while as alarms. An operator sees the router's log, not that of the peer.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use diameter::NodeEvent;
use diameter::proto::frame::FrameReason;
use diameter::proto::{Fault, ResultCode};
use parking_lot::Mutex;

/// Incidents of one subject that are kept; a flood of invented names must not fill the list of alarms.
const MAX_RECENT: usize = 64;
/// An incident is an alarm for this time after it has happened last.
const LASTS: Duration = Duration::from_secs(300);
/// The same incident is logged again after this time.
const LOG_AGAIN: Duration = Duration::from_secs(60);

/// An incident in words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Incident {
    /// The label of its counter.
    pub(crate) reason: &'static str,
    /// The peer, where a CER or the configuration has named it.
    pub(crate) host: Option<String>,
    /// The address of the other side.
    pub(crate) remote: Option<SocketAddr>,
    /// What happened.
    pub(crate) text: String,
    /// The alarm that it is worth.
    pub(crate) alarm: Alarm,
}

/// The alarm that an incident is worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Alarm {
    /// None: the alarm of the peer shows it, or the configuration is not the cause.
    None,
    /// A connection from outside was not admitted.
    Refused,
    /// A peer sends answers that belong to no request.
    BadAnswer,
}

impl Incident {
    /// The incident that an event of a node is.
    pub(crate) fn of(event: &NodeEvent<'_>) -> Self {
        let new = |reason: &'static str, text: String| Self {
            reason,
            host: None,
            remote: None,
            text,
            alarm: Alarm::None,
        };
        match *event {
            NodeEvent::Refused { remote, host, fault } => Self {
                // It is not checked yet: it must neither end a line nor fill a page.
                host: (!host.is_empty())
                    .then(|| host.chars().flat_map(char::escape_debug).take(255).collect()),
                remote: Some(remote),
                alarm: Alarm::Refused,
                ..new(reason_of(fault), fault.to_string())
            },
            NodeEvent::NoCer { remote } => Self {
                remote: Some(remote),
                ..new("noCer", "it does not begin with a CER".to_owned())
            },
            NodeEvent::FrameError { remote, host, error } => {
                let (reason, text) = no_diameter(&error.reason);
                Self {
                    remote: Some(remote),
                    host: host.map(str::to_owned),
                    ..new(reason, text)
                }
            }
            NodeEvent::Stalled { remote, host, what } => Self {
                remote: Some(remote),
                host: host.map(str::to_owned),
                ..stalled(what)
            },
            NodeEvent::ConnectFailed { host, error } => Self {
                host: Some(host.to_owned()),
                ..new("connect", plain(error))
            },
            NodeEvent::HandshakeFailed { remote, host, error } => Self {
                remote: Some(remote),
                host: host.map(str::to_owned),
                ..new("tls", format!("TLS handshake failed: {error}"))
            },
            NodeEvent::Panicked { remote } => Self {
                remote,
                ..new("panic", "the router panicked over a message of it".to_owned())
            },
            NodeEvent::LimitReached { remote, limit } => {
                let text = format!("the bound limits.{} is reached", camel(limit));
                Self::not_admitted(remote, limit, text)
            }
            NodeEvent::Flooded { remote } => {
                let text = "more messages of the base protocol than limits.baseRate".to_owned();
                Self::not_admitted(remote, "baseRate", text)
            }
            NodeEvent::NoProxyHeader { remote, error } => {
                Self::not_admitted(remote, "proxyHeader", plain(error))
            }
            NodeEvent::AcceptFailed { error } => new("accept", plain(error)),
            NodeEvent::Tolerated { host, what } => Self {
                host: Some(host.to_owned()),
                ..new(
                    "tolerated",
                    format!("its CER has no {what}; admitted all the same"),
                )
            },
        }
    }

    /// A connection of a client without a name was not admitted.
    fn not_admitted(remote: SocketAddr, reason: &'static str, text: String) -> Self {
        Self {
            reason,
            host: None,
            remote: Some(remote),
            text,
            alarm: Alarm::Refused,
        }
    }

    /// An answer of this peer has another Command-Code, Application-Id or End-to-End Identifier than its request.
    pub(crate) fn bad_answer(host: &str, text: String) -> Self {
        Self {
            reason: "answerMismatch",
            host: Some(host.to_owned()),
            remote: None,
            text,
            alarm: Alarm::BadAnswer,
        }
    }

    /// Its subject in the list of alarms.
    fn subject(&self) -> String {
        match (&self.host, self.remote) {
            (Some(host), Some(remote)) => format!("{host} from {}", remote.ip().to_canonical()),
            (Some(host), None) => host.clone(),
            (None, Some(remote)) => remote.ip().to_canonical().to_string(),
            (None, None) => self.reason.to_owned(),
        }
    }
}

/// The label for a CER that was refused with this fault.
fn reason_of(fault: &Fault) -> &'static str {
    match fault.code {
        ResultCode::UNKNOWN_PEER if fault.reason.contains("certificate") => "certificate",
        ResultCode::UNKNOWN_PEER if fault.reason.contains("own name") => "ownName",
        ResultCode::UNKNOWN_PEER => "unknownPeer",
        ResultCode::NO_COMMON_APPLICATION => "noCommonApplication",
        ResultCode::NO_COMMON_SECURITY => "noCommonSecurity",
        ResultCode::TOO_BUSY => "tooBusy",
        ResultCode::UNABLE_TO_COMPLY => "duplicate",
        ResultCode::ELECTION_LOST => "electionLost",
        _ => "invalidCer",
    }
}

/// What is spoken in place of Diameter. The first octet is the version of a Diameter message, and a letter or a record
/// type of other protocols.
fn no_diameter(reason: &FrameReason) -> (&'static str, String) {
    match *reason {
        FrameReason::Version(first @ (b'G' | b'P' | b'H' | b'D' | b'O' | b'C' | b'T')) => {
            let letter = char::from(first);
            (
                "http",
                format!("HTTP at the Diameter port (it begins with `{letter}`)"),
            )
        }
        FrameReason::Version(0x14..=0x17) => (
            "tlsInClear",
            "TLS at a port that is in the clear; set `tls` there, or use the other port".to_owned(),
        ),
        FrameReason::Version(first) => (
            "noDiameter",
            format!("not Diameter: the version is {first}, not 1"),
        ),
        FrameReason::Length(length) => (
            "noDiameter",
            format!("a message with the impossible length {length}"),
        ),
        FrameReason::TooLong { length, max } => (
            "tooLong",
            format!("a message of {length} octets, more than limits.message ({max})"),
        ),
    }
}

fn stalled(what: &'static str) -> Incident {
    let (reason, text) = match what {
        "handshake" => ("silent", "it sent no CER within limits.handshake"),
        "read" => (
            "readStall",
            "an incomplete message was not completed within limits.readStall",
        ),
        "write" => (
            "writeStall",
            "it read nothing for limits.writeStall while messages were queued",
        ),
        _ => ("notClosed", "it did not close after the router"),
    };
    Incident {
        reason,
        host: None,
        remote: None,
        text: text.to_owned(),
        alarm: Alarm::None,
    }
}

/// An error of the system without its number: `Connection refused (os error 111)` → `connection refused`.
fn plain(error: &std::io::Error) -> String {
    let text = match error.kind() {
        std::io::ErrorKind::TimedOut if error.get_ref().is_none() => "no answer in time".to_owned(),
        _ => error.to_string(),
    };
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    let first = letters
        .next()
        .map(|first| match letters.as_str().starts_with(char::is_lowercase) {
            true => first.to_ascii_lowercase(),
            false => first,
        });
    first.into_iter().chain(letters).collect()
}

/// The name of a limit as the settings have it: `handshakes_per_address` → `handshakesPerAddress`.
fn camel(limit: &str) -> String {
    let mut words = limit.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let (head, tail) = word.split_at_checked(1).unwrap_or_default();
        name + &head.to_ascii_uppercase() + tail
    })
}

/// The incidents of a router.
#[derive(Debug, Default)]
pub(crate) struct Incidents(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    counts: BTreeMap<&'static str, u64>,
    recent: HashMap<(String, &'static str), Recent>,
}

#[derive(Debug)]
struct Recent {
    text: String,
    last: Instant,
    logged: Instant,
    count: u64,
    alarm: Alarm,
}

impl Incidents {
    /// Counts an incident, and logs it unless the same one was logged just now.
    pub(crate) fn happened(&self, incident: &Incident, now: Instant) {
        if self.note(incident, now) {
            let peer = incident.host.as_deref().unwrap_or("unknown");
            let remote = incident.remote.map(|remote| remote.to_string());
            let (remote, reason) = (remote.unwrap_or_default(), incident.reason);
            let text = &incident.text;
            match incident.alarm {
                Alarm::Refused => tracing::warn!(peer, remote, reason, "connection refused: {text}"),
                Alarm::BadAnswer => tracing::warn!(peer, remote, reason, "answer dropped: {text}"),
                Alarm::None if reason == "tolerated" => tracing::info!(peer, "{text}"),
                Alarm::None => {
                    tracing::info!(
                        peer,
                        remote,
                        reason,
                        "connection not established or closed: {text}"
                    );
                }
            }
        }
    }

    /// Counts an incident; whether it is worth a line in the log.
    fn note(&self, incident: &Incident, now: Instant) -> bool {
        let mut state = self.0.lock();
        *state.counts.entry(incident.reason).or_default() += 1;
        let key = (incident.subject(), incident.reason);
        if let Some(known) = state.recent.get_mut(&key) {
            known.count += 1;
            known.last = now;
            let is_new = known.text != incident.text;
            known.text.clone_from(&incident.text);
            let again = is_new || now.saturating_duration_since(known.logged) >= LOG_AGAIN;
            if again {
                known.logged = now;
            }
            return again;
        }
        if state.recent.len() >= MAX_RECENT {
            let oldest = state.recent.iter().min_by_key(|(_, one)| one.last);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                state.recent.remove(&oldest);
            }
        }
        let recent = Recent {
            text: incident.text.clone(),
            last: now,
            logged: now,
            count: 1,
            alarm: incident.alarm,
        };
        state.recent.insert(key, recent);
        true
    }

    /// The number of incidents by reason.
    pub(crate) fn counts(&self) -> Vec<(&'static str, u64)> {
        let state = self.0.lock();
        state
            .counts
            .iter()
            .map(|(reason, count)| (*reason, *count))
            .collect()
    }

    /// What is worth this alarm, of the last minutes: subject and text. Older incidents are dropped.
    pub(crate) fn recent(&self, alarm: Alarm, now: Instant) -> Vec<(String, String)> {
        let mut state = self.0.lock();
        state
            .recent
            .retain(|_, one| now.saturating_duration_since(one.last) < LASTS);
        let refusals = state.recent.iter().filter(|(_, one)| one.alarm == alarm);
        let text = |one: &Recent| format!("{}, {} times", one.text, one.count);
        refusals
            .map(|((subject, _), one)| (subject.clone(), text(one)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(host: &str, text: &'static str) -> Incident {
        let fault = Fault::new(ResultCode::UNKNOWN_PEER, text);
        let remote = "[::ffff:192.0.2.7]:4000".parse().unwrap();
        Incident::of(&NodeEvent::Refused {
            remote,
            host,
            fault: &fault,
        })
    }

    #[test]
    fn words_are_plain() {
        let error = std::io::Error::from_raw_os_error(111);
        assert_eq!(plain(&error), "connection refused");
        assert_eq!(plain(&std::io::ErrorKind::TimedOut.into()), "no answer in time");
        assert_eq!(camel("handshakes_per_address"), "handshakesPerAddress");
        assert_eq!(refused("a\nb\u{1b}[2J", "x").host.unwrap(), "a\\nb\\u{1b}[2J");
        let http = no_diameter(&FrameReason::Version(b'G'));
        assert!(http.1.contains("HTTP at the Diameter port"));
        assert_eq!(no_diameter(&FrameReason::Version(0x16)).0, "tlsInClear");
        assert_eq!(
            refused("mme", "the peer gives our own name as its Origin-Host").reason,
            "ownName"
        );
        assert_eq!(
            refused("mme", "mme is not a peer of this node").subject(),
            "mme from 192.0.2.7"
        );
    }

    #[test]
    fn an_incident_is_logged_once_a_minute_and_is_an_alarm_for_five() {
        let (all, now) = (Incidents::default(), Instant::now());
        let one = refused("mme", "mme is not a peer of this node");
        assert!(all.note(&one, now));
        assert!(!all.note(&one, now + LOG_AGAIN / 2));
        assert!(all.note(&one, now + LOG_AGAIN));
        assert_eq!(all.counts(), [("unknownPeer", 3)]);
        let shown = all.recent(Alarm::Refused, now + LASTS);
        assert_eq!(shown.len(), 1);
        assert!(
            shown[0].1.ends_with("not a peer of this node, 3 times"),
            "{shown:?}"
        );
        assert!(all.recent(Alarm::Refused, now + LOG_AGAIN + LASTS).is_empty());
        for n in 0..200 {
            all.note(&refused(&n.to_string(), "no peer"), now);
        }
        assert_eq!(all.recent(Alarm::Refused, now).len(), MAX_RECENT);
        assert_eq!(all.counts(), [("unknownPeer", 203)]);
    }
}
