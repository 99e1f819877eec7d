//! The admin pages of a router, and the rows that its workers report for them.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::routing::{MethodRouter, delete, get, post, put};
use diameter::{Connection, Node, PeerStatus};
use function::Page;
use serde_json::Value;

use crate::administration::Verb;
use crate::registry::HopState;
use crate::router::{Core, Link, Router};
use crate::rows::PeerRow;
use crate::shared::Dsr;
use crate::trace::collect;

/// Interval at which a worker reports its peers.
const REPORT: Duration = Duration::from_millis(500);

/// Columns of sessions of a Policy DRA.
const PDRA_COLUMNS: &[(&str, &str)] = &[
    ("application", "/application"),
    ("session", "/session"),
    ("pcrf", "/pcrf"),
    ("since", "/since"),
    ("rule", "/rule"),
    ("conflict", "/conflict"),
    ("pool", "/pool"),
    ("apn", "/apn"),
    ("imsi", "/imsi"),
    ("msisdn", "/msisdn"),
    ("addresses", "/addresses"),
    ("client", "/client"),
];

/// Columns of sessions of an online charging DRA.
const OCDRA_COLUMNS: &[(&str, &str)] = &[
    ("application", "/application"),
    ("session", "/session"),
    ("ocs", "/ocs"),
    ("since", "/since"),
    ("rule", "/rule"),
    ("pool", "/pool"),
    ("failover", "/failover"),
    ("client", "/client"),
];

