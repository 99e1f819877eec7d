//! lab
pub mod callmodel;
pub mod engine;
pub mod http2;
pub mod load;
pub mod measure;
