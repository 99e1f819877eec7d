//! How deep a JSON text is nested.
//!
//! A body may become part of a larger document, which is read again with the limit of the parser (127 levels): what comes from
//! the network has to stay well below it, else it could be written and never read.

/// Levels of objects and lists that a body may have. The deepest body of the 3GPP files has fewer than 20.
pub const MOST_LEVELS: usize = 64;

/// Whether objects and lists of a JSON text are nested deeper than `most` levels. Of a text that is no JSON the answer means
/// nothing, which its parser says.
#[must_use]
pub fn is_deeper_than(text: &[u8], most: usize) -> bool {
    // `[` and `{` differ in one bit. A text that opens no more than `most` is no deeper, which this counts without branches.
    let opened = text.iter().filter(|byte| **byte | 0x20 == b'{').count();
    opened > most && deepest(text) > most
}

fn deepest(text: &[u8]) -> usize {
    let (mut level, mut most) = (0_usize, 0);
    let (mut in_text, mut is_escaped) = (false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => {
                level += 1;
                most = most.max(level);
            }
            b']' | b'}' if !in_text => level = level.saturating_sub(1),
            _ => {}
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_count_outside_of_texts_alone() {
        let nested = |levels: usize| format!("{}{}", "[{\"a\":".repeat(levels / 2), "}]".repeat(levels / 2));
        assert!(!is_deeper_than(nested(64).as_bytes(), 64));
        assert!(is_deeper_than(nested(66).as_bytes(), 64));
        let wide = format!("[{}]", "[],{},".repeat(500));
        assert!(!is_deeper_than(wide.as_bytes(), 2) && is_deeper_than(wide.as_bytes(), 1));
        let quoted = format!(r#"{{"a": "{}\\", "b": "\"[["}}"#, "[".repeat(500));
        assert!(!is_deeper_than(quoted.as_bytes(), 1));
    }
}
