//! lab
pub mod callmodel;
pub mod http2;
