//! A caller: the AMF, the SMF, the P-CSCF and the AF of one subscriber after another.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::cscf::Cscf;
use super::documents::{self, Ue, VIDEO, VOICE};
use super::legs::{Leg, Legs};
use super::party::Party;
use crate::identity::{Identity, Scope};
use diameter_proto::ResultCode;
use loadgen::client::{Request, Response};
use loadgen::engine::ClientTls;
use simulators::Notices;

/// Pause between two looks at the BSF or the PCF for something that follows an answer.
const PAUSE: Duration = Duration::from_millis(5);
const BINDINGS: &str = "/nbsf-management/v1/pcfBindings";
const APP_SESSIONS: &str = "/npcf-policyauthorization/v1/app-sessions";

/// The services that a call uses.
const DISCOVERY: Scope = ("NRF", "nnrf-disc");
const BSF: Scope = ("BSF", "nbsf-management");
const AM: Scope = ("PCF", "npcf-am-policy-control");
const UE: Scope = ("PCF", "npcf-ue-policy-control");
const SM: Scope = ("PCF", "npcf-smpolicycontrol");
const AUTHORIZATION: Scope = ("PCF", "npcf-policyauthorization");

/// Where the functions are that a call passes.
#[derive(Clone, Debug)]
pub(crate) struct Peers {
    pub(crate) nrf: SocketAddr,
    pub(crate) scp: SocketAddr,
    pub(crate) bsf: SocketAddr,
    /// The Diameter router.
    pub(crate) router: SocketAddr,
    /// Realm of the PCF at its Rx end.
    pub(crate) realm: String,
    /// How long each leg may take.
    pub(crate) patience: Duration,
    /// Where all interfaces use TLS and tokens.
    pub(crate) secure: Option<Credentials>,
}

/// Who the consumers of a call are, and what they prove it with.
#[derive(Clone, Debug)]
pub(crate) struct Credentials {
    pub(crate) amf: Identity,
    pub(crate) smf: Identity,
    pub(crate) af: Identity,
    pub(crate) pcscf: ClientTls,
}

/// A resource of a producer that the SCP has found: the producer's API root and the path there.
#[derive(Clone, Debug)]
struct Resource {
    root: String,
    path: String,
    service: Scope,
}

/// A call that stands.
#[derive(Debug)]
pub(crate) struct Standing {
    ue: Ue,
    am: Resource,
    policy: Resource,
    session: Resource,
    rx: String,
    /// Rules of the P-CSCF's media at the SMF.
    rules: Vec<String>,
}

/// One that makes calls, on connections of its own. After an error it connects again.
pub(crate) struct Caller {
    peers: Peers,
    number: usize,
    /// Where the AMF, the SMF and the AF take notifications.
    consumers: String,
    notices: Arc<Notices>,
    amf: Party,
    smf: Party,
    af: Party,
    cscf: Option<Cscf>,
    /// Associations of the call that begins.
    made: Vec<Resource>,
}

impl Caller {
    /// A caller without connections. `number` distinguishes its P-CSCF.
    pub(crate) fn new(peers: Peers, number: usize, consumers: SocketAddr, notices: Arc<Notices>) -> Self {
        let secure = peers.secure.as_ref();
        let party =
            |nf_type, of: fn(&Credentials) -> &Identity| Party::new(nf_type, &peers, secure.map(of).cloned());
        let amf = party("AMF", |all| &all.amf);
        let smf = party("SMF", |all| &all.smf);
        let af = party("AF", |all| &all.af);
        Self {
            consumers: format!("{}://{consumers}", scheme(&peers)),
            peers,
            number,
            notices,
            amf,
            smf,
            af,
            cscf: None,
            made: Vec::new(),
        }
    }

    /// Begins a call: registration, PDU session, voice, and video of another AF, which ends while voice goes on.
    ///
    /// # Errors
    /// The leg that failed, and why.
    pub(crate) fn begin(&mut self, ue: Ue, legs: &mut Legs) -> Result<Standing, String> {
        self.made.clear();
        let begun = self.connect().and_then(|()| self.try_to_begin(ue, legs));
        if begun.is_err() {
            self.abandon();
        }
        self.settle(&ue, begun)
    }

