//! lab
pub mod http2;
