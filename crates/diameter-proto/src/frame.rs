//! Messages out of a stream of bytes.

use std::fmt;

use bytes::BytesMut;

use crate::fault::{Fault, ResultCode};
use crate::header::{HEADER_LEN, Header, VERSION};
use crate::message::{Message, MessageMut};

/// Splits the next message off the front of `buffer`. The message takes its bytes with it; nothing is
/// copied. `None` when more bytes have to come first (see [`wanted`]).
///
/// # Errors
/// When the stream cannot be one of Diameter messages, or the next is longer than `max_message`. There is
/// no next frame after that: answer with [`FrameError::fault`] if it was a request, then close.
#[inline]
pub fn next_frame(buffer: &mut BytesMut, max_message: usize) -> Result<Option<MessageMut>, FrameError> {
    let Some(head) = buffer.first_chunk::<4>() else {
        // The length has not arrived; a wrong version shows in the first byte.
        return match buffer.first() {
            Some(&version) if version != VERSION => {
                Err(FrameError::new(buffer, FrameReason::Version(version)))
            }
            _ => Ok(None),
        };
    };
    let [version, l0, l1, l2] = *head;
    let length = u32::from_be_bytes([0, l0, l1, l2]) as usize;
    if version != VERSION {
        return Err(FrameError::new(buffer, FrameReason::Version(version)));
    }
    if length < HEADER_LEN || !length.is_multiple_of(4) {
        return Err(FrameError::new(buffer, FrameReason::Length(length)));
    }
    if length > max_message {
        return Err(FrameError::new(
            buffer,
            FrameReason::TooLong {
                length,
                max: max_message,
            },
        ));
    }
    if buffer.len() < length {
        return Ok(None);
    }
    Ok(Some(Message::trusted(buffer.split_to(length))))
}

/// The length of the message at the front of `buffer`, as far as its bytes show it: at least one header. Never more
/// than `max_message`, so that a length field of 16 MB reserves no memory.
#[must_use]
pub fn wanted(buffer: &[u8], max_message: usize) -> usize {
    match buffer.first_chunk::<4>() {
        Some([_, l0, l1, l2]) => {
            (u32::from_be_bytes([0, *l0, *l1, *l2]) as usize).clamp(HEADER_LEN, max_message.max(HEADER_LEN))
        }
        None => HEADER_LEN,
    }
}

/// The stream does not consist of Diameter messages any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameError {
    /// The header, when all of it is there.
    pub header: Option<Header>,
    /// What is wrong with it.
    pub reason: FrameReason,
}

/// What can be wrong with a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameReason {
    /// The version is not 1.
    Version(u8),
    /// The length is below the header's or not a multiple of four.
    Length(usize),
    /// The length is beyond what we take.
    TooLong {
        /// As claimed.
        length: usize,
        /// Our limit.
        max: usize,
    },
}

impl FrameError {
    #[cold]
    fn new(buffer: &[u8], reason: FrameReason) -> Self {
        Self {
            header: buffer.first_chunk::<HEADER_LEN>().map(Header::decode),
            reason,
        }
    }

    /// The fault to answer with, if [`FrameError::header`] is that of a request.
    #[must_use]
    pub fn fault(&self) -> Fault {
        let code = match self.reason {
            FrameReason::Version(_) => ResultCode::UNSUPPORTED_VERSION,
            FrameReason::Length(_) | FrameReason::TooLong { .. } => ResultCode::INVALID_MESSAGE_LENGTH,
        };
        Fault::new(code, self.to_string())
    }
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            FrameReason::Version(version) => write!(f, "version {version} where 1 is spoken"),
            FrameReason::Length(length) => {
                write!(
                    f,
                    "message length {length}: expected a multiple of 4, at least {HEADER_LEN}"
                )
            }
            FrameReason::TooLong { length, max } => {
                write!(f, "message length {length} where at most {max} is taken")
            }
        }
    }
}

impl std::error::Error for FrameError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        bytes[..4].copy_from_slice(&(length as u32).to_be_bytes());
        bytes[0] = 1;
        bytes
    }

    #[test]
    fn frames_are_whole_however_the_stream_is_cut() {
        let stream = [message(20), message(44), message(24)].concat();
        for piece in [1, 3, 7, 20, 100] {
            let mut buffer = BytesMut::new();
            let mut lengths = Vec::new();
            for chunk in stream.chunks(piece) {
                buffer.extend_from_slice(chunk);
                while let Some(message) = next_frame(&mut buffer, 4096).unwrap() {
                    lengths.push(message.as_bytes().len());
                }
            }
            assert_eq!(lengths, [20, 44, 24]);
            assert!(buffer.is_empty());
        }
    }

    #[test]
    fn other_protocols_are_an_error_at_once() {
        let cases: [(&[u8], FrameReason); 5] = [
            (b"G", FrameReason::Version(b'G')),
            (b"GET / HTTP/1.1", FrameReason::Version(b'G')),
            (&[1, 0, 0, 19], FrameReason::Length(19)),
            (&[1, 0, 0, 22], FrameReason::Length(22)),
            (
                &[1, 255, 255, 252],
                FrameReason::TooLong {
                    length: 0xff_fffc,
                    max: 4096,
                },
            ),
        ];
        for (bytes, reason) in cases {
            let error = next_frame(&mut BytesMut::from(bytes), 4096).unwrap_err();
            assert_eq!(error.reason, reason);
        }
        assert_eq!(wanted(&[1, 255, 255, 252], 4096), 4096);
        assert_eq!(wanted(&[], 4096), 20);
    }
}
