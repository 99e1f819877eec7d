//! Records of a BSF's store as people and other programs read them.

use serde_json::{Value, json};
use store::Record as _;

use crate::binding::{
    Audited, Document, FormRecord, MbsBinding, PcfBinding, RxSession, SamePcfGuard, Subscription, UeBinding,
};

/// A record of one of this function's tables: its key as text and its value as JSON. `None`: the table is of another
/// function, or the record is for the store itself.
///
/// # Errors
/// What is wrong with the record.
pub fn readable(table: &str, key: &[u8], value: &[u8]) -> Result<Option<(String, Value)>, String> {
    let document = |document: Document| {
        let mut value = document.value().clone();
        if let (Some(members), Some(Audited { attempts, at, .. })) =
            (value.as_object_mut(), document.audited())
        {
            members.insert("x-audit".to_owned(), json!({"attempts": attempts, "at": at}));
        }
        Some((document.id.to_string(), value))
    };
    let is = |name: &'static str| table == name;
    let read = if [PcfBinding::TABLE, UeBinding::TABLE, MbsBinding::TABLE]
        .iter()
        .any(|of| is(of.name))
    {
        Document::decode(key, value).map(document)
    } else if is(Subscription::TABLE.name) {
        Subscription::decode(key, value).map(|Subscription(of, set)| {
            let mut value = of.value().clone();
            if let (Some(members), Some(set)) = (value.as_object_mut(), set) {
                members.insert("x-nfSet".to_owned(), Value::String(set));
            }
            Some((of.id.to_string(), value))
        })
    } else if is(RxSession::TABLE.name) {
        RxSession::decode(key, value).map(|path| {
            let id = String::from_utf8_lossy(key).into_owned();
            Some((id, json!({"af": path.af, "pcf": path.pcf, "began": path.began})))
        })
    } else {
        Ok(None)
    };
    read.map_err(|error| error.0)
}

/// Whether a table is for the store itself: it is made again as bindings are written.
#[must_use]
pub fn is_internal(table: &str) -> bool {
    [FormRecord::TABLE, SamePcfGuard::TABLE]
        .iter()
        .any(|of| of.name == table)
}

/// A binding of a PDU session as [`crate::import`] reads it; `None` for a record of another table.
///
/// # Errors
/// What is wrong with the record.
pub fn importable(table: &str, key: &[u8], value: &[u8]) -> Result<Option<Value>, String> {
    if table != PcfBinding::TABLE.name {
        return Ok(None);
    }
    let document = Document::decode(key, value).map_err(|error| error.0)?;
    let mut value = json!({"bindingId": document.id.to_string()});
    if let (Some(members), Some(own)) = (value.as_object_mut(), document.value().as_object()) {
        members.extend(own.clone());
    }
    Ok(Some(value))
}
