//! The simulated functions at the NRF: what each asks, with its own certificate and tokens where there are any.

use std::io;
use std::net::SocketAddr;

use super::{PATIENCE, Traffic, functions};
use crate::identity::{Identity, Scope, Tokens};
use loadgen::client::{Client, Request};
use workload::nrf::{Function, profiles};

/// The services that tokens are asked for.
const MANAGEMENT: Scope = ("NRF", "nnrf-nfm");
const DISCOVERY: Scope = ("NRF", "nnrf-disc");

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
    identity: Option<Identity>,
    tokens: Tokens,
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
                identity: files
                    .map(|files| Identity::new(&function.kind, &function.id, files))
                    .transpose()?,
                function,
                tokens: Tokens::default(),
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
            member.tokens.clear();
            match &member.identity {
                Some(identity) => self.clients.push(identity.connect(self.nrf, PATIENCE)?),
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
        self.ask_with_token(one, MANAGEMENT, request.with("application/json-patch+json", body))
    }

    /// Deregisters one.
    pub(super) fn leave(&mut self, one: usize) -> io::Result<bool> {
        let request = Request::new("DELETE", path_of(&self.members[one].function));
        self.ask_with_token(one, MANAGEMENT, request)
    }

    /// A function of one type looks for those of another.
    pub(super) fn look(&mut self, requester: &str, target: &str) -> io::Result<bool> {
        let path =
            format!("/nnrf-disc/v1/nf-instances?target-nf-type={target}&requester-nf-type={requester}");
        let found = self
            .members
            .iter()
            .position(|member| member.function.kind == requester);
        self.ask_with_token(found.unwrap_or_default(), DISCOVERY, Request::new("GET", path))
    }

    fn ask_with_token(&mut self, one: usize, scope: Scope, request: Request) -> io::Result<bool> {
        let place = self.place_of_client(one);
        let (Some(member), Some(nrf)) = (self.members.get_mut(one), self.clients.get_mut(place)) else {
            return Err(not_connected());
        };
        let Some(identity) = &member.identity else {
            return self.ask(one, request);
        };
        let Some(token) = member.tokens.authorization(identity, nrf, scope)? else {
            return Ok(false);
        };
        let right = self.ask(one, request.header("authorization", token))?;
        if !right {
            self.members[one].tokens.refuse(scope);
        }
        Ok(right)
    }

    fn ask(&mut self, one: usize, request: Request) -> io::Result<bool> {
        let place = self.place_of_client(one);
        let client = self.clients.get_mut(place).ok_or_else(not_connected)?;
        let answers = client.exchange(&[request])?;
        Ok(answers.iter().all(|answer| (200..300).contains(&answer.status)))
    }

    fn place_of_client(&self, one: usize) -> usize {
        if self.clients.len() > 1 { one } else { 0 }
    }
}

fn not_connected() -> io::Error {
    io::Error::other("not connected")
}

fn path_of(function: &Function) -> String {
    format!("/nnrf-nfm/v1/nf-instances/{}", function.id)
}