    /// Releases what a call that failed has created, as far as functions answer.
    fn abandon(&mut self) {
        self.disconnect();
        for resource in std::mem::take(&mut self.made).into_iter().rev() {
            let request = match resource.service == SM {
                true => json_to("POST", &format!("{}/delete", resource.path), "{}".to_owned()),
                false => Request::new("DELETE", resource.path.clone()),
            };
            // It has failed already, with a reason that the caller knows.
            let _ = self.through_scp(request, &resource);
        }
    }

    /// Ends a call: voice, PDU session, registration. Afterwards no function knows it.
    ///
    /// # Errors
    /// The leg that failed, and why.
    pub(crate) fn end(&mut self, call: &Standing, legs: &mut Legs) -> Result<(), String> {
        let ended = self.connect().and_then(|()| self.try_to_end(call, legs));
        self.notices.forget(&format!("{}/update", call.ue.smf()));
        self.settle(&call.ue, ended)
    }

    /// Answers watchdogs of the router between calls.
    pub(crate) fn attend(&mut self) {
        if self.cscf.as_mut().is_some_and(|cscf| cscf.attend().is_err()) {
            self.cscf = None;
        }
    }

    fn settle<T>(&mut self, ue: &Ue, done: Result<T, String>) -> Result<T, String> {
        if done.is_err() {
            self.disconnect();
            self.notices.forget(&format!("{}/update", ue.smf()));
        }
        done
    }

    fn disconnect(&mut self) {
        self.cscf = None;
        for party in [&mut self.amf, &mut self.smf, &mut self.af] {
            party.reset();
        }
    }

    /// Connects the P-CSCF to the router; the others connect when they ask.
    fn connect(&mut self) -> Result<(), String> {
        self.attend();
        self.cscf().map(drop)
    }

    fn cscf(&mut self) -> Result<&mut Cscf, String> {
        let cscf = match self.cscf.take() {
            Some(cscf) => Ok(cscf),
            None => Cscf::connect(&self.peers, self.number),
        };
        let cscf = cscf.map_err(|error| format!("connecting to the router: {error}"))?;
        Ok(self.cscf.insert(cscf))
    }

    fn try_to_begin(&mut self, ue: Ue, legs: &mut Legs) -> Result<Standing, String> {
        let am = legs.time(Leg::AmCreate, || self.register(&ue, AM))?;
        self.made.push(am.clone());
        let policy = legs.time(Leg::UeCreate, || self.register(&ue, UE))?;
        self.made.push(policy.clone());
        let root = legs.time(Leg::NrfDiscover, || self.discover_pcf())?;
        let session = legs.time(Leg::SmCreate, || {
            let path = "/npcf-smpolicycontrol/v1/sm-policies";
            let request = json_to("POST", path, ue.session(&self.consumers));
            created(&self.smf.ask_scp(target(request, &root), SM)?, &root, SM)
        })?;
        self.made.push(session.clone());
        let pcf = legs.time(Leg::BsfDiscover, || self.discover_binding(&ue))?;
        let rx = self.cscf()?.session(ue.call);
        legs.time(Leg::Aar, || success(self.cscf()?.authorize(&rx, &ue)))?;
        let rules = legs.time(Leg::RulesOfAar, || {
            documents::installed(&self.notified(&ue)?, VOICE)
        })?;
        let application = legs.time(Leg::AfCreate, || {
            let request = json_to("POST", APP_SESSIONS, ue.application(&self.consumers));
            created(
                &self.af.ask_scp(target(request, &pcf), AUTHORIZATION)?,
                &pcf,
                AUTHORIZATION,
            )
        })?;
        let video = legs.time(Leg::RulesOfAf, || {
            documents::installed(&self.notified(&ue)?, VIDEO)
        })?;
        legs.time(Leg::AfDelete, || {
            let path = format!("{}/delete", application.path);
            let request = Request::new("POST", path);
            expect(&self.through_scp(request, &application)?, &[200, 204])
        })?;
        legs.time(Leg::RemovalOfAf, || {
            documents::removed(&self.notified(&ue)?, &video)
        })?;
        Ok(Standing {
            ue,
            am,
            policy,
            session,
            rx,
            rules,
        })
    }

