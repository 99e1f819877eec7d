//! Subscriptions to changes of profiles (TS 29.510 §5.2.2.5).

mod book;
mod condition;
mod shares;
mod subscription;

pub use book::{Book, Notifying};
pub use condition::{Condition, FileKey};
pub use shares::{Owner, Shares};
pub use subscription::{Subscription, Target};
