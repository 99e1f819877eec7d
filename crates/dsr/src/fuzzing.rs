//! Bodies of the fuzz targets of this crate: what may be done with bytes from a stranger, and what must hold then. No
//! part of its interface. The suite runs them for a moment, the targets in `fuzz/` for hours.

use diameter::proto::{Message, Routing};
use dsr_app::identity::{impi, impu, imsi, ipv4, ipv6, msisdn};

use crate::config::Config;

/// Bytes as a message whose subscriber is looked for.
pub fn identities(bytes: &[u8]) {
    let Ok(message) = Message::parse(bytes) else {
        return;
    };
    let Ok(routing) = Routing::scan(&message, b"dsr.example") else {
        return;
    };
    for digits in [imsi(&routing), msisdn(&routing)].into_iter().flatten() {
        let text = digits.as_bytes();
        assert!(
            !text.is_empty() && text.iter().all(u8::is_ascii_digit),
            "{text:?}"
        );
        let _ = digits.prefix(6);
    }
    let _ = (impi(&routing), impu(&routing), ipv4(&routing));
    assert!(ipv6(&routing).is_none_or(|(_, length)| length <= 128));
}

/// Bytes as a configuration: what is accepted is written and read again as the same.
pub fn configuration(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let _ = settings::top_level_keys(text);
    let Ok(config) = settings::from_str::<Config>(text, "fuzz") else {
        return;
    };
    let written = settings::to_yaml(&config);
    let again: Config = settings::from_str(&written, "again").unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(settings::to_yaml(&again), written);
}
