//! Captures with streams in any order, with gaps, cut, damaged, and of other programs.

mod fuzz;
mod links;
mod programs;
mod sctp;
mod support;
mod tcp;
