//! The SCEF's own admin pages and gauges.

use std::sync::{Arc, Weak};

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use function::Page;
use serde_json::{Value, json};
use store::{Record, Scan, Table};
use telemetry::{Declaration, Registry};

use crate::events::{ADMISSION, Event};
use crate::repository::Repository;
use crate::shared::Scef;
use crate::worker::Worker;

telemetry::declare! {
    /// Gauges of the state.
    GAUGES;
    gauge LOAD = "signalbox_scef_load_ratio" []: "Load of the busiest worker, from 0 to 1: its CPU time as a share of a core, or how near requests come to waiting for the target.";
    gauge NOTIFICATIONS = "signalbox_scef_notifications_pending" []: "Notifications in memory that wait for SCS/AS.";
    gauge NOTIFICATION_BYTES = "signalbox_scef_notifications_pending_bytes" []: "Bytes of the notifications in memory that wait for SCS/AS.";
}

/// Records on one page.
const SHOWN: usize = 100;

pub(crate) const PAGES: &[Page] = &[
    Page {
        name: "subscriptions",
        about: "Some subscriptions to monitoring events, a hundred at most",
        path: "/scef/subscriptions",
        argument: None,
        columns: &[
            ("subscription", "/subscription"),
            ("SCS/AS", "/scs"),
            ("event", "/event"),
            ("externalId", "/externalId"),
            ("msisdn", "/msisdn"),
            ("group", "/group"),
            ("reports left", "/left"),
        ],
    },
    Page {
        name: "configurations",
        about: "Some NIDD configurations, a hundred at most",
        path: "/scef/configurations",
        argument: None,
        columns: &[
            ("configuration", "/configuration"),
            ("SCS/AS", "/scs"),
            ("imsi", "/imsi"),
            ("apn", "/apn"),
            ("externalId", "/externalId"),
            ("msisdn", "/msisdn"),
        ],
    },
    Page {
        name: "connections",
        about: "Some connections of devices (T6a, T6b), a hundred at most",
        path: "/scef/connections",
        argument: None,
        columns: &[
            ("imsi", "/imsi"),
            ("bearer", "/bearer"),
            ("MME or SGSN", "/host"),
            ("configuration", "/configuration"),
        ],
    },
    Page {
        name: "triggers",
        about: "Some device triggers whose delivery is not reported yet, a hundred at most",
        path: "/scef/triggers",
        argument: None,
        columns: &[
            ("transaction", "/transaction"),
            ("SCS/AS", "/scs"),
            ("imsi", "/imsi"),
            ("externalId", "/externalId"),
            ("msisdn", "/msisdn"),
            ("reference", "/reference"),
        ],
    },
    Page {
        name: "downlinks",
        about: "Some data that waits for devices, a hundred at most",
        path: "/scef/downlinks",
        argument: None,
        columns: &[
            ("delivery", "/delivery"),
            ("SCS/AS", "/scs"),
            ("configuration", "/configuration"),
            ("status", "/status"),
        ],
    },
];

/// Every metric of the SCEF.
pub(crate) fn metrics() -> Vec<Declaration> {
    function::sbi::metrics_of_routed::<Worker, Event>(GAUGES, &ADMISSION)
}

pub(crate) fn hints(uri: &str) -> Vec<String> {
    vec![
        format!("curl '{uri}/3gpp-monitoring-event/v1/as1/subscriptions'"),
        "signalbox scef subscriptions".to_owned(),
    ]
}

/// Shows the gauges.
pub(crate) fn observe(registry: &Registry, scef: &Arc<Scef>) {
    type Read = fn(&Scef) -> f64;
    let gauges: [(&'static Declaration, Read); 3] = [
        (&LOAD, |scef| f64::from(scef.operational.load()) / 100.0),
        (&NOTIFICATIONS, |scef| scef.queue.pending().notifications as f64),
        (&NOTIFICATION_BYTES, |scef| scef.queue.pending().bytes as f64),
    ];
    for (gauge, read) in gauges {
        let seen = Arc::downgrade(scef);
        registry.observe(gauge, move || seen.upgrade().map_or(0.0, |scef| read(&scef)));
    }
}

/// Serves [`PAGES`].
pub(crate) fn routes(scef: &Weak<Scef>) -> Router {
    let page = |show: fn(Repository) -> Shown| {
        let scef = scef.clone();
        get(move || async move {
            match scef.upgrade().map(|scef| scef.repository.clone()) {
                Some(repository) => show(repository).await,
                None => axum::Json(json!([])).into_response(),
            }
        })
    };
    Router::new()
        .route("/scef/subscriptions", page(|it| Box::pin(async move {
            some(&it.subscriptions, |one| {
                let document = &one.document;
                json!({"subscription": one.id(), "scs": one.scs, "event": document["monitoringType"], "left": one.left,
                    "group": document["externalGroupId"],
                    "externalId": document["externalId"], "msisdn": document["msisdn"]})
            })
            .await
        })))
        .route("/scef/configurations", page(|it| Box::pin(async move {
            some(&it.configurations, |one| {
                let document = &one.document;
                json!({"configuration": one.id, "scs": one.scs, "imsi": one.imsi, "apn": one.apn,
                    "externalId": document["externalId"], "msisdn": document["msisdn"]})
            })
            .await
        })))
        .route("/scef/connections", page(|it| Box::pin(async move {
            some(&it.connections, |one| json!(one)).await
        })))
        .route("/scef/triggers", page(|it| Box::pin(async move {
            some(&it.triggers, |one| {
                let document = &one.document;
                json!({"transaction": one.id, "scs": one.scs, "imsi": one.imsi, "reference": one.reference(),
                    "externalId": document["externalId"], "msisdn": document["msisdn"]})
            })
            .await
        })))
        .route("/scef/downlinks", page(|it| Box::pin(async move {
            some(&it.downlinks, |one| {
                json!({"delivery": one.id, "scs": one.scs, "configuration": one.configuration, "status": one.status})
            })
            .await
        })))
}

type Shown = std::pin::Pin<Box<dyn Future<Output = Response> + Send>>;

/// The first records of a table.
async fn some<T: Record>(table: &Table<T>, shown: impl Fn(&T) -> Value) -> Response {
    match table.scan(&Scan::all(SHOWN)).await {
        Ok(page) => {
            let each = page.records.iter().take(SHOWN);
            axum::Json(each.map(|one| shown(&one.record)).collect::<Value>()).into_response()
        }
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response(),
    }
}
