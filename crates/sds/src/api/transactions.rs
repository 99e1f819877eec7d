//! `/transactions`: several records, all of them or none.

use function::sbi::Call;

use super::{Answer, MOST_TRANSACTION, body_of, parsed, write, written, wrong_change};
use crate::change::transaction;
use crate::worker::Worker;

/// Writes a transaction.
pub(crate) async fn write_all(call: Call<Worker>) -> Answer {
    let worker = &*call.worker;
    sbi::json::expect_type(&call.request.head.fields, "application/json")?;
    let body = body_of(worker, &call.request, MOST_TRANSACTION)?;
    let changes = parsed(body, |body| transaction(&body).map_err(wrong_change)).await?;
    write(worker, changes, None).await.map(written)
}
