//! Clients and servers of the service-based interface that keep the rules.
//!
//! * [`Server`]: answers with a closure, and records every request.
//! * [`serve`]: any [`sbi::Service`] on a free port.
//! * [`client`], [`send`], [`request`], [`Got`]: what a test sends, and what it reads of the answer.
//! * [`mutations`]: requests that chance has damaged.

mod client;
mod mutation;
mod server;

pub use client::{Got, client, no_content, request, send};
pub use mutation::{Mutated, Template, mutations};
pub use server::{Seen, Server, serve};
