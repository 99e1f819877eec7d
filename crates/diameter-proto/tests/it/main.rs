//! Behaviour across the modules: two peers joined in memory, bytes and events nobody asked for.

mod exercise;
mod fuzz;
mod peers;
mod vectors;
mod world;
