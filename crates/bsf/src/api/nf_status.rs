//! Notifications of the NRF about PCFs (`NFStatusNotify`, TS 29.510 §5.2.2.6): a hint for the audit, which asks the NRF
//! before it does anything.

use function::sbi::Call;
use sbi::problem::{Cause, Problem};
use sbi::{Request, Response};
use serde_json::Value;

use super::fault::Fault;
use super::no_content;
use crate::events::Event;
use crate::peers::pcfs::Changed;
use crate::worker::Worker;

/// Longest notification that is read: a profile and more.
const LARGEST: usize = 256 * 1024;

/// Takes a `NotificationData`.
pub(crate) fn notify(call: Call<Worker>) -> Result<Response, Fault> {
    let change = read(call.request)?;
    call.worker.count(Event::PcfTold);
    if !call.worker.pcf_changed(change) {
        let problem = Problem::new(Cause::NfCongestion).detail("too many notifications wait; try later");
        // It is the notification that is one too many, not the function that fails.
        return Ok(problem.into_response());
    }
    Ok(no_content())
}

fn read(request: Request) -> Result<Changed, Problem> {
    let headers = &request.head.fields;
    sbi::json::expect_type(headers, "application/json")?;
    let body = sbi::coding::decode(headers, request.body, LARGEST)?;
    let value: Value = sbi::json::parse(&body)?;
    let id = value
        .get("nfInstanceUri")
        .and_then(Value::as_str)
        .and_then(|uri| uri.rsplit('/').next())
        .filter(|id| model::NfInstanceId::parse(id).is_ok());
    let Some(id) = id else {
        return Err(Problem::new(Cause::MandatoryIeIncorrect)
            .detail("nfInstanceUri does not end in an NF instance id")
            .invalid_param("/nfInstanceUri", "expected the URI of an NF instance"));
    };
    Ok(Changed {
        pcf: id.to_ascii_lowercase(),
    })
}
