//! Queries and answers: the entries of a frame.

/// Most octets of a service's name.
pub const MOST_SERVICE_BYTES: usize = 32;
/// Most octets of a name or a destination: a length is one octet.
pub const MOST_TEXT_BYTES: usize = 255;

/// What frames of one kind hold.
pub trait Entry<'b>: Sized {
    /// The code of such frames.
    const CODE: u8;

    /// Reads an entry from the beginning of `bytes`, and returns what is behind it; none: the bytes are not an entry.
    fn read(bytes: &'b [u8]) -> Option<(Self, &'b [u8])>;

    /// Appends the entry.
    fn write(&self, out: &mut Vec<u8>);
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Digits of an IMEI.
    Imei,
    /// Digits of an IMSI.
    Imsi,
    /// Digits of an MSISDN, without `+`.
    Msisdn,
    /// A name: IMPI, IMPU, NAI or External Identifier.
    Name,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Imei, Self::Imsi, Self::Msisdn, Self::Name];

    /// Its word in texts.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Imei => "imei",
            Self::Imsi => "imsi",
            Self::Msisdn => "msisdn",
            Self::Name => "name",
        }
    }

    const fn code(self) -> u8 {
        self as u8 + 1
    }

    fn of_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query<'b> {
    /// The answer repeats it.
    pub id: u32,
    /// Of the value.
    pub kind: Kind,
    /// The kind of server whose destination is wanted; empty: the destination without a service.
    pub service: &'b [u8],
    /// Digits, or a name in the form in which names are compared.
    pub value: &'b [u8],
}

/// What became of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The value is unknown, or has no destination for the service.
    Unknown,
    /// The value has this destination.
    Exact,
    /// The name is unknown, and its realm (`*@realm`) has this destination.
    Realm,
    /// The entry of the value is damaged: what it was is not known.
    Damaged,
    /// The processor answers no more queries in this second.
    Congested,
    /// The processor has no data yet, or it lacks the entry and does not know yet what was changed while it was down.
    Unavailable,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Unknown,
        Self::Exact,
        Self::Realm,
        Self::Damaged,
        Self::Congested,
        Self::Unavailable,
    ];

    /// Its word in texts and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Exact => "exact",
            Self::Realm => "realm",
            Self::Damaged => "damaged",
            Self::Congested => "congested",
            Self::Unavailable => "unavailable",
        }
    }

    /// Whether an answer of this outcome has a destination.
    #[must_use]
    pub const fn has_destination(self) -> bool {
        matches!(self, Self::Exact | Self::Realm)
    }

    fn of_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

/// The answer to a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer<'b> {
    /// Of the query.
    pub id: u32,
    /// What became of it.
    pub outcome: Outcome,
    /// The destination; empty with every outcome that [has none](Outcome::has_destination).
    pub destination: &'b [u8],
}

impl<'b> Entry<'b> for Query<'b> {
    const CODE: u8 = 1;

    fn read(bytes: &'b [u8]) -> Option<(Self, &'b [u8])> {
        let (id, kind, rest) = head(bytes)?;
        let (service, rest) = text(rest)?;
        let (value, rest) = text(rest)?;
        if service.len() > MOST_SERVICE_BYTES || value.is_empty() {
            return None;
        }
        let kind = Kind::of_code(kind)?;
        let query = Self {
            id,
            kind,
            service,
            value,
        };
        Some((query, rest))
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id.to_be_bytes());
        out.push(self.kind.code());
        put_text(self.service, MOST_SERVICE_BYTES, out);
        put_text(self.value, MOST_TEXT_BYTES, out);
    }
}

impl<'b> Entry<'b> for Answer<'b> {
    const CODE: u8 = 2;

    fn read(bytes: &'b [u8]) -> Option<(Self, &'b [u8])> {
        let (id, outcome, rest) = head(bytes)?;
        let outcome = Outcome::of_code(outcome)?;
        let (destination, rest) = text(rest)?;
        if destination.is_empty() == outcome.has_destination() {
            return None;
        }
        let answer = Self {
            id,
            outcome,
            destination,
        };
        Some((answer, rest))
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id.to_be_bytes());
        out.push(self.outcome as u8);
        put_text(self.destination, MOST_TEXT_BYTES, out);
    }
}

/// The id and the code at the beginning of each entry.
fn head(bytes: &[u8]) -> Option<(u32, u8, &[u8])> {
    let (id, rest) = bytes.split_first_chunk::<4>()?;
    let (code, rest) = rest.split_first()?;
    Some((u32::from_be_bytes(*id), *code, rest))
}

fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*length))
}

/// Appends a text behind its length. A text that is too long is the caller's mistake; it is cut, so that the frame is sound.
fn put_text(text: &[u8], most: usize, out: &mut Vec<u8>) {
    let text = text.get(..text.len().min(most)).unwrap_or_default();
    out.push(text.len() as u8);
    out.extend_from_slice(text);
}
