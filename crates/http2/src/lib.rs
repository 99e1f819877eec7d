//! HTTP/2 (RFC 9113) and HPACK (RFC 7541) made for signalling: many connections, small messages, few of them at a time.
//!
//! Nothing here opens a socket, reads a clock or needs a runtime: bytes and moments come in, events and bytes come out.
//!
//! * [`Fields`]: a header block as flat memory; [`RequestHead`], [`ResponseHead`].
//! * [`hpack`]: header blocks as bytes of the wire.
//! * [`Body`]: a complete body as shared segments.
//! * [`Connection`]: a connection as server or client. Bytes of the peer go in, [`Event`]s come out, answers and requests
//!   go in, [`Output`] comes out.

mod body;
mod connection;
mod error;
pub mod fields;
mod frame;
#[doc(hidden)]
pub mod fuzzing;
mod head;
pub mod hpack;
mod limits;
mod output;

pub use body::Body;
pub use connection::{Connection, Counts, Event, Oversize, StreamId};
pub use error::{Fault, Flood, NotOpened, Reason};
pub use fields::{Field, Fields, Name, Value, name};
pub use head::{RequestHead, ResponseHead};
pub use limits::Config;
pub use output::Output;
