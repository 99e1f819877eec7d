//! What is sent to each function, and what it must answer: a module per function.

pub mod nrf;
