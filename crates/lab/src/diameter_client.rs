//! A simulated Diameter node that sends one request after the other to a router.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use diameter_proto::known::{self, VENDOR_3GPP, application, command};
use diameter_proto::{MessageBuilder, MessageRef, Origin, ResultCode};

use loadgen::Wire;
use loadgen::diameter::{Inbox, Introduction, append, result_of};
use loadgen::engine::ClientTls;

/// How long one read waits.
pub(crate) const TURN: Duration = Duration::from_millis(50);
/// Auth-Session-State NO_STATE_MAINTAINED (RFC 6733 §8.11).
const NO_STATE_MAINTAINED: i32 = 1;

/// The node and its connection.
pub(crate) struct DiameterClient {
    introduction: Introduction,
    stream: Wire,
    inbox: Inbox,
    patience: Duration,
}

impl DiameterClient {
    /// Connects, and exchanges capabilities; each wait is `patience` at most.
    pub(crate) fn connect(
        router: SocketAddr,
        introduction: Introduction,
        tls: Option<&ClientTls>,
        patience: Duration,
    ) -> io::Result<Self> {
        let stream = Wire::connect(router, patience, tls)?;
        stream.wait_at_most(TURN)?;
        let mut cer = Vec::new();
        introduction.put_capabilities_request(Some(stream.local_address()?.ip()), &mut cer);
        let mut client = Self {
            introduction,
            stream,
            inbox: Inbox::default(),
            patience,
        };
        client.stream.write_all(&cer)?;
        match client.answer_to(None, &mut result_of)? {
            code if code == ResultCode::SUCCESS.0 => Ok(client),
            code => Err(io::Error::other(format!("the router answers a CER with {code}"))),
        }
    }

    /// Its names.
    pub(crate) const fn own(&self) -> &Origin {
        &self.introduction.origin
    }

    /// Sends a request with this Hop-by-Hop Identifier; the result of its answer.
    pub(crate) fn ask(&mut self, request: MessageBuilder, number: u32) -> io::Result<u32> {
        let mut bytes = Vec::new();
        append(request, &mut bytes);
        self.exchange(&bytes, number, &mut result_of)
    }

    /// Sends a request that has this Hop-by-Hop Identifier; what `judge` makes of its answer.
    pub(crate) fn exchange<T>(
        &mut self,
        request: &[u8],
        number: u32,
        judge: &mut dyn FnMut(MessageRef<'_>) -> T,
    ) -> io::Result<T> {
        self.stream.write_all(request)?;
        self.answer_to(Some(number), judge)
    }

    /// Reads until the answer with this identifier, or a CEA; requests of the other side are answered meanwhile.
    fn answer_to<T>(
        &mut self,
        wanted: Option<u32>,
        judge: &mut dyn FnMut(MessageRef<'_>) -> T,
    ) -> io::Result<T> {
        let end = Instant::now() + self.patience;
        loop {
            if let Some(result) = self.read(wanted, judge)? {
                return Ok(result);
            }
            if Instant::now() > end {
                return Err(io::Error::new(ErrorKind::TimedOut, "no answer in time"));
            }
        }
    }

    /// Answers what has come of the other side's own accord, such as watchdogs.
    pub(crate) fn attend(&mut self) -> io::Result<()> {
        self.stream.wait_at_most(Duration::from_millis(1))?;
        let read = self.read(None, &mut result_of);
        self.stream.wait_at_most(TURN)?;
        read.map(drop)
    }

    /// Reads once.
    fn read<T>(
        &mut self,
        wanted: Option<u32>,
        judge: &mut dyn FnMut(MessageRef<'_>) -> T,
    ) -> io::Result<Option<T>> {
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
                found = Some(judge(message));
            }
        });
        fed.map_err(|_| io::Error::from(ErrorKind::InvalidData))?;
        self.stream.write_all(&answers)?;
        Ok(found)
    }
}

/// An Update-Location-Request (TS 29.272 §5.2.1.1) of an MME to an HSS of this realm, or to the one that is named.
pub(crate) fn update_location(own: &Origin, realm: &str, hss: Option<&str>, number: u32) -> MessageBuilder {
    let mut request = MessageBuilder::request(command::UPDATE_LOCATION, application::S6A);
    request.identifiers(number, number);
    request
        .put(known::SESSION_ID, &format!("{};0;{number}", own.host))
        .group(known::VENDOR_SPECIFIC_APPLICATION_ID, |group| {
            group
                .put(known::VENDOR_ID, VENDOR_3GPP)
                .put(known::AUTH_APPLICATION_ID, application::S6A);
        })
        .put(known::AUTH_SESSION_STATE, NO_STATE_MAINTAINED)
        .put(known::ORIGIN_HOST, &own.host)
        .put(known::ORIGIN_REALM, &own.realm);
    if let Some(hss) = hss {
        request.put(known::DESTINATION_HOST, hss);
    }
    request
        .put(known::DESTINATION_REALM, realm)
        .put(known::USER_NAME, &format!("0010100000{:05}", number % 100_000));
    request
}
