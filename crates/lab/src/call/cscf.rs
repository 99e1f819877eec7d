//! A P-CSCF at its Rx end (TS 29.214), connected to a Diameter router.

use std::io;

use diameter_proto::known::{self, application, command};
use diameter_proto::{Dictionary, MessageBuilder, text};

use super::caller::Peers;
use super::documents::Ue;
use crate::diameter_client::DiameterClient;
use loadgen::diameter::Introduction;

const REALM: &str = "ims.example";
/// DIAMETER_LOGOUT (RFC 6733 §8.15).
const LOGOUT: i32 = 1;

/// The DiameterIdentity of a P-CSCF.
pub(crate) fn host(number: usize) -> String {
    format!("pcscf{number:03}.{REALM}")
}

/// The P-CSCF and its connection.
pub(super) struct Cscf {
    client: DiameterClient,
    /// Identifiers of the last request.
    last: u32,
    /// Realm of the PCFs.
    realm: String,
}

impl Cscf {
    /// Connects, and exchanges capabilities.
    pub(super) fn connect(peers: &Peers, number: usize) -> io::Result<Self> {
        let introduction = Introduction::new(host(number), REALM, application::RX);
        let tls = peers.secure.as_ref().map(|secure| &secure.pcscf);
        Ok(Self {
            client: DiameterClient::connect(peers.router, introduction, tls, peers.patience)?,
            last: 0,
            realm: peers.realm.clone(),
        })
    }

    /// The Session-Id of a call.
    pub(super) fn session(&self, call: u64) -> String {
        format!("{};{call};rx", self.client.own().host)
    }

    /// Sends an AAR; the result of its answer.
    pub(super) fn authorize(&mut self, session: &str, ue: &Ue) -> io::Result<u32> {
        let avps = format!("AAR app={} flags=RP {{\n{}\n}}", application::RX, ue.media());
        let parsed = text::parse(&avps, Dictionary::standard()).map_err(io::Error::other)?;
        let mut request = self.request(command::AA, session);
        request.append_encoded(parsed.avps().remaining());
        self.ask(request)
    }

    /// Sends an STR; the result of its answer.
    pub(super) fn terminate(&mut self, session: &str) -> io::Result<u32> {
        let mut request = self.request(command::SESSION_TERMINATION, session);
        request.put(known::TERMINATION_CAUSE, LOGOUT);
        self.ask(request)
    }

    fn request(&mut self, code: u32, session: &str) -> MessageBuilder {
        self.last = self.last.wrapping_add(1);
        let own = self.client.own();
        let mut request = MessageBuilder::request(code, application::RX);
        request.identifiers(self.last, self.last);
        request
            .put(known::SESSION_ID, session)
            .put(known::AUTH_APPLICATION_ID, application::RX)
            .put(known::ORIGIN_HOST, &own.host)
            .put(known::ORIGIN_REALM, &own.realm)
            .put(known::DESTINATION_REALM, &self.realm);
        request
    }

    fn ask(&mut self, request: MessageBuilder) -> io::Result<u32> {
        self.client.ask(request, self.last)
    }

    /// Answers what has come of the other side's own accord, such as watchdogs.
    pub(super) fn attend(&mut self) -> io::Result<()> {
        self.client.attend()
    }
}
