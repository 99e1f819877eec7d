//! TLS over TCP, with the session apart from the socket, so that a connection can begin in the clear
//! (in-band security, RFC 6733 §13.1) and can move to another worker with its session.

use std::io::{self, BufRead, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use rustls::Connection as Session;
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;

/// Plain text that a session holds back until it is written.
const BUFFER_LIMIT: usize = 128 * 1024;

/// A TCP connection with its session.
#[derive(Debug)]
pub(crate) struct TlsStream {
    tcp: TcpStream,
    session: Session,
    /// Bytes that were read before TLS began.
    early: BytesMut,
    at_end: bool,
}

impl AsFd for TlsStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tcp.as_fd()
    }
}

/// The socket as `rustls` wants to read and write it: blocking calls that say `WouldBlock`.
struct Socket<'s>(&'s TcpStream);

impl Read for Socket<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(out)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TlsStream {
    pub(crate) fn new(tcp: TcpStream, mut session: Session, early: BytesMut) -> Self {
        session.set_buffer_limit(Some(BUFFER_LIMIT));
        Self {
            tcp,
            session,
            early,
            at_end: false,
        }
    }

    /// The session, for what it knows of the peer.
    pub(crate) const fn session(&self) -> &Session {
        &self.session
    }

    /// Socket, session and unread bytes apart.
    pub(crate) fn into_parts(self) -> (TcpStream, Session, BytesMut) {
        (self.tcp, self.session, self.early)
    }

    /// Reads cipher text and turns it into plain text. False at the end of the stream.
    fn poll_cipher_text(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        loop {
            let read = if self.early.is_empty() {
                ready!(self.tcp.poll_read_ready(cx))?;
                self.session.read_tls(&mut Socket(&self.tcp))
            } else {
                let mut early = &self.early[..];
                let read = self.session.read_tls(&mut early);
                let left = early.len();
                self.early.advance(self.early.len() - left);
                read
            };
            match read {
                Ok(0) => return Poll::Ready(Ok(false)),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return Poll::Ready(Err(error)),
            }
            if let Err(error) = self.session.process_new_packets() {
                // The alert that names the fault; if it cannot be sent now, it is dropped.
                let _ = self.session.write_tls(&mut Socket(&self.tcp));
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, error)));
            }
            return Poll::Ready(Ok(true));
        }
    }

    pub(crate) fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            // The poll below reports a failed flush of a pending write again; reading goes on meanwhile.
            let flushed = self.poll_flush(cx)?;
            if !self.session.is_handshaking() {
                return flushed.map(Ok);
            }
            if !ready!(self.poll_cipher_text(cx))? {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }

    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut total = 0;
            let mut reader = self.session.reader();
            loop {
                match reader.fill_buf() {
                    Ok([]) => {
                        self.at_end = true;
                        break;
                    }
                    Ok(plain) => {
                        let taken = plain.len();
                        buffer.extend_from_slice(plain);
                        reader.consume(taken);
                        total += taken;
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    // The peer closed without a close_notify: the end, after complete messages.
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                        self.at_end = true;
                        break;
                    }
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
            if total > 0 || self.at_end {
                return Poll::Ready(Ok(total));
            }
            if !ready!(self.poll_cipher_text(cx))? {
                self.at_end = true;
            }
        }
    }

    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let accepted = self.session.writer().write_vectored(slices)?;
        match self.poll_flush(cx) {
            Poll::Pending if accepted == 0 => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            // With room made by the flush, the caller tries again.
            _ => Poll::Ready(Ok(accepted)),
        }
    }

    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.session.wants_write() {
            ready!(self.tcp.poll_write_ready(cx))?;
            match self.session.write_tls(&mut Socket(&self.tcp)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }

    pub(crate) fn shutdown_write(&mut self, cx: &mut Context<'_>) {
        self.session.send_close_notify();
        let _ = self.poll_flush(cx);
        let _ = Pin::new(&mut self.tcp).poll_shutdown(cx);
    }
}