    fn try_to_end(&mut self, call: &Standing, legs: &mut Legs) -> Result<(), String> {
        legs.time(Leg::Str, || success(self.cscf()?.terminate(&call.rx)))?;
        legs.time(Leg::RemovalOfStr, || {
            documents::removed(&self.notified(&call.ue)?, &call.rules)
        })?;
        legs.time(Leg::SmDelete, || {
            let path = format!("{}/delete", call.session.path);
            let request = json_to("POST", &path, "{}".to_owned());
            expect(&self.through_scp(request, &call.session)?, &[200, 204])
        })?;
        legs.time(Leg::BsfRemoved, || self.binding_is_removed(&call.ue))?;
        for (leg, resource) in [(Leg::UeDelete, &call.policy), (Leg::AmDelete, &call.am)] {
            legs.time(leg, || {
                let request = Request::new("DELETE", resource.path.clone());
                expect(&self.through_scp(request, resource)?, &[204])
            })?;
        }
        legs.time(Leg::PcfRemoved, || {
            let request = Request::new("GET", call.session.path.clone());
            expect(&self.through_scp(request, &call.session)?, &[404])
        })
    }

    /// Creates an AM or UE policy association through the SCP, which discovers the PCF (TS 29.500 §6.10.3, Model D).
    fn register(&mut self, ue: &Ue, service: Scope) -> Result<Resource, String> {
        let of = if service == AM { "am" } else { "ue" };
        let body = ue.registration(of, &self.consumers);
        let request = json_to("POST", &format!("/{}/v1/policies", service.1), body)
            .header("3gpp-sbi-discovery-target-nf-type", "PCF")
            .header("3gpp-sbi-discovery-requester-nf-type", "AMF")
            .header("3gpp-sbi-discovery-service-names", service.1);
        created(&self.amf.ask_scp(request, service)?, "", service)
    }

    /// Discovers the PCF for SM policies at the NRF, as the SMF of Model C does; its API root.
    fn discover_pcf(&mut self) -> Result<String, String> {
        let path = "/nnrf-disc/v1/nf-instances?target-nf-type=PCF&requester-nf-type=SMF\
            &service-names=npcf-smpolicycontrol";
        let answer = self.smf.ask_nrf(Request::new("GET", path), DISCOVERY)?;
        expect(&answer, &[200])?;
        let found: Value = serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
        let profile = &found["nfInstances"][0];
        let services = profile["nfServices"].as_array().into_iter().flatten();
        let listed = profile["nfServiceList"].as_object().into_iter().flatten();
        let mut services = services.chain(listed.map(|(_, service)| service));
        let service = services.find(|service| service["serviceName"] == "npcf-smpolicycontrol");
        service
            .and_then(|service| end_point(scheme(&self.peers), &service["ipEndPoints"][0]))
            .ok_or_else(|| format!("no PCF with an address: {found}"))
    }

    /// The API root of the PCF that has the session, by the BSF (TS 29.521 §4.2.4). The PCF registers the binding after it
    /// has answered the SMF.
    fn discover_binding(&mut self, ue: &Ue) -> Result<String, String> {
        let binding = self.until(ue, |answer| answer.status == 200)?;
        let found: Value = serde_json::from_slice(&binding.body).map_err(|error| error.to_string())?;
        if found["supi"] != ue.supi() || found["dnn"] != documents::DNN {
            return Err(format!("the binding of another session: {found}"));
        }
        end_point(scheme(&self.peers), &found["pcfIpEndPoints"][0])
            .ok_or_else(|| format!("a binding without an address: {found}"))
    }

    /// Waits until the BSF has no binding for the address.
    fn binding_is_removed(&mut self, ue: &Ue) -> Result<(), String> {
        self.until(ue, |answer| answer.status == 204).map(drop)
    }

