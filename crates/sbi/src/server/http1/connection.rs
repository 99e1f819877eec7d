//! A connection of HTTP/1.1 (RFC 9112): one request after the other, within the limits of the server. The protocol is that of `hyper`.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use follow::Direction;
use http::StatusCode;
use http2::RequestHead;
use http2::name::RETRY_AFTER;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use sbi_proto::problem::Problem;
use sbi_proto::{Body, Peer, Request, Response, Service};
use tokio::task::AbortHandle;

use super::message::{Held, Leaving, Unread, head_of, leaving, whole};
use super::progress::{Followed, Overdue, Progress};
use crate::link::Socket;
use crate::memory::Notice;
use crate::reactor::Reactor;
use crate::server::activity::{Activity, InProgress};
use crate::server::connection::Shared;
use crate::server::forwarded::client_of;
use crate::server::places::Seat;
use crate::server::rate::RateWindow;
use crate::server::refusal;
use crate::stats::count;
use crate::tap::{Caused, Route, Tapped};

/// The smallest buffer that `hyper` takes.
const LEAST_BUFFER: usize = 8 * 1024;

/// A connection.
struct Connection<S> {
    shared: Rc<Shared<S>>,
    peer: Rc<Peer>,
    seat: Seat,
    activity: Rc<Activity>,
    progress: Rc<Progress>,
    window: RefCell<RateWindow>,
    /// Requests so far.
    number: Cell<u32>,
    /// The request that is served.
    served: RefCell<Option<AbortHandle>>,
}

/// The service has panicked.
#[derive(Debug, thiserror::Error)]
#[error("the request was not served")]
struct Unserved;

/// Serves a connection to its end; `came` was read from it before.
pub(in crate::server) async fn drive<S: Service>(
    socket: Socket,
    came: Vec<u8>,
    peer: Peer,
    shared: &Rc<Shared<S>>,
    seat: Seat,
) {
    let now = Instant::now();
    seat.opened(now);
    let activity = seat.activity().clone();
    let progress = Rc::new(Progress::new(activity.clone(), shared.stats.clone(), now));
    let connection = Rc::new(Connection {
        shared: shared.clone(),
        peer: Rc::new(peer),
        seat,
        activity,
        progress: progress.clone(),
        window: RefCell::default(),
        number: Cell::default(),
        served: RefCell::default(),
    });
    let followed = Followed {
        socket,
        came,
        progress,
    };
    let ended = connection.run(followed).await;
    connection.peer.given_up.add_all();
    if let Some(counter) = ended {
        count(counter);
    }
}

impl<S: Service> Connection<S> {
    /// Serves it to its end; returns what counts how it ended.
    async fn run(self: &Rc<Self>, followed: Followed) -> Option<&std::sync::atomic::AtomicU64> {
        let (config, stats) = (&self.shared.config, &self.shared.stats);
        let serving = self.clone();
        let service = service_fn(move |request| serving.clone().answer(request));
        let mut http = Builder::new();
        http.max_buf_size(config.max_header_list.as_usize().max(LEAST_BUFFER))
            .max_headers(config.max_header_fields as usize)
            .header_read_timeout(None::<Duration>);
        let mut talk = std::pin::pin!(http.serve_connection(TokioIo::new(followed), service));
        let account = self.activity.account();
        let mut leaves = false;
        let mut check = tokio::time::interval(self.check_period());
        loop {
            tokio::select! {
                ended = talk.as_mut() => {
                    let error = ended.err()?;
                    return match (error.is_parse_too_large(), error.is_parse()) {
                        (true, _) => Some(&stats.headers_too_large),
                        (_, true) => Some(&stats.connections_faulty),
                        _ => None,
                    };
                }
                () = account.has_to_let_go() => {
                    if let Some(served) = self.served.take() {
                        served.abort();
                    }
                    return Some(&stats.connections_greedy);
                }
                () = account.has_to_do_something(), if !leaves => leaves = true,
                () = self.shared.shutdown.fired(), if !leaves => leaves = true,
                now = check.tick() => match self.progress.overdue(config, now.into_std()) {
                    None => {}
                    Some(Overdue::Request) => return Some(&stats.connections_idle),
                    Some(Overdue::Head) => return Some(&stats.connections_slow_headers),
                    Some(Overdue::Reading) => return Some(&stats.connections_stalled),
                },
            }
            if leaves && account.notice() != Some(Notice::Close) {
                // A request in progress is answered first.
                talk.as_mut().graceful_shutdown();
            }
        }
    }

