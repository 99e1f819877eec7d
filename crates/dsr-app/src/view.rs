//! A request as rules and applications see it.

use std::cell::OnceCell;

use diameter_proto::Routing;

use crate::identity::{self, Digits};

/// Input of rules and applications. The subscriber's numbers are searched only when one of them needs them.
#[derive(Debug)]
pub struct View<'a> {
    /// Application id of the header.
    pub application: u32,
    /// Command code.
    pub command: u32,
    /// DRMP priority, 0 the most important.
    pub priority: u8,
    /// The AVPs.
    pub routing: &'a Routing<'a>,
    imsi: OnceCell<Option<Digits>>,
    msisdn: OnceCell<Option<Digits>>,
}

impl<'a> View<'a> {
    /// A view of a request.
    #[inline]
    #[must_use]
    pub fn new(application: u32, command: u32, priority: u8, routing: &'a Routing<'a>) -> Self {
        Self {
            application,
            command,
            priority,
            routing,
            imsi: OnceCell::new(),
            msisdn: OnceCell::new(),
        }
    }

    /// The subscriber's IMSI.
    #[inline]
    #[must_use]
    pub fn imsi(&self) -> Option<&Digits> {
        self.imsi.get_or_init(|| identity::imsi(self.routing)).as_ref()
    }

    /// The subscriber's MSISDN.
    #[inline]
    #[must_use]
    pub fn msisdn(&self) -> Option<&Digits> {
        self.msisdn
            .get_or_init(|| identity::msisdn(self.routing))
            .as_ref()
    }
}
