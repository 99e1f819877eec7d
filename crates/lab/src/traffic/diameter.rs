//! A simulated MME and a simulated HSS, both connected to a Diameter router: the MME updates locations (TS 29.272 §5.2.1)
//! at the HSS through the router.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use diameter_proto::known::{self, VENDOR_3GPP, application, command};
use diameter_proto::{MessageBuilder, ResultCode};

use super::{Counts, PATIENCE, PAUSE, Secure, wait};
use loadgen::Wire;
use loadgen::diameter::{Inbox, Introduction, append, result_of};
use loadgen::engine::ClientTls;

const REALM: &str = "epc.mnc001.mcc001.3gppnetwork.org";
/// The MME and the HSS.
pub(super) const HOSTS: [&str; 2] = [
    "mme1.epc.mnc001.mcc001.3gppnetwork.org",
    "hss1.epc.mnc001.mcc001.3gppnetwork.org",
];
/// Between two requests.
const BETWEEN: Duration = Duration::from_millis(500);
/// How long a read waits.
const TURN: Duration = Duration::from_millis(50);
/// Auth-Session-State NO_STATE_MAINTAINED (RFC 6733 §8.11).
const NO_STATE_MAINTAINED: i32 = 1;

/// The router, and what the nodes connect to it with.
pub(super) struct Router {
    address: SocketAddr,
    /// Of each of [`HOSTS`]; absent: in cleartext.
    tls: [Option<ClientTls>; 2],
}

impl Router {
    pub(super) fn new(address: SocketAddr, secure: Option<&Secure>) -> io::Result<Self> {
        let of = |host| secure.map(|secure| secure.node(host)).transpose();
        let [mme, hss] = HOSTS;
        Ok(Self {
            address,
            tls: [of(mme)?, of(hss)?],
        })
    }
}

/// Keeps both connected and the MME busy until the end.
pub(super) fn run(router: &Router, stop: &AtomicBool, counts: &Counts) {
    while !stop.load(Ordering::Relaxed) {
        // An error means that the router closed a connection: connect again.
        if live(router, stop, counts).is_err() {
            counts.count(false);
            wait(PAUSE, stop);
        }
    }
}

fn live(router: &Router, stop: &AtomicBool, counts: &Counts) -> io::Result<()> {
    let mut mme = Peer::connect(router, 0)?;
    let mut hss = Peer::connect(router, 1)?;
    let mut next = Instant::now();
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        let ready = mme.is_open && hss.is_open;
        if ready && Instant::now() >= next {
            next = Instant::now() + BETWEEN;
            number += 1;
            mme.update_location(number, &hss.introduction)?;
        }
        mme.receive(counts)?;
        hss.receive(counts)?;
    }
    Ok(())
}

/// A node and its connection.
struct Peer {
    introduction: Introduction,
    stream: Wire,
    inbox: Inbox,
    /// Whether the capabilities exchange has succeeded.
    is_open: bool,
}

impl Peer {
    fn connect(router: &Router, number: usize) -> io::Result<Self> {
        let introduction = Introduction::new(HOSTS[number].to_owned(), REALM, application::S6A);
        let mut stream = Wire::connect(router.address, PATIENCE, router.tls[number].as_ref())?;
        stream.wait_at_most(TURN)?;
        let mut cer = Vec::new();
        let local = stream.local_address()?.ip();
        introduction.put_capabilities_request(Some(local), &mut cer);
        stream.write_all(&cer)?;
        Ok(Self {
            introduction,
            stream,
            inbox: Inbox::default(),
            is_open: false,
        })
    }

    fn update_location(&mut self, number: u32, hss: &Introduction) -> io::Result<()> {
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
            .put(known::DESTINATION_HOST, &hss.origin.host)
            .put(known::DESTINATION_REALM, &hss.origin.realm)
            .put(known::USER_NAME, &format!("0010100000{:05}", number % 100_000));
        let mut bytes = Vec::new();
        append(request, &mut bytes);
        self.stream.write_all(&bytes)
    }

    /// Takes what has come within a turn, and answers requests.
    fn receive(&mut self, counts: &Counts) -> io::Result<()> {
        let mut buffer = [0; 4096];
        let length = match self.stream.read(&mut buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => length,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let mut answers = Vec::new();
        let (introduction, is_open) = (&self.introduction, &mut self.is_open);
        let fed = self.inbox.feed(&buffer[..length], |message| {
            if message.is_request() {
                introduction.put_result(message, ResultCode::SUCCESS, &mut answers);
                return;
            }
            let succeeded = result_of(message) == ResultCode::SUCCESS.0;
            match message.command() {
                command::CAPABILITIES_EXCHANGE => *is_open = succeeded,
                _ => counts.count(succeeded),
            }
        });
        fed.map_err(|_| io::Error::from(ErrorKind::InvalidData))?;
        self.stream.write_all(&answers)
    }
}
