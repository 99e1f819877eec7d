//! The driver over real sockets.

mod dynamic;
mod exchange;
mod freediameter;
mod hostile;
mod panics;
mod sctp;
mod security;
mod support;
mod tshark;
mod workers;
