//! Database processors: what they are asked, and what they answer.
//!
//! | file | what is there |
//! |---|---|
//! | `client` | the queries of a worker: which processor is asked, and again another one |
//! | `connection` | the connection to one processor |
//! | `once` | a few queries for an explanation |

mod client;
mod connection;
mod once;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use dp_proto::{Answer, Bundle, Kind, Outcome, Query};
use numbers::MOST_DIGITS;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use smallvec::SmallVec;
use tls::{Material, TlsFiles};

use crate::address::Address;
use crate::config::{self, Service};
use crate::data::{By, ByName, Failure, Found};

pub(crate) use client::{Client, Happened, Refusal};

/// The settings that a client follows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Processors {
    places: Vec<Place>,
    deadline: Duration,
    tls: Option<Secure>,
}

/// Where a processor is, and the name that its certificate has.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    address: SocketAddr,
    name: ServerName<'static>,
}

/// TLS of the connections.
#[derive(Clone, Debug)]
struct Secure {
    material: Material,
    client: Arc<ClientConfig>,
}

/// What is in the files makes a difference.
impl PartialEq for Secure {
    fn eq(&self, other: &Self) -> bool {
        self.material == other.material
    }
}

/// The addresses of a request that processors are asked about, in its order, and the kind of server.
pub(crate) type Queries = SmallVec<[(Address, Option<Service>); 1]>;

/// What processors have answered about the addresses of a request.
#[derive(Debug, Default)]
pub struct Replies(SmallVec<[(Address, Reply); 1]>);

/// The answer to one query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The position of a destination.
    Destination(u16, By),
    Unknown,
    Damaged,
    Congested,
    /// The destination is not one of the settings.
    NoDestination,
    /// No processor has answered.
    Nothing,
}

impl Processors {
    /// Those of a configuration; none: it has no processor.
    ///
    /// # Errors
    /// When a name or the files of TLS cannot be used.
    pub(crate) fn new(config: &config::Fabr) -> Result<Option<Self>, String> {
        if config.processors.is_empty() {
            return Ok(None);
        }
        let place = |one: &config::Processor| Place::new(one.address, one.name.as_deref());
        let secure = |files: &TlsFiles| {
            let read = Material::read(files);
            let made = read.and_then(|material| Ok((material.client(&[])?, material)));
            let (client, material) = made.map_err(|error| format!("processorTls: {error}"))?;
            Ok::<_, String>(Secure { material, client })
        };
        Ok(Some(Self {
            places: config.processors.iter().map(place).collect::<Result<_, _>>()?,
            deadline: config.processor_deadline.duration(),
            tls: config.processor_tls.as_ref().map(secure).transpose()?,
        }))
    }

    /// Time from a query to its answer.
    pub(crate) const fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Asks once, for an explanation. It waits for the answer.
    pub(crate) fn ask(&self, address: &Address, service: Option<Service>, names: &ByName) -> (Reply, String) {
        once::ask(self, address, service, names)
    }
}

impl Place {
    /// A processor whose certificate has this name, or its address.
    fn new(address: SocketAddr, name: Option<&str>) -> Result<Self, String> {
        let name = match name {
            None => address.ip().into(),
            Some(name) => {
                let parsed = ServerName::try_from(name.to_owned());
                parsed.map_err(|error| format!("processor {address}: name `{name}`: {error}"))?
            }
        };
        Ok(Self { address, name })
    }
}

impl Replies {
    /// The reply about an address.
    ///
    /// # Errors
    /// When there is none that could be used.
    pub(crate) fn find(&self, address: &Address) -> Result<Found, Failure> {
        let reply = self.0.iter().find(|(of, _)| of == address);
        reply.map_or(Reply::Nothing, |(_, reply)| *reply).found()
    }
}

impl Reply {
    fn new(answer: &Answer<'_>, names: &ByName) -> Self {
        let by = match answer.outcome {
            Outcome::Exact => By::Processor,
            Outcome::Realm => By::Wildcard,
            Outcome::Unknown => return Self::Unknown,
            Outcome::Damaged => return Self::Damaged,
            Outcome::Congested => return Self::Congested,
            Outcome::Unavailable => return Self::Nothing,
        };
        let name = std::str::from_utf8(answer.destination).ok();
        let to = name.and_then(|name| names.get(name));
        to.map_or(Self::NoDestination, |to| Self::Destination(*to, by))
    }

    /// What it says of its address.
    ///
    /// # Errors
    /// When it says nothing that could be used.
    pub(crate) fn found(self) -> Result<Found, Failure> {
        match self {
            Self::Destination(to, by) => Ok(Some((to, by))),
            Self::Unknown => Ok(None),
            Self::Congested => Err(Failure::Congested),
            Self::Damaged => Err(Failure::NoAnswer(
                "the entry is damaged at the database processor",
            )),
            Self::NoDestination => Err(Failure::NoAnswer(
                "the database processor answered a destination that does not exist here",
            )),
            Self::Nothing => Err(Failure::NoAnswer("no database processor answers")),
        }
    }
}

/// Appends the query about an address.
fn push(bundle: &mut Bundle, id: u32, address: &Address, service: Option<Service>) {
    let service = service.map_or("", Service::as_str).as_bytes();
    let mut query = |kind, value: &[u8]| {
        bundle.push(&Query {
            id,
            kind,
            service,
            value,
        });
    };
    match address {
        Address::Number(key) => {
            let kind = match key.kind() {
                numbers::Kind::Imei => Kind::Imei,
                numbers::Kind::Imsi => Kind::Imsi,
                numbers::Kind::Msisdn => Kind::Msisdn,
            };
            let (mut digits, mut rest) = ([b'0'; MOST_DIGITS], key.number());
            for digit in digits.iter_mut().rev() {
                *digit += (rest % 10) as u8;
                rest /= 10;
            }
            query(kind, digits.get(MOST_DIGITS - key.length()..).unwrap_or_default());
        }
        Address::Name(_, name) => query(Kind::Name, name.as_bytes()),
    }
}

/// Names of destinations that many threads read.
type Names = Arc<ByName>;

#[cfg(test)]
mod tests {
    use tls::authority::Authority;

    use super::*;

    #[test]
    fn changed_files_make_other_connections() {
        let folder = tempfile::tempdir().unwrap();
        let written = || {
            let authority = Authority::new("operator").unwrap();
            let identity = authority.issue(&["dsr.example"]).unwrap();
            authority.write(&identity, folder.path(), "dsr").unwrap()
        };
        let address = "192.0.2.11:3800".parse().unwrap();
        let config = config::Fabr {
            processors: vec![config::Processor { address, name: None }],
            processor_tls: Some(written()),
            ..config::Fabr::default()
        };
        let files = crate::files(&config);
        assert_eq!(files.len(), 3, "{files:?}");
        let made = || Processors::new(&config).unwrap().unwrap();
        let before = made();
        assert_eq!(before, made());
        written();
        assert_ne!(before, made());
        std::fs::write(&files[0], "").unwrap();
        let wrong = Processors::new(&config).unwrap_err();
        assert!(
            wrong.contains("processorTls") && wrong.contains("dsr.crt"),
            "{wrong}"
        );
    }
}
