//! The SDS's own admin pages and gauges.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use axum::Router;
use axum::response::IntoResponse as _;
use axum::routing::get;
use function::Page;
use serde_json::{Value, json};
use telemetry::{Alert, Declaration, Registry, When};

use crate::events::{ADMISSION, Event};
use crate::shared::Sds;
use crate::worker::Worker;

telemetry::declare! {
    /// Gauges of the state.
    GAUGES;
    gauge LOAD = "signalbox_sds_load_ratio" []: "Load of the busiest worker, from 0 to 1: its CPU time as a share of a core, or how near requests come to waiting for the target.";
    gauge NUMBERS = "signalbox_sds_numbers" []: "Numbers with destinations.";
    gauge NAMES = "signalbox_sds_names" []: "Names with destinations.";
    gauge NAME_BYTES = "signalbox_sds_name_bytes" []: "Memory that the names take, in bytes.";
    gauge NUMBER_SETS = "signalbox_sds_number_sets" []: "Different destination sets in the table of numbers, of 65,535.",
        alert Alert::minor(When::Above(60_000.0), 15, "Beyond 65,535 a new set is refused (507). Sets that no number has any more are freed at the next `journal.checkpoint`; give subscribers fewer different sets.");
    gauge NAME_SETS = "signalbox_sds_name_sets" []: "Different destination sets of names, of 65,535.",
        alert Alert::minor(When::Above(60_000.0), 15, "Beyond 65,535 a new set is refused (507). Give names fewer different sets.");
    gauge OFFSET = "signalbox_sds_offset" []: "Offset of the newest transaction that this server has.";
    gauge JOURNAL = "signalbox_sds_journal_entries" []: "Transactions that the journal has.";
    gauge STOPPED = "signalbox_sds_stopped" []: "Whether this server does not follow the journal any more: 1, and it serves nothing.",
        alert Alert::major(When::Above(0.0), 1, "The log has the reason. Restart this server with a checkpoint of another one as load.csv (docs/sds.md).");
    gauge WAITING = "signalbox_sds_polls_waiting" []: "Polls of database processors that wait for a transaction.";
    gauge SENDING = "signalbox_sds_checkpoints_in_flight" []: "Checkpoints that are being sent.";
    gauge POLL_AGE = "signalbox_sds_poll_age_seconds" ["dp"]: "Time since a database processor has polled, by its name.";
    gauge POLL_LAG = "signalbox_sds_poll_lag" ["dp"]: "Transactions that a database processor lacked when it polled last, by its name.";
}

pub(crate) const PAGES: &[Page] = &[
    Page {
        name: "state",
        about: "Records, and the journal: its identity and offsets",
        path: "/sds/state",
        argument: None,
        columns: &[],
    },
    Page {
        name: "processors",
        about: "Database processors that poll by a name: when each did last, and what it lacked",
        path: "/sds/processors",
        argument: None,
        columns: &[
            ("processor", "/processor"),
            ("seconds ago", "/secondsAgo"),
            ("offset", "/offset"),
            ("lacks", "/lacks"),
        ],
    },
];

/// Every metric of the SDS.
pub(crate) fn metrics() -> Vec<Declaration> {
    function::sbi::metrics_of_routed::<Worker, Event>(GAUGES, &ADMISSION)
}

pub(crate) fn hints(uri: &str) -> Vec<String> {
    vec![
        format!("curl --http2-prior-knowledge '{uri}/subscribers/imsi/001010000000001'"),
        "signalbox sds state".to_owned(),
    ]
}

/// Shows the gauges.
pub(crate) fn observe(registry: &Registry, sds: &Arc<Sds>) {
    type Read = fn(&Sds) -> f64;
    let gauges: [(&'static Declaration, Read); 11] = [
        (&LOAD, |sds| f64::from(sds.operational.load()) / 100.0),
        (&NUMBERS, |sds| sds.data.count().0 as f64),
        (&NAMES, |sds| sds.data.count().1 as f64),
        (&NAME_BYTES, |sds| sds.data.name_bytes() as f64),
        (&NUMBER_SETS, |sds| sds.data.sets().0 as f64),
        (&NAME_SETS, |sds| sds.data.sets().1 as f64),
        (&OFFSET, |sds| sds.data.offset() as f64),
        (&JOURNAL, |sds| sds.entries() as f64),
        (&STOPPED, |sds| {
            f64::from(u8::from(sds.known.borrow().stopped.is_some()))
        }),
        (&WAITING, |sds| sds.pollers.in_flight().0 as f64),
        (&SENDING, |sds| sds.pollers.in_flight().1 as f64),
    ];
    for (gauge, read) in gauges {
        let seen = Arc::downgrade(sds);
        registry.observe(gauge, move || seen.upgrade().map_or(0.0, |sds| read(&sds)));
    }
    type Each = fn(&Sds, Duration, u64) -> f64;
    let labelled: [(&'static Declaration, Each); 2] = [
        (&POLL_AGE, |_, age, _| age.as_secs_f64()),
        (&POLL_LAG, |sds, _, offset| {
            sds.data.offset().saturating_sub(offset) as f64
        }),
    ];
    for (gauge, read) in labelled {
        let seen = Arc::downgrade(sds);
        registry.observe_all(gauge, move || {
            let Some(sds) = seen.upgrade() else {
                return Vec::new();
            };
            let all = sds.pollers.all(Instant::now()).into_iter();
            all.map(|(name, age, offset)| (vec![name], read(&sds, age, offset)))
                .collect()
        });
    }
}

/// Serves [`PAGES`].
pub(crate) fn routes(sds: &Weak<Sds>) -> Router {
    let page = |show: fn(&Sds) -> Value| {
        let sds = sds.clone();
        get(move || async move {
            let shown = sds.upgrade().map_or_else(|| json!({}), |sds| show(&sds));
            axum::Json(shown).into_response()
        })
    };
    Router::new()
        .route("/sds/state", page(state))
        .route("/sds/processors", page(processors))
}

fn state(sds: &Sds) -> Value {
    let known = sds.known.borrow().clone();
    let (numbers, names) = sds.data.count();
    json!({
        "journal": known.head.id, "first": known.head.first, "newest": known.head.offset, "offset": sds.data.offset(),
        "numbers": numbers, "names": names, "stopped": known.stopped,
    })
}

fn processors(sds: &Sds) -> Value {
    let newest = sds.data.offset();
    let all = sds.pollers.all(Instant::now()).into_iter();
    all.map(|(name, age, offset)| {
        json!({"processor": name, "secondsAgo": age.as_secs(), "offset": offset, "lacks": newest.saturating_sub(offset)})
    })
    .collect()
}