    /// Period of the check of the timeouts: short enough to be exact to a quarter.
    fn check_period(&self) -> Duration {
        let config = &self.shared.config;
        let shortest = config
            .write_stall_timeout
            .min(config.idle_timeout)
            .min(config.header_timeout);
        (shortest.duration() / 4).clamp(Duration::from_millis(5), Duration::from_secs(5))
    }

    /// Answers a request.
    async fn answer(
        self: Rc<Self>,
        request: http::Request<Incoming>,
    ) -> Result<http::Response<Leaving>, Unserved> {
        let received = Instant::now();
        self.progress.begins();
        self.seat.used(received);
        count(&self.shared.stats.requests);
        let in_progress = self.activity.begin();
        let (response, in_progress) = match self.admit(request, received, &in_progress).await {
            Ok(request) => self.serve(request, in_progress).await?,
            Err(mut refused) => {
                self.shared.service.complete(&mut refused);
                (refused, in_progress)
            }
        };
        let held = Held::new(self.activity.account(), response.body(), in_progress);
        self.progress.answers(held.clone());
        Ok(leaving(response, held))
    }

    /// The whole request, if it is within the limits.
    async fn admit(
        &self,
        request: http::Request<Incoming>,
        received: Instant,
        in_progress: &InProgress,
    ) -> Result<Request, Response> {
        let (config, stats) = (&self.shared.config, &self.shared.stats);
        if self.activity.account().is_greedy() {
            count(&stats.requests_refused_memory);
            return Err(no_memory());
        }
        if !self.window.borrow_mut().admits(config.max_request_rate, received) {
            count(&stats.requests_over_rate);
            return Err(refusal::over_rate());
        }
        let (parts, body) = request.into_parts();
        let scheme = if self.peer.tls.is_some() { "https" } else { "http" };
        let head = head_of(parts, scheme).map_err(|detail| {
            count(&stats.requests_ambiguous);
            refusal::ambiguous(detail)
        })?;
        in_progress.charge(head.fields.held());
        let reading = whole(body, config.max_body.as_usize(), in_progress);
        let body = match tokio::time::timeout(config.body_timeout.duration(), reading).await {
            Ok(Ok(body)) => body,
            Ok(Err(Unread::TooLarge)) => {
                count(&stats.bodies_too_large);
                return Err(refusal::body_too_large(config));
            }
            Ok(Err(Unread::Broken)) => {
                count(&stats.requests_abandoned);
                return Err(refusal::ambiguous("the body is malformed"));
            }
            Err(_) => {
                count(&stats.bodies_too_slow);
                return Err(refusal::body_too_slow());
            }
        };
        Ok(self.request(head, body, received))
    }

    fn request(&self, head: RequestHead, body: Body, received: Instant) -> Request {
        let proxies = &self.shared.config.certificate_proxies;
        let peer = match proxies.is_empty() {
            true => self.peer.clone(),
            false => client_of(&self.peer, proxies, &head.fields),
        };
        self.number.set(self.number.get().wrapping_add(1));
        Request {
            head,
            body,
            peer,
            received,
            waited: Reactor::of_worker().waited().at(received, None),
            stream: self.number.get(),
        }
    }

    /// Has the service answer. It goes on where the connection ends meanwhile: the request came whole.
    async fn serve(
        &self,
        request: Request,
        in_progress: InProgress,
    ) -> Result<(Response, InProgress), Unserved> {
        let mut tapped = follow::active().map(|room| {
            let route = Route {
                direction: Direction::In,
                client: self.peer.addr,
                server: self.peer.local,
                stream: request.stream,
            };
            Tapped::request(room, route, &request.head, request.body.clone())
        });
        let service = self.shared.service.clone();
        let serving = tokio::task::spawn_local(async move {
            let work = service.call(request);
            let response = match tapped.as_deref().and_then(Tapped::cause) {
                None => work.await,
                Some(cause) => {
                    let work = std::pin::pin!(work);
                    Caused { cause, work }.await
                }
            };
            if let Some(tapped) = &mut tapped {
                tapped.answered(&response.head, &response.body);
            }
            (response, in_progress)
        });
        self.served.replace(Some(serving.abort_handle()));
        let answer = serving.await;
        self.served.take();
        answer.map_err(|error| {
            if error.is_panic() {
                count(&self.shared.stats.requests_panicked);
            }
            Unserved
        })
    }
}

/// 503: the connection holds more memory than is still free.
fn no_memory() -> Response {
    let detail = "this connection holds more memory than this server has left";
    let mut response = Problem::of_status(StatusCode::SERVICE_UNAVAILABLE)
        .detail(detail)
        .into_response();
    response.headers_mut().set_number(RETRY_AFTER, 1);
    response
}
