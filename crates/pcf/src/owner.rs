//! Whose a session of Diameter is.

use diameter::endpoint::Request;
use diameter::proto::known;

/// Whether a request comes from the node that has a session.
pub(crate) fn owns(request: &Request, host: &str) -> bool {
    let origin = request.message.get(known::ORIGIN_HOST).ok().flatten();
    origin.is_some_and(|origin| origin.eq_ignore_ascii_case(host))
}
