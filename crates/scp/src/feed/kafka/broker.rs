//! A connection to one broker: requests leave one behind the other, and their answers come in the same order.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio_rustls::TlsConnector;

use super::protocol::{self, LENGTH};

/// Queued requests; further ones wait with their batches, whose number `maxInFlight` bounds.
const QUEUE: usize = 16;
/// Largest answer, in bytes: it names the brokers of a cluster and the partitions of a topic.
const MOST_ANSWER: usize = 16 << 20;
/// Bytes of the correlation id, which precedes the contents of an answer.
const NUMBER: usize = 4;

/// A request that waits for its answer, or only for being written.
enum Waiting {
    Written(oneshot::Sender<Vec<u8>>),
    Answered(i32, oneshot::Sender<Vec<u8>>),
}

/// Bytes of a request and who waits for them.
type Outgoing = (Vec<u8>, Waiting);

/// A connection to a broker. Dropping it closes it.
pub(super) struct Broker {
    requests: mpsc::Sender<Outgoing>,
    next: Cell<i32>,
    closed: Rc<Cell<bool>>,
    tasks: [AbortHandle; 2],
}

/// Why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// The connection was closed before.
    NotSent,
    /// The connection broke.
    Broken,
    /// No answer came in time.
    Silent,
}

impl Broker {
    /// Connects to `host:port`, with TLS where it is given.
    pub(super) async fn connect(
        host: &str,
        port: u16,
        tls: Option<Arc<rustls::ClientConfig>>,
    ) -> Result<Self, String> {
        let failed = |error: &dyn std::fmt::Display| format!("{host}:{port}: {error}");
        let stream = TcpStream::connect((host, port)).await;
        let stream = stream.map_err(|error| failed(&error))?;
        let _ = stream.set_nodelay(true);
        let Some(tls) = tls else {
            return Ok(Self::over(stream));
        };
        let name = ServerName::try_from(host.to_owned()).map_err(|error| failed(&error))?;
        let stream = TlsConnector::from(tls).connect(name, stream).await;
        Ok(Self::over(
            stream.map_err(|error| failed(&format!("TLS: {error}")))?,
        ))
    }

    fn over<S: AsyncRead + AsyncWrite + 'static>(stream: S) -> Self {
        let (reads, writes) = tokio::io::split(stream);
        let (requests, outgoing) = mpsc::channel(QUEUE);
        let waiting: Rc<RefCell<VecDeque<_>>> = Rc::default();
        let closed = Rc::new(Cell::new(false));
        let written = tokio::task::spawn_local(write(writes, outgoing, waiting.clone(), closed.clone()));
        let read = tokio::task::spawn_local(read(reads, waiting, closed.clone()));
        Self {
            requests,
            next: Cell::new(1),
            closed,
            tasks: [written.abort_handle(), read.abort_handle()],
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.get()
    }

    /// Sends a request and waits for its answer, or, with `answered` false, until it is written. A timeout closes the
    /// connection, because a late answer would belong to a request that was given up.
    pub(super) async fn ask(
        &self,
        mut request: Vec<u8>,
        answered: bool,
        time: Duration,
    ) -> Result<Vec<u8>, Lost> {
        if self.closed.get() {
            return Err(Lost::NotSent);
        }
        let number = self.next.get();
        self.next.set(number.wrapping_add(1));
        let (sender, receiver) = oneshot::channel();
        let waiting = match answered {
            true => Waiting::Answered(number, sender),
            false => Waiting::Written(sender),
        };
        protocol::number(&mut request, number);
        let asked = async {
            let sent = self.requests.send((request, waiting)).await;
            sent.map_err(|_| Lost::NotSent)?;
            receiver.await.map_err(|_| Lost::Broken)
        };
        tokio::time::timeout(time, asked).await.unwrap_or_else(|_| {
            self.closed.set(true);
            self.close();
            Err(Lost::Silent)
        })
    }

    fn close(&self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.close();
    }
}

type Answers = Rc<RefCell<VecDeque<(i32, oneshot::Sender<Vec<u8>>)>>>;

/// Dropped with the connection: closes the channels of the pending requests.
struct Ends(Rc<Cell<bool>>, Answers);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.set(true);
        self.1.borrow_mut().clear();
    }
}

