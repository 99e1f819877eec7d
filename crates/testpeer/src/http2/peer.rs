use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::frame::{self, Frame, flag, kind, setting};

/// How a client begins (RFC 9113 §3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A test that waits longer than this for anything has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// One end of a connection, moved by the test.
#[derive(Debug)]
pub struct Peer {
    stream: TcpStream,
    input: BytesMut,
    /// Whether SETTINGS and PING of the other side are answered while frames are awaited.
    answers: bool,
    /// The flow-control window of the connection that the other side has opened beyond the first 65,535 bytes.
    opened: i64,
    /// The flow-control window with which streams begin, as the other side says.
    initial: u32,
}

/// Where a scripted server waits for clients.
#[derive(Debug)]
pub struct Listener(TcpListener);

impl Listener {
    /// On a free port of the loopback interface.
    ///
    /// # Errors
    /// When there is none.
    pub async fn bind() -> io::Result<Self> {
        Ok(Self(TcpListener::bind("127.0.0.1:0").await?))
    }

    /// Its address.
    ///
    /// # Errors
    /// When the system does not report it.
    pub fn addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// The next client, its preface taken and our SETTINGS sent with `settings`.
    ///
    /// # Errors
    /// When the client does not begin as it should.
    pub async fn accept(&self, settings: &[(u16, u32)]) -> io::Result<Peer> {
        let (stream, _) = patiently(self.0.accept()).await?;
        let mut peer = Peer::over(stream);
        while peer.input.len() < PREFACE.len() {
            if peer.read().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        if peer.input.split_to(PREFACE.len()) != PREFACE {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "no HTTP/2 preface came",
            ));
        }
        let mut all = vec![(setting::HEADER_TABLE_SIZE, 0)];
        all.extend(settings);
        peer.send(&frame::settings(&all)).await?;
        Ok(peer)
    }
}

impl Peer {
    /// Connects and sends nothing.
    ///
    /// # Errors
    /// When no program listens at the address.
    pub async fn silent(addr: SocketAddr) -> io::Result<Self> {
        Ok(Self::over(TcpStream::connect(addr).await?))
    }

    /// Connects and begins as a client does.
    ///
    /// # Errors
    /// When no program listens at the address.
    pub async fn client(addr: SocketAddr) -> io::Result<Self> {
        Self::client_with(addr, &[]).await
    }

    /// As [`Peer::client`], with these SETTINGS.
    ///
    /// # Errors
    /// When no program listens at the address.
    pub async fn client_with(addr: SocketAddr, settings: &[(u16, u32)]) -> io::Result<Self> {
        let mut peer = Self::silent(addr).await?;
        // Without a dynamic table every status can be read where it stands.
        let mut all = vec![(setting::HEADER_TABLE_SIZE, 0)];
        all.extend(settings);
        peer.send(PREFACE).await?;
        peer.send(&frame::settings(&all)).await?;
        peer.wait_for("SETTINGS", |f| {
            f.kind == kind::SETTINGS && f.flags & flag::ACK == 0
        })
        .await?;
        Ok(peer)
    }

    fn over(stream: TcpStream) -> Self {
        // Small frames are the point of these tests; a socket without the option still works.
        let _ = stream.set_nodelay(true);
        Self {
            stream,
            input: BytesMut::new(),
            answers: true,
            opened: 0,
            initial: 65_535,
        }
    }

    /// From now on SETTINGS and PING of the other side stay without an answer.
    pub fn ignore_others(&mut self) {
        self.answers = false;
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// When the other side has closed the connection.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        patiently(self.stream.write_all(bytes)).await
    }

