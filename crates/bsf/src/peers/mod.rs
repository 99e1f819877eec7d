//! Other functions that the BSF asks.

pub(crate) mod nrf;
