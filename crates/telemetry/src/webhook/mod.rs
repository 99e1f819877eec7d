//! Alarms to an operator's server, in the form in which Alertmanager calls webhooks (version 4).
//!
//! ```text
//! Alarms ─ raised, cleared ─► bounded queue ─► thread `webhook` ─► POST, one alert each, in order
//!    ▲                            └ full: lost, counted                  │ not taken: again, with growing pauses
//!    └──────────── what is active, once the queue is empty ◄─────────────┘ after a loss
//! ```
//!
//! Who raises an alarm never waits. What was lost on the way is made good: the server gets the alarms that are active and it does
//! not know, and the end of those that it knows and that are not active any more.

mod body;
mod sender;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Secret, Validate};

use crate::alarms::{Alarm, Alarms, Outlet};
use crate::metrics::{Alert, Counter, Registry, When};
use crate::outbound;

crate::declare! {
    /// What is counted of the webhook.
    pub METRICS;
    counter SENT = "signalbox_alarm_notifications_total" []: "Beginnings and ends of alarms that the server of `alarms.webhook` has taken.";
    counter FAILED = "signalbox_alarm_notification_failures_total" []: "Attempts to notify of an alarm that failed, and are repeated.",
        alert Alert::major(When::Occurs, 4, "Check the server of `alarms.webhook`, and that this machine reaches it; alarms are at `/alarms` meanwhile.");
    counter LOST = "signalbox_alarm_notifications_lost_total" ["reason"]: "Beginnings and ends of alarms that were not notified of: `queue`: too many waited; `refused`: the server answered 400, 413 or 422.",
        alert Alert::major(When::Occurs, 4, "Check what the server of `alarms.webhook` says in the log; raise `alarms.webhook.queue` where too many wait.");
}

/// Where alarms are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Config {
    /// Server that gets each beginning and end of an alarm by POST, in the form of Alertmanager's webhooks.
    pub webhook: Webhook,
}

/// A server that takes alarms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Webhook {
    /// Address of the server, such as `https://alarms.example.org/signalbox`; absent: alarms are not sent.
    pub url: Option<String>,
    /// PEM file with the authorities of the server's certificate, for `https`. It is read again after a failure.
    pub certificate_authority: Option<PathBuf>,
    /// Token that each request shows (`Authorization: Bearer`). It is read for each request.
    pub token: Option<Secret>,
    /// Beginnings and ends of alarms that may wait for the server; more are dropped and counted, and once those that wait are
    /// sent, the server gets what is active then.
    #[schemars(range(min = 1, max = 100_000))]
    pub queue: usize,
}

impl Default for Webhook {
    fn default() -> Self {
        Self {
            url: None,
            certificate_authority: None,
            token: None,
            queue: 1024,
        }
    }
}

impl Validate for Config {
    fn validate(&self, faults: &mut Faults) {
        faults.within("webhook", &self.webhook);
    }
}

impl Validate for Webhook {
    fn validate(&self, faults: &mut Faults) {
        let Some(url) = &self.url else {
            return;
        };
        match outbound::address(url) {
            None => faults.at("url").say(
                format!("`{url}` is not an address of a server"),
                "a URL such as `https://alarms.example.org/signalbox`",
            ),
            Some(uri) => {
                let authority = self.certificate_authority.as_deref();
                outbound::validate_authority(&uri, authority, "server", faults);
            }
        }
    }
}

/// The beginning or the end of an alarm of a function.
#[derive(Clone, Debug)]
struct Change {
    function: &'static str,
    alarm: Alarm,
    is_active: bool,
}

/// Where the alarms of a function put what changes.
#[derive(Debug)]
struct Waiting {
    function: &'static str,
    queue: SyncSender<Change>,
    lost: Counter,
    /// Whether something was lost since the server got what is active.
    is_behind: Arc<AtomicBool>,
}

impl Outlet for Waiting {
    /// Has a change sent, if it finds a place.
    fn put(&self, alarm: &Alarm, is_active: bool) {
        let change = Change {
            function: self.function,
            alarm: alarm.clone(),
            is_active,
        };
        if self.queue.try_send(change).is_err() {
            self.lost.inc();
            self.is_behind.store(true, Ordering::Relaxed);
        }
    }
}

/// Sends the alarms of these functions from now on, those that are active included, where the settings name a server. It ends when
/// they are dropped.
///
/// # Errors
/// When the system refuses the thread that sends them.
pub fn start(config: &Config, registry: &Registry, functions: &[(&'static str, Alarms)]) -> io::Result<()> {
    let (sent, failed) = (registry.counter(&SENT), registry.counter(&FAILED));
    let lost = registry.counters(&LOST);
    let [queue_full, refused] = ["queue", "refused"].map(|reason| lost.get(&[reason]));
    let config = &config.webhook;
    let Some(url) = &config.url else {
        return Ok(());
    };
    let (queue, changes) = sync_channel(config.queue.max(1));
    let is_behind = Arc::new(AtomicBool::new(true));
    for (function, alarms) in functions {
        alarms.send_to(Box::new(Waiting {
            function,
            queue: queue.clone(),
            lost: queue_full.clone(),
            is_behind: is_behind.clone(),
        }));
    }
    let watched = functions.iter();
    let watched = watched.map(|(function, alarms)| (*function, alarms.downgrade()));
    let sender = sender::Sender {
        server: outbound::Server::new(url.clone(), config.certificate_authority.as_deref()),
        token: config.token.clone(),
        watched: watched.collect(),
        known: std::collections::BTreeMap::new(),
        is_behind,
        is_reachable: true,
        host: body::host(),
        sent,
        failed,
        refused,
    };
    std::thread::Builder::new()
        .name("webhook".to_owned())
        .spawn(move || sender.run(&changes))
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_servers() {
        let faults = |url: &str, authority: Option<&str>| {
            let config = Webhook {
                url: Some(url.to_owned()),
                certificate_authority: authority.map(PathBuf::from),
                ..Webhook::default()
            };
            let mut faults = Faults::default();
            config.validate(&mut faults);
            let paths = faults.into_vec().into_iter().map(|fault| fault.path);
            paths.collect::<Vec<_>>()
        };
        for right in ["http://127.0.0.1:9099", "http://alarms/hook?team=core"] {
            assert!(faults(right, None).is_empty(), "{right}");
        }
        for wrong in ["", "alarms", "ftp://alarms", "http://"] {
            assert_eq!(faults(wrong, None), ["url"], "{wrong}");
        }
        assert_eq!(faults("https://alarms", None), ["certificateAuthority"]);
        assert_eq!(faults("http://alarms", Some("ca.pem")), ["certificateAuthority"]);
        assert!(faults("https://alarms", Some("ca.pem")).is_empty());
    }
}
