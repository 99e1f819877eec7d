//! What an operator has set on this instance, in the store: it outlives a restart.

use function::operator::Operated;
use store::TableSchema;

/// What an operator has set.
pub(crate) type OperatorSettings = function::operator::OperatorSettings<OfBsf>;

/// The owner of the table.
pub(crate) enum OfBsf {}

impl Operated for OfBsf {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "bsf_operator",
        indexes: &[],
        by_modified: false,
        sql: None,
    };
}
