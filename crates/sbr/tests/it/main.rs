//! The repository on the embedded engine.

mod charging;
mod repository;