async fn write<S: AsyncWrite>(
    mut stream: WriteHalf<S>,
    mut requests: mpsc::Receiver<Outgoing>,
    answers: Answers,
    closed: Rc<Cell<bool>>,
) {
    let _ends = Ends(closed, answers.clone());
    while let Some((bytes, waiting)) = requests.recv().await {
        let written = match waiting {
            Waiting::Answered(number, sender) => {
                answers.borrow_mut().push_back((number, sender));
                None
            }
            Waiting::Written(sender) => Some(sender),
        };
        let sent = async {
            stream.write_all(&bytes).await?;
            stream.flush().await
        };
        if sent.await.is_err() {
            return;
        }
        if let Some(sender) = written {
            // The receiver may have given up.
            let _ = sender.send(Vec::new());
        }
    }
}

async fn read<S: AsyncRead>(mut stream: ReadHalf<S>, answers: Answers, closed: Rc<Cell<bool>>) {
    let _ends = Ends(closed, answers.clone());
    loop {
        let mut length = [0; LENGTH];
        if stream.read_exact(&mut length).await.is_err() {
            return;
        }
        let length = i32::from_be_bytes(length);
        let Some(length) = usize::try_from(length)
            .ok()
            .filter(|length| (NUMBER..=MOST_ANSWER).contains(length))
        else {
            return;
        };
        let mut answer = Vec::new();
        let mut part = (&mut stream).take(length as u64);
        if part.read_to_end(&mut answer).await.is_err() || answer.len() < length {
            return;
        }
        let said = answer.split_off(NUMBER);
        let first = answers.borrow_mut().pop_front();
        match first {
            Some((number, sender)) if answer == number.to_be_bytes() => {
                // The receiver may have given up.
                let _ = sender.send(said);
            }
            // An answer without a request: the stream is out of step.
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::DuplexStream;

    fn request() -> Vec<u8> {
        protocol::metadata("t")
    }

    async fn answer(peer: &mut DuplexStream, number: i32, said: &[u8]) {
        let length = (NUMBER + said.len()) as i32;
        peer.write_all(&length.to_be_bytes()).await.unwrap();
        peer.write_all(&number.to_be_bytes()).await.unwrap();
        peer.write_all(said).await.unwrap();
    }

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn answers_are_those_of_their_requests_and_others_end_the_connection() {
        testpeer::local(async {
            let (near, mut peer) = tokio::io::duplex(1024);
            let broker = Broker::over(near);
            let served = async {
                let mut got = vec![0; request().len()];
                peer.read_exact(&mut got).await.unwrap();
                assert_eq!(got[8..12], 1_i32.to_be_bytes());
                answer(&mut peer, 1, b"first").await;
                answer(&mut peer, 2, b"second").await;
            };
            let (first, second, ()) = tokio::join!(
                broker.ask(request(), true, LONG),
                broker.ask(request(), true, LONG),
                served
            );
            assert_eq!(
                (first.unwrap(), second.unwrap()),
                (b"first".to_vec(), b"second".to_vec())
            );
            // A request without an acknowledgement ends when it is written.
            assert_eq!(broker.ask(request(), false, LONG).await, Ok(Vec::new()));
            let wrong = async { answer(&mut peer, 9, b"").await };
            let (lost, ()) = tokio::join!(broker.ask(request(), true, LONG), wrong);
            assert_eq!(lost, Err(Lost::Broken));
            assert!(broker.is_closed());
            assert_eq!(broker.ask(request(), true, LONG).await, Err(Lost::NotSent));
        });
    }

    #[test]
    fn one_that_is_silent_or_boundless_is_closed() {
        testpeer::local(async {
            let (near, _peer) = tokio::io::duplex(1024);
            let broker = Broker::over(near);
            let lost = broker.ask(request(), true, Duration::from_millis(20)).await;
            assert_eq!(lost, Err(Lost::Silent));
            assert!(broker.is_closed());

            let (near, mut peer) = tokio::io::duplex(1024);
            let broker = Broker::over(near);
            let claims = async { peer.write_all(&i32::MAX.to_be_bytes()).await.unwrap() };
            let (lost, ()) = tokio::join!(broker.ask(request(), true, LONG), claims);
            assert_eq!(lost, Err(Lost::Broken));
        });
    }
}
