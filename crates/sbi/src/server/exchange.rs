//! One request and its answer.

use std::rc::Rc;
use std::time::Instant;

use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::header::{CONTENT_LENGTH, RETRY_AFTER};
use http::{HeaderValue, Method};

use super::activity::{InProgress, Outgoing};
use super::connection::Shared;
use super::host;
use super::stats::count;
use crate::body::Body;
use crate::collect::{CollectFault, collect};
use crate::memory;
use crate::message::{Peer, Request, Response, Service};
use crate::problem::{Cause, Problem};

/// Why a body did not arrive.
enum BodyFault {
    /// Too many others of the connection have not arrived either.
    Crowded,
    TooLarge,
    TooSlow,
    Abandoned,
}

/// Checks the headers, receives the body, calls the service and answers.
pub(super) async fn run<S: Service>(
    request: http::Request<RecvStream>,
    mut respond: SendResponse<Outgoing>,
    shared: Rc<Shared<S>>,
    peer: Rc<Peer>,
    received: Instant,
    in_progress: InProgress,
) {
    let (head, mut stream) = request.into_parts();
    let is_head = head.method == Method::HEAD;
    let list = memory::header_list(&head.headers);
    if let Some(problem) = head_fault(&head, list, &shared) {
        // What was refused is not kept while the answer waits for the peer.
        drop((head, stream));
        return answer(respond, problem.into_response(), is_head, in_progress);
    }
    in_progress.charge(memory::headers(list, head.headers.len()));
    let body = if stream.is_end_stream() {
        Ok(Body::empty())
    } else {
        let timeout = shared.config.body_timeout.duration();
        let limit = shared.config.max_body.as_usize();
        // The usual body is here already: no timer for it.
        let announced = head.headers.get(CONTENT_LENGTH);
        let mut receive = Box::pin(receive(&mut stream, announced, limit, &in_progress));
        match futures_util::poll!(receive.as_mut()) {
            std::task::Poll::Ready(body) => body,
            std::task::Poll::Pending => match in_progress.unfinished(shared.config.max_unfinished) {
                None => Err(BodyFault::Crowded),
                Some(_unfinished) => tokio::time::timeout(timeout, receive)
                    .await
                    .unwrap_or(Err(BodyFault::TooSlow)),
            },
        }
    };
    let response = match body {
        Ok(body) => {
            shared
                .service
                .clone()
                .call(Request {
                    head,
                    body,
                    peer,
                    received,
                })
                .await
        }
        Err(BodyFault::TooLarge) => {
            count(&shared.stats.bodies_too_large);
            let limit = shared.config.max_body;
            Problem::new(Cause::PayloadTooLarge)
                .detail(format!(
                    "the body is larger than {limit}, the limit of this server"
                ))
                .into_response()
        }
        Err(BodyFault::TooSlow) => {
            count(&shared.stats.bodies_too_slow);
            Problem::new(Cause::RequestTimeout)
                .detail("the body did not arrive in time")
                .into_response()
        }
        Err(BodyFault::Crowded) => {
            count(&shared.stats.requests_refused_unfinished);
            respond.send_reset(Reason::REFUSED_STREAM);
            return;
        }
        Err(BodyFault::Abandoned) => {
            count(&shared.stats.requests_abandoned);
            return;
        }
    };
    answer(respond, response, is_head, in_progress);
}

/// What is wrong with a head whose header list has this size, if anything is.
fn head_fault<S>(head: &http::request::Parts, list: usize, shared: &Shared<S>) -> Option<Problem> {
    let (config, stats) = (&shared.config, &shared.stats);
    let (fields, limit) = (head.headers.len(), config.max_header_fields);
    if fields > limit as usize {
        count(&stats.headers_too_large);
        let detail = format!("{fields} header fields are more than {limit}");
        return Some(Problem::new(Cause::HeadersTooLarge).detail(detail));
    }
    if list > config.max_header_list.as_usize() {
        count(&stats.headers_too_large);
        let limit = config.max_header_list;
        let detail = format!("the headers are larger than {limit}");
        return Some(Problem::new(Cause::HeadersTooLarge).detail(detail));
    }
    if let Err(detail) = host::check(head) {
        count(&stats.requests_ambiguous);
        return Some(Problem::new(Cause::InvalidMsgFormat).detail(detail));
    }
    None
}

/// Answers 429 (TS 29.500 §6.4.2.3) without looking at the request.
pub(super) fn refuse_over_rate(respond: SendResponse<Outgoing>, in_progress: InProgress) {
    let mut response = Problem::new(Cause::TooManyRequests)
        .detail("more requests per second on this connection than this server admits")
        .into_response();
    response
        .headers_mut()
        .insert(RETRY_AFTER, HeaderValue::from_static("1"));
    answer(respond, response, false, in_progress);
}

fn answer(mut respond: SendResponse<Outgoing>, response: Response, is_head: bool, in_progress: InProgress) {
    let (mut head, body) = response.into_parts();
    if !body.is_empty() {
        head.headers
            .entry(CONTENT_LENGTH)
            .or_insert_with(|| HeaderValue::from(body.len()));
    }
    let bodiless = is_head || body.is_empty();
    // Errors here mean that the peer has given up the request or the connection: nobody waits any more.
    match respond.send_response(http::Response::from_parts(head, ()), bodiless) {
        Ok(stream) if !bodiless => in_progress.send(body, stream),
        Ok(_) => {}
        Err(_) => respond.send_reset(Reason::INTERNAL_ERROR),
    }
}

async fn receive(
    stream: &mut RecvStream,
    announced: Option<&HeaderValue>,
    limit: usize,
    in_progress: &InProgress,
) -> Result<Body, BodyFault> {
    let announced: Option<usize> = announced
        .and_then(|v| v.to_str().ok())
        .and_then(|v| v.parse().ok());
    if announced.is_some_and(|len| len > limit) {
        return Err(BodyFault::TooLarge);
    }
    let collected = collect(stream, limit, |bytes| in_progress.charge(bytes)).await;
    collected.map_err(|fault| match fault {
        CollectFault::TooLarge => BodyFault::TooLarge,
        CollectFault::Broken(_) => BodyFault::Abandoned,
    })
}
