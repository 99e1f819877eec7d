//! Behaviour across the modules: vectors, faults, random octets, tshark and the crates `m3ua` and `sccp` as judges.

mod asp;
mod calls;
mod capture;
mod crates;
mod exercise;
mod fuzz;
mod gtt;
mod inhibit;
mod link_sets_at_random;
mod m2pa;
mod m2pa_link;
mod m3ua;
mod mtp3;
mod mtp3_messages;
mod pycrate;
mod restart;
mod sccp;
mod sccp_titles;
mod selectors;
mod tcap;
mod tcap_crate;
mod tshark;
