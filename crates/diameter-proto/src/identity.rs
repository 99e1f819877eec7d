//! DiameterIdentities (RFC 6733 §4.3.1): names of hosts and realms, compared without regard to case.

/// The longest DiameterIdentity: that of a domain name.
pub const MAX_LENGTH: usize = 255;

/// Runs a closure with a name in lower case, without an allocation; `None` for a name above the bound.
#[inline]
pub fn with_lower<T>(name: &[u8], then: impl FnOnce(&[u8]) -> T) -> Option<T> {
    let mut lower = [0; MAX_LENGTH];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    Some(then(lower))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_lowered_and_bounded() {
        assert_eq!(
            with_lower(b"HSS.Example", <[u8]>::to_vec).unwrap(),
            b"hss.example"
        );
        assert!(with_lower(&[b'a'; MAX_LENGTH], <[u8]>::len).is_some());
        assert!(with_lower(&[b'a'; MAX_LENGTH + 1], <[u8]>::len).is_none());
    }
}
