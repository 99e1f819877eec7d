use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker, ready};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::frames::GOAWAY;
use super::input::Input;
use super::offer;
use super::output::Output;
use super::watch::FrameWatch;
use crate::memory;

/// Sizes of the buffers of a connection, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IoSizes {
    /// What one system call reads at most, and a connection before others have their turn; allocated while
    /// there is something to read.
    pub(crate) read: usize,
    /// Frames the engine gets at most before others have their turn: the smallest ones cost it as much as
    /// large ones do.
    pub(crate) frames: u64,
    /// What is gathered before the engine has to wait for the socket.
    pub(crate) write: usize,
}

impl Default for IoSizes {
    fn default() -> Self {
        Self {
            // Measured with a relay of 4 KB messages, 256 at a time: 64 KiB cost 7.9 µs of CPU per request,
            // 128 KiB 6.9 µs, 256 KiB 6.7 µs.
            read: 128 * 1024,
            frames: 1_024,
            write: 256 * 1024,
        }
    }
}

struct State<T> {
    io: T,
    sizes: IoSizes,
    input: Input,
    output: Output,
    watch: FrameWatch,
    /// Bytes read since the driver's turn began, and frames the engine had got when it began.
    read_this_turn: usize,
    frames_before: u64,
    /// Since the turn was used up.
    rest: Option<Arc<Rest>>,
    /// When the peer last took bytes, or when there last were none to take.
    progress: Instant,
    bytes_in: u64,
    bytes_out: u64,
}

/// The side that the HTTP/2 engine reads from and writes to.
pub(crate) struct Gather<T>(Rc<RefCell<State<T>>>);

/// The side that the driver of the connection flushes and asks.
pub(crate) struct Driver<T>(Rc<RefCell<State<T>>>);

/// Two sides of one socket. What comes in passes under the eyes of `watch`.
pub(crate) fn pair<T>(io: T, sizes: IoSizes, watch: FrameWatch, now: Instant) -> (Gather<T>, Driver<T>) {
    let state = Rc::new(RefCell::new(State {
        io,
        sizes,
        input: Input::new(watch.preface()),
        output: Output::default(),
        watch,
        read_this_turn: 0,
        frames_before: 0,
        rest: None,
        progress: now,
        bytes_in: 0,
        bytes_out: 0,
    }));
    (Gather(state.clone()), Driver(state))
}

impl<T: AsyncRead + AsyncWrite + Unpin> Driver<T> {
    /// Whether the last turn was used up and others have not had theirs since.
    pub(crate) fn is_resting(&self) -> bool {
        let mut state = self.0.borrow_mut();
        let rests = |rest: &mut Arc<Rest>| !rest.over.load(Ordering::Relaxed);
        let resting = state.rest.as_mut().is_some_and(rests);
        if !resting {
            state.rest = None;
        }
        resting
    }

    /// A new turn: as much may be read as one turn allows. The engine reads as long as there is something to
    /// read, so that a peer who sends fast enough would keep the worker from everybody else.
    pub(crate) fn turn(&self) {
        let mut state = self.0.borrow_mut();
        state.read_this_turn = 0;
        state.frames_before = state.input.frames();
    }

