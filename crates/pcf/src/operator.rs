//! What an operator has set on this instance, in the store: it outlives a restart.

use function::operator::Operated;
use store::TableSchema;

/// What an operator has set.
pub(crate) type OperatorSettings = function::operator::OperatorSettings<OfPcf>;

/// The owner of the table.
pub(crate) enum OfPcf {}

impl Operated for OfPcf {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "pcf_operator",
        indexes: &[],
        by_modified: false,
        sql: None,
    };
}
