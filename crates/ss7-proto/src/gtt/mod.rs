//! Global title translation (Q.714 §2.4): which node an address leads to, and with which address.
//!
//! [`Table`] is immutable. A [`TableBuilder`] checks it as a whole; [`Live`] replaces it beside readers, each of which
//! finishes with the table that it began with.
//!
//! | step | type |
//! |---|---|
//! | which set of translations: indicator, translation type, plan, nature, subsystem, origin; calling party, operation, application context | [`Selector`] |
//! | what of the message the last three and the digits may come from | [`Content`] |
//! | longest prefix or range of digits | compressed trie, 16 octets a node |
//! | address for the next node | [`Modification`] |
//! | next node | [`Group`]: solitary, dominant, load-shared by weight |

mod content;
mod group;
mod live;
mod modification;
mod range;
mod selector;
mod table;
mod trie;

pub use content::{Content, Number};
pub use group::{Group, Member, Mode};
pub use live::Live;
pub use modification::{Change, Modification};
pub use selector::{Circumstances, Selector, SetId};
pub use table::{BuildError, Match, Table, TableBuilder, Translation};
