//! 3GPP data types that more than one function speaks. No IO, no clocks, no policy.
//!
//! A tour:
//! * [`open_enum`] and [`names`]: enumerations that stay open on the wire (`anyOf: [enum, string]`):
//!   [`NfType`], [`NfStatus`], [`ServiceName`] …
//! * [`plmn`], [`slice`], [`area`], [`address`], [`identity`]: PLMNs, slices, tracking areas and GUAMIs,
//!   address ranges, subscriber identities and the ranges they fall into. All compact, all comparable
//!   without allocation, each with the matching rule of its clause.
//! * [`pattern`]: the regular expressions that peers register, bounded in size and time.
//! * [`features`]: `SupportedFeatures` bit masks (TS 29.500 §6.6).
//! * [`shape`]: a small declarative language for "what a value must look like"; every fault is reported with its
//!   JSON pointer and what was expected.
//! * [`tolerance`]: what is optional, cannot be read and prevents nothing is dropped and reported.
//! * [`nf_profile`]: the shape of an NF profile, and typed views over the members of an NF profile that an NRF or an SCP must understand.
//!
//! Types here are *views*: a function that must keep unknown members keeps the bytes it received and looks
//! at them through these types; nothing here is meant to be written back in place of what a peer sent.

pub mod address;
pub mod area;
pub mod features;
mod hex;
pub mod identity;
pub mod links;
mod moment;
pub mod names;
pub mod nf_profile;
pub mod open_enum;
pub mod pattern;
pub mod plmn;
pub mod shape;
pub mod slice;
pub mod tolerance;

pub use address::{Ipv4Range, Ipv6Prefix, Ipv6PrefixRange};
pub use area::{AmfId, Guami, Tac, TacRange, Tai, TaiRange};
pub use features::SupportedFeatures;
pub use identity::{IdentityRange, NfInstanceId, RangeFault};
pub use moment::unix_millis;
pub use names::{
    CollocatedNfType, DataSetId, LocalityType, NfServiceStatus, NfStatus, NfType, NotificationEventType,
    ServiceName, UriScheme,
};
pub use nf_profile::{NfProfile, NfService};
pub use pattern::Pattern;
pub use plmn::{PlmnId, PlmnIdNid, PlmnRange};
pub use slice::{ExtSnssai, PlmnSnssai, SdRange, Snssai};
