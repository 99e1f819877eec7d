//! The connection to one processor.

use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use dp_proto::{Answer, Frame};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::client::{Peer, Shared};

/// Time for a connection to be made.
const CONNECT: Duration = Duration::from_secs(2);
/// Pauses before the next attempt: the first one, and the longest.
const PAUSE: Duration = Duration::from_millis(50);
const MOST_PAUSE: Duration = Duration::from_secs(2);
/// A connection that was there for this time is made again at once.
const STABLE: Duration = Duration::from_secs(5);
/// Interval of probes.
const PROBE: Duration = Duration::from_secs(1);
/// Octets that are read at once.
const READ_BYTES: usize = 64 * 1024;

/// Keeps a connection to a processor, until the task is aborted.
pub(super) async fn keep(shared: Rc<Shared>, at: usize) {
    let Some(peer) = shared.peers.get(at) else { return };
    let mut pause = PAUSE;
    loop {
        let made = tokio::time::timeout(CONNECT, connect(&shared, peer)).await;
        let why = match made {
            Ok(Ok(stream)) => {
                let begun = Instant::now();
                let why = match stream {
                    Stream::Clear(stream) => carry(&shared, at, peer, stream.into_split()).await,
                    Stream::Tls(stream) => carry(&shared, at, peer, tokio::io::split(*stream)).await,
                };
                // One that breaks off again and again is tried less and less often.
                if begun.elapsed() > STABLE {
                    pause = PAUSE;
                }
                why
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the connection is not made in time".to_owned(),
        };
        shared.lost(at, &why);
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(MOST_PAUSE);
    }
}

/// A connection that is made.
enum Stream {
    Clear(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Connects to a processor, whose certificate has its name where TLS is set.
async fn connect(shared: &Shared, peer: &Peer) -> io::Result<Stream> {
    let stream = TcpStream::connect(peer.place.address).await?;
    stream.set_nodelay(true)?;
    let Some(tls) = &shared.settings.tls else {
        return Ok(Stream::Clear(stream));
    };
    let connector = TlsConnector::from(tls.client.clone());
    let made = connector.connect(peer.place.name.clone(), stream).await;
    made.map(|stream| Stream::Tls(Box::new(stream)))
        .map_err(|error| io::Error::other(format!("TLS: {error}")))
}

/// Carries queries and answers until the connection ends; why it has.
async fn carry(
    shared: &Shared,
    at: usize,
    peer: &Peer,
    (input, output): (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
) -> String {
    shared.probe(at, Instant::now());
    let ended = tokio::select! {
        ended = read(shared, at, input) => ended,
        ended = write(peer, output) => ended,
        () = probe(shared, at) => Ok(()),
        () = peer.ended() => return "the processor does not answer".to_owned(),
    };
    match ended {
        Ok(()) => "the processor has closed the connection".to_owned(),
        Err(error) => error.to_string(),
    }
}

async fn read(shared: &Shared, at: usize, mut stream: impl AsyncRead + Unpin) -> io::Result<()> {
    let mut input = Vec::new();
    loop {
        input.reserve(READ_BYTES);
        if stream.read_buf(&mut input).await? == 0 {
            return Ok(());
        }
        let (mut done, now) = (0, Instant::now());
        while let Some((frame, length)) = input
            .get(done..)
            .map_or(Ok(None), Frame::<Answer<'_>>::split)
            .map_err(io::Error::other)?
        {
            frame
                .each(|answer| shared.answer(at, &answer, now))
                .map_err(io::Error::other)?;
            done += length;
        }
        if done > 0 {
            shared.heard(at, now);
            input.drain(..done);
        }
    }
}

/// Sends what was bundled since it ran last: the queries of a wake-up of the worker go together.
async fn write(peer: &Peer, mut stream: impl AsyncWrite + Unpin) -> io::Result<()> {
    let mut output = Vec::new();
    loop {
        peer.written.notified().await;
        peer.out.borrow_mut().take_into(&mut output);
        stream.write_all(&output).await?;
        stream.flush().await?;
    }
}

async fn probe(shared: &Shared, at: usize) {
    loop {
        tokio::time::sleep(PROBE).await;
        shared.probe(at, Instant::now());
    }
}
