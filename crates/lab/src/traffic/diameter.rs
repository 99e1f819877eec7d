//! A simulated MME and a simulated HSS, both connected to a Diameter router: the MME updates locations (TS 29.272 §5.2.1)
//! at the HSS through the router.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use diameter_proto::ResultCode;
use diameter_proto::known::{application, command};

use crate::diameter_client::{TURN, update_location};

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
        let (own, hss) = (&self.introduction.origin, &hss.origin);
        let request = update_location(own, &hss.realm, Some(&hss.host), number);
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
