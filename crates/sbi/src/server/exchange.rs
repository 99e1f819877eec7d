//! One request and its answer.

use std::rc::Rc;
use std::time::Instant;

use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::header::{CONTENT_LENGTH, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method};

use super::activity::{InProgress, Outgoing};
use super::connection::Shared;
use super::host;
use super::stats::count;
use crate::body::Body;
use crate::collect::{CollectFault, collect};
use crate::message::{Peer, Request, Response, Service};
use crate::problem::{Cause, Problem};

/// Why a body did not arrive.
enum BodyFault {
    TooLarge,
    TooSlow,
    Abandoned,
}

/// Checks the headers, receives the body, calls the service and answers.
pub(super) async fn run<S: Service>(
    request: http::Request<RecvStream>,
    respond: SendResponse<Outgoing>,
    shared: Rc<Shared<S>>,
    peer: Rc<Peer>,
    received: Instant,
    in_progress: InProgress,
) {
    let (head, mut stream) = request.into_parts();
    let is_head = head.method == Method::HEAD;
    if header_list_size(&head.headers) > shared.config.max_header_list.as_usize() {
        count(&shared.stats.headers_too_large);
        let limit = shared.config.max_header_list;
        let problem =
            Problem::new(Cause::HeadersTooLarge).detail(format!("the headers are larger than {limit}"));
        return answer(respond, problem.into_response(), is_head, in_progress);
    }
    if let Err(detail) = host::check(&head) {
        count(&shared.stats.requests_ambiguous);
        let problem = Problem::new(Cause::InvalidMsgFormat).detail(detail);
        return answer(respond, problem.into_response(), is_head, in_progress);
    }
    let body = if stream.is_end_stream() {
        Ok(Body::empty())
    } else {
        let timeout = shared.config.body_timeout.duration();
        let limit = shared.config.max_body.as_usize();
        // The usual body is here already: no timer for it.
        let mut receive = Box::pin(receive(&mut stream, head.headers.get(CONTENT_LENGTH), limit));
        match futures_util::poll!(receive.as_mut()) {
            std::task::Poll::Ready(body) => body,
            std::task::Poll::Pending => tokio::time::timeout(timeout, receive)
                .await
                .unwrap_or(Err(BodyFault::TooSlow)),
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
        Err(BodyFault::Abandoned) => {
            count(&shared.stats.requests_abandoned);
            return;
        }
    };
    answer(respond, response, is_head, in_progress);
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

/// Size of a header list (RFC 9113 §6.5.2), the pseudo-headers left out.
fn header_list_size(headers: &HeaderMap) -> usize {
    let each = headers.iter();
    each.map(|(name, value)| name.as_str().len() + value.len() + 32)
        .sum()
}

async fn receive(
    stream: &mut RecvStream,
    announced: Option<&HeaderValue>,
    limit: usize,
) -> Result<Body, BodyFault> {
    let announced: Option<usize> = announced
        .and_then(|v| v.to_str().ok())
        .and_then(|v| v.parse().ok());
    if announced.is_some_and(|len| len > limit) {
        return Err(BodyFault::TooLarge);
    }
    collect(stream, limit).await.map_err(|fault| match fault {
        CollectFault::TooLarge => BodyFault::TooLarge,
        CollectFault::Broken(_) => BodyFault::Abandoned,
    })
}
