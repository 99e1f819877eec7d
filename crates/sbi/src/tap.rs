//! Copies of messages of followed subscribers (crate `follow`), where they enter and leave the function.
//!
//! While no subscriber is followed, a request costs one load of an atomic ([`follow::active`]), and its answer the test of an
//! empty option.

use std::borrow::Cow;
use std::fmt::Display;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::SystemTime;

use bytes::Bytes;
use follow::{Cause, Content, Direction, Hit, Record, Room, Search};
use http2::{Fields, RequestHead, ResponseHead};
use sbi_proto::{Body, Response};

/// The largest body that is decoded, to be searched and copied.
const DECODED: usize = 1 << 20;

/// A request of the time in which a subscriber was followed.
pub(crate) struct Tapped {
    room: Room,
    route: Route,
    exchange: u64,
    cause: Option<Cause>,
    at: SystemTime,
    /// The followed subscriber that it belongs to.
    hit: Option<Hit>,
    /// The request as long as it belongs to none: its answer may.
    unclaimed: Option<(RequestHead, Body)>,
}

/// Where a request comes from and goes to.
pub(crate) struct Route {
    /// `Out`: the function sends it.
    pub(crate) direction: Direction,
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
    pub(crate) stream: u32,
}

impl Tapped {
    /// Looks at a request.
    #[cold]
    pub(crate) fn request(room: Room, route: Route, head: &RequestHead, body: Body) -> Box<Self> {
        let cause = match route.direction {
            Direction::In => None,
            Direction::Out => Cause::of_thread(),
        };
        let found = room.find(|search| {
            search.uri(head.target().as_bytes());
            look(search, &head.fields, &body);
        });
        let mut tapped = Self {
            exchange: room.exchange(),
            hit: found.or_else(|| cause.map(Cause::hit)),
            at: SystemTime::now(),
            unclaimed: None,
            room,
            route,
            cause,
        };
        if tapped.hit.is_some() {
            tapped.store_request(head, &body);
        } else {
            tapped.unclaimed = Some((head.clone(), body));
        }
        Box::new(tapped)
    }

    fn store_request(&self, head: &RequestHead, body: &Body) {
        let line = (head.method().as_str(), head.target());
        let body = copied(&head.fields, body);
        let content = Content::request(line, fields(&head.fields), body);
        let (client, server) = (self.route.client, self.route.server);
        self.store(self.at, self.route.direction, (client, server), content);
    }

    fn store(
        &self,
        at: SystemTime,
        direction: Direction,
        (from, to): (SocketAddr, SocketAddr),
        content: Content,
    ) {
        let Some(hit) = &self.hit else { return };
        let record = Record {
            at,
            direction,
            exchange: self.exchange,
            cause: self.cause.map(Cause::exchange),
            peer: String::new(),
            from,
            to,
            stream: u64::from(self.route.stream),
            content,
        };
        self.room.store(hit, record);
    }

    /// What the work for it is caused by, if it belongs to a followed subscriber.
    pub(crate) fn cause(&self) -> Option<Cause> {
        Some(Cause::new(self.hit.as_ref()?, self.exchange))
    }

    /// The request is answered.
    pub(crate) fn answered(&mut self, head: &ResponseHead, body: &Body) {
        if self.hit.is_none() {
            self.hit = self.room.find(|search| look(search, &head.fields, body));
            let unclaimed = self.unclaimed.take();
            if let Some((head, body)) = unclaimed.filter(|_| self.hit.is_some()) {
                self.store_request(&head, &body);
            }
        }
        self.ended(|| {
            let body = copied(&head.fields, body);
            Content::answer(head.status.as_u16(), fields(&head.fields), body)
        });
    }

    /// The request that was sent has an answer, or none.
    pub(crate) fn outcome(&mut self, outcome: Result<&Response, &impl Display>) {
        match outcome {
            Ok(Response { head, body }) => self.answered(head, body),
            Err(error) => self.ended(|| Content::Lost {
                reason: error.to_string(),
            }),
        }
    }

    fn ended(&self, content: impl FnOnce() -> Content) {
        if self.hit.is_none() {
            return;
        }
        let direction = match self.route.direction {
            Direction::In => Direction::Out,
            Direction::Out => Direction::In,
        };
        let (server, client) = (self.route.server, self.route.client);
        self.store(SystemTime::now(), direction, (server, client), content());
    }
}

/// Work for a request: requests that it sends have the request as their cause.
pub(crate) struct Caused<'a, F> {
    pub(crate) cause: Cause,
    pub(crate) work: Pin<&'a mut F>,
}

impl<F: Future> Future for Caused<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let cause = self.cause;
        let work = self.work.as_mut();
        cause.run(|| work.poll(cx))
    }
}

fn look(search: &mut Search<'_>, fields: &Fields, body: &Body) {
    for field in fields.iter() {
        search.text(field.value.as_bytes());
    }
    if body.is_empty() {
        return;
    }
    let plain = plain(fields, body).unwrap_or(Cow::Borrowed(body));
    match plain.segments() {
        [one] => search.text(one),
        _ => search.text(&plain.to_bytes()),
    }
}

/// A body without its coding; `None`: it cannot be decoded, or is too large then.
fn plain<'a>(fields: &Fields, body: &'a Body) -> Option<Cow<'a, Body>> {
    match fields.get_all("content-encoding").count() {
        0 => Some(Cow::Borrowed(body)),
        1 => crate::coding::decode(fields, body.clone(), DECODED)
            .ok()
            .map(Cow::Owned),
        _ => None,
    }
}

/// The body of a copy. One that cannot be decoded is left out: credentials could not be overwritten in it.
fn copied(fields: &Fields, body: &Body) -> Bytes {
    plain(fields, body).map_or_else(Bytes::new, |body| body.to_bytes())
}

fn fields(fields: &Fields) -> impl Iterator<Item = (&str, &[u8])> {
    fields
        .all()
        .map(|field| (field.name.as_str(), field.value.as_bytes()))
}
