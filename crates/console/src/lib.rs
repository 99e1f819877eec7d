//! The console: one page that shows how all functions are doing, what is wrong and the remedy. It reads the admin endpoints
//! of the functions, and changes nothing there but which subscribers are followed.
//!
//! A poller of its own follows each function, so that one that hangs does not slow the rest. What the pollers know becomes
//! the summary, which browsers get whole and then as a stream of its parts that have changed. All of it comes from peers of
//! peers: every text is cut to a bound here and becomes a text node there.
//!
//! | file | what happens there |
//! |---|---|
//! | [`config`] | settings |
//! | `access` | users, their sessions and rights, the audit log |
//! | `assets` | the pages, their scripts and style |
//! | `server` | HTTP for browsers, over TLS where files are set |
//! | `metrics` | what it counts |
//! | `client` | one connection to an admin endpoint, within bounds of time and size |
//! | `poller` | follows one function |
//! | `observation` | what is known of one function |
//! | `figures` | requests, failures and latency, from the text of its metrics |
//! | `peers` | peers that are down |
//! | `row` | one function as the summary has it |
//! | `headline` | the sentence above everything |
//! | `changes` | the journals of all functions, merged |
//! | `summary` | the versioned document |
//! | `acknowledged` | alarms that an operator has acknowledged |
//! | `following` | the messages of a followed subscriber, of all functions |
//! | `pasted` | a message that somebody pasted |
//! | `why` | why it goes where it goes |
//! | `configuration` | the settings in effect, compared and reloaded |
//! | `policy` | the policy projects of PCFs, and what they decide |
//! | `find` | what functions know of a subscriber, a session or an instance |
//! | `words` | the summary as text |
//! | `stream` | parts that have changed, for browsers |
//! | `web` | what is served, to whom |
//! | `pages` | its own admin page |
//! | `service` | the console as a function |

mod access;
mod acknowledged;
mod assets;
mod changes;
mod client;
pub mod config;
mod configuration;
mod figures;
mod find;
mod following;
mod headline;
mod metrics;
mod observation;
mod pages;
mod pasted;
mod peers;
mod policy;
mod poller;
mod row;
mod server;
mod service;
mod stream;
mod summary;
mod web;
mod why;
mod words;

pub use access::users;
pub use config::Config;
pub use function::StartError;
pub use service::{Console, Running, start};
