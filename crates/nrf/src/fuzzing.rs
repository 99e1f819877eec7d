//! Bodies of the fuzz targets of this crate: arbitrary bytes for each parser, and the properties that must hold. Not part
//! of its interface. The suite runs them for a moment, the targets in `fuzz/` for hours.

use model::NfProfile;
use registry::Entry;
use time::OffsetDateTime;

use crate::api;
use crate::subscriptions::{Condition, Subscription};

/// Bytes as a profile that an NF registers: what is kept reads back, and is not much longer.
pub fn profile(bytes: &[u8]) {
    let Ok(entry) = Entry::parse(bytes, |_| 10) else {
        return;
    };
    let kept = entry.document();
    assert!(
        kept.len() <= bytes.len() + 256,
        "{} bytes of {}",
        kept.len(),
        bytes.len()
    );
    let again = Entry::parse(&kept, |_| 10);
    assert!(
        again.is_ok_and(|again| again.etag() == entry.etag()),
        "what is kept does not read back"
    );
    let shown: Result<serde_json::Value, _> = serde_json::from_slice(&entry.public_document(false));
    assert!(shown.is_ok());
}

/// The lines of an input: the last one is a profile, the one before what is asked of it.
fn with_profile(bytes: &[u8]) -> Option<(&str, Option<NfProfile>)> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (asked, profile) = text.split_once('\n').unwrap_or((text, ""));
    Some((asked, serde_json::from_str(profile).ok()))
}

/// A line as the query of a discovery, judged on the profile in the next line.
pub fn discovery(bytes: &[u8]) {
    let Some((query, profile)) = with_profile(bytes) else {
        return;
    };
    api::discovery::try_query(query, profile.as_ref());
}

/// A line as a subscription, judged on the profile in the next line.
pub fn subscription(bytes: &[u8]) {
    let Some((body, profile)) = with_profile(bytes) else {
        return;
    };
    let Ok(document) = serde_json::from_str(body) else {
        return;
    };
    let Ok(subscription) = Subscription::parse(document, "id", OffsetDateTime::UNIX_EPOCH) else {
        return;
    };
    let _ = subscription.wants_changes(&["/nfServices/0/load".to_owned()]);
    let keys = subscription.condition.file_keys();
    let Some(profile) = profile else { return };
    let _ = subscription.concerns(&profile);
    // Subscriptions are found by these keys: one that holds has to be among them.
    if subscription.condition.holds(&profile) {
        let of_profile = Condition::keys_of(&profile);
        assert!(
            keys.iter().any(|key| of_profile.contains(key)),
            "{:?} holds and is not found",
            subscription.condition
        );
    }
}

/// Bytes as the form that asks for an access token.
pub fn token_request(bytes: &[u8]) {
    let _ = crate::tokens::parse(bytes);
}