pub(crate) const PAGES: &[Page] = &[
    Page {
        name: "peers",
        about: "The peers, configured and connected, and their state",
        path: "/dsr/peers",
        argument: None,
        columns: &[
            ("peer", "/host"),
            ("realm", "/realm"),
            ("node", "/localNode"),
            ("worker", "/worker"),
            ("state", "/state"),
            ("administration", "/administration"),
            ("machine", "/machine"),
            ("address", "/address"),
            ("in", "/messagesIn"),
            ("out", "/messagesOut"),
            ("pending", "/pending"),
            ("since", "/downSince"),
            ("attempts", "/attempts"),
            ("error", "/lastError"),
        ],
    },
    Page {
        name: "routes",
        about: "The members of every route list, and which group is used now",
        path: "/dsr/routes",
        argument: None,
        columns: &[
            ("list", "/list"),
            ("group", "/group"),
            ("active", "/active"),
            ("peer", "/host"),
            ("state", "/state"),
            ("worker", "/worker"),
        ],
    },
    Page {
        name: "indicators",
        about: "Its indicators by number, averaged: load, rates, sizes",
        path: "/dsr/indicators",
        argument: None,
        columns: &[
            ("id", "/id"),
            ("name", "/name"),
            ("about", "/instance"),
            ("value", "/value"),
            ("unit", "/unit"),
            ("profile", "/profile"),
        ],
    },
    Page {
        name: "measurements",
        about: "Counts of rules, route lists, throttle groups and trace points, and transactions by result",
        path: "/dsr/measurements",
        argument: None,
        columns: &[
            ("kind", "/kind"),
            ("name", "/name"),
            ("meaning", "/meaning"),
            ("count", "/count"),
        ],
    },
    Page {
        name: "throttles",
        about: "Throttle groups: requests per second that would go to each, and the share of its rate that this router has",
        path: "/dsr/throttles",
        argument: None,
        columns: &[
            ("group", "/name"),
            ("rate", "/rate"),
            ("demand", "/demand"),
            ("share", "/share"),
        ],
    },
    Page {
        name: "applications",
        about: "Applications inside the router, and the size of their tables",
        path: "/dsr/applications",
        argument: None,
        columns: &[
            ("application", "/name"),
            ("kind", "/kind"),
            ("table", "/table"),
            ("entries", "/entries"),
            ("bytes", "/bytes"),
        ],
    },
    Page {
        name: "equipment",
        about: "What the equipment identity register knows of IMEI, or of IMEI-IMSI",
        path: "/dsr/equipment/{}",
        argument: Some("IMEI"),
        columns: &[
            ("application", "/application"),
            ("imei", "/imei"),
            ("imsi", "/imsi"),
            ("status", "/status"),
            ("by", "/by"),
        ],
    },
    Page {
        name: "pdra session",
        about: "Which PCRF has a session, since when and by which rule, by its Session-Id",
        path: "/dsr/pdra/session/{}",
        argument: Some("SESSION-ID"),
        columns: PDRA_COLUMNS,
    },
    Page {
        name: "pdra binding",
        about: "Which PCRF a subscriber is bound to: the sessions under KEY, an IMSI, an MSISDN, an IP address or prefix",
        path: "/dsr/pdra/binding/{}",
        argument: Some("KEY"),
        columns: PDRA_COLUMNS,
    },
    Page {
        name: "ocdra session",
        about: "Which OCS has a charging session, since when and by which rule, by its Session-Id",
        path: "/dsr/ocdra/session/{}",
        argument: Some("SESSION-ID"),
        columns: OCDRA_COLUMNS,
    },
    Page {
        name: "list-equipment",
        about: "Put equipment on a list beside the traffic, or take it off (none): CHANGE is such as eir:35209900176148=black or eir:IMEI-IMSI=white",
        path: "/dsr/change-equipment/{}",
        argument: Some("CHANGE"),
        columns: &[],
    },
    Page {
        name: "ranges",
        about: "Where address resolution sends an identity: IDENTITY is such as imsi:001010000000001 or impu:sip:a@ims.example",
        path: "/dsr/ranges/{}",
        argument: Some("IDENTITY"),
        columns: &[
            ("application", "/application"),
            ("identity", "/identity"),
            ("value", "/value"),
            ("destination", "/destination"),
            ("realm", "/realm"),
            ("host", "/host"),
        ],
    },
    Page {
        name: "set-range",
        about: "Lead a range of identities elsewhere beside the traffic, or nowhere: CHANGE is such as resolve:imsi:00101=hss1, resolve:msisdn:49170..49171=hss2 or resolve:imsi:00101=",
        path: "/dsr/change-range/{}",
        argument: Some("CHANGE"),
        columns: &[],
    },
    Page {
        name: "subscribers",
        about: "Where full address resolution sends a subscriber: ENTITY is such as imsi:001010000000001 or nai:a@iot.example",
        path: "/dsr/subscribers/{}",
        argument: Some("ENTITY"),
        columns: &[
            ("application", "/application"),
            ("entity", "/entity"),
            ("value", "/value"),
            ("destinations", "/destinations"),
            ("error", "/error"),
        ],
    },
    Page {
        name: "set-subscriber",
        about: "Give a subscriber destinations beside the traffic, or none: CHANGE is such as resolve:imsi:001010000000001=hss1, resolve:msisdn:491511234=hss1,pcrf=pcrf2 or resolve:nai:a@iot.example=",
        path: "/dsr/change-subscriber/{}",
        argument: Some("CHANGE"),
        columns: &[],
    },
    Page {
        name: "traces",
        about: "Traced messages of transactions with TEXT (Session-Id, IMSI, host) in them, of all routers in trace.collectFrom",
        path: "/dsr/traces/{}",
        argument: Some("TEXT"),
        columns: &[
            ("microseconds", "/atMicroseconds"),
            ("router", "/router"),
            ("point", "/point"),
            ("what", "/what"),
            ("peer", "/peer"),
            ("command", "/command"),
            ("result", "/result"),
            ("session", "/session"),
        ],
    },
    Page {
        name: "enable",
        about: "Connect to PEER, and send requests to it again",
        path: "/dsr/peers/{}/enable",
        argument: Some("PEER"),
        columns: &[],
    },
    Page {
        name: "drain",
        about: "Send no new requests to PEER; its connection stays",
        path: "/dsr/peers/{}/drain",
        argument: Some("PEER"),
        columns: &[],
    },
    Page {
        name: "disable",
        about: "Disconnect from PEER, and refuse its connections until it is enabled",
        path: "/dsr/peers/{}/disable",
        argument: Some("PEER"),
        columns: &[],
    },
    Page {
        name: "reconnect",
        about: "Disconnect from PEER with a DPR, and reconnect",
        path: "/dsr/peers/{}/reconnect",
        argument: Some("PEER"),
        columns: &[],
    },
    Page {
        name: "why",
        about: "How a message would be handled and why: mediation, application, route; QUERY is such as 'peer=mme.example&message=ULR app=16777251 { Destination-Realm = \"example\" }'; the message may be hexadecimal digits as well",
        path: "/dsr/why?{}",
        argument: Some("QUERY"),
        columns: &[],
    },
];

