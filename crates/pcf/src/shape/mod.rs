//! What the bodies of requests must look like.

mod af;
mod common;
mod detail;
mod location;
mod policies;
mod sm;

pub(crate) use af::{AF_EVENTS, AF_PATCH, AF_REQUEST, AF_SESSION, PCSCF_RESTORATION};
pub(crate) use policies::{AM_REQUEST, AM_UPDATE, UE_REQUEST, UE_UPDATE};
pub(crate) use sm::{SM_CONTEXT, SM_DELETE, SM_UPDATE};

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
