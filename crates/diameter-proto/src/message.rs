//! A message as a view over its bytes. The bytes may be shared ([`Message`]), borrowed ([`MessageRef`]) or
//! ours alone ([`MessageMut`], as the driver delivers them), in which case a relay patches the header where
//! it lies and forwards the rest untouched.

use std::fmt;

use bytes::{Bytes, BytesMut};

use crate::avp::Avps;
use crate::fault::{Fault, ResultCode};
use crate::header::{CommandFlags, HEADER_LEN, Header, MAX_LENGTH, VERSION};
use crate::kind::{Kind, Tag};

/// A Diameter message: a header that is valid in itself, and AVPs that are not parsed yet.
#[derive(Clone)]
pub struct Message<B = Bytes> {
    /// At least [`HEADER_LEN`] bytes, as many as the header's length field says unless a relay is about to
    /// append: every constructor holds to that.
    bytes: B,
}

/// A message in borrowed bytes.
pub type MessageRef<'a> = Message<&'a [u8]>;
/// A message that owns its bytes, so that its header can be patched.
pub type MessageMut = Message<BytesMut>;

impl<B: AsRef<[u8]>> Message<B> {
    /// Takes `bytes` as one message.
    ///
    /// # Errors
    /// `DIAMETER_INVALID_MESSAGE_LENGTH` when they are not what the length field says or not a multiple of
    /// four, `DIAMETER_UNSUPPORTED_VERSION`.
    pub fn parse(bytes: B) -> Result<Self, Fault> {
        let slice = bytes.as_ref();
        let Some(head) = slice.first_chunk::<HEADER_LEN>() else {
            return Err(Fault::new(
                ResultCode::INVALID_MESSAGE_LENGTH,
                format!("{} bytes are too few for a message header", slice.len()),
            ));
        };
        let header = Header::decode(head);
        if header.version != VERSION {
            return Err(Fault::new(
                ResultCode::UNSUPPORTED_VERSION,
                format!("version {} where 1 is spoken", header.version),
            ));
        }
        if header.length as usize != slice.len() || !slice.len().is_multiple_of(4) {
            return Err(Fault::new(
                ResultCode::INVALID_MESSAGE_LENGTH,
                format!(
                    "the header claims {} bytes, {} are there",
                    header.length,
                    slice.len()
                ),
            ));
        }
        Ok(Self { bytes })
    }

    /// For bytes that were framed or built here, where the same has been checked.
    pub(crate) const fn trusted(bytes: B) -> Self {
        Self { bytes }
    }

    /// The whole message.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// The whole message, given away.
    #[inline]
    #[must_use]
    pub fn into_bytes(self) -> B {
        self.bytes
    }

    #[inline]
    fn word(&self, at: usize) -> u32 {
        // Every constructor holds that at least HEADER_LEN bytes are there and `at` is a constant below it.
        match self
            .bytes
            .as_ref()
            .get(at..at + 4)
            .and_then(|word| word.try_into().ok())
        {
            Some(word) => u32::from_be_bytes(word),
            None => 0,
        }
    }

    /// The decoded header.
    #[must_use]
    pub fn header(&self) -> Header {
        Header {
            version: VERSION,
            length: self.word(0) & 0x00ff_ffff,
            flags: self.flags(),
            command: self.command(),
            application: self.application(),
            hop_by_hop: self.hop_by_hop(),
            end_to_end: self.end_to_end(),
        }
    }

    /// Command flags.
    #[inline]
    #[must_use]
    pub fn flags(&self) -> CommandFlags {
        CommandFlags((self.word(4) >> 24) as u8)
    }

    /// Whether this is a request.
    #[inline]
    #[must_use]
    pub fn is_request(&self) -> bool {
        self.flags().is_request()
    }

    /// Command code.
    #[inline]
    #[must_use]
    pub fn command(&self) -> u32 {
        self.word(4) & 0x00ff_ffff
    }

    /// Application-Id of the header.
    #[inline]
    #[must_use]
    pub fn application(&self) -> u32 {
        self.word(8)
    }

    /// Hop-by-Hop Identifier.
    #[inline]
    #[must_use]
    pub fn hop_by_hop(&self) -> u32 {
        self.word(12)
    }

    /// End-to-End Identifier.
    #[inline]
    #[must_use]
    pub fn end_to_end(&self) -> u32 {
        self.word(16)
    }

