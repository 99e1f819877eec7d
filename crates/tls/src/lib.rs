//! Certificates, keys and trusted authorities, for every protocol that runs over TLS.
//!
//! A tour, in the order in which things are used:
//! * [`TlsFiles`]: the settings that name PEM files, the same for every function.
//! * [`Material`]: the contents of the files, and the `rustls` configurations made of them. TLS 1.2 and 1.3
//!   (TS 33.210 §6.2, TS 33.310 annex E); with authorities, both sides check certificates: mutual TLS.
//! * [`Watched`]: reloads the files at their interval. A change replaces the whole configuration with its store of
//!   sessions, so that no session resumes that another certificate or authority has vouched for. Open connections stay.
//! * [`authority`] (feature `test-authority`): a certificate authority for laboratories and tests.

#[cfg(feature = "test-authority")]
pub mod authority;
mod expiry;
mod files;
mod judge;
mod material;
mod pair;
mod watched;

pub use files::{TlsError, TlsFiles};
pub use material::{HTTP2, Material, Sides};
pub use pair::Flaw;
pub use watched::{Certificate, Changes, Current, Watched};

use rustls::{ClientConfig, ServerConfig};

/// The configuration for connections that are accepted.
pub type ServerTls = Current<ServerConfig>;
/// The configuration for connections that are opened.
pub type ClientTls = Current<ClientConfig>;
