//! Bytes between HTTP/2 and the kernel, in few and large pieces.
//!
//! The HTTP/2 engine flushes after every DATA frame. Behind [`Gather`] its flushes only take note; the
//! connection's driver calls [`Driver::flush`] once, when the engine has nothing more to do, and everything
//! that all streams have written meanwhile leaves in one system call. Reads fill a large buffer likewise.

mod gather;

pub(crate) use gather::{Driver, Gather, IoSizes, pair};
