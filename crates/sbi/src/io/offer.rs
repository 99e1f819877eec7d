//! Shared bytes that are about to be written, so that they need not be copied.
//!
//! The HTTP/2 engine hands slices to the socket, and a slice does not say that it belongs to shared bytes
//! which could be kept until the kernel takes them. So a body, when it is asked for its slices, offers the
//! shared bytes behind them here, and the writer looks up the slices it is handed a moment later on the same
//! thread. A slice that lies within offered bytes *is* a part of them, whoever hands it over.

use std::cell::RefCell;

use bytes::Bytes;

/// Smaller pieces are copied: that is cheaper than keeping track of them.
pub(crate) const SHARED_MIN: usize = 1_024;

thread_local! {
    static OFFERED: RefCell<Vec<Bytes>> = const { RefCell::new(Vec::new()) };
}

/// Offers the larger ones of these segments, instead of what was offered before.
pub(crate) fn offer(segments: &[Bytes]) {
    OFFERED.with_borrow_mut(|offered| {
        offered.clear();
        offered.extend(
            segments
                .iter()
                .filter(|segment| segment.len() >= SHARED_MIN)
                .cloned(),
        );
    });
}

/// The shared bytes of a slice, if they were offered.
pub(crate) fn offered(slice: &[u8]) -> Option<Bytes> {
    if slice.len() < SHARED_MIN {
        return None;
    }
    let from = slice.as_ptr() as usize;
    OFFERED.with_borrow(|offered| {
        offered.iter().find_map(|bytes| {
            let at = from.checked_sub(bytes.as_ptr() as usize)?;
            (at + slice.len() <= bytes.len()).then(|| bytes.slice(at..at + slice.len()))
        })
    })
}

/// Forgets what was offered.
pub(crate) fn withdraw() {
    OFFERED.with_borrow_mut(Vec::clear);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_recognised_by_where_it_lies() {
        let (one, two) = (Bytes::from(vec![1; 5_000]), Bytes::from(vec![1; 5_000]));
        offer(&[one.clone(), Bytes::from_static(b"small")]);
        assert_eq!(offered(&one[100..3_000]).unwrap().as_ptr(), one[100..].as_ptr());
        assert_eq!(offered(&one[100..200]), None, "small slices are copied");
        assert_eq!(offered(&two), None, "equal bytes elsewhere are others");
        offer(std::slice::from_ref(&two));
        assert_eq!(offered(&one), None);
        withdraw();
        assert_eq!(offered(&two), None);
    }
}
