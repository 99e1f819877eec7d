//! Paths of Rx sessions: between which AF and which PCF.

use records::{DecodeError, Index, IndexKeys, IndexSchema, Key, MAX_KEY, Record, TableSchema};

/// The path of an Rx session by its Session-Id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RxSession {
    id: Key,
    /// The peer that the session's requests come from.
    pub af: String,
    /// The PCF.
    pub pcf: String,
    /// When the session began, or when its use was written last, in microseconds since 1970.
    pub began: u64,
}

impl RxSession {
    /// By the time at which sessions began. The order of modification would be that of the whole log, in which
    /// paths are few among bindings.
    pub const BEGAN: Index = Index(0);

    /// A session that begins at this time. `None` when the Session-Id is longer than a key may be, or a name than
    /// names are.
    pub fn new(id: &[u8], af: &str, pcf: &str, began: u64) -> Option<Self> {
        let fits = (1..=MAX_KEY).contains(&id.len()) && af.len() <= 255 && pcf.len() <= 255;
        fits.then(|| Self {
            began,
            id: Key::from_slice(id),
            af: af.to_owned(),
            pcf: pcf.to_owned(),
        })
    }
}

impl Record for RxSession {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "rx_session",
        indexes: &[IndexSchema::many("began").ordered()],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> Key {
        self.id.clone()
    }

    fn index(&self, keys: &mut IndexKeys) {
        keys.add(Self::BEGAN, &self.began.to_be_bytes());
    }

    /// When it began, length of the AF's name, its name, the PCF's name.
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.began.to_be_bytes());
        // `RxSession::new` has checked the length.
        out.push(u8::try_from(self.af.len()).unwrap_or(u8::MAX));
        out.extend_from_slice(self.af.as_bytes());
        out.extend_from_slice(self.pcf.as_bytes());
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        let wrong = || DecodeError("not the path of a session".to_owned());
        let (began, value) = value.split_first_chunk::<8>().ok_or_else(wrong)?;
        let (length, names) = value.split_first().ok_or_else(wrong)?;
        let (af, pcf) = names.split_at_checked(usize::from(*length)).ok_or_else(wrong)?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| wrong());
        Ok(Self {
            id: Key::from_slice(key),
            af: text(af)?,
            pcf: text(pcf)?,
            began: u64::from_be_bytes(*began),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_wrote() {
        let path = RxSession::new(b"af;1;2", "af.example", "pcf.example", 7).unwrap();
        let mut bytes = Vec::new();
        path.encode(&mut bytes);
        assert_eq!(RxSession::decode(b"af;1;2", &bytes), Ok(path));
        for wrong in [&b""[..], &[0; 8], b"12345678\x09a", b"12345678\x01\xffp"] {
            assert!(RxSession::decode(b"x", wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(RxSession::new(&[b'x'; MAX_KEY + 1], "a", "p", 7), None);
        assert_eq!(RxSession::new(b"x", &"a".repeat(300), "p", 7), None);
    }
}
