//! What the socket of a member is ready for, as far as its edges were reported.

use std::cell::Cell;
use std::net::TcpStream;
use std::rc::Rc;

use worker::{Readiness, Sockets};

/// Readiness of a socket.
#[derive(Debug)]
pub(crate) struct Edges {
    sockets: Rc<Sockets>,
    readable: Cell<bool>,
    writable: Cell<bool>,
    /// The peer has closed its side or the connection is broken: nothing further is reported, and reading never waits.
    closed: Cell<bool>,
}

impl Edges {
    /// Of a new socket, which may be ready for anything.
    pub(super) fn new(sockets: Rc<Sockets>) -> Self {
        Self {
            sockets,
            readable: Cell::new(true),
            writable: Cell::new(true),
            closed: Cell::new(false),
        }
    }

    /// An edge was reported.
    pub(super) fn rise(&self, readiness: Readiness) {
        if readiness.readable {
            self.readable.set(true);
        }
        if readiness.writable {
            self.writable.set(true);
        }
        if readiness.closed {
            self.closed.set(true);
        }
    }

    /// Whether a read may succeed.
    pub(crate) fn is_readable(&self) -> bool {
        self.readable.get()
    }

    /// Whether a write may succeed.
    pub(crate) fn is_writable(&self) -> bool {
        self.writable.get()
    }

    /// A read found no more bytes. The end of the input, which was reported before them, stays to be read.
    pub(crate) fn has_read_all(&self) {
        self.readable.set(self.closed.get());
    }

    /// A write found no more room.
    pub(crate) fn has_filled(&self) {
        self.writable.set(false);
    }

    /// No edges are reported from now on.
    pub(crate) fn unwatch(&self, stream: &TcpStream) {
        self.sockets.remove(stream);
    }
}
