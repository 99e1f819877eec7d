//! Destination sets: what a number resolves to, each set once in a table.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Most sets of a map: a value has 16 bits, and 65,535 is none.
pub const MOST_SETS: usize = 65_535;
/// Most destinations of a set.
pub const MOST_DESTINATIONS: usize = 16;
/// Most characters of a service's name.
pub const MOST_SERVICE_BYTES: usize = 32;
/// Most characters of a destination: those of a DiameterIdentity (RFC 1035 §2.3.4).
pub const MOST_DESTINATION_BYTES: usize = 255;

/// The position of a set in its map's table. It keeps its meaning while the map is open, and in its checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetId(pub(crate) u16);

impl SetId {
    /// Its position among [`Map::sets`](crate::Map::sets).
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Why a text is not a destination set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// It is empty.
    #[error("no destination; expected DESTINATION or SERVICE=DESTINATION, such as pcrf=pcrf1.example")]
    Empty,
    /// There are more than [`MOST_DESTINATIONS`].
    #[error("more than {MOST_DESTINATIONS} destinations")]
    TooManyDestinations,
    /// A service's name is not in lower-case letters, digits and hyphens.
    #[error("service `{0}`: expected 1 to {MOST_SERVICE_BYTES} lower-case letters, digits and hyphens")]
    Service(String),
    /// A destination is empty, too long or has other characters.
    #[error(
        "destination `{0}`: expected 1 to {MOST_DESTINATION_BYTES} visible ASCII characters without `,`, `=`, `\"` and `#`"
    )]
    Destination(String),
    /// A service has two destinations.
    #[error("service `{0}` has two destinations")]
    Twice(String),
    /// The table is full.
    #[error("more than {MOST_SETS} different destination sets")]
    TooManySets,
}

/// One destination for each service, and one for all others.
///
/// A text of destinations in the order of their services: `dra1.example,ocs=ocs1.example,pcrf=pcrf2.example`. A destination
/// without a service is that of each service which has none of its own.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct DestinationSet(Box<str>);

impl DestinationSet {
    /// Parses destinations that are separated by commas, in any order.
    ///
    /// # Errors
    /// Names the part that is wrong.
    pub fn parse(text: &str) -> Result<Self, SetError> {
        if text.is_empty() {
            return Err(SetError::Empty);
        }
        let mut parts = Vec::new();
        for part in text.split(',') {
            if parts.len() == MOST_DESTINATIONS {
                return Err(SetError::TooManyDestinations);
            }
            let (service, destination) = part.split_once('=').unwrap_or(("", part));
            if part.contains('=') && !is_service(service) {
                return Err(SetError::Service(shown(service)));
            }
            if !is_destination(destination) {
                return Err(SetError::Destination(shown(destination)));
            }
            parts.push((service, part));
        }
        parts.sort_unstable();
        if let Some(pair) = parts.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let service = if pair[0].0.is_empty() { "any" } else { pair[0].0 };
            return Err(SetError::Twice(service.to_owned()));
        }
        let parts: Vec<&str> = parts.into_iter().map(|(_, part)| part).collect();
        Ok(Self(parts.join(",").into_boxed_str()))
    }

    /// The destination of a service, such as `pcrf`; that of all others where it has none.
    #[must_use]
    pub fn destination(&self, service: &str) -> Option<&str> {
        let mut any = None;
        for part in self.0.split(',') {
            match part.split_once('=') {
                Some((name, destination)) if name == service => return Some(destination),
                Some(_) => {}
                None => any = Some(part),
            }
        }
        any
    }

    /// Each service with its destination; the service of the one for all others is empty.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .split(',')
            .map(|part| part.split_once('=').unwrap_or(("", part)))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DestinationSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for DestinationSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_service(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=MOST_SERVICE_BYTES).contains(&name.len()) && name.bytes().all(allowed)
}

fn is_destination(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b',' | b'=' | b'"' | b'#');
    (1..=MOST_DESTINATION_BYTES).contains(&name.len()) && name.bytes().all(allowed)
}

/// A part of a stranger's text for a message: bounded, without control characters.
fn shown(text: &str) -> String {
    text.chars().take(40).flat_map(char::escape_debug).collect()
}

/// A table of sets, each of them once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sets {
    all: Vec<Arc<DestinationSet>>,
    ids: HashMap<Arc<DestinationSet>, u16>,
}

impl Sets {
    /// The identity of a set, which is added when it is new.
    pub(crate) fn intern(&mut self, set: &DestinationSet) -> Result<SetId, SetError> {
        if let Some(id) = self.ids.get(set) {
            return Ok(SetId(*id));
        }
        let id = u16::try_from(self.all.len())
            .ok()
            .filter(|id| usize::from(*id) < MOST_SETS);
        let id = id.ok_or(SetError::TooManySets)?;
        let set = Arc::new(set.clone());
        self.all.push(Arc::clone(&set));
        self.ids.insert(set, id);
        Ok(SetId(id))
    }

