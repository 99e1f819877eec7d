//! `/transactions`: several records, all of them or none.

use function::sbi::Call;

use super::{Answer, json_of, write, written, wrong_change};
use crate::change::transaction;
use crate::worker::Worker;

/// Writes a transaction.
pub(crate) async fn write_all(call: Call<Worker>) -> Answer {
    let worker = &*call.worker;
    let changes = transaction(&json_of(worker, &call.request)?).map_err(wrong_change)?;
    write(worker, changes, None).await.map(written)
}
