//! The kinds of requests of a bad day, each with a consumer that sends them one after the other.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde_json::json;

use super::mme::Mme;
use loadgen::client::{Client, Request, Response};
use loadgen::engine::ClientTls;
use simulators::network::population::instance_id;

/// Requests over one TLS connection; then the consumer makes another one, so that certificates are in use all the time.
const REQUESTS_EACH: u32 = 20;
/// NF instances that register again and again.
const REGISTERED: u64 = 50;
/// Row of their ids.
const ROW: u32 = 0xd4;
/// The first address of a UE.
const FIRST_ADDRESS: u32 = 0x0a80_0000;
/// Addresses; a later binding has one of an earlier binding that is gone.
const ADDRESSES: u64 = 1 << 20;

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Through the SCP, to a producer that it discovers (Model D).
    Discovered,
    /// Through the SCP, to a producer that the consumer names (Model C).
    Named,
    /// A discovery at the NRF.
    Directory,
    /// A registration at the NRF.
    Registration,
    /// Registration, discovery and removal of a binding at the BSF, in turn.
    Binding,
    /// Update-Location through the Diameter router.
    Location,
}

impl Kind {
    /// All of them, with their share of the requests.
    pub(super) const ALL: [(Self, f64); 6] = [
        (Self::Discovered, 0.3),
        (Self::Named, 0.2),
        (Self::Directory, 0.1),
        (Self::Registration, 0.05),
        (Self::Binding, 0.2),
        (Self::Location, 0.15),
    ];

    /// Its name in reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Discovered => "scp.discovered",
            Self::Named => "scp.named",
            Self::Directory => "nrf.discovery",
            Self::Registration => "nrf.registration",
            Self::Binding => "bsf.binding",
            Self::Location => "dsr.location",
        }
    }
}

/// Where requests go.
#[derive(Clone)]
pub(super) struct Targets {
    pub(super) nrf: SocketAddr,
    pub(super) scp: SocketAddr,
    pub(super) bsf: SocketAddr,
    pub(super) router: SocketAddr,
    /// API root of the named producer.
    pub(super) named: String,
    /// What consumers trust the SCP by.
    pub(super) tls: ClientTls,
    pub(super) patience: Duration,
}

/// A consumer of one kind.
pub(super) struct Consumer {
    kind: Kind,
    targets: Targets,
    number: usize,
    client: Option<Client>,
    mme: Option<Mme>,
    /// Requests over this connection.
    used: u32,
    /// The binding that is registered: its path, and its address.
    binding: Option<(String, String)>,
    found: bool,
}

impl Consumer {
    pub(super) fn new(kind: Kind, number: usize, targets: &Targets) -> Self {
        Self {
            kind,
            targets: targets.clone(),
            number,
            client: None,
            mme: None,
            used: 0,
            binding: None,
            found: false,
        }
    }

    /// Sends the request of this number. A connection that its server has closed meanwhile is made again once, as consumers do.
    pub(super) fn ask(&mut self, number: u64) -> Result<(), String> {
        let had = self.client.is_some() || self.mme.is_some();
        match self.once(number) {
            Err(Failed::Connection(error)) if had && is_closed(&error) => {
                self.disconnect();
                self.once(number).map_err(|failed| self.words(failed))
            }
            other => other.map_err(|failed| self.words(failed)),
        }
    }

    fn words(&mut self, failed: Failed) -> String {
        match failed {
            Failed::Connection(error) => {
                self.disconnect();
                error.to_string()
            }
            Failed::Answer(words) => words,
        }
    }

    fn disconnect(&mut self) {
        (self.client, self.mme, self.used) = (None, None, 0);
    }

    fn once(&mut self, number: u64) -> Result<(), Failed> {
        match self.kind {
            Kind::Location => self.location(number),
            Kind::Binding => self.binding(number),
            Kind::Discovered | Kind::Named | Kind::Directory | Kind::Registration => {
                let request = self.request(number);
                let answer = self.exchange(request)?;
                let has_profiles = || answer.text().contains("\"nfInstanceId\"");
                match answer.status {
                    200 if self.kind == Kind::Directory && !has_profiles() => {
                        Err(Failed::Answer(format!("no profile in {}", answer.text())))
                    }
                    200 | 201 | 204 => Ok(()),
                    _ => Err(refused(&answer)),
                }
            }
        }
    }

