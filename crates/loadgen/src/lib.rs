//! An open-loop load generator for HTTP/2, Diameter, M3UA and database processors.
//!
//! * [`Generator`]: threads that send on a [`Schedule`] which does not wait for answers, and measure from the intended
//!   time of sending, so that a slow answer delays no later request (no coordinated omission).
//! * [`Workload`] (HTTP/2) and [`diameter::Requests`]: what is sent, and whether an answer is the right one; a wrong
//!   answer is a failure. [`Record`] holds counts and latencies by operation.
//! * [`engine`]: one thread, one `epoll` set, one timer; simulators use it as well.
//! * [`http2`] and [`diameter`]: protocol machines of the generator's own. A judge shares no code with the function
//!   that it judges, apart from the codecs of Diameter, SS7 and `dp-proto`, and costs far less.
//! * [`m3ua`]: the nodes of an SS7 network, which send and receive.
//! * [`lookups`]: routers that query a database processor.
//! * [`client`]: a blocking HTTP/2 client for set-up and tests.
//! * [`Weights`]: drawing by weight in constant time.
//!
//! The crate knows no network function and no call model.

pub mod client;
pub mod diameter;
pub mod engine;
pub mod http2;
mod load;
pub mod lookups;
pub mod m3ua;
mod thread;
mod weights;
mod wire;

pub use load::{
    Answer, Arrivals, Draft, Due, FailureKind, Fault, Generator, Interest, OperationRecord, Plan, Record,
    Schedule, Snapshot, TICK, Ticket, Traffic, Workload,
};
pub use thread::{pin_current_thread, thread_cpu};
pub use weights::Weights;
pub use wire::Wire;
