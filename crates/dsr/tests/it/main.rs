//! The router over real sockets, as its peers meet it.

mod applications;
mod cluster;
mod freediameter;
mod fuzz;
mod hiding;
mod hostile;
mod live;
mod load;
mod overload;
mod relay;
mod routing;
mod security;
mod support;
mod telling;
mod watching;