/// Serves [`PAGES`].
pub(crate) fn routes(seen: &Weak<Dsr>) -> axum::Router {
    axum::Router::new()
        .route("/dsr/peers", page(seen, |dsr| serde_json::to_value(dsr.peers())))
        .route(
            "/dsr/routes",
            page(seen, |dsr| serde_json::to_value(dsr.route_lists())),
        )
        .route(
            "/dsr/indicators",
            page(seen, |dsr| serde_json::to_value(dsr.indicators())),
        )
        .route(
            "/dsr/applications",
            page(seen, |dsr| serde_json::to_value(dsr.applications())),
        )
        .route(
            "/dsr/throttles",
            page(seen, |dsr| serde_json::to_value(dsr.throttles())),
        )
        .route(
            "/dsr/equipment/{imei}",
            known(seen, |row| row.get("entity").is_none()),
        )
        .route(
            "/dsr/applications/{application}/equipment/{subject}",
            put_equipment(seen).merge(delete_equipment(seen)),
        )
        .route("/dsr/change-equipment/{change}", change_equipment(seen))
        .route(
            "/dsr/ranges/{*identity}",
            known(seen, |row| row.get("entity").is_none()),
        )
        .route(
            "/dsr/pdra/{kind}/{*key}",
            sessions(seen, |dsr, kind, key| dsr.pdra_sessions(kind, key)),
        )
        .route(
            "/dsr/ocdra/{kind}/{*key}",
            sessions(seen, |dsr, _, key| dsr.ocdra_sessions(key)),
        )
        .route(
            "/dsr/applications/{application}/ranges/{identity}/{*first}",
            put_range(seen).merge(delete_range(seen)),
        )
        .route("/dsr/change-range/{*change}", change_equipment(seen))
        .route(
            "/dsr/subscribers/{*entity}",
            known(seen, |row| row.get("entity").is_some()),
        )
        .route(
            "/dsr/applications/{application}/subscribers/{identity}/{*first}",
            put_range(seen).merge(delete_range(seen)),
        )
        .route("/dsr/change-subscriber/{*change}", change_subscriber(seen))
        .route("/dsr/traces/{*text}", traces(seen))
        .route("/dsr/why", why(seen))
        .route("/dsr/peers/{peer}/{verb}", administer(seen))
        .route(
            "/dsr/measurements",
            page(seen, |dsr| serde_json::to_value(dsr.measurements())),
        )
}

/// A page with rows of the router as JSON. It looks through a weak handle: a page must not keep the router from ending.
fn page(seen: &Weak<Dsr>, show: fn(&Dsr) -> serde_json::Result<Value>) -> MethodRouter {
    let seen = seen.clone();
    get(move || async move {
        let shown = seen.upgrade().map(|dsr| show(&dsr));
        axum::Json(shown.and_then(Result::ok).unwrap_or_default())
    })
}

/// Does what an operator wants of a peer.
fn administer(seen: &Weak<Dsr>) -> MethodRouter {
    let seen = seen.clone();
    post(async move |Path((peer, verb)): Path<(String, String)>| {
        let Some(verb) = Verb::from_name(&verb) else {
            return (
                StatusCode::NOT_FOUND,
                format!("`{verb}` is not one of enable, drain, disable, reconnect\n"),
            );
        };
        match seen.upgrade().map(|dsr| dsr.administer(&peer, verb)) {
            Some(Ok(())) => (StatusCode::OK, format!("{peer}: {verb:?}\n").to_lowercase()),
            Some(Err(wrong)) => (StatusCode::NOT_FOUND, format!("{wrong}\n")),
            None => (
                StatusCode::SERVICE_UNAVAILABLE,
                "the router is stopping\n".to_owned(),
            ),
        }
    })
}

/// Puts equipment on the list that the body names: `black`.
fn put_equipment(seen: &Weak<Dsr>) -> MethodRouter {
    let seen = seen.clone();
    put(
        async move |Path((application, subject)): Path<(String, String)>, list: String| {
            change(&seen, application, subject, list.trim().to_owned()).await
        },
    )
}

/// Takes equipment off all lists.
fn delete_equipment(seen: &Weak<Dsr>) -> MethodRouter {
    let seen = seen.clone();
    delete(
        async move |Path((application, subject)): Path<(String, String)>| {
            change(&seen, application, subject, "none".to_owned()).await
        },
    )
}

