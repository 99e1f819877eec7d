//! The repository on the embedded engine.

mod repository;
