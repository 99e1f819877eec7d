//! Diameter (RFC 6733) as bytes and time in, bytes and events out. No sockets, no clocks, no tasks: the
//! crate's `Cargo.toml` names no runtime, so the compiler keeps the promise. Crate `diameter` drives it.
//!
//! # A tour
//!
//! | to … | use |
//! |---|---|
//! | cut a stream into messages | [`next_frame`] |
//! | look at a message | [`Message`]: header fields, [`Message::avps`], [`Message::get`] with a [`known`] tag |
//! | route a message | [`Routing::scan`]: one pass, no allocation |
//! | pass it on | [`MessageMut::set_hop_by_hop`], [`MessageMut::announce_appended`] |
//! | store requests until their answers arrive | [`Pending`]: slab and timing wheel |
//! | build a message | [`MessageBuilder`] with [`known`] tags |
//! | refuse a message | [`Fault`], [`MessageBuilder::error_answer`] |
//!
//! A message is a view over its bytes: `Message<Bytes>` shares them, `Message<&[u8]>` borrows them, `Message<BytesMut>`
//! owns them and may patch the header. A field is decoded when it is read; AVPs that no code reads (unknown AVPs,
//! unknown vendors) stay unchanged.
//!
//! Every error that a peer caused is a [`Fault`]: the result code of RFC 6733 §7, the AVP for Failed-AVP, and
//! a reason for the operator.

pub mod avp;
pub mod build;
pub mod check;
pub mod dictionary;
pub mod fault;
pub mod frame;
pub mod header;
pub mod identity;
pub mod known;
pub mod message;
pub mod overload;
pub mod peer;
pub mod pending;
pub mod routing;
pub mod text;

pub use avp::kind;
pub use avp::kind::{AvpType, Kind, Tag};
pub use avp::{Avp, AvpFlags, AvpKey, AvpWriter, Avps, WalkError, encode_one};
pub use build::{BuildError, MessageBuilder, Origin};
pub use dictionary::Dictionary;
pub use fault::{Fault, ResultCode};
pub use frame::{FrameError, next_frame};
pub use header::{CommandFlags, HEADER_LEN, Header};
pub use message::{Message, MessageMut, MessageRef};
pub use pending::Pending;
pub use routing::Routing;
