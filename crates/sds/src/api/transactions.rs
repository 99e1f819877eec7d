//! `/transactions`: several records, all of them or none.

use function::sbi::Call;
use sbi::Body;

use super::{Answer, MOST_TRANSACTION, body_of, parsed, write, written, wrong_change};
use crate::change::transaction;
use crate::worker::Worker;

/// Writes a transaction.
pub(crate) async fn write_all(call: Call<Worker>) -> Answer {
    let worker = &*call.worker;
    sbi::json::expect_type(&call.request.head.fields, "application/json")?;
    let body = body_of(worker, &call.request, MOST_TRANSACTION)?;
    let changes = parsed(body, |body| {
        transaction(&sbi::json::parse_unique(&Body::from(body))?).map_err(wrong_change)
    });
    let changes = changes.await?;
    write(worker, changes, None).await.map(written)
}
