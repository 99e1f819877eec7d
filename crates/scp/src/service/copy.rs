//! Copies of the messages of one exchange for the feed.

use std::cell::RefCell;
use std::rc::Rc;

use http::header::USER_AGENT;
use http::{Method, Uri};
use sbi::{Body, Request, Response};

use super::route::Target;
use super::worker::Worker;
use crate::config::FeedPoint;
use crate::feed::{Exchange, Shown, Tap};
use crate::target;

/// An exchange that is copied.
pub(super) struct Copies {
    tap: Rc<Tap>,
    exchange: RefCell<Exchange>,
    method: Method,
    uri: Uri,
}

impl Worker {
    /// Begins to copy an exchange, if it is among those that are.
    pub(super) fn copies(&self, request: &Request) -> Option<Rc<Copies>> {
        let tap = self.tap.as_ref()?;
        let consumer = request.headers().get(USER_AGENT).map(|name| name.as_bytes());
        let exchange = tap.begin(target::service_of(request.uri().path()), consumer)?;
        let shown = Shown {
            point: FeedPoint::RxRequest,
            method: request.method(),
            uri: request.uri(),
            status: None,
            headers: request.headers(),
            body: &request.body,
        };
        tap.copy(&exchange, &shown);
        Some(Rc::new(Copies {
            tap: tap.clone(),
            exchange: RefCell::new(exchange),
            method: request.method().clone(),
            uri: request.uri().clone(),
        }))
    }
}

impl Copies {
    /// A request goes to a producer.
    pub(super) fn sent(&self, request: &http::Request<Body>, target: &Target, attempt: usize) {
        let mut exchange = self.exchange.borrow_mut();
        exchange.producer = Some(target.peer.authority.clone());
        exchange.instance = target.service.as_ref().map(|one| one.producer.id.clone());
        exchange.attempt = u8::try_from(attempt).unwrap_or(u8::MAX);
        let shown = Shown {
            point: FeedPoint::TxRequest,
            method: request.method(),
            uri: request.uri(),
            status: None,
            headers: request.headers(),
            body: request.body(),
        };
        self.tap.copy(&exchange, &shown);
    }

    /// A producer has answered.
    pub(super) fn received(&self, response: &Response) {
        self.response(FeedPoint::RxResponse, response);
    }

    /// The consumer is answered.
    pub(super) fn answered(&self, response: &Response) {
        self.response(FeedPoint::TxResponse, response);
    }

    fn response(&self, point: FeedPoint, response: &Response) {
        let shown = Shown {
            point,
            method: &self.method,
            uri: &self.uri,
            status: Some(response.status()),
            headers: response.headers(),
            body: response.body(),
        };
        self.tap.copy(&self.exchange.borrow(), &shown);
    }
}
