//! When the establishment of a session was begun, as its consumer says (`3gpp-Sbi-Origination-Timestamp`, Origination-Time-Stamp):
//! of two requests that collide the later one makes the session, in whichever order they arrive (TS 29.512 §4.2.7, and
//! TS 29.212 for Gx). No IO.

use serde_json::Value;

use super::Association;

/// The room of an association that has the time, in milliseconds since 1970.
const ROOM: &str = "origination";
/// The milliseconds from 1900, which Origination-Time-Stamp counts from (TS 29.273), to 1970.
const SINCE_1900: u64 = 2_208_988_800_000;

/// Keeps the time with an association that begins, in milliseconds since 1970.
pub(crate) fn note(association: &mut Association, milliseconds: i64) {
    association.rooms.insert(ROOM.to_owned(), milliseconds.into());
}

/// Origination-Time-Stamp as milliseconds since 1970; `None`: a time before that.
pub(crate) fn of_diameter(stamp: u64) -> Option<i64> {
    i64::try_from(stamp.checked_sub(SINCE_1900)?).ok()
}

/// Whether the request for a session is overtaken by that for another one of the same subscriber, which it collides with: it is
/// not more recent. Where either has no time, the one that arrives last counts.
pub(crate) fn is_overtaken(new: &Association, held: &Association) -> bool {
    let time = |association: &Association| association.rooms.get(ROOM).and_then(Value::as_i64);
    let is_same = new.text_of("supi").is_some() && new.text_of("supi") == held.text_of("supi");
    is_same && time(new).zip(time(held)).is_some_and(|(new, held)| new <= held)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::association::Kind;
    use serde_json::json;

    fn at(supi: &str, time: Option<i64>) -> Association {
        let mut association = Association::new(Kind::Sm, json!({"supi": supi}));
        if let Some(time) = time {
            note(&mut association, time);
        }
        association
    }

    #[test]
    fn the_more_recent_request_of_a_subscriber_counts() {
        for (new, held, overtaken) in [
            (Some(1), Some(2), true),
            (Some(2), Some(2), true),
            (Some(3), Some(2), false),
            (None, Some(2), false),
            (Some(1), None, false),
        ] {
            assert_eq!(is_overtaken(&at("a", new), &at("a", held)), overtaken);
            assert!(!is_overtaken(&at("a", new), &at("b", held)));
        }
    }

    #[test]
    fn times_of_diameter_count_from_1900() {
        assert_eq!(of_diameter(SINCE_1900 + 7), Some(7));
        assert_eq!(of_diameter(7), None);
    }
}