    /// The next frame; `None` at the end of the connection. SETTINGS and PING are answered, and reported.
    ///
    /// # Errors
    /// When nothing comes for long, or the connection breaks.
    pub async fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            if let Some(found) = Frame::take(&mut self.input) {
                self.keep_windows(&found);
                if self.answers && found.flags & flag::ACK == 0 {
                    let answer = match found.kind {
                        kind::SETTINGS => frame::raw(kind::SETTINGS, flag::ACK, 0, &[]),
                        kind::PING => frame::raw(kind::PING, flag::ACK, 0, &found.payload),
                        _ => Vec::new(),
                    };
                    // The other side may be gone; what it sent before counts all the same.
                    let _ = self.send(&answer).await;
                }
                return Ok(Some(found));
            }
            if self.read().await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Frames until one is as wanted.
    ///
    /// # Errors
    /// When the connection ends first; the text names `what` was awaited.
    pub async fn wait_for(&mut self, what: &str, wanted: impl Fn(&Frame) -> bool) -> io::Result<Frame> {
        while let Some(found) = self.next().await? {
            if wanted(&found) {
                return Ok(found);
            }
        }
        Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            format!("the connection ended before {what} came"),
        ))
    }

    /// The status of the answer on a stream.
    ///
    /// # Errors
    /// When there is none.
    pub async fn status(&mut self, stream: u32) -> io::Result<u16> {
        let head = self
            .wait_for("an answer", |f| f.kind == kind::HEADERS && f.stream == stream)
            .await?;
        head.status()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "an answer without :status"))
    }

    /// Status and body of the answer on a stream.
    ///
    /// # Errors
    /// When it does not come whole.
    pub async fn answer(&mut self, stream: u32) -> io::Result<(u16, Vec<u8>)> {
        let head = self
            .wait_for("an answer", |f| f.kind == kind::HEADERS && f.stream == stream)
            .await?;
        let status = head.status().unwrap_or_default();
        let (mut body, mut ended) = (Vec::new(), head.ends_stream());
        while !ended {
            let data = self
                .wait_for("the body", |f| f.kind == kind::DATA && f.stream == stream)
                .await?;
            body.extend(&data.payload);
            ended = data.ends_stream();
        }
        Ok((status, body))
    }

    /// The code a stream is reset with.
    ///
    /// # Errors
    /// When it is not reset.
    pub async fn reset_code(&mut self, stream: u32) -> io::Result<u32> {
        let reset = self
            .wait_for("RST_STREAM", |f| f.kind == kind::RST_STREAM && f.stream == stream)
            .await?;
        Ok(reset.code().unwrap_or(u32::MAX))
    }

    /// Waits until the other side ends the connection; the code of its last GOAWAY, if it sent one.
    pub async fn goodbye(&mut self) -> Option<u32> {
        let mut code = None;
        while let Ok(Some(found)) = self.next().await {
            code = found.code().filter(|_| found.kind == kind::GOAWAY).or(code);
        }
        code
    }

    /// Bytes that may be sent on the connection in all, and on each new stream, as far as frames were read.
    #[must_use]
    pub const fn windows(&self) -> (i64, u32) {
        (65_535 + self.opened, self.initial)
    }

    /// Reads what comes within this time, and answers SETTINGS and PING.
    pub async fn settle(&mut self, time: Duration) {
        let end = tokio::time::Instant::now() + time;
        while let Ok(Ok(Some(_))) = tokio::time::timeout_at(end, self.next()).await {}
    }

    pub(super) const fn parts(&mut self) -> (&mut TcpStream, &mut BytesMut) {
        (&mut self.stream, &mut self.input)
    }

    fn keep_windows(&mut self, found: &Frame) {
        match found.kind {
            kind::WINDOW_UPDATE if found.stream == 0 => {
                let more = found.payload.get(..4).and_then(|more| more.try_into().ok());
                self.opened += i64::from(u32::from_be_bytes(more.unwrap_or_default()));
            }
            kind::SETTINGS if found.flags & flag::ACK == 0 => {
                let (pairs, _) = found.payload.as_chunks::<6>();
                for [a, b, w, x, y, z] in pairs {
                    if u16::from_be_bytes([*a, *b]) == setting::INITIAL_WINDOW_SIZE {
                        self.initial = u32::from_be_bytes([*w, *x, *y, *z]);
                    }
                }
            }
            _ => {}
        }
    }

    async fn read(&mut self) -> io::Result<usize> {
        patiently(self.stream.read_buf(&mut self.input)).await
    }
}

async fn patiently<T>(what: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(PATIENCE, what)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
