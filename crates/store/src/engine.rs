//! What an engine does. There are three: [`crate::embedded`], [`crate::mariadb`] and [`crate::cql`]; functions never see which.

use std::path::Path;
use std::sync::Arc;

use crate::batch::Batch;
use crate::copies::{BackedUp, BackupError};
use crate::delays::Delays;
use crate::record::TableDef;
use crate::reply::{Receipt, Reply};
use crate::schema::{Index, TableId};
use crate::stats::Stats;
use crate::trouble::Trouble;
use crate::version::Version;

/// A record as an engine returns it.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) key: Vec<u8>,
    pub(crate) version: Version,
    pub(crate) created: u64,
    pub(crate) site: Arc<str>,
    /// As it was given to the engine: perhaps compressed.
    pub(crate) value: Vec<u8>,
}

/// The order of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Primary,
    Index(Index),
    Modified,
}

/// One page of a scan, as an engine is asked for it.
#[derive(Clone, Debug)]
pub(crate) struct PageRequest {
    pub(crate) order: Order,
    /// First key of the order (inclusive); `None` from the beginning. Not for [`Order::Primary`].
    pub(crate) from: Option<Vec<u8>>,
    /// End of the order (exclusive); `None` to the end.
    pub(crate) to: Option<Vec<u8>>,
    /// Continue after this place: the engine's own [`RowPage::next`].
    pub(crate) after: Option<Vec<u8>>,
    pub(crate) limit: usize,
}

/// Rows of a page, and where to go on if there may be more.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowPage {
    pub(crate) rows: Vec<Row>,
    pub(crate) next: Option<Vec<u8>>,
}

/// A storage engine.
pub(crate) trait Engine: Send + Sync {
    /// Whether [`crate::Record::columns`] is wanted with each record of this table.
    fn wants_columns(&self, table: TableId) -> bool;

    fn get(&self, table: TableId, key: &[u8]) -> Reply<Option<Row>>;

    /// Records under a key of an index, at most `limit`, newest first.
    fn find(&self, table: TableId, index: Index, key: &[u8], limit: usize) -> Reply<Vec<Row>>;

    fn page(&self, table: TableId, request: PageRequest) -> Reply<RowPage>;

    /// About how many records there are.
    fn count(&self, table: TableId) -> Reply<u64>;

    /// About how many records have this key in an index.
    fn count_of(&self, table: TableId, index: Index, key: &[u8]) -> Reply<u64>;

    fn commit(&self, batch: Batch) -> Receipt;

    fn stats(&self) -> Stats;

    /// Whether writes can be made durable.
    fn trouble(&self) -> &Trouble;

    /// How late the writes of other sites arrive, where sites are joined by the database.
    fn delays(&self) -> Option<&Delays> {
        None
    }

    /// Copies what is stored into a directory while it is used. Blocks.
    fn backup(&self, _to: &Path) -> Result<BackedUp, BackupError> {
        Err(BackupError::Database)
    }

    /// Ends background work; what was acknowledged is durable already. Blocks.
    fn close(&self);
}

/// What every engine is opened with.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    pub(crate) tables: Vec<TableDef>,
    pub(crate) site: Arc<str>,
    pub(crate) clock: crate::version::Clock,
}