    /// Hands what was gathered to the kernel; ready when nothing is left.
    pub(crate) fn flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.borrow_mut().drain(cx)
    }

    /// Bytes that wait for the peer.
    pub(crate) fn waiting(&self) -> usize {
        self.0.borrow().output.len()
    }

    /// Bytes that are held in both directions, and at most by a header block that is not whole yet, of which
    /// the engine keeps `block_limit` as RFC 9113 §6.5.2 counts it.
    pub(crate) fn held(&self, block_limit: usize) -> usize {
        let state = self.0.borrow();
        let block = memory::header_block(state.watch.unfinished_block(), block_limit);
        let input = state.input.held().max(state.watch.unfinished_frame());
        input + state.output.len() + block
    }

    /// When the peer last took bytes.
    pub(crate) fn progress(&self) -> Instant {
        self.0.borrow().progress
    }

    /// What was seen of the frames that came.
    pub(crate) fn watch<R>(&self, look: impl FnOnce(&FrameWatch) -> R) -> R {
        look(&self.0.borrow().watch)
    }

    /// Says GOAWAY with this code in place of an engine that cannot, unless a frame is only half written.
    pub(crate) fn say_goodbye(&self, code: u32) {
        let mut state = self.0.borrow_mut();
        if state.watch.may_add_a_frame() {
            let [a, b, c, d] = code.to_be_bytes();
            // GOAWAY on stream 0; the peer opened no stream that was looked at (RFC 9113 §6.8).
            let frame = [0, 0, 8, GOAWAY, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d];
            state.output.push(&frame);
        }
    }

    /// Ends our side, then reads and forgets what still comes, until the peer ends its side or `limit` bytes
    /// came: closing a socket with unread bytes would destroy the last words on their way to the peer.
    pub(crate) async fn linger(&self, mut limit: usize) {
        let mut scrap = vec![0; 16 * 1024];
        poll_fn(|cx| {
            let mut state = self.0.borrow_mut();
            if ready!(state.drain(cx)).is_err() || ready!(Pin::new(&mut state.io).poll_shutdown(cx)).is_err()
            {
                return Poll::Ready(());
            }
            loop {
                let mut buffer = ReadBuf::new(&mut scrap);
                let read = ready!(Pin::new(&mut state.io).poll_read(cx, &mut buffer));
                let came = buffer.filled().len();
                limit = limit.saturating_sub(came);
                if read.is_err() || came == 0 || limit == 0 {
                    return Poll::Ready(());
                }
            }
        })
        .await;
    }

    /// Bytes read and written so far.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let state = self.0.borrow();
        (state.bytes_in, state.bytes_out)
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> State<T> {
    fn drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.output.len() == 0 {
            return Poll::Ready(Ok(()));
        }
        while self.output.len() > 0 {
            let wrote = ready!(self.output.poll_write(&mut self.io, cx))?;
            if wrote == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.bytes_out += wrote as u64;
            self.progress = Instant::now();
        }
        Pin::new(&mut self.io).poll_flush(cx)
    }

    /// Takes note of what is about to be sent.
    fn follow(&mut self, bytes: &[u8]) {
        let pings = self.watch.sent(bytes);
        self.input.expect_pongs(pings);
    }

    /// Makes room for `wanted` more bytes; waits for the socket only when the buffer is full.
    fn make_room(&mut self, wanted: usize, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.output.len() + wanted <= self.sizes.write {
            return Poll::Ready(Ok(()));
        }
        match self.drain(cx)? {
            Poll::Ready(()) => Poll::Ready(Ok(())),
            Poll::Pending if self.output.len() < self.sizes.write => Poll::Ready(Ok(())),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// The pause of a connection that has used up its turn: over when the other tasks, and the sockets that have become
/// ready meanwhile, had theirs.
#[derive(Debug)]
struct Rest {
    over: AtomicBool,
    task: Waker,
}

impl Wake for Rest {
    fn wake(self: Arc<Self>) {
        self.over.store(true, Ordering::Relaxed);
        self.task.wake_by_ref();
    }
}

impl Rest {
    /// The runtime wakes what yields after it has asked the sockets. The waker is our own, because the engine wakes
    /// the connection as well, for each answer, and that is no news of others.
    fn begin(cx: &Context<'_>) -> Arc<Self> {
        let rest = Arc::new(Self {
            over: AtomicBool::new(false),
            task: cx.waker().clone(),
        });
        let waker = Waker::from(rest.clone());
        let _ = pin!(tokio::task::yield_now()).poll(&mut Context::from_waker(&waker));
        rest
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncRead for Gather<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut state = self.0.borrow_mut();
        let State {
            io,
            sizes,
            input,
            watch,
            read_this_turn,
            frames_before,
            rest,
            bytes_in,
            ..
        } = &mut *state;
        if input.frames() - *frames_before >= sizes.frames {
            *rest = Some(Rest::begin(cx));
            return Poll::Pending;
        }
        loop {
            if watch.flood().is_some() {
                // The engine gets nothing more; the driver ends the connection when the engine is done.
                return Poll::Pending;
            }
            if input.hand_over(into) {
                break;
            }
            if *read_this_turn >= sizes.read {
                *rest = Some(Rest::begin(cx));
                return Poll::Pending;
            }
            let read = input.poll_fill(io, sizes.read, cx, |bytes| watch.feed(bytes, Instant::now()));
            let read = ready!(read)?;
            *read_this_turn += read;
            *bytes_in += read as u64;
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Gather<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = self.0.borrow_mut();
        ready!(state.make_room(bytes.len(), cx))?;
        state.follow(bytes);
        state.output.push(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut state = self.0.borrow_mut();
        let len = parts.iter().map(|part| part.len()).sum();
        ready!(state.make_room(len, cx))?;
        for part in parts {
            state.follow(part);
            state.output.push(part);
        }
        offer::withdraw();
        Poll::Ready(Ok(len))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Only takes note: the driver flushes when the engine has nothing more to write.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.0.borrow_mut();
        ready!(state.drain(cx))?;
        Pin::new(&mut state.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::super::watch::FrameLimits;
    use super::*;

    /// Always has more to read.
    struct Endless;

    impl AsyncRead for Endless {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            into: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let len = into.remaining();
            into.put_slice(&vec![0; len]);
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for Endless {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn others_have_their_turn() {
        let sizes = IoSizes::default();
        let (mut gather, driver) = pair(
            Endless,
            sizes,
            FrameWatch::of_server(FrameLimits::default()),
            Instant::now(),
        );
        let mut cx = Context::from_waker(std::task::Waker::noop());
        for turn in 1..4 {
            driver.turn();
            let mut storage = vec![0; 4_096];
            loop {
                let mut buffer = ReadBuf::new(&mut storage);
                if Pin::new(&mut gather).poll_read(&mut cx, &mut buffer).is_pending() {
                    break;
                }
            }
            let read = driver.bytes().0;
            assert!(
                read <= turn * 2 * sizes.read as u64,
                "{read} bytes in {turn} turns"
            );
        }
    }
}