    /// The walk over the AVPs.
    #[inline]
    #[must_use]
    pub fn avps(&self) -> Avps<'_> {
        Avps::new(self.bytes.as_ref().get(HEADER_LEN..).unwrap_or_default())
    }

    /// The value of the first AVP `tag` names.
    ///
    /// # Errors
    /// When the walk meets a broken AVP before it, or its data does not fit the type.
    pub fn get<K: Kind>(&self, tag: Tag<K>) -> Result<Option<K::Value<'_>>, Fault> {
        self.avps().get(tag)
    }

    /// The value of the first AVP `tag` names, which has to be there.
    ///
    /// # Errors
    /// As [`Message::get`], and `DIAMETER_MISSING_AVP`.
    pub fn require<K: Kind>(&self, tag: Tag<K>) -> Result<K::Value<'_>, Fault> {
        self.avps().require(tag)
    }

    /// A view that borrows.
    #[inline]
    #[must_use]
    pub fn view(&self) -> MessageRef<'_> {
        Message {
            bytes: self.bytes.as_ref(),
        }
    }

    /// Checks the frame of every top-level AVP: what a relay owes its neighbours. Grouped AVPs are not
    /// entered; [`crate::check`] does that where the message ends.
    ///
    /// # Errors
    /// `DIAMETER_INVALID_AVP_LENGTH` with the first offending AVP.
    pub fn check_frames(&self) -> Result<(), Fault> {
        for avp in self.avps() {
            avp?;
        }
        Ok(())
    }

    /// Checks the flags that no command may combine: a request with the E flag, an answer with the T flag
    /// (RFC 6733 §3). Reserved bits are ignored, as receivers must.
    ///
    /// # Errors
    /// `DIAMETER_INVALID_HDR_BITS`.
    pub fn check_flags(&self) -> Result<(), Fault> {
        let flags = self.flags();
        let wrong = if flags.is_request() {
            CommandFlags::ERROR
        } else {
            CommandFlags::RETRANSMITTED
        };
        if flags.contains(wrong) {
            return Err(Fault::new(
                ResultCode::INVALID_HDR_BITS,
                format!("flags {flags} cannot stand together"),
            ));
        }
        Ok(())
    }
}

impl<'a> MessageRef<'a> {
    /// As [`Message::avps`], living as long as the bytes do.
    #[inline]
    #[must_use]
    pub fn walk(self) -> Avps<'a> {
        Avps::new(self.bytes.get(HEADER_LEN..).unwrap_or_default())
    }
}

impl Copy for MessageRef<'_> {}

impl Message<Bytes> {
    /// The shared bytes.
    #[inline]
    #[must_use]
    pub const fn as_shared(&self) -> &Bytes {
        &self.bytes
    }

    /// The same message in bytes of its own, apart from the buffer it was read into.
    #[must_use]
    pub fn copied(&self) -> Self {
        Self {
            bytes: Bytes::copy_from_slice(&self.bytes),
        }
    }
    /// Header and AVPs apart: what a second try needs, which sends a new header before the same AVPs.
    #[must_use]
    pub fn split(&self) -> (Header, Bytes) {
        (
            self.header(),
            self.bytes.slice(HEADER_LEN.min(self.bytes.len())..),
        )
    }
}

impl MessageMut {
    fn put(&mut self, at: usize, bytes: &[u8]) {
        // The header is there (see `bytes`), `at` and the lengths are constants that end within it.
        if let Some(place) = self.bytes.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    /// Replaces the Hop-by-Hop Identifier in place.
    #[inline]
    pub fn set_hop_by_hop(&mut self, id: u32) {
        self.put(12, &id.to_be_bytes());
    }

    /// Replaces the End-to-End Identifier in place.
    #[inline]
    pub fn set_end_to_end(&mut self, id: u32) {
        self.put(16, &id.to_be_bytes());
    }

    /// Replaces the command flags in place.
    #[inline]
    pub fn set_flags(&mut self, flags: CommandFlags) {
        self.put(4, &[flags.0]);
    }

    /// Makes the length field cover `more` bytes that will be sent right after this message: the AVPs a
    /// relay appends. False, and nothing changed, when `more` is not a multiple of four or the length exceeds 24 bits.
    #[must_use]
    pub fn announce_appended(&mut self, more: usize) -> bool {
        let length = self.bytes.len() + more;
        if !more.is_multiple_of(4) || length > MAX_LENGTH {
            return false;
        }
        let [_, l0, l1, l2] = (length as u32).to_be_bytes();
        self.put(1, &[l0, l1, l2]);
        true
    }

    /// Replaces the data bytes of a top-level AVP by others of the same length: for topology hiding and the
    /// like. `offset` is where the data begins within the message. False when it would leave the AVPs.
    #[must_use]
    pub fn overwrite(&mut self, offset: usize, data: &[u8]) -> bool {
        match self
            .bytes
            .get_mut(offset..)
            .and_then(|rest| rest.get_mut(..data.len()))
        {
            Some(place) if offset >= HEADER_LEN => {
                place.copy_from_slice(data);
                true
            }
            _ => false,
        }
    }

    /// The same bytes, from now on shared and unchanging.
    #[inline]
    #[must_use]
    pub fn freeze(self) -> Message {
        Message {
            bytes: self.bytes.freeze(),
        }
    }
}

/// One line for logs: `316 RP app 16777251 hbh 0x1 e2e 0x2 2200 bytes`.
impl<B: AsRef<[u8]>> fmt::Debug for Message<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} app {} hbh {:#x} e2e {:#x} {} bytes",
            self.command(),
            self.flags(),
            self.application(),
            self.hop_by_hop(),
            self.end_to_end(),
            self.as_bytes().len()
        )
    }
}

impl<A: AsRef<[u8]>, B: AsRef<[u8]>> PartialEq<Message<B>> for Message<A> {
    fn eq(&self, other: &Message<B>) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl<B: AsRef<[u8]>> Eq for Message<B> {}
