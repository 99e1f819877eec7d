//! The transaction portion (Q.773 §3.1, T1.114.3 §4).

use super::component::Components;
use super::context::ApplicationContext;
use crate::ber::{BerFault, Element, Elements, Tag};

/// Why octets do not make a TCAP message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// Not BER.
    #[error(transparent)]
    Ber(#[from] BerFault),
    /// It is empty.
    #[error("the message is empty")]
    Empty,
    /// Unknown message type.
    #[error("unknown message type {0:#x}")]
    MessageType(u32),
    /// An identifier of a wrong length, or missing.
    #[error("a transaction identifier is missing or has a wrong length")]
    TransactionId,
}

/// A message type, with those of ANSI behind those of ITU.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MessageType {
    /// Unidirectional.
    Unidirectional,
    /// Begin; Query of ANSI.
    Begin,
    /// End; Response of ANSI.
    End,
    /// Continue; Conversation of ANSI.
    Continue,
    /// Abort.
    Abort,
}

/// An identifier of up to four octets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TransactionId {
    octets: [u8; 4],
    length: u8,
}

impl TransactionId {
    fn read(value: &[u8]) -> Option<Self> {
        let mut octets = [0; 4];
        octets.get_mut(..value.len())?.copy_from_slice(value);
        Some(Self {
            octets,
            length: value.len() as u8,
        })
    }

    /// The octets, as they were sent.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        self.octets.get(..usize::from(self.length)).unwrap_or_default()
    }
}

/// A message.
#[derive(Clone, Copy, Debug)]
pub struct Transaction<'a> {
    /// The type.
    pub message_type: MessageType,
    /// Whether the message is one of ANSI.
    pub ansi: bool,
    /// The sender's identifier.
    pub originating: Option<TransactionId>,
    /// The receiver's identifier.
    pub destination: Option<TransactionId>,
    /// Why the provider aborts.
    pub abort_cause: Option<i32>,
    /// Whether there is a dialogue portion.
    pub has_dialogue: bool,
    /// The application context of the dialogue portion, where that can be read.
    pub context: Option<ApplicationContext<'a>>,
    /// The components.
    pub components: Components<'a>,
    /// Whether each element is one that the standard has, and occurs once: other readers may make something else of the rest.
    pub is_plain: bool,
}

impl<'a> Transaction<'a> {
    /// Walks a message, ITU or ANSI by its tag. Components are proven when they are read.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn parse(octets: &'a [u8]) -> Result<Self, Fault> {
        // The first octet is the whole tag: what begins otherwise is another user's, and no BER for all we know.
        let first = *octets.first().ok_or(Fault::Empty)?;
        let (read, message_type): (Reader, _) = match first {
            0x61 => (itu, MessageType::Unidirectional),
            0x62 => (itu, MessageType::Begin),
            0x64 => (itu, MessageType::End),
            0x65 => (itu, MessageType::Continue),
            0x67 => (itu, MessageType::Abort),
            0xe1 => (ansi, MessageType::Unidirectional),
            0xe2 | 0xe3 => (ansi, MessageType::Begin),
            0xe4 => (ansi, MessageType::End),
            0xe5 | 0xe6 => (ansi, MessageType::Continue),
            0xf6 => (ansi, MessageType::Abort),
            other => return Err(Fault::MessageType(u32::from(other))),
        };
        let message = Elements::new(octets).next().ok_or(Fault::Empty)??;
        read(message, message_type)
    }
}

/// What reads the message of a type.
type Reader = for<'a> fn(Element<'a>, MessageType) -> Result<Transaction<'a>, Fault>;

