//! The contract between a Diameter router and the applications inside it: what a request meets between mediation and
//! routing. No socket, no type of the router, no other application.
//!
//! An application is a type that implements [`Application`]: compiled from its settings and files, shared by the router's
//! workers, with a state of its own on each worker that needs no lock. The router shows it requests, and where it
//! [follows](Application::FOLLOWS) them, their answers and losses; what becomes of each is a [`Flow`]. Work that cannot be
//! done at once is [`Flow::Later`]: the router parks the transaction, within bounds, until the application resumes it by its
//! [`Ticket`] or its time is over. Several applications in a row see requests in their order and answers in the reverse.
//!
//! | file | what is there |
//! |---|---|
//! | `application` | the trait |
//! | `flow` | what becomes of a request, an answer or a loss |
//! | `stage` | what an application is shown |
//! | `out` | requests of an application's own |
//! | `parking` | tickets, and handles that resume |
//! | `seat` | an application on a worker, and without its type: the router's side |
//! | `view`, `identity` | a request as rules see it, and its subscriber |
//! | `session` | what applications that keep sessions read of messages |
//! | `appended` | a file of changes that operators make one by one |
//! | `settings` | settings that applications have in common |
//!
//! A whole application and its test, which needs no router:
//!
//! ```ignore
#![doc = include_str!("../tests/it/example.rs")]
//! ```

pub mod appended;
mod application;
mod flow;
pub mod identity;
mod out;
mod parking;
mod seat;
pub mod session;
mod settings;
mod stage;
mod view;

pub use application::{Application, Explained, Finding, On, Table};
pub use flow::{Destination, Flow, Reply};
pub use identity::Digits;
pub use out::Out;
pub use parking::{Found, Resume, Resumer, Ticket};
pub use seat::{Installed, Seated, Tally, Turn, seat};
pub use settings::Answer;
pub use stage::{Answered, Fields, Loss, Lost, Memo, Request, Resumed};
pub use view::View;
