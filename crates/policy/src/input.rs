//! What a decision is about.

use serde_json::Value as Json;

/// The absent document.
static NULL: Json = Json::Null;

/// The documents of one evaluation, as JSON of the standard.
///
/// They come from a JSON parser that bounds their depth; `serde_json` does, at 128 levels.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// What happened: `create`, `update`, `delete`, or a name of the function's own (`$event`).
    pub event: &'a str,
    /// `SmPolicyContextData`, `SmPolicyUpdateContextData`, `PolicyAssociationRequest` … (`$request`).
    pub request: &'a Json,
    /// Policy data of the subscriber (TS 29.519), custom attributes included (`$subscriber`).
    pub subscriber: &'a Json,
    /// Policy counters by identifier, each a `PolicyCounterInfo` (TS 29.594 §5.6.2) (`$counters`).
    pub counters: &'a Json,
    /// What the function keeps of the association: earlier requests merged, usage (`$session`).
    pub session: &'a Json,
    /// State variables of the association, as earlier decisions have set them (`$state`).
    pub state: &'a Json,
    /// State variables that all associations of the subscriber share (`$subscriberState`). A function has them only where the
    /// project reads them ([`Project::reads_subscriber_state`](crate::Project::reads_subscriber_state)).
    pub subscriber_state: &'a Json,
    /// What an AF asks for, `AppSessionContextReqData` (TS 29.514), at the event `af` (`$af`).
    pub af: &'a Json,
}

impl<'a> Input<'a> {
    /// An event with a request and nothing else.
    #[must_use]
    pub fn new(event: &'a str, request: &'a Json) -> Self {
        Self {
            event,
            request,
            subscriber: &NULL,
            counters: &NULL,
            session: &NULL,
            state: &NULL,
            subscriber_state: &NULL,
            af: &NULL,
        }
    }
}
