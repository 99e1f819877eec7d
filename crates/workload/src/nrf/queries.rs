//! The discoveries (TS 29.510 §6.2.3.2.3.1), made once and sent often.

use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::json;

use super::{FIRST_REMOTE_SUBSCRIBER, FIRST_SUBSCRIBER, Population, SUBSCRIBERS, profiles};
use callmodel::nrf::{DiscoveryRow, NrfModel, Parameter, Query};
use loadgen::Weights;
use simulators::network::population::{group, services};

/// Work that a discovery causes at the NRF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It answers from its own profiles.
    Local,
    /// It queries the SLF first.
    Slf,
    /// It queries the SLF, has no such group, and forwards to another NRF.
    Forwarded,
}

/// A discovery, ready to be sent.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// Path and query.
    pub path: Vec<u8>,
    /// Where in `path` the fifteen digits of the subscriber are.
    supi_at: Option<usize>,
    /// Work that it causes at the NRF.
    pub kind: Kind,
    /// The type looked for.
    pub target: String,
    /// Profiles that the answer must hold.
    pub profiles: u32,
}

/// All discoveries of a model with their weights.
#[derive(Debug)]
pub struct Queries {
    prepared: Vec<Prepared>,
    weights: Weights,
    /// Those that another NRF may send: everything that this NRF need not forward.
    local: Vec<usize>,
    local_weights: Weights,
}

impl Queries {
    /// The discoveries of a model.
    #[must_use]
    pub fn new(model: &NrfModel, population: &Population) -> Self {
        let mut prepared = Vec::new();
        let mut weights = Vec::new();
        let remote = remote_share(model);
        for row in model.discovery.iter().filter(|row| row.weight > 0.0) {
            let all: f64 = row.queries.iter().map(|q| q.weight).sum();
            for query in row.queries.iter().filter(|q| q.weight > 0.0) {
                let weight = row.weight * query.weight / all;
                let asks = query.asks_slf(&row.target, &model.features.slf_types);
                let forwards = asks && model.features.forwarded_type.as_ref() == Some(&row.target);
                let away = if forwards { remote } else { 0.0 };
                let kind = if asks { Kind::Slf } else { Kind::Local };
                let all = population.full_cells(&row.target).max(1);
                let cells = row.cells.map_or(all, |wanted| wanted.clamp(1, all));
                for cell in 0..cells {
                    let cell = (u64::from(cell) * u64::from(all) / u64::from(cells)) as u32;
                    prepared.push(prepare(row, query, cell, kind));
                    weights.push(weight * (1.0 - away) / f64::from(cells));
                }
                if away > 0.0 {
                    prepared.push(prepare(row, query, 0, Kind::Forwarded));
                    weights.push(weight * away);
                }
            }
        }
        let local: Vec<usize> = (0..prepared.len())
            .filter(|at| prepared[*at].kind != Kind::Forwarded)
            .collect();
        let local_weights = Weights::new(local.iter().map(|at| weights[*at]));
        Self {
            prepared,
            weights: Weights::new(weights),
            local,
            local_weights,
        }
    }

    /// Draws a discovery by weight; `from_nrf` when another NRF is to send it.
    pub fn draw(&self, random: &mut SmallRng, from_nrf: bool) -> usize {
        if from_nrf {
            self.local[self.local_weights.draw(random)]
        } else {
            self.weights.draw(random)
        }
    }