/// Leads a range, from `FIRST` to `?end=LAST`, to the destination that the body names.
fn put_range(seen: &Weak<Dsr>) -> MethodRouter {
    let seen = seen.clone();
    put(
        async move |Path(path): Path<RangePath>, Query(asked): Query<HashMap<String, String>>, to: String| {
            match to.trim() {
                "" => {
                    let wrong = "the body names no destination; DELETE for none\n".to_owned();
                    (StatusCode::CONFLICT, wrong)
                }
                to => change(&seen, path.0.clone(), subject_of(path, &asked), to.to_owned()).await,
            }
        },
    )
}

/// Has a range lead nowhere.
fn delete_range(seen: &Weak<Dsr>) -> MethodRouter {
    let seen = seen.clone();
    delete(
        async move |Path(path): Path<RangePath>, Query(asked): Query<HashMap<String, String>>| {
            change(&seen, path.0.clone(), subject_of(path, &asked), String::new()).await
        },
    )
}

/// Application, identity, first value.
type RangePath = (String, String, String);

fn subject_of((_, identity, first): RangePath, asked: &HashMap<String, String>) -> String {
    match asked.get("end") {
        Some(end) => format!("{identity}:{first}..{end}"),
        None => format!("{identity}:{first}"),
    }
}

/// As both, for the command line: `APPLICATION:IMEI=LIST`, `APPLICATION:IDENTITY:RANGE=DESTINATION`.
fn change_equipment(seen: &Weak<Dsr>) -> MethodRouter {
    let seen = seen.clone();
    post(async move |Path(wanted): Path<String>| {
        let parts = wanted.split_once(':');
        let parts = parts.and_then(|(application, rest)| Some((application, rest.rsplit_once('=')?)));
        match parts {
            Some((application, (subject, list))) => {
                change(&seen, application.to_owned(), subject.to_owned(), list.to_owned()).await
            }
            None => (
                StatusCode::BAD_REQUEST,
                format!(
                    "`{wanted}` is not APPLICATION:ENTRY=VALUE, such as eir:35209900176148=black or \
                     resolve:imsi:00101=hss1\n"
                ),
            ),
        }
    })
}

