//! The policy engine of PCF and PCRF: an operator's policy project, compiled at load, decides for each request.
//!
//! A project is data (YAML or JSON): blocks, policy tables, match lists, regular expressions, scripts. Its values have the
//! names of the standard: it reads `SmPolicyContextData` and its kin, policy data of the subscriber and policy counters,
//! and makes `PccRule`, `SessionRule`, `QosData` and what else a decision consists of. `docs/policy.md` describes the
//! language.
//!
//! The crate is pure: files are texts, time is an argument, and nothing is shared between workers but the immutable
//! [`Project`]. What an evaluation may cost is bounded by [`Limits`].
//!
//! ```
//! use policy::{Input, Limits, Project, Scratch};
//!
//! let project = "
//! name: gold
//! service: sm
//! blocks:
//!   - if: {$eq: [$subscriber.category, gold]}
//!     then:
//!       - sessionRule: {sessRuleId: default, authSessAmbr: {uplink: 1 Gbps, downlink: 2 Gbps}}
//! ";
//! let project = Project::compile(&[("project.yaml", project)], &Limits::default()).unwrap();
//! let (request, subscriber) = (serde_json::json!({"dnn": "internet"}), serde_json::json!({"category": "gold"}));
//! let input = Input { subscriber: &subscriber, ..Input::new("create", &request) };
//! let mut scratch = Scratch::default();
//! let decision = project.decide(&mut scratch, &input, time::OffsetDateTime::UNIX_EPOCH, None).unwrap();
//! assert_eq!(decision.to_json()["sessRules"]["default"]["authSessAmbr"]["uplink"], "1 Gbps");
//! ```
//!
//! A project is replaced while evaluations run by replacing the pointer to it. Each worker has its own [`Scratch`], which
//! notices that the project is another:
//!
//! ```
//! use std::sync::{Arc, RwLock};
//! use policy::{Input, Limits, Project, Scratch};
//!
//! let compile = |name: &str| {
//!     let text = format!("{{name: {name}, service: am, blocks: [amPolicy: {{rfsp: 7}}]}}");
//!     Arc::new(Project::compile(&[("project.yaml", &text)], &Limits::default()).unwrap())
//! };
//! // A function uses `arc_swap::ArcSwap` here, which readers do not lock.
//! let current = RwLock::new(compile("old"));
//! let request = serde_json::json!({});
//! let mut scratch = Scratch::default();
//! for name in ["old", "new"] {
//!     let project = current.read().unwrap().clone();
//!     assert_eq!(project.name(), name);
//!     let input = Input::new("create", &request);
//!     let now = time::OffsetDateTime::UNIX_EPOCH;
//!     assert_eq!(project.decide(&mut scratch, &input, now, None).unwrap().to_json()["rfsp"], 7);
//!     *current.write().unwrap() = compile("new");
//! }
//! ```

mod compile;
mod decision;
mod evaluate;
mod expression;
mod fault;
pub mod fuzzing;
mod glob;
mod input;
mod limits;
mod list;
mod notification;
mod operation;
mod program;
mod project;
mod scratch;
mod script;
mod shape;
mod table;
mod template;
pub mod testing;
mod trace;
mod value;
mod work;
mod zone;

pub use compile::ProjectError;
pub use decision::{Decision, Entry, Rejection};
pub use fault::{Fault, FaultKind};
pub use input::Input;
pub use limits::Limits;
pub use notification::{Accepts, Content, Notification, Servers};
pub use project::Project;
pub use scratch::Scratch;
pub use shape::{Section, Service};
pub use trace::{Read, Trace, TraceEvent};
pub use value::{Float, Items, Member, Members, Parts, Value};
