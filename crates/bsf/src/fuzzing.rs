//! Bodies of the fuzz targets of this crate: what may be done with bytes from a stranger, and what must hold then. No
//! part of its interface. The suite runs them for a moment, the targets in `fuzz/` for hours.

use serde_json::Value;
use store::IndexKeys;

use crate::api;
use crate::binding::{
    BindingId, Document, MbsBinding, PcfBinding, Subscription, UeBinding, negotiate, shape,
};

/// The first line as a body that creates a resource, the rest as a patch of it. What is accepted is kept, indexed
/// and read back the same.
pub fn binding(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let (body, patch) = text.split_once('\n').unwrap_or((text, ""));
    let Ok(body) = serde_json::from_str::<Value>(body) else {
        return;
    };
    let id = BindingId([7; 16]);
    if shape::check(&shape::UE_BINDING, &body).is_ok() {
        kept(&UeBinding(Document::new(id, body.clone(), false)));
    }
    if shape::check(&shape::MBS_BINDING, &body).is_ok() {
        kept(&MbsBinding(Document::new(id, body.clone(), false)));
    }
    if shape::check(&shape::SUBSCRIPTION, &body).is_ok() {
        kept(&Subscription(Document::new(id, body.clone(), false), None));
    }
    if shape::check(&shape::PCF_BINDING, &body).is_err() {
        return;
    }
    let mut binding = PcfBinding(Document::new(id, body.clone(), false));
    let _ = negotiate(&mut binding.0);
    kept(&binding);
    kept(&PcfBinding(Document::new(id, body.clone(), true)));
    if let Ok(patch) = serde_json::from_str(patch) {
        let mut value = body;
        if shape::merge(
            &mut value,
            &patch,
            shape::SESSION_PATCH,
            &shape::PCF_BINDING,
            64 * 1024,
            false,
        )
        .is_ok()
        {
            kept(&PcfBinding(Document::new(id, value, false)));
        }
    }
}

/// A record reads back as it was written. The panic is how a fuzz target reports a fault.
fn kept<R: store::Record>(record: &R) {
    record.index(&mut IndexKeys::default());
    let mut first = Vec::new();
    record.encode(&mut first);
    let again = R::decode(record.key().as_ref(), &first);
    let again = again.unwrap_or_else(|error| panic!("what is kept does not read back: {error}"));
    let mut second = Vec::new();
    again.encode(&mut second);
    assert_eq!(first, second);
}

/// Bytes as the query that looks for a session.
pub fn query(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok((query, _)) = api::query_of(Some(text)) {
        assert!(query.is_searchable());
        let _ = query.places().count();
    }
}
