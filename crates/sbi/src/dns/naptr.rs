//! NAPTR records (RFC 3403).

use hickory_resolver::proto::rr::rdata::NAPTR;

/// What a name leads to next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Naptr {
    /// Smaller is tried first.
    pub order: u16,
    /// Among those of one order, smaller is tried first.
    pub preference: u16,
    /// What the replacement is, in lower case: `s` for a name with SRV records, `a` for one with addresses.
    pub flags: Box<str>,
    /// The services, in lower case, such as `aaa+ap16777251:diameter.tcp`.
    pub services: Box<str>,
    /// The next name, without the dot of the root.
    pub replacement: Box<str>,
}

impl Naptr {
    pub(super) fn new(record: &NAPTR) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_ascii_lowercase().into();
        Self {
            order: record.order,
            preference: record.preference,
            flags: text(&record.flags),
            services: text(&record.services),
            replacement: record.replacement.to_ascii().trim_end_matches('.').into(),
        }
    }
}