    fn request(&self, number: u64) -> Request {
        let path = format!("/nudm-sdm/v2/imsi-{:015}/am-data", number % 1_000_000);
        match self.kind {
            Kind::Named => Request::new("GET", path).header("3gpp-sbi-target-apiroot", &self.targets.named),
            Kind::Directory => Request::new(
                "GET",
                "/nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type=AMF&service-names=nudm-sdm",
            ),
            Kind::Registration => {
                let id = instance_id(ROW, (number % REGISTERED) as u32);
                let profile = json!({
                    "nfInstanceId": id, "nfType": "SMF", "nfStatus": "REGISTERED", "ipv4Addresses": ["127.0.0.1"],
                    "load": number % 100, "priority": number % 1000,
                });
                Request::new("PUT", format!("/nnrf-nfm/v1/nf-instances/{id}"))
                    .with("application/json", profile.to_string())
            }
            Kind::Discovered | Kind::Binding | Kind::Location => Request::new("GET", path)
                .header("3gpp-sbi-discovery-target-nf-type", "UDM")
                .header("3gpp-sbi-discovery-service-names", "nudm-sdm")
                .header("3gpp-sbi-discovery-requester-nf-type", "AMF"),
        }
    }

    fn exchange(&mut self, request: Request) -> Result<Response, Failed> {
        let patience = self.targets.patience;
        let (peer, tls) = match self.kind {
            Kind::Discovered | Kind::Named => (self.targets.scp, Some(&self.targets.tls)),
            Kind::Directory | Kind::Registration => (self.targets.nrf, None),
            Kind::Binding | Kind::Location => (self.targets.bsf, None),
        };
        if tls.is_some() && self.used >= REQUESTS_EACH {
            (self.client, self.used) = (None, 0);
        }
        let client = match &mut self.client {
            Some(client) => client,
            none => none.insert(match tls {
                Some(tls) => Client::connect_secure(peer, patience, tls)?,
                None => Client::connect(peer, patience)?,
            }),
        };
        self.used += 1;
        let answer = client.exchange(&[request])?.pop();
        answer.ok_or_else(|| Failed::Answer("no answer".to_owned()))
    }

    /// Registers a binding, then finds it, then removes it. One that cannot be found or removed is given up.
    fn binding(&mut self, number: u64) -> Result<(), Failed> {
        const COLLECTION: &str = "/nbsf-management/v1/pcfBindings";
        let Some((path, address)) = self.binding.clone() else {
            let address = Ipv4Addr::from_bits(FIRST_ADDRESS + (number % ADDRESSES) as u32).to_string();
            let body = json!({
                "supi": format!("imsi-{number:015}"), "ipv4Addr": address, "dnn": "internet", "snssai": {"sst": 1},
                "pcfFqdn": "pcf.example.org",
                "pcfIpEndPoints": [{"ipv4Address": "127.0.0.1", "port": 8040}],
            });
            let request = Request::new("POST", COLLECTION).with("application/json", body.to_string());
            let answer = self.exchange(request)?;
            if answer.status != 201 {
                return Err(refused(&answer));
            }
            let path = answer
                .location
                .find(COLLECTION)
                .map(|at| answer.location[at..].to_owned());
            let path = path.ok_or_else(|| Failed::Answer("201 without a Location".to_owned()))?;
            (self.binding, self.found) = (Some((path, address)), false);
            return Ok(());
        };
        if !self.found {
            let path = format!("{COLLECTION}?ipv4Addr={address}&dnn=internet");
            let answer = self.exchange(Request::new("GET", path))?;
            self.found = true;
            return match answer.status {
                200 if answer.text().contains(&address) => Ok(()),
                _ => Err(refused(&answer)),
            };
        }
        let answer = self.exchange(Request::new("DELETE", path))?;
        self.binding = None;
        match answer.status {
            204 => Ok(()),
            _ => Err(refused(&answer)),
        }
    }

    fn location(&mut self, number: u64) -> Result<(), Failed> {
        let mme = match &mut self.mme {
            Some(mme) => mme,
            none => none.insert(Mme::connect(
                self.targets.router,
                self.number,
                self.targets.patience,
            )?),
        };
        mme.attend()?;
        match mme.update_location(number as u32)? {
            2001 => Ok(()),
            code => Err(Failed::Answer(format!("Result-Code {code}"))),
        }
    }
}

/// Why a request failed.
enum Failed {
    Connection(io::Error),
    Answer(String),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Connection(error)
    }
}

fn refused(answer: &Response) -> Failed {
    Failed::Answer(format!("{} {}", answer.status, answer.text()))
}

fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::UnexpectedEof
            | ErrorKind::BrokenPipe
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
    )
}
