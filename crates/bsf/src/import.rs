//! Bindings from a file into the store of a BSF that does not run: for moves from another system, and for
//! measurements with as many bindings as an operator has.

use std::io::BufRead;

use serde_json::Value;
pub use store::ImportError;

use crate::binding::{BindingId, PcfBinding, shape};
use crate::repository::Repository;

/// Writes bindings of PDU sessions, one a line, each as `PcfBinding` (TS 29.521 §5.6.2.2) has it and with a
/// `bindingId` where it is to keep one; a binding of the same identity is replaced. Returns their number when all are
/// durable.
///
/// # Errors
/// With the first line that is not a binding, or when the store fails.
pub async fn import(config: &store::Config, input: impl BufRead) -> Result<u64, ImportError> {
    let repository = Repository::open(config, 2).await?;
    let read = |text: &str| parse(&repository, text);
    let written = store::import(input, read, |bindings: &[PcfBinding]| {
        repository.put_sessions(bindings)
    });
    let written = written.await;
    repository.store().clone().close().await;
    written
}

fn parse(repository: &Repository, text: &str) -> Result<PcfBinding, String> {
    let mut value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let given = value
        .as_object_mut()
        .and_then(|members| members.shift_remove("bindingId"));
    let id = match given {
        None => BindingId::random(),
        Some(given) => {
            let id = given.as_str().and_then(BindingId::parse);
            id.ok_or_else(|| format!("bindingId {given}: expected a UUID"))?
        }
    };
    shape::check(&shape::PCF_BINDING, &value).map_err(|fault| fault.to_string())?;
    Ok(PcfBinding(repository.document(id, value)))
}
