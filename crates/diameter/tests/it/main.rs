//! The driver over real sockets.

mod exchange;
mod support;
