//! Sessions from a file into the store of a PCF that does not run: for moves from another system, and for measurements
//! with as many sessions as an operator has.

use std::io::BufRead;

use serde_json::Value;
pub use store::ImportError;

use crate::association::{Association, AssociationId, Kind};
use crate::repository::Repository;

/// Writes policy associations, one a line: `kind` (`sm`, `am`, `ue`), `context` (`SmPolicyContextData`,
/// `PolicyAssociationRequest`) and, where the consumer has one, the decision `policy`; with an `associationId` (a UUID)
/// where it is to keep one. An association of the same identity is replaced. Returns their number when all are durable.
///
/// # Errors
/// With the first line that is not an association, or when the store fails.
pub async fn import(config: &store::Config, input: impl BufRead) -> Result<u64, ImportError> {
    let repository = Repository::open(config, 2).await?;
    let written = store::import(input, parse, |associations: &[Association]| {
        repository.put(associations)
    });
    let written = written.await;
    repository.store().clone().close().await;
    written
}

fn parse(text: &str) -> Result<Association, String> {
    let mut value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let members = value.as_object_mut().ok_or("expected an object")?;
    let id = match members.shift_remove("associationId") {
        None => AssociationId::random(),
        Some(given) => {
            let id = given.as_str().and_then(AssociationId::parse);
            id.ok_or_else(|| format!("associationId {given}: expected a UUID"))?
        }
    };
    members
        .entry("policy")
        .or_insert_with(|| Value::Object(serde_json::Map::new()));
    let association: Association = serde_json::from_value(value).map_err(|error| error.to_string())?;
    if association.kind == Kind::Gx {
        return Err(
            "kind: gx sessions live with the connections of their PCEF; expected sm, am or ue".to_owned(),
        );
    }
    let required: &[&str] = match association.kind {
        // TS 29.512 §5.6.2.3
        Kind::Sm => &[
            "supi",
            "pduSessionId",
            "pduSessionType",
            "dnn",
            "notificationUri",
            "sliceInfo",
        ],
        // TS 29.507 §5.6.2.3, TS 29.525 §5.6.2.3
        _ => &["supi", "notificationUri", "suppFeat"],
    };
    match required
        .iter()
        .find(|name| association.context.get(**name).is_none())
    {
        Some(missing) => Err(format!("context.{missing} is missing")),
        None => Ok(Association { id, ..association }),
    }
}
