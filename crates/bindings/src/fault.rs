//! What can be wrong with a resource.

use std::fmt;

use model::shape;

/// A resource, or a patch of one, that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentFault {
    /// Members are missing or wrong; at least one.
    Shape(Vec<shape::Fault>),
    /// A merge patch that is not an object.
    NotAnObject,
    /// A patch of a member that cannot be changed.
    Fixed(String),
    /// A patch that removes a mandatory member.
    Mandatory(String),
    /// A patch that makes the resource larger than this many bytes.
    TooLarge(usize),
}

impl fmt::Display for DocumentFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape(faults) => match faults.first() {
                Some(first) => write!(f, "{}: {}", first.pointer, first.expected),
                None => f.write_str("invalid"),
            },
            Self::NotAnObject => f.write_str("a merge patch is an object"),
            Self::Fixed(name) => write!(f, "{name} of a binding cannot be changed"),
            Self::Mandatory(name) => write!(f, "{name} cannot be removed"),
            Self::TooLarge(size) => write!(f, "the patch makes the resource larger than {size} bytes"),
        }
    }
}

impl std::error::Error for DocumentFault {}
