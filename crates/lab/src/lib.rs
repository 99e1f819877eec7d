//! lab
pub mod callmodel;
pub mod cli;
pub mod client;
pub mod engine;
pub mod http2;
pub mod load;
pub mod measure;
pub mod report;
pub mod run;
pub mod sim;
mod weights;
pub mod workload;
