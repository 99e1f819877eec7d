//! Regular expressions that peers register (identity ranges, allowed domains …), bounded.
//!
//! 3GPP asks for ECMA-262 expressions (TS 29.510 §6.1.6.2.8 note). The engine here runs in linear time whatever
//! the expression, so a stranger's pattern cannot stall a worker; look-around and back-references, which
//! would need backtracking, are refused at registration. Bounds: the text of an expression and the memory
//! of its program.

use std::fmt;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Longest expression accepted, in bytes.
pub const MAX_PATTERN_BYTES: usize = 2048;
/// Largest compiled program accepted, in bytes.
pub const MAX_PROGRAM_BYTES: usize = 256 * 1024;

/// A compiled expression; cheap to clone.
#[derive(Clone)]
pub struct Pattern(Arc<Regex>);

impl Pattern {
    /// Compiles an expression.
    ///
    /// # Errors
    /// A sentence that says what is wrong: syntax, an unsupported construct, or size.
    pub fn new(text: &str) -> Result<Self, String> {
        if text.len() > MAX_PATTERN_BYTES {
            return Err(format!(
                "expected an expression of at most {MAX_PATTERN_BYTES} bytes, got {}",
                text.len()
            ));
        }
        RegexBuilder::new(text)
            .size_limit(MAX_PROGRAM_BYTES)
            .dfa_size_limit(MAX_PROGRAM_BYTES)
            .nest_limit(50)
            .build()
            .map(|regex| Self(Arc::new(regex)))
            .map_err(|error| match error {
                regex::Error::Syntax(text) => {
                    let reason = text
                        .lines()
                        .last()
                        .unwrap_or_default()
                        .trim_start_matches("error: ")
                        .to_owned();
                    format!("expected a regular expression without look-around or back-references: {reason}")
                }
                regex::Error::CompiledTooBig(limit) => {
                    format!("expected an expression that compiles to at most {limit} bytes")
                }
                other => format!("expected a regular expression: {other}"),
            })
    }

    /// Whether the expression is found in the text (anchors are the pattern's business).
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// The expression as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Pattern {}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/", self.as_str())
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::new(&text).map_err(serde::de::Error::custom)
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_hold() {
        assert!(
            Pattern::new("^imsi-24001[0-9]{10}$")
                .unwrap()
                .matches("imsi-240010000000001")
        );
        assert!(Pattern::new("(?=x)").unwrap_err().contains("look-around"));
        assert!(
            Pattern::new(&"a".repeat(MAX_PATTERN_BYTES + 1))
                .unwrap_err()
                .contains("2048")
        );
        assert!(
            Pattern::new("((((a{1,200}){1,200}){1,200}){1,200})")
                .unwrap_err()
                .contains("at most")
        );
        assert!(Pattern::new("[").is_err());
    }
}
