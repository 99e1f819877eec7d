//! Other functions that the BSF asks.

pub(crate) mod nrf;
pub(crate) mod pcfs;
pub(crate) mod sets;
