//! Answers as bytes: assembled from pieces that were serialised when the profiles were written.

use bytes::{BufMut, Bytes, BytesMut};

use super::select::Chosen;
use crate::registry::fingerprint;

/// A `SearchResult` (TS 29.510 §6.2.6.2.2), ready to be sent any number of times.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The JSON text.
    pub body: Bytes,
    /// Its entity tag, with quotes.
    pub etag: http::HeaderValue,
    /// `Cache-Control` and `validityPeriod`, in seconds.
    pub validity: u32,
    /// How many profiles it has.
    pub profiles: usize,
}

/// Renders an answer. `preferred` says whether a preference of the query is what put the first profile
/// first (`preferredSearch`), by member name.
#[must_use]
pub(super) fn render(
    chosen: &[Chosen],
    validity: u32,
    limited: Option<usize>,
    preferred: &[(&str, bool)],
) -> Answer {
    let size: usize = chosen.iter().map(Chosen::size).sum();
    let mut out = BytesMut::with_capacity(size + 256);
    out.put_slice(format!("{{\"validityPeriod\":{validity},\"nfInstances\":[").as_bytes());
    for (i, one) in chosen.iter().enumerate() {
        if i > 0 {
            out.put_u8(b',');
        }
        one.write(&mut out);
    }
    out.put_u8(b']');
    if let Some(total) = limited {
        out.put_slice(format!(",\"numNfInstComplete\":{total}").as_bytes());
    }
    if !preferred.is_empty() {
        let members: Vec<String> = preferred
            .iter()
            .map(|(name, met)| format!("\"{name}\":{met}"))
            .collect();
        out.put_slice(format!(",\"preferredSearch\":{{{}}}", members.join(",")).as_bytes());
    }
    out.put_u8(b'}');
    let body = out.freeze();
    // Hexadecimal digits and quotes are always a header value.
    let etag = http::HeaderValue::from_str(&format!("\"{:016x}\"", fingerprint(&[&body])))
        .unwrap_or(http::HeaderValue::from_static("\"0\""));
    Answer {
        body,
        etag,
        validity,
        profiles: chosen.len(),
    }
}
