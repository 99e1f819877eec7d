//! A consumer of the calls at the service-based interface: the AMF, the SMF or the AF, on connections of its own.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use super::caller::Peers;
use crate::identity::{Identity, Scope, Tokens};
use loadgen::client::{Client, Request, Response};

/// A consumer and its connections, which are made when they are used.
#[derive(Debug)]
pub(super) struct Party {
    /// What it says of itself in `User-Agent` (TS 29.500 §5.2.2.2).
    nf_type: &'static str,
    /// Absent in cleartext: then no token is needed either.
    identity: Option<Identity>,
    tokens: Tokens,
    nrf: Line,
    scp: Line,
    bsf: Line,
    patience: Duration,
}

/// A connection to a function, once it was needed.
#[derive(Debug)]
struct Line {
    name: &'static str,
    peer: SocketAddr,
    client: Option<Client>,
}

impl Line {
    fn new(name: &'static str, peer: SocketAddr) -> Self {
        Self {
            name,
            peer,
            client: None,
        }
    }

    fn client(&mut self, identity: Option<&Identity>, patience: Duration) -> Result<&mut Client, String> {
        let client = match self.client.take() {
            Some(client) => Ok(client),
            None => match identity {
                Some(identity) => identity.connect(self.peer, patience),
                None => Client::connect(self.peer, patience),
            },
        };
        let client = client.map_err(|error| format!("connecting to the {}: {error}", self.name))?;
        Ok(self.client.insert(client))
    }
}

impl Party {
    pub(super) fn new(nf_type: &'static str, peers: &Peers, identity: Option<Identity>) -> Self {
        Self {
            nf_type,
            identity,
            tokens: Tokens::default(),
            nrf: Line::new("NRF", peers.nrf),
            scp: Line::new("SCP", peers.scp),
            bsf: Line::new("BSF", peers.bsf),
            patience: peers.patience,
        }
    }

    /// Begins again, with other connections and other tokens.
    pub(super) fn reset(&mut self) {
        self.tokens.clear();
        for line in [&mut self.nrf, &mut self.scp, &mut self.bsf] {
            line.client = None;
        }
    }

    pub(super) fn ask_nrf(&mut self, request: Request, service: Scope) -> Result<Response, String> {
        let request = self.authorized(request, service)?;
        one(self
            .nrf
            .client(self.identity.as_ref(), self.patience)?
            .exchange(&[request]))
    }

    pub(super) fn ask_scp(&mut self, request: Request, service: Scope) -> Result<Response, String> {
        let request = self.authorized(request, service)?;
        one(self
            .scp
            .client(self.identity.as_ref(), self.patience)?
            .exchange(&[request]))
    }

    pub(super) fn ask_bsf(&mut self, request: Request, service: Scope) -> Result<Response, String> {
        let request = self.authorized(request, service)?;
        one(self
            .bsf
            .client(self.identity.as_ref(), self.patience)?
            .exchange(&[request]))
    }

    /// The request in this party's name, with an access token for the service where it has an identity.
    fn authorized(&mut self, request: Request, service: Scope) -> Result<Request, String> {
        let request = request.header("user-agent", self.nf_type);
        let Some(identity) = &self.identity else {
            return Ok(request);
        };
        let nrf = self.nrf.client(Some(identity), self.patience)?;
        let token = self.tokens.authorization(identity, nrf, service);
        match token.map_err(|error| format!("asking the NRF for a token: {error}"))? {
            Some(token) => Ok(request.header("authorization", token)),
            None => Err(format!("the NRF grants no token for {}", service.1)),
        }
    }
}

fn one(answers: io::Result<Vec<Response>>) -> Result<Response, String> {
    let answers = answers.map_err(|error| error.to_string())?;
    answers.into_iter().next().ok_or_else(|| "no answer".to_owned())
}