/// Changes an entry, which waits for the disk.
async fn change(
    seen: &Weak<Dsr>,
    application: String,
    subject: String,
    list: String,
) -> (StatusCode, String) {
    let Some(dsr) = seen.upgrade() else {
        let stopping = "the router is stopping\n".to_owned();
        return (StatusCode::SERVICE_UNAVAILABLE, stopping);
    };
    let done = format!("{subject}: {list}\n");
    let changed = tokio::task::spawn_blocking(move || dsr.change_entry(&application, &subject, &list)).await;
    match changed {
        Ok(Ok(())) => (StatusCode::OK, done),
        Ok(Err(wrong)) => (StatusCode::CONFLICT, format!("{wrong}\n")),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

/// As for equipment and ranges, for subscribers, whose destinations have equals signs: `APPLICATION:ENTITY:VALUE=DESTINATIONS`.
fn change_subscriber(seen: &Weak<Dsr>) -> MethodRouter {
    let seen = seen.clone();
    post(async move |Path(wanted): Path<String>| {
        let parts = wanted.split_once(':');
        let parts = parts.and_then(|(application, rest)| Some((application, rest.split_once('=')?)));
        match parts {
            Some((application, (subject, to))) => {
                change(&seen, application.to_owned(), subject.to_owned(), to.to_owned()).await
            }
            None => (
                StatusCode::BAD_REQUEST,
                format!(
                    "`{wanted}` is not APPLICATION:ENTITY:VALUE=DESTINATIONS, such as \
                     resolve:imsi:001010000000001=hss1,pcrf=pcrf2\n"
                ),
            ),
        }
    })
}

/// What applications know of equipment, a range or a subscriber; those rows that are of the page.
fn known(seen: &Weak<Dsr>, is_of_page: fn(&Value) -> bool) -> MethodRouter {
    let seen = seen.clone();
    get(async move |Path(subject): Path<String>| {
        let mut rows = waiting(&seen, move |dsr| dsr.look_up(&subject)).await;
        rows.retain(is_of_page);
        axum::Json(rows)
    })
}

/// What the router shows after other nodes were queried: beside the control thread, which does not wait for them.
async fn waiting<T: Default + Send + 'static>(
    seen: &Weak<Dsr>,
    show: impl FnOnce(&Dsr) -> T + Send + 'static,
) -> T {
    match seen.upgrade() {
        Some(dsr) => tokio::task::spawn_blocking(move || show(&dsr))
            .await
            .unwrap_or_default(),
        None => T::default(),
    }
}

/// Sessions of applications, a row each. Their repositories may be asked for a while.
fn sessions(seen: &Weak<Dsr>, find: fn(&Dsr, &str, &str) -> Vec<Value>) -> MethodRouter {
    let seen = seen.clone();
    get(async move |Path((kind, key)): Path<(String, String)>| {
        axum::Json(waiting(&seen, move |dsr| find(dsr, &kind, &key)).await)
    })
}

/// Traced messages, of other routers too unless `here` is in the query.
fn traces(seen: &Weak<Dsr>) -> MethodRouter {
    let seen = seen.clone();
    get(
        async move |Path(wanted): Path<String>, Query(asked): Query<HashMap<String, String>>| {
            let here = seen.upgrade().map(|dsr| {
                let others = dsr.live.load().config.trace.collect_from.clone();
                (dsr.traces(&wanted), others)
            });
            let (rows, others) = here.unwrap_or_default();
            axum::Json(match asked.contains_key("here") {
                true => rows,
                false => collect(rows, &others, &wanted).await,
            })
        },
    )
}

/// What would become of a message.
fn why(seen: &Weak<Dsr>) -> MethodRouter {
    let seen = seen.clone();
    get(async move |Query(asked): Query<HashMap<String, String>>| {
        let shown = waiting(&seen, move |dsr| {
            let part = |key: &str| asked.get(key).map(String::as_str).unwrap_or_default();
            dsr.why(part("peer"), part("message"))
        });
        axum::Json(shown.await)
    })
}

/// Reports the peers of a worker at an interval.
pub(crate) async fn report(core: Rc<Core>, dsr: Arc<Dsr>, worker: usize) {
    loop {
        let names: Vec<String> = dsr
            .live
            .load()
            .config
            .local_nodes
            .iter()
            .map(|node| node.name.clone())
            .collect();
        let mut rows = Vec::new();
        for (index, (node, name)) in core.nodes().iter().zip(&names).enumerate() {
            for status in node.peers() {
                let connection = status.connection.and_then(|id| node.connection(id));
                let mut row = row(node, connection.as_deref(), &status, name, worker);
                if let Some(hop) = core.hop_of(&status.host, index) {
                    row.administration = hop.administration().as_str();
                    if let Some(trouble) = hop.trouble() {
                        row.last_error = trouble.text;
                        row.down_since = telemetry::rfc3339(trouble.since);
                        row.attempts = trouble.attempts;
                    }
                }
                rows.push(row);
            }
        }
        if let Some(measures) = dsr.measures.get(worker) {
            measures.store(Arc::new(core.measured()));
        }
        if let Some(report) = dsr.reports.get(worker) {
            report.store(Arc::new(rows));
        }
        tokio::time::sleep(REPORT).await;
    }
}

fn row(
    node: &Node<Router>,
    connection: Option<&Connection<Link>>,
    status: &PeerStatus,
    local_node: &str,
    worker: usize,
) -> PeerRow {
    let link = connection.and_then(Connection::state);
    let up = connection.and_then(Connection::peer);
    PeerRow {
        host: status.host.clone(),
        realm: up.map(|up| up.remote.origin.realm.clone()).unwrap_or_default(),
        local_node: local_node.to_owned(),
        worker,
        state: link.map_or(HopState::Down, |link| link.hop().state()).as_str(),
        last_error: String::new(),
        down_since: String::new(),
        attempts: 0,
        administration: "enabled",
        machine: format!("{:?}", status.state),
        address: connection
            .map(|connection| connection.remote().to_string())
            .unwrap_or_default(),
        configured: status.configured,
        messages_in: status.totals.messages_in,
        messages_out: status.totals.messages_out,
        requests_in: status.totals.requests_in,
        requests_out: status.totals.requests_out,
        bytes_in: status.totals.bytes_in,
        bytes_out: status.totals.bytes_out,
        connections: status.totals.connections,
        pending: connection.map_or(0, |connection| node.pending_of(connection.id())),
        timeouts: status.totals.timeouts,
        ingress_maximum: link.map_or(0, |link| link.profile().ingress.maximum),
    }
}
