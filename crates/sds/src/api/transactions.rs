//! `/transactions`: several records, all of them or none.

use function::sbi::Call;

use super::{Answer, MOST_TRANSACTION, json_of, write, written, wrong_change};
use crate::change::transaction;
use crate::worker::Worker;

/// Writes a transaction.
pub(crate) async fn write_all(call: Call<Worker>) -> Answer {
    let worker = &*call.worker;
    let document = json_of(worker, &call.request, MOST_TRANSACTION)?;
    let changes = transaction(&document).map_err(wrong_change)?;
    write(worker, changes, None).await.map(written)
}
