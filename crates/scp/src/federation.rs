//! Reports between SCPs that share rates: the demand of each rate.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use http::{Method, StatusCode};
use sbi::client::{Client, SendOptions};
use sbi::dns::Dns;
use sbi::headers::{SbiHeader, TargetApiRoot};
use sbi::name::CONTENT_TYPE;
use sbi::problem::{Cause, Problem};
use sbi::{Body, Request, Response};
use serde::{Deserialize, Serialize};

use crate::events::Metrics;
use crate::live::{Current, Live};
use crate::protection::{Federation, LEAST_INTERVAL, Usage};

/// Path of the reports.
pub(crate) const RATES_PATH: &str = "/signalbox-scp/v1/rates";

/// The report of an SCP.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    /// Its NF instance id.
    nf_instance_id: String,
    /// Demand in messages per second, by the name of the rate.
    asked: std::collections::BTreeMap<String, f64>,
}

/// Sends reports to the others for as long as the SCP runs.
pub(crate) async fn send_reports(
    live: Arc<Current>,
    federation: Arc<Federation>,
    client: Client,
    names: Option<Dns>,
    metrics: Metrics,
) {
    // Peers that have not answered yet get no further report meanwhile.
    let busy: Rc<Cell<usize>> = Rc::default();
    loop {
        let settings = live.load().config.protection.federation.clone();
        tokio::time::sleep(settings.interval.duration().max(LEAST_INTERVAL)).await;
        metrics
            .federated
            .set(federation.heard(&settings, Instant::now()) as f64);
        if settings.peers.is_empty() || busy.get() > 0 {
            continue;
        }
        let now = live.load();
        let mut asked: Vec<(Box<str>, f64)> = now.rates.usage();
        asked.sort_by(|a, b| b.1.total_cmp(&a.1));
        asked.truncate(settings.max_rates);
        let report = Report {
            nf_instance_id: now.config.nf_instance_id.clone(),
            asked: asked
                .into_iter()
                .map(|(name, rate)| (name.into(), rate))
                .collect(),
        };
        let Ok(body) = serde_json::to_vec(&report) else {
            continue;
        };
        let body = Body::from(body);
        for root in &settings.peers {
            let Ok(root) = TargetApiRoot::parse(root) else {
                continue;
            };
            let (client, body, metrics) = (client.clone(), body.clone(), metrics.clone());
            let (names, federation, busy) = (names.clone(), federation.clone(), busy.clone());
            let deadline = settings.silent_after.duration();
            busy.set(busy.get() + 1);
            tokio::task::spawn_local(async move {
                locate(&root, names.as_ref(), &federation).await;
                let request = http::Request::post(format!("{}{RATES_PATH}", root.prefix))
                    .header(CONTENT_TYPE, "application/json")
                    .body(body);
                let sent = match request {
                    Ok(request) => {
                        let options = SendOptions {
                            deadline,
                            priority: 4,
                        };
                        client.send(&root.origin, request, options).await.ok()
                    }
                    Err(_) => None,
                };
                match sent.is_some_and(|answer| answer.status().is_success()) {
                    true => metrics.federation_sent.inc(),
                    false => metrics.federation_failed.inc(),
                }
                busy.set(busy.get() - 1);
            });
        }
    }
}

/// Resolves the addresses of a peer that is configured by name: they identify it as a sender.
async fn locate(root: &TargetApiRoot, names: Option<&Dns>, federation: &Federation) {
    let host = root.origin.host();
    if host.parse::<std::net::IpAddr>().is_ok() {
        return;
    }
    let found = match names {
        Some(names) => names.addresses(host).await.map(|found| found.to_vec()).ok(),
        None => match tokio::net::lookup_host((host, 0)).await {
            Ok(found) => Some(found.map(|one| one.ip()).collect()),
            Err(_) => None,
        },
    };
    if let Some(found) = found {
        federation.is_at(host, found);
    }
}

/// Takes the report of another SCP.
pub(crate) fn receive(
    request: &Request,
    live: &Live,
    federation: &Federation,
    metrics: &Metrics,
) -> Response {
    let settings = &live.config.protection.federation;
    let refuse = |problem: Problem| {
        metrics.federation_refused.inc();
        problem.into_response()
    };
    if !federation.admits(settings, &request.peer) {
        return refuse(
            Problem::new(Cause::Forbidden).detail("only SCPs of protection.federation.peers may report"),
        );
    }
    if *request.method() != Method::POST {
        return refuse(Problem::new(Cause::MethodNotAllowed));
    }
    let report: Report = match serde_json::from_slice(&request.body.to_bytes()) {
        Ok(report) => report,
        Err(error) => {
            return refuse(Problem::new(Cause::InvalidMsgFormat).detail(error.to_string()));
        }
    };
    let fits = |rate: &f64| rate.is_finite() && *rate >= 0.0;
    if report.asked.len() > settings.max_rates {
        return refuse(Problem::new(Cause::PayloadTooLarge).detail("more rates than maxRates"));
    }
    if !report.asked.values().all(fits) {
        return refuse(Problem::new(Cause::InvalidMsgFormat).detail("a rate is below 0"));
    }
    let usage: Usage = report
        .asked
        .into_iter()
        .map(|(name, rate)| (name.into_boxed_str(), rate))
        .collect();
    if !federation.hear(settings, &report.nf_instance_id, usage, Instant::now()) {
        return refuse(
            Problem::new(Cause::Forbidden)
                .detail("all configured SCPs have reported already, under other NF instance ids"),
        );
    }
    metrics.federation_heard.inc();
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}
