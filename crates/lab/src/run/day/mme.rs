//! An MME that updates locations through the Diameter router (TS 29.272 §5.2.1), one request after the other.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use diameter_proto::known::{self, VENDOR_3GPP, application, command};
use diameter_proto::{MessageBuilder, ResultCode};

use loadgen::Wire;
use loadgen::diameter::{Inbox, Introduction, append, result_of};
use simulators::network::REALM;

/// How long one read waits.
const TURN: Duration = Duration::from_millis(50);
/// Auth-Session-State NO_STATE_MAINTAINED (RFC 6733 §8.11).
const NO_STATE_MAINTAINED: i32 = 1;

/// The MME and its connection.
pub(super) struct Mme {
    introduction: Introduction,
    stream: Wire,
    inbox: Inbox,
    patience: Duration,
}

impl Mme {
    /// Connects, and exchanges capabilities.
    pub(super) fn connect(router: SocketAddr, number: usize, patience: Duration) -> io::Result<Self> {
        let host = format!("mme{number:03}.{REALM}");
        let introduction = Introduction::new(host, REALM, application::S6A);
        let stream = Wire::connect(router, patience, None)?;
        stream.wait_at_most(TURN)?;
        let mut cer = Vec::new();
        introduction.put_capabilities_request(Some(stream.local_address()?.ip()), &mut cer);
        let mut mme = Self {
            introduction,
            stream,
            inbox: Inbox::default(),
            patience,
        };
        mme.stream.write_all(&cer)?;
        match mme.answer_to(None)? {
            code if code == ResultCode::SUCCESS.0 => Ok(mme),
            code => Err(io::Error::other(format!("the router answers a CER with {code}"))),
        }
    }

    /// Sends an Update-Location-Request to the realm; the result of its answer.
    pub(super) fn update_location(&mut self, number: u32) -> io::Result<u32> {
        let own = &self.introduction.origin;
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
            .put(known::ORIGIN_REALM, &own.realm)
            .put(known::DESTINATION_REALM, REALM)
            .put(known::USER_NAME, &format!("0010100000{:05}", number % 100_000));
        let mut bytes = Vec::new();
        append(request, &mut bytes);
        self.stream.write_all(&bytes)?;
        self.answer_to(Some(number))
    }

    /// Reads until the answer with this identifier, or a CEA.
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

    /// Answers watchdogs of the router that have come meanwhile.
    pub(super) fn attend(&mut self) -> io::Result<()> {
        self.stream.wait_at_most(Duration::from_millis(1))?;
        let read = self.read(None);
        self.stream.wait_at_most(TURN)?;
        read.map(drop)
    }

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
