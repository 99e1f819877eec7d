//! The PCF over real sockets, as SMFs and AMFs meet it.

mod activity;
mod audit;
mod authorization;
mod bindings;
mod bounds;
mod collisions;
mod consumers;
#[expect(dead_code, reason = "the suite of the store uses all of it")]
#[path = "../../../store/tests/it/databases.rs"]
mod databases;
mod destination;
mod diameter;
mod flows;
mod forged;
mod free_diameter;
mod hostile;
mod import;
mod judge;
mod ldap;
mod nested;
mod notify;
mod one_binding;
mod operator;
mod pages;
mod pds;
mod peer_tokens;
mod policies;
mod process;
mod projects;
mod re_auth;
mod reports;
mod restoration;
mod sd;
mod slapd;
mod sm;
mod sm_errors;
mod subscriber_state;
mod support;
mod sy;
mod tokens;
mod types;
mod ue_delivery;
mod usage;
mod validate_user;
mod wiretap;
mod writers;
