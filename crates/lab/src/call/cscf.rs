//! A P-CSCF at its Rx end (TS 29.214), connected to a Diameter router.

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use diameter_proto::known::{self, application, command};
use diameter_proto::{Dictionary, MessageBuilder, ResultCode, text};

use super::caller::Peers;
use super::documents::Ue;
use loadgen::Wire;
use loadgen::diameter::{Inbox, Introduction, append, result_of};

const REALM: &str = "ims.example";
/// How long one read waits.
const TURN: Duration = Duration::from_millis(50);
/// DIAMETER_LOGOUT (RFC 6733 §8.15).
const LOGOUT: i32 = 1;

/// The DiameterIdentity of a P-CSCF.
pub(crate) fn host(number: usize) -> String {
    format!("pcscf{number:03}.{REALM}")
}

/// The P-CSCF and its connection.
pub(super) struct Cscf {
    introduction: Introduction,
    stream: Wire,
    inbox: Inbox,
    /// Identifiers of the last request.
    last: u32,
    /// Realm of the PCFs.
    realm: String,
    patience: Duration,
}

impl Cscf {
    /// Connects, and exchanges capabilities.
    pub(super) fn connect(peers: &Peers, number: usize) -> io::Result<Self> {
        let patience = peers.patience;
        let introduction = Introduction::new(host(number), REALM, application::RX);
        let tls = peers.secure.as_ref().map(|secure| &secure.pcscf);
        let stream = Wire::connect(peers.router, patience, tls)?;
        stream.wait_at_most(TURN)?;
        let mut cer = Vec::new();
        introduction.put_capabilities_request(Some(stream.local_address()?.ip()), &mut cer);
        let mut cscf = Self {
            introduction,
            stream,
            inbox: Inbox::default(),
            last: 0,
            realm: peers.realm.clone(),
            patience,
        };
        cscf.stream.write_all(&cer)?;
        match cscf.answer_to(None)? {
            code if code == ResultCode::SUCCESS.0 => Ok(cscf),
            code => Err(io::Error::other(format!("the router answers a CER with {code}"))),
        }
    }

    /// The Session-Id of a call.
    pub(super) fn session(&self, call: u64) -> String {
        format!("{};{call};rx", self.introduction.origin.host)
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
        let own = &self.introduction.origin;
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
        let mut bytes = Vec::new();
        append(request, &mut bytes);
        self.stream.write_all(&bytes)?;
        self.answer_to(Some(self.last))
    }

    /// Reads until the answer with these identifiers, or a CEA; requests of the other side are answered meanwhile.
    fn answer_to(&mut self, wanted: Option<u32>) -> io::Result<u32> {
        let end = Instant::now() + self.patience;
        loop {
            if let Some(result) = self.read(wanted)? {
                return Ok(result);
            }
            if Instant::now() > end {
                return Err(io::Error::new(ErrorKind::TimedOut, "no answer in time"));
            }
        }
    }

    /// Answers what has come of the other side's own accord, such as watchdogs.
    pub(super) fn attend(&mut self) -> io::Result<()> {
        self.stream.wait_at_most(Duration::from_millis(1))?;
        let read = self.read(None);
        self.stream.wait_at_most(TURN)?;
        read.map(drop)
    }

    /// Reads once.
    fn read(&mut self, wanted: Option<u32>) -> io::Result<Option<u32>> {
        let mut buffer = [0; 4096];
        let length = match self.stream.read(&mut buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => length,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let (mut answers, mut found) = (Vec::new(), None);
        let introduction = &self.introduction;
        let fed = self.inbox.feed(&buffer[..length], |message| {
            if message.is_request() {
                introduction.put_result(message, ResultCode::SUCCESS, &mut answers);
                return;
            }
            let is_wanted = match wanted {
                Some(id) => message.hop_by_hop() == id,
                None => message.command() == command::CAPABILITIES_EXCHANGE,
            };
            if is_wanted {
                found = Some(result_of(message));
            }
        });
        fed.map_err(|_| io::Error::from(ErrorKind::InvalidData))?;
        self.stream.write_all(&answers)?;
        Ok(found)
    }
}
