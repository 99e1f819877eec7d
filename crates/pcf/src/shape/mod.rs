//! What the bodies of requests must look like.

mod af;
mod bdt;
mod blank;
mod common;
mod detail;
mod location;
mod policies;
mod sm;

pub(crate) use af::{AF_DELETE, AF_EVENTS, AF_PATCH, AF_REQUEST, AF_SESSION, PCSCF_RESTORATION};
pub(crate) use bdt::{BDT_PATCH, BDT_REQUEST};
pub(crate) use blank::settle;
pub(crate) use policies::{AM_REQUEST, AM_UPDATE, UE_REQUEST, UE_UPDATE};
pub(crate) use sm::{SM_CONTEXT, SM_DELETE, SM_UPDATE};

use model::shape::{Fault, Shape};
use serde_json::{Map, Value};

/// Members that an update may not have, also as null: the shape of the creation has them and that of the update has not, as the
/// identity of the subscriber and the DNN. They would make another session of it. Members that neither names are kept.
pub(crate) fn unchangeable(
    creation: &'static Shape,
    update: &'static Shape,
    members: &Map<String, Value>,
) -> Vec<Fault> {
    let names = |shape: &'static Shape, name: &str| match shape {
        Shape::Object(object) => object.members.iter().any(|member| member.name == name),
        _ => false,
    };
    let fixed = members
        .keys()
        .filter(|name| names(creation, name) && !names(update, name));
    let fault = |name: &String| Fault {
        pointer: format!("/{name}"),
        expected: "an update does not change this member; leave it out".into(),
        missing: false,
        optional: true,
    };
    fixed.map(fault).collect()
}

/// Declares shapes of objects by their members.
macro_rules! object {
    ($($(#[$meta:meta])* $vis:vis $name:ident = [$($member:expr),* $(,)?] $(where $rule:expr)?;)+) => {
        $($(#[$meta])* $vis static $name: model::shape::Shape = model::shape::Shape::Object(&model::shape::Object {
            members: &[$($member),*],
            rule: crate::shape::object!(@rule $($rule)?),
        });)+
    };
    (@rule) => { None };
    (@rule $rule:expr) => { Some($rule) };
}
pub(crate) use object;
