//! Behaviour across the modules: two peers joined in memory, random bytes and events.

mod exercise;
mod fuzz;
mod peers;
mod vectors;
mod world;