fn itu(message: Element<'_>, message_type: MessageType) -> Result<Transaction<'_>, Fault> {
    let mut transaction = Transaction {
        message_type,
        ansi: false,
        originating: None,
        destination: None,
        abort_cause: None,
        has_dialogue: false,
        context: None,
        components: Components::new(&[], false),
        is_plain: true,
    };
    let mut seen = Seen::default();
    for element in message.elements() {
        let element = element?;
        transaction.is_plain &= seen.is_first(element.tag, &[0x48, 0x49, 0x4a, 0x6b, 0x6c]);
        match element.tag.0 {
            0x48 => transaction.originating = Some(identifier(element.value)?),
            0x49 => transaction.destination = Some(identifier(element.value)?),
            0x4a => transaction.abort_cause = element.integer(),
            0x6b => {
                transaction.has_dialogue = true;
                transaction.context = itu_context(element);
            }
            0x6c => transaction.components = Components::new(element.value, false),
            // Elements of later versions pass.
            _ => {}
        }
    }
    // Q.773 §3.1.2: which identifiers each type has.
    let (originating, destination) = match message_type {
        MessageType::Unidirectional => (false, false),
        MessageType::Begin => (true, false),
        MessageType::End | MessageType::Abort => (false, true),
        MessageType::Continue => (true, true),
    };
    if (originating && transaction.originating.is_none())
        || (destination && transaction.destination.is_none())
    {
        return Err(Fault::TransactionId);
    }
    Ok(transaction)
}

/// Which of the known elements have occurred.
#[derive(Default)]
struct Seen(u8);

impl Seen {
    fn is_first(&mut self, tag: Tag, known: &[u32]) -> bool {
        let Some(at) = known.iter().position(|one| *one == tag.0) else {
            return false;
        };
        let bit = 1 << at;
        let is_first = self.0 & bit == 0;
        self.0 |= bit;
        is_first
    }
}

/// One to four octets (Q.773 §4.2.1.2).
fn identifier(value: &[u8]) -> Result<TransactionId, Fault> {
    match value.len() {
        1..=4 => TransactionId::read(value).ok_or(Fault::TransactionId),
        _ => Err(Fault::TransactionId),
    }
}

/// Dialogue portion, EXTERNAL, `[0]`, then AARQ, AARE or AUDT, and its `[1]`. A dialogue that reads otherwise has no
/// context for us; whether it is wrong is for the end points to say.
fn itu_context(dialogue: Element<'_>) -> Option<ApplicationContext<'_>> {
    let external = dialogue.elements().find_tag(Tag(0x28))?;
    let single = external.elements().find_tag(Tag(0xa0))?;
    let pdu = single.elements().next()?.ok()?;
    let name = pdu.elements().find_tag(Tag(0xa1))?;
    let identifier = name.elements().find_tag(Tag::OBJECT_IDENTIFIER)?;
    Some(ApplicationContext::new(identifier.value))
}

fn ansi(message: Element<'_>, message_type: MessageType) -> Result<Transaction<'_>, Fault> {
    let mut transaction = Transaction {
        message_type,
        ansi: true,
        originating: None,
        destination: None,
        abort_cause: None,
        has_dialogue: false,
        context: None,
        components: Components::new(&[], true),
        is_plain: true,
    };
    let mut identified = false;
    let mut seen = Seen::default();
    for element in message.elements() {
        let element = element?;
        transaction.is_plain &= seen.is_first(element.tag, &[0xc7, 0xd7, 0xd8, 0xf8, 0xf9, 0xe8]);
        match element.tag.0 {
            0xc7 => {
                identified = true;
                ansi_identifiers(element.value, &mut transaction)?;
            }
            0xd7 => transaction.abort_cause = element.integer(),
            0xf9 => {
                transaction.has_dialogue = true;
                // Application context as an integer (0xdb) or an object identifier (0xdc).
                let name = element.elements().find_tag(Tag(0xdc));
                transaction.context = name.map(|name| ApplicationContext::new(name.value));
            }
            0xe8 => transaction.components = Components::new(element.value, true),
            _ => {}
        }
    }
    if identified {
        Ok(transaction)
    } else {
        Err(Fault::TransactionId)
    }
}

/// None, one or two identifiers of four octets in one element (T1.114.3 §4.3).
fn ansi_identifiers<'a>(value: &'a [u8], transaction: &mut Transaction<'a>) -> Result<(), Fault> {
    let read = |octets: &[u8]| TransactionId::read(octets).ok_or(Fault::TransactionId);
    match (transaction.message_type, value.len()) {
        (MessageType::Unidirectional, 0) => {}
        (MessageType::Begin, 4) => transaction.originating = Some(read(value)?),
        (MessageType::End | MessageType::Abort, 4) => transaction.destination = Some(read(value)?),
        (MessageType::Continue, 8) => {
            let (originating, destination) = value.split_at(4);
            transaction.originating = Some(read(originating)?);
            transaction.destination = Some(read(destination)?);
        }
        _ => return Err(Fault::TransactionId),
    }
    Ok(())
}
