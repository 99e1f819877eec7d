//! The simulated functions at the NRF: what each asks, with its own certificate and tokens where there are any.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{PATIENCE, Traffic, functions};
use loadgen::client::{Client, Request};
use loadgen::engine::{ClientTls, client_tls};
use workload::nrf::{Function, profiles};

/// The services that tokens are asked for.
const SCOPES: [&str; 2] = ["nnrf-nfm", "nnrf-disc"];

/// The functions and their connections.
pub(super) struct Cast {
    nrf: SocketAddr,
    members: Vec<Member>,
    /// One for all in cleartext; where there are certificates each has its own.
    clients: Vec<Client>,
}

/// A simulated function.
struct Member {
    function: Function,
    profile: String,
    tls: Option<ClientTls>,
    /// For [`SCOPES`], in that order.
    tokens: [Option<Token>; 2],
}

struct Token {
    value: String,
    /// From now on another is asked for.
    renew: Instant,
}

impl Cast {
    /// The functions, each of which listens at the address of its place; AMFs and SMFs at that of the consumers of the PCF,
    /// where there are some.
    pub(super) fn new(
        traffic: &Traffic,
        addresses: &[SocketAddr],
        consumers: Option<SocketAddr>,
    ) -> io::Result<Self> {
        let scheme = if traffic.secure.is_some() { "https" } else { "http" };
        let member = |(place, function): (usize, Function)| {
            let at = addresses
                .get(place)
                .ok_or_else(|| io::Error::other("a simulated function has no port"))?;
            let at = match &consumers {
                Some(consumers) if matches!(function.kind.as_str(), "AMF" | "SMF") => consumers,
                _ => at,
            };
            let files = match &traffic.secure {
                Some(secure) => Some(
                    secure
                        .functions
                        .get(place)
                        .ok_or_else(|| io::Error::other("a simulated function has no certificate"))?,
                ),
                None => None,
            };
            Ok(Member {
                profile: profiles::profile_at(&function, traffic.heartbeat.as_secs() * 3, *at, scheme),
                function,
                tls: files.map(client_tls).transpose()?,
                tokens: [None, None],
            })
        };
        let members: io::Result<Vec<Member>> = functions().into_iter().enumerate().map(member).collect();
        Ok(Self {
            nrf: traffic.nrf,
            members: members?,
            clients: Vec::new(),
        })
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// Connects again; tokens of before are not used again.
    pub(super) fn connect(&mut self) -> io::Result<()> {
        self.clients.clear();
        for member in &mut self.members {
            member.tokens = [None, None];
            match &member.tls {
                Some(tls) => self
                    .clients
                    .push(Client::connect_secure(self.nrf, PATIENCE, tls)?),
                None if self.clients.is_empty() => self.clients.push(Client::connect(self.nrf, PATIENCE)?),
                None => {}
            }
        }
        Ok(())
    }

    /// Registers one; its certificate is proof enough.
    pub(super) fn register(&mut self, one: usize) -> io::Result<bool> {
        let member = &self.members[one];
        let request = Request::new("PUT", path_of(&member.function));
        let request = request.with("application/json", member.profile.clone());
        self.ask(one, request)
    }

    pub(super) fn beat(&mut self, one: usize, load: u32) -> io::Result<bool> {
        let body = format!(
            r#"[{{"op":"replace","path":"/nfStatus","value":"REGISTERED"}},{{"op":"replace","path":"/load","value":{load}}}]"#
        );
        let request = Request::new("PATCH", path_of(&self.members[one].function));
        self.ask_with_token(one, 0, request.with("application/json-patch+json", body))
    }

    /// Deregisters one.
    pub(super) fn leave(&mut self, one: usize) -> io::Result<bool> {
        let request = Request::new("DELETE", path_of(&self.members[one].function));
        self.ask_with_token(one, 0, request)
    }

    /// A function of one type looks for those of another.
    pub(super) fn look(&mut self, requester: &str, target: &str) -> io::Result<bool> {
        let path =
            format!("/nnrf-disc/v1/nf-instances?target-nf-type={target}&requester-nf-type={requester}");
        let found = self
            .members
            .iter()
            .position(|member| member.function.kind == requester);
        self.ask_with_token(found.unwrap_or_default(), 1, Request::new("GET", path))
    }

    fn ask_with_token(&mut self, one: usize, scope: usize, request: Request) -> io::Result<bool> {
        if self.members[one].tls.is_none() {
            return self.ask(one, request);
        }
        let held = self.members[one].tokens[scope].as_ref();
        if held.is_none_or(|token| Instant::now() >= token.renew) {
            let granted = self.token(one, scope)?;
            self.members[one].tokens[scope] = granted;
        }
        let Some(token) = &self.members[one].tokens[scope] else {
            return Ok(false);
        };
        let authorized = request.header("authorization", token.value.clone());
        let right = self.ask(one, authorized)?;
        if !right {
            self.members[one].tokens[scope] = None;
        }
        Ok(right)
    }

    /// Asks for a token; `None` when the NRF grants none.
    fn token(&mut self, one: usize, scope: usize) -> io::Result<Option<Token>> {
        let Function { id, kind, .. } = &self.members[one].function;
        let form = format!(
            "grant_type=client_credentials&nfInstanceId={id}&nfType={kind}&targetNfType=NRF&scope={}",
            SCOPES[scope]
        );
        let request = Request::new("POST", "/oauth2/token").with("application/x-www-form-urlencoded", form);
        let answers = self.client(one)?.exchange(&[request])?;
        let granted: Value = answers
            .first()
            .filter(|answer| answer.status == 200)
            .and_then(|answer| serde_json::from_slice(&answer.body).ok())
            .unwrap_or_default();
        let seconds = granted["expires_in"].as_u64().unwrap_or(60);
        Ok(granted["access_token"].as_str().map(|token| Token {
            value: format!("Bearer {token}"),
            renew: Instant::now() + Duration::from_secs(seconds / 2),
        }))
    }

    fn ask(&mut self, one: usize, request: Request) -> io::Result<bool> {
        let answers = self.client(one)?.exchange(&[request])?;
        Ok(answers.iter().all(|answer| (200..300).contains(&answer.status)))
    }

    fn client(&mut self, one: usize) -> io::Result<&mut Client> {
        let place = if self.clients.len() > 1 { one } else { 0 };
        self.clients
            .get_mut(place)
            .ok_or_else(|| io::Error::other("not connected"))
    }
}

fn path_of(function: &Function) -> String {
    format!("/nnrf-nfm/v1/nf-instances/{}", function.id)
}