    /// A discovery by its number.
    #[must_use]
    pub fn get(&self, at: usize) -> &Prepared {
        &self.prepared[at]
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> &[Prepared] {
        &self.prepared
    }
}

impl Prepared {
    /// Writes the path with a random subscriber; returns the subscriber's SUPI, if there is one.
    pub fn write(&self, random: &mut SmallRng, path: &mut Vec<u8>) -> Option<std::ops::Range<usize>> {
        let start = path.len();
        path.extend_from_slice(&self.path);
        let at = start + self.supi_at?;
        let first = if self.kind == Kind::Forwarded {
            FIRST_REMOTE_SUBSCRIBER
        } else {
            FIRST_SUBSCRIBER
        };
        let mut number = first + random.random_range(0..SUBSCRIBERS);
        for digit in path[at..at + 15].iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
        Some(at - 5..at + 15)
    }
}

/// The share of the forwarded type's SLF queries that must find a group of another NRF, so that the rate of forwarded
/// discoveries is the model's.
fn remote_share(model: &NrfModel) -> f64 {
    let total: f64 = model.discovery.iter().map(|row| row.weight).sum();
    let asking: f64 = model
        .discovery
        .iter()
        .filter(|row| model.features.forwarded_type.as_ref() == Some(&row.target))
        .map(|row| row.weight * model.slf_share(row))
        .sum();
    // Only what consumers send is forwarded.
    let per_second = model.operations.nf_discover * asking / total.max(f64::MIN_POSITIVE);
    if per_second > 0.0 {
        (model.outgoing.forwarded / per_second).min(1.0)
    } else {
        0.0
    }
}

/// The type of function that would ask for such a target.
fn requester(target: &str) -> &'static str {
    match target {
        "PCF" | "SMF" | "AUSF" | "SMSF" | "LMF" | "NEF" => "AMF",
        "CHF" | "UDM" => "SMF",
        "UDR" => "UDM",
        "BSF" => "AF",
        "AMF" => "SMF",
        _ => "AMF",
    }
}

fn prepare(row: &DiscoveryRow, query: &Query, cell: u32, kind: Kind) -> Prepared {
    let target = if row.target == "SLF" {
        "UDR"
    } else {
        row.target.as_str()
    };
    let mut path = format!(
        "/nnrf-disc/v1/nf-instances?target-nf-type={target}&requester-nf-type={}",
        requester(&row.target)
    );
    let mut supi_at = None;
    for parameter in &query.parameters {
        match parameter {
            Parameter::ServiceNames => put(&mut path, "service-names", &services(&row.target).join(",")),
            Parameter::Supi => {
                put(&mut path, "supi", "imsi-000000000000000");
                supi_at = Some(path.len() - 15);
            }
            Parameter::GroupIdList => put(&mut path, "group-id-list", &group(&row.target, cell)),
            Parameter::RoutingIndicator => {
                put(&mut path, "routing-indicator", &profiles::routing_indicator(cell));
            }
            Parameter::Guami => {
                let guami =
                    json!({ "plmnId": { "mcc": "001", "mnc": "01" }, "amfId": profiles::amf_id(cell) });
                put(&mut path, "guami", &guami.to_string());
            }
            Parameter::RequesterNssais => {
                put(
                    &mut path,
                    "requester-snssais",
                    &json!([profiles::slice(cell)]).to_string(),
                );
            }
            Parameter::Pgw => put(&mut path, "pgw", &profiles::pgw(cell)),
            Parameter::PgwInd => put(&mut path, "pgw-ind", "true"),
            Parameter::Dnn => put(&mut path, "dnn", &profiles::dnn(cell)),
            Parameter::Snssais => put(&mut path, "snssais", &json!([profiles::slice(cell)]).to_string()),
            Parameter::Tai => put(&mut path, "tai", &profiles::tai(cell, 0).to_string()),
            Parameter::PreferredLocality => {
                put(&mut path, "preferred-locality", &format!("site-{}", cell % 8 + 1));
            }
            Parameter::DataSet => put(&mut path, "data-set", "SUBSCRIPTION"),
        }
    }
    Prepared {
        path: path.into_bytes(),
        supi_at,
        kind,
        target: target.to_owned(),
        profiles: row.profiles,
    }
}

/// Appends a query parameter, percent-encoded where RFC 3986 §3.4 demands it.
fn put(path: &mut String, name: &str, value: &str) {
    path.push('&');
    path.push_str(name);
    path.push('=');
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b',' => {
                path.push(char::from(byte));
            }
            other => path.push_str(&format!("%{other:02X}")),
        }
    }
}
