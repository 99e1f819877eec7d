//! Other network functions that the PCF sends requests to.

pub(crate) mod bsf;