    /// Queries the BSF for the binding until the answer fits.
    fn until(&mut self, ue: &Ue, fits: impl Fn(&Response) -> bool) -> Result<Response, String> {
        let end = Instant::now() + self.peers.patience;
        loop {
            let request = Request::new("GET", format!("{BINDINGS}?ipv4Addr={}", ue.address));
            let answer = self.af.ask_bsf(request, BSF)?;
            if fits(&answer) {
                return Ok(answer);
            }
            if Instant::now() > end {
                return Err(format!("still {}: {}", answer.status, answer.text()));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Sends a request about a resource through the SCP to its producer (TS 29.500 §6.10.2, Model C).
    fn through_scp(&mut self, request: Request, resource: &Resource) -> Result<Response, String> {
        let party = match resource.service {
            SM => &mut self.smf,
            AUTHORIZATION => &mut self.af,
            _ => &mut self.amf,
        };
        party.ask_scp(target(request, &resource.root), resource.service)
    }

    /// The next notification of the session's policy.
    fn notified(&self, ue: &Ue) -> Result<bytes::Bytes, String> {
        let path = format!("{}/update", ue.smf());
        let notice = self.notices.take(&path, self.peers.patience);
        notice.ok_or_else(|| "the SMF was not notified".to_owned())
    }
}

fn json_to(method: &'static str, path: &str, body: String) -> Request {
    Request::new(method, path).with("application/json", body)
}

fn target(request: Request, root: &str) -> Request {
    request.header("3gpp-sbi-target-apiroot", root)
}

/// The scheme of all interfaces.
fn scheme(peers: &Peers) -> &'static str {
    match peers.secure {
        Some(_) => "https",
        None => "http",
    }
}

fn expect(answer: &Response, statuses: &[u16]) -> Result<(), String> {
    match statuses.contains(&answer.status) {
        true => Ok(()),
        false => Err(format!("answered {}: {}", answer.status, answer.text())),
    }
}

fn success(result: std::io::Result<u32>) -> Result<(), String> {
    match result {
        Ok(code) if code == ResultCode::SUCCESS.0 => Ok(()),
        Ok(code) => Err(format!("answered with result {code}")),
        Err(error) => Err(error.to_string()),
    }
}

/// The resource that an answer names: by its own address, or below `root` where `Location` has only a path.
fn created(answer: &Response, root: &str, service: Scope) -> Result<Resource, String> {
    expect(answer, &[201])?;
    let location = &answer.location;
    let wrong = || format!("Location {location:?} names no resource");
    let (root, path) = match location.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_once('/').ok_or_else(wrong)?;
            (format!("{scheme}://{authority}"), format!("/{path}"))
        }
        None => (root.to_owned(), location.clone()),
    };
    match root.is_empty() || !path.starts_with('/') {
        true => Err(wrong()),
        false => Ok(Resource { root, path, service }),
    }
}

/// The API root of an `IpEndPoint` (TS 29.510 §6.1.6.2.5).
fn end_point(scheme: &str, point: &Value) -> Option<String> {
    let address = point["ipv4Address"].as_str()?;
    let port = point["port"].as_u64()?;
    Some(format!("{scheme}://{address}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_has_a_root_and_a_path() {
        let answer = |location: &str| Response {
            status: 201,
            location: location.to_owned(),
            ..Response::default()
        };
        let found = created(&answer("http://127.0.0.1:8040/npcf/v1/x/1"), "", SM).unwrap();
        assert_eq!(
            (found.root.as_str(), found.path.as_str()),
            ("http://127.0.0.1:8040", "/npcf/v1/x/1")
        );
        let found = created(&answer("/npcf/v1/x/1"), "http://pcf", SM).unwrap();
        assert_eq!(
            (found.root.as_str(), found.path.as_str()),
            ("http://pcf", "/npcf/v1/x/1")
        );
        for (location, root) in [("/npcf/v1/x/1", ""), ("", "http://pcf"), ("http://pcf", "")] {
            assert!(created(&answer(location), root, SM).is_err(), "{location}");
        }
    }
}
