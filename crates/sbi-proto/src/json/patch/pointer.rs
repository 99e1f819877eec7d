//! JSON pointers (RFC 6901).

use std::borrow::Cow;

use super::fault::Stop;

/// Most steps of a path: no document that a parser takes is deeper.
const MAX_STEPS: usize = 128;

/// A step of a pointer, unescaped.
pub(super) type Step<'a> = Cow<'a, str>;

/// The steps of a JSON pointer (RFC 6901 §3).
pub(super) fn steps<'p>(member: &'static str, pointer: &'p str) -> Result<Vec<Step<'p>>, Stop> {
    if pointer.is_empty() {
        return Ok(Vec::new());
    }
    let Some(rest) = pointer.strip_prefix('/') else {
        return Err(Stop::format(
            member,
            "expected a JSON pointer: empty, or starting with a slash",
        ));
    };
    let mut steps = Vec::new();
    for step in rest.split('/') {
        if steps.len() == MAX_STEPS {
            return Err(Stop::conflict(
                member,
                format!("expected a path of at most {MAX_STEPS} steps"),
            ));
        }
        if step.split('~').skip(1).any(|rest| !rest.starts_with(['0', '1'])) {
            return Err(Stop::format(
                member,
                "expected 0 or 1 after each tilde of a JSON pointer",
            ));
        }
        steps.push(if step.contains('~') {
            Cow::Owned(step.replace("~1", "/").replace("~0", "~"))
        } else {
            Cow::Borrowed(step)
        });
    }
    Ok(steps)
}

/// An index of an array: "01" and "+1" are none (RFC 6901 §4).
pub(super) fn index(step: &str) -> Option<usize> {
    let digits = !step.is_empty() && step.bytes().all(|b| b.is_ascii_digit());
    (digits && (step.len() == 1 || !step.starts_with('0')))
        .then(|| step.parse().ok())
        .flatten()
}
