//! Full address resolution without a router: which addresses are read, what is found, what files are refused.

mod addresses;
mod database;
mod exceptions;
mod files;
mod provisioning;
mod support;
