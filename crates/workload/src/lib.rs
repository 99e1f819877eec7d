//! The traffic of each call model: what is sent to a function, and what it must answer.
//!
//! * [`nrf`]: registration, heart-beats, discovery and subscriptions (TS 29.510), with the count of what must follow;
//! * [`scp`]: consumers behind a proxy, towards a population of producers;
//! * [`bsf`]: PCFs and consumers of bindings (TS 29.521), and preloaded sessions;
//! * [`policy`]: SMFs and AMFs with policy associations (TS 29.512, TS 29.507, TS 29.525);
//! * [`pcrf`]: PCEFs at Gx (TS 29.212) with calls of P-CSCFs at Rx;
//! * [`charging`]: gateways at Gy (RFC 8506);
//! * [`dsr`]: MMEs at S6a (TS 29.272); [`rx`]: AFs at Rx (TS 29.214);
//! * [`scef`]: SCS/AS at T8 (TS 29.122), MMEs at T6a (TS 29.128);
//! * [`stp`]: MSCs, HLRs and SMSCs around a signal transfer point.
//!
//! Each module has a [`loadgen::Workload`], [`loadgen::diameter::Requests`] or [`loadgen::m3ua::Messages`] that draws requests and judges answers,
//! made from the section of its function in a [`callmodel::CallModel`].

pub mod bsf;
pub mod charging;
pub mod dsr;
pub mod nrf;
pub mod pcrf;
pub mod policy;
mod priorities;
pub mod rx;
pub mod scef;
pub mod scp;
pub mod stp;

pub use priorities::Priorities;