    /// The table as it was with its first sets alone.
    pub(crate) fn first(&self, count: usize) -> Self {
        let all: Vec<_> = self.all.iter().take(count).cloned().collect();
        let known = |id: &u16| usize::from(*id) < count;
        let ids = self.ids.iter().filter(|(_, id)| known(id));
        Self {
            all,
            ids: ids.map(|(set, id)| (Arc::clone(set), *id)).collect(),
        }
    }

    pub(crate) fn has(&self, set: &DestinationSet) -> bool {
        self.ids.contains_key(set)
    }

    /// A table of the sets that are `used`, by position, and the new identity of each set.
    pub(crate) fn kept(&self, used: &[bool]) -> (Self, Vec<u16>) {
        let (mut kept, mut ids) = (Self::default(), Vec::with_capacity(used.len()));
        for (set, used) in self.all.iter().zip(used) {
            // A table with some of the sets has no more of them.
            let id = kept.all.len() as u16;
            ids.push(id);
            if *used {
                kept.all.push(Arc::clone(set));
                kept.ids.insert(Arc::clone(set), id);
            }
        }
        (kept, ids)
    }

    pub(crate) fn all(&self) -> &[Arc<DestinationSet>] {
        &self.all
    }

    /// The table as bytes: for each set its length (2 bytes) and text.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for set in &self.all {
            // A set has at most 16 destinations of 288 bytes.
            bytes.extend((set.0.len() as u16).to_le_bytes());
            bytes.extend(set.0.as_bytes());
        }
        bytes
    }

    /// `None` where the bytes do not decode.
    pub(crate) fn decode(mut bytes: &[u8]) -> Option<Self> {
        let mut sets = Self::default();
        while !bytes.is_empty() {
            let (length, rest) = bytes.split_first_chunk::<2>()?;
            let (text, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
            let text = std::str::from_utf8(text).ok()?;
            let set = DestinationSet::parse(text).ok().filter(|set| &*set.0 == text)?;
            let next = sets.all.len();
            // A set that is there twice would have two identities.
            (usize::from(sets.intern(&set).ok()?.0) == next).then_some(())?;
            bytes = rest;
        }
        Some(sets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_a_destination_for_each_service_and_one_for_the_rest() {
        let set = DestinationSet::parse("pcrf=p1.example,dra.example,ims-hss=h1").unwrap();
        assert_eq!(set.as_str(), "dra.example,ims-hss=h1,pcrf=p1.example");
        assert_eq!(set.destination("pcrf"), Some("p1.example"));
        assert_eq!(set.destination("ocs"), Some("dra.example"));
        let set = DestinationSet::parse("pcrf=p1").unwrap();
        assert_eq!(set.destination("ocs"), None);
    }

    #[test]
    fn what_is_no_set_is_refused_with_the_reason() {
        let refused = |text: &str| DestinationSet::parse(text).unwrap_err();
        assert_eq!(refused(""), SetError::Empty);
        assert_eq!(refused("a,"), SetError::Destination(String::new()));
        assert_eq!(refused("PCRF=a"), SetError::Service("PCRF".to_owned()));
        assert_eq!(refused("=a"), SetError::Service(String::new()));
        assert_eq!(refused("a,b"), SetError::Twice("any".to_owned()));
        assert_eq!(refused("x=a,x=a"), SetError::Twice("x".to_owned()));
        assert_eq!(refused("x=a=b"), SetError::Destination("a=b".to_owned()));
        assert_eq!(refused("a\tb"), SetError::Destination("a\\tb".to_owned()));
        assert_eq!(refused(&["a"; 17].join(",")), SetError::TooManyDestinations);
        assert!(matches!(refused(&"a".repeat(256)), SetError::Destination(_)));
    }

    #[test]
    fn the_table_reads_back_and_is_bounded() {
        let mut sets = Sets::default();
        for number in 0..MOST_SETS {
            let set = DestinationSet::parse(&format!("hss{number}")).unwrap();
            assert_eq!(usize::from(sets.intern(&set).unwrap().0), number);
        }
        let one_more = DestinationSet::parse("one-more").unwrap();
        assert_eq!(sets.intern(&one_more), Err(SetError::TooManySets));
        assert_eq!(Sets::decode(&sets.encode()).unwrap().all(), sets.all());
        assert!(Sets::decode(b"\x02\0a").is_none());
        assert!(Sets::decode(b"\x01\0a\x01\0a").is_none());
    }
}
