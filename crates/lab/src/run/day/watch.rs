//! What functions say of themselves: active alarms and readiness.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use serde_json::Value;

use crate::run::admin::ask;

/// What alarms 31052 and 31056 of a router are about: processors and memory of the machine.
const MACHINE: &str = "machine";

/// The state of a function as an operator's monitoring sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// Number and instance of each active alarm.
    pub(super) alarms: BTreeSet<(u64, String)>,
    /// Status of `/readyz`, and what its lines are about; a function that does not answer has 0.
    pub(super) readiness: (u16, BTreeSet<String>),
}

impl State {
    pub(super) fn of(admin: SocketAddr) -> Self {
        let page = ask(admin, "GET", "/alarms").filter(|(status, _)| *status == 200);
        let page: Value = page
            .and_then(|(_, body)| serde_json::from_str(&body).ok())
            .unwrap_or_default();
        let active = page["active"].as_array().into_iter().flatten();
        let alarms = active.filter_map(|alarm| {
            let instance = alarm["instance"].as_str().unwrap_or_default();
            // How busy this machine is belongs to no incident.
            let is_of_functions = instance != MACHINE;
            is_of_functions.then_some((alarm["number"].as_u64()?, instance.to_owned()))
        });
        let (status, body) = ask(admin, "GET", "/readyz").unwrap_or_default();
        // Behind the colon are words that change, such as seconds.
        let about = body
            .lines()
            .map(|line| line.split(':').next().unwrap_or_default());
        Self {
            alarms: alarms.collect(),
            readiness: (status, about.map(str::to_owned).collect()),
        }
    }

    /// What differs from an earlier state, in words.
    pub(super) fn since(&self, before: &Self) -> String {
        let alarms = self.alarms.symmetric_difference(&before.alarms);
        let alarms: Vec<String> = alarms
            .map(|(number, about)| format!("{number} {about}"))
            .collect();
        let (status, about) = &self.readiness;
        format!(
            "alarms {alarms:?}, readiness {status} {about:?} in place of {} {:?}",
            before.readiness.0, before.readiness.1
        )
    }

    pub(super) fn has(&self, number: u64) -> bool {
        self.alarms.iter().any(|(one, _)| *one == number)
    }
}
