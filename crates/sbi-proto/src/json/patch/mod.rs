//! JSON Patch (RFC 6902) on text, within bounds.
//!
//! A document stays the text its owner sent: what no operation touches must come back byte for byte, numbers and
//! all. So the text is opened into a tree only along the paths that operations name; the rest stays pieces of text,
//! which a `copy` or `move` shares. The length of the result is known before each operation takes effect, so no
//! operation makes a document larger than allowed, and every byte that is read or moved is counted against a
//! budget: the work is bounded whatever the operations are.

mod change;
mod fault;
mod operation;
mod pointer;
#[cfg(test)]
mod tests;
mod text_tree;

pub use fault::{Blame, PatchFault};
pub use operation::{Operation, operations};

use change::Tree;

/// How much a patch may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Operations.
    pub operations: usize,
    /// Bytes of the document after each operation. One that is larger already may be changed, but not grow.
    pub size: usize,
    /// Bytes read, compared and moved by all operations together.
    pub work: usize,
}

/// The document after all operations, or the first fault.
///
/// # Errors
/// What does not apply, or would pass a limit.
pub fn apply(document: &str, operations: &[Operation<'_>], limits: &Limits) -> Result<String, PatchFault> {
    let mut tree = Tree::new(document, limits);
    for (index, operation) in operations.iter().enumerate() {
        tree.apply(operation).map_err(|fault| fault.at(index))?;
    }
    Ok(tree.finish())
}
