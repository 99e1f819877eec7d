//! Release, and the cause that it has (Q.763 table 33, Q.850).

/// The message type.
const RELEASE: u8 = 0x0c;

/// A cause of ITU's coding (Q.850 §2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cause {
    /// Where it arose: 2 = public network serving the local user, 3 = transit network.
    pub location: u8,
    /// Its value: 1 = unallocated (unassigned) number.
    pub value: u8,
}

impl Cause {
    /// Unallocated number, of a transit network.
    pub const UNALLOCATED: Self = Self {
        location: 3,
        value: 1,
    };

    /// The cause indicators.
    #[must_use]
    pub const fn octets(self) -> [u8; 2] {
        [0x80 | self.location & 0x0f, 0x80 | self.value]
    }
}

/// Appends REL for a circuit, with the cause as its only parameter.
pub fn write_release(circuit: [u8; 2], cause: Cause, out: &mut Vec<u8>) {
    out.extend(circuit);
    // The cause stands behind the pointers, and there is no optional part.
    out.extend([RELEASE, 2, 0, 2]);
    out.extend(cause.octets());
}
