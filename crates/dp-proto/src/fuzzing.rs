//! The body of the fuzz target of this crate: what may be done with bytes from elsewhere, and what must hold then. No part of
//! its interface. The suite runs it for a moment, the target in `fuzz/` for hours.

use crate::{Answer, Bundle, Entry, Frame, Query};

/// Bytes as frames of either kind. What is read and written again is the same.
pub fn frames(bytes: &[u8]) {
    each::<Query<'_>>(bytes);
    each::<Answer<'_>>(bytes);
}

fn each<'b, E: Entry<'b>>(mut bytes: &'b [u8]) {
    while let Ok(Some((frame, length))) = Frame::<E>::split(bytes) {
        let (whole, rest) = bytes.split_at(length);
        let mut bundle = Bundle::default();
        if frame.count() == 0 {
            bundle.probe::<E>();
        }
        if frame.each(|entry| bundle.push(&entry)).is_ok() {
            let mut again = Vec::new();
            bundle.take_into(&mut again);
            assert_eq!(again, whole);
        }
        bytes = rest;
    }
}
