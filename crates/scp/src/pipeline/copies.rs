//! Copies of the messages of an exchange for the feed, at all steps.

use std::cell::RefCell;
use std::rc::Rc;

use http::Method;
use routing::target;
use sbi::name::USER_AGENT;
use sbi::{Outbound, Request, Response};

use super::message::Target;
use crate::config::FeedPoint;
use crate::feed::{Exchange, Shown, Tap};

/// An exchange that is copied.
pub(super) struct Copies {
    tap: Rc<Tap>,
    exchange: RefCell<Exchange>,
    method: Method,
    /// Path and query.
    target: String,
}

impl Copies {
    /// Begins to copy an exchange, if the feed copies it.
    pub(super) fn begin(tap: Option<&Rc<Tap>>, request: &Request) -> Option<Self> {
        let tap = tap?;
        let consumer = request.headers().get(USER_AGENT).map(|name| name.as_bytes());
        let exchange = tap.begin(target::service_of(request.path()), consumer)?;
        let shown = Shown {
            point: FeedPoint::RxRequest,
            method: request.method(),
            target: request.target(),
            status: None,
            headers: request.headers(),
            body: &request.body,
        };
        tap.copy(&exchange, &shown);
        Some(Self {
            tap: tap.clone(),
            exchange: RefCell::new(exchange),
            method: request.method().clone(),
            target: request.target().to_owned(),
        })
    }

    /// A request goes to a producer.
    pub(super) fn sent(&self, request: &Outbound, target: &Target, attempt: usize) {
        let mut exchange = self.exchange.borrow_mut();
        exchange.producer = Some(target.peer.authority.clone());
        exchange.instance = target.service.as_ref().map(|one| one.producer.id.clone());
        exchange.attempt = u8::try_from(attempt).unwrap_or(u8::MAX);
        let shown = Shown {
            point: FeedPoint::TxRequest,
            method: request.method(),
            target: request.target(),
            status: None,
            headers: request.headers(),
            body: &request.body,
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
            target: &self.target,
            status: Some(response.status()),
            headers: response.headers(),
            body: response.body(),
        };
        self.tap.copy(&self.exchange.borrow(), &shown);
    }
}
