//! The `3gpp-Sbi-*` headers as types (TS 29.500 §5.2.3, ABNF in its annex).
//!
//! Each type has `parse`, which accepts what the ABNF allows (and white space a little more generously, as
//! receivers should), and `Display`, which prints the form that senders should use. What a type does not
//! interpret it keeps: unknown parameters survive where the ABNF leaves room for them.
//!
//! A file per family: [`simple`](self) values, targets, NRFs, bindings, load and overload, and
//! parameter lists.

mod binding;
pub mod discovery;
mod info;
mod lexis;
mod load;
pub mod names;
mod nrf;
mod simple;
mod target;

pub use binding::{Binding, BindingLevel, BindingParam, RoutingBinding};
pub use info::{
    ConsumerInfo, ConsumerService, CorrelationInfo, NfPeerInfo, RequestInfo, ResponseInfo, SelectionInfo,
};
pub use lexis::HeaderError;
pub use load::{Lci, LciElement, Oci, OciElement, Scope, SliceScope};
pub use nrf::NrfUri;
pub use simple::{
    AccessScope, ClientCredentials, MaxForwardHops, MaxRspTime, MessagePriority, OriginatingNetworkId,
    OriginationTimestamp, SenderTimestamp, SourceNfClientCredentials,
};
pub use target::{Callback, ProducerId, TargetApiRoot, TargetNfId};

use http::HeaderValue;
use http2::{Fields, Name, Value};

/// A header with a type of its own.
pub trait SbiHeader: Sized + std::fmt::Display {
    /// Its name.
    const NAME: Name<'static>;

    /// Reads a value.
    ///
    /// # Errors
    /// When the value is not what the ABNF of the header allows.
    fn parse(text: &str) -> Result<Self, HeaderError>;

    /// Reads the header from a message; `None` when it is not there. Several header lines of one name are
    /// read as one list, separated by commas (RFC 9110 §5.3).
    ///
    /// # Errors
    /// As [`SbiHeader::parse`], or when the value is not text.
    fn of(headers: &Fields) -> Result<Option<Self>, HeaderError> {
        let mut values = headers.get_all(Self::NAME);
        let Some(first) = values.next() else {
            return Ok(None);
        };
        let text = |value: Value<'_>| {
            let text = std::str::from_utf8(value.as_bytes()).map(str::to_owned);
            text.map_err(|_| HeaderError::of::<Self>("expected text"))
        };
        let Some(second) = values.next() else {
            // The usual case is one line of ASCII, which is read where it stands.
            return match first.to_str() {
                Ok(value) => Self::parse(value),
                Err(_) => Self::parse(&text(first)?),
            }
            .map(Some);
        };
        let mut whole = text(first)?;
        for value in std::iter::once(second).chain(values) {
            whole.push_str(", ");
            whole.push_str(&text(value)?);
        }
        Self::parse(&whole).map(Some)
    }

    /// Sets the header in a message; `false` when a part of it holds what no header can.
    fn set_in(&self, headers: &mut Fields) -> bool {
        headers.set_printed(Self::NAME, self)
    }

    /// As a value to be kept; `None` when a part of it holds what no header can.
    fn to_value(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&self.to_string()).ok()
    }
}

#[cfg(test)]
mod tests;
