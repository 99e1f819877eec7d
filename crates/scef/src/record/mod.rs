//! What an SCEF stores. The values are JSON; keys and indexes are the smallest that find them.

mod delivery;
mod exposure;
mod gathering;
mod group;
mod id;
mod trigger;
mod tsp;

pub(crate) use delivery::{Answered, Connection, Downlink, Notice, Status};
pub(crate) use exposure::{Configuration, Subscription};
pub(crate) use gathering::Gathering;
pub(crate) use group::{GroupDelivery, GroupOutcome};
pub(crate) use id::Id;
pub(crate) use trigger::Trigger;
pub(crate) use tsp::{Scs, TriggerReport};

/// The key of records that the HSS or the SMS-SC has not confirmed, in an index of those alone.
pub(crate) const PENDING: &[u8] = &[1];

/// A record whose value is JSON: what cannot fail to be written, and is read by later releases.
macro_rules! as_json {
    () => {
        fn encode(&self, out: &mut Vec<u8>) {
            out.extend(serde_json::to_vec(self).unwrap_or_default());
        }

        fn decode(_: &[u8], value: &[u8]) -> Result<Self, store::DecodeError> {
            serde_json::from_slice(value).map_err(|error| store::DecodeError(error.to_string()))
        }
    };
}
use as_json;
