//! The router over real sockets, as its peers meet it.

mod freediameter;
mod relay;
mod routing;
mod support;
