//! Background data transfers (TS 23.503 §6.1.2.4, TS 29.554): which transfer policies an application service provider is offered for
//! what it asks for, and which of them a degradation of the network affects.

mod area;
mod model;
mod offer;

pub use area::Area;
pub use model::{Day, Degradation, Model, Moment, TimeOfDay, Window};
pub use offer::{Offer, Wanted};
