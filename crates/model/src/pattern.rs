//! Regular expressions that peers register (identity ranges, allowed domains …), bounded.
//!
//! 3GPP asks for ECMA-262 expressions (TS 29.510 §6.1.6.2.8 note). The engine here runs in linear time whatever
//! the expression, so a peer's pattern cannot stall a worker; look-around and back-references, which
//! would need backtracking, are refused at registration. Bounds: the text of an expression, the memory of its
//! program, and within a profile ([`within`]) how many programs there are and how large they are together.
//!
//! As in ECMA-262 without its `u` flag, `\d`, `\w`, `\s`, `\b` and letter case are those of ASCII, in which
//! identities are written; an expression that needs more (`[é]`) is read with all of Unicode.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use regex_automata::meta::{BuildError, Config, Regex};
use regex_automata::util::syntax;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Longest expression accepted, in bytes.
pub const MAX_PATTERN_BYTES: usize = 2048;
/// Largest compiled program accepted, in bytes.
pub const MAX_PROGRAM_BYTES: usize = 16 * 1024;
/// What a thread may keep for an expression while it searches, in bytes, each way.
const CACHE_BYTES: usize = 32 * 1024;
/// Groups in groups at most.
const NESTED: u32 = 50;

/// A compiled expression; cheap to clone.
#[derive(Clone)]
pub struct Pattern(Arc<Compiled>);

struct Compiled {
    text: Box<str>,
    /// `None`: above the budget of the profile; it matches nothing.
    regex: Option<Regex>,
}

/// How many expressions a profile may have. The same text counts once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Distinct expressions.
    pub patterns: usize,
    /// Bytes of their compiled programs together.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            patterns: 256,
            bytes: 1024 * 1024,
        }
    }
}

/// Why a text is not a usable expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternFault {
    /// Its syntax, an unsupported construct, or its size.
    #[error("{0}")]
    Unusable(String),
    /// One more than [`Limits`] allow: how many, and of how many bytes.
    #[error("expected at most {0} distinct expressions, which compile to at most {1} bytes together")]
    Excess(usize, usize),
}

/// What a document has used of its limits.
struct Budget {
    limits: Limits,
    bytes: usize,
    known: HashMap<Box<str>, Pattern>,
    exceeded: bool,
}

thread_local! {
    /// The budget of the document that this thread reads now.
    static BUDGET: RefCell<Option<Budget>> = const { RefCell::new(None) };
}

/// Takes the budget away when its document has been read, also by a panic.
struct Scope;

impl Drop for Scope {
    fn drop(&mut self) {
        BUDGET.set(None);
    }
}

/// Reads one document: whatever compiles expressions inside of `read`, on this thread, shares one budget. Inside of
/// another budget that one holds. Answers as well whether the budget was exceeded.
///
/// [`Pattern::new`] refuses an expression above the budget; [`Pattern::deserialize`] makes it one that matches
/// nothing, so that a reader that cannot refuse a profile (a proxy that learns it) still has the rest of it.
pub fn within<T>(limits: Limits, read: impl FnOnce() -> T) -> (T, bool) {
    if BUDGET.with_borrow(Option::is_some) {
        return (read(), exceeded());
    }
    BUDGET.set(Some(Budget {
        limits,
        bytes: 0,
        known: HashMap::new(),
        exceeded: false,
    }));
    let _scope = Scope;
    (read(), exceeded())
}

fn exceeded() -> bool {
    BUDGET.with_borrow(|budget| budget.as_ref().is_some_and(|budget| budget.exceeded))
}

impl Pattern {
    /// Compiles an expression.
    ///
    /// # Errors
    /// A sentence that says what is wrong: syntax, an unsupported construct, size, or one too many of a document.
    pub fn new(text: &str) -> Result<Self, PatternFault> {
        BUDGET.with_borrow_mut(|budget| match budget {
            Some(budget) => budget.compile(text),
            None => Self::compile(text),
        })
    }

    fn compile(text: &str) -> Result<Self, PatternFault> {
        if text.len() > MAX_PATTERN_BYTES {
            return Err(PatternFault::Unusable(format!(
                "expected an expression of at most {MAX_PATTERN_BYTES} bytes, got {}",
                text.len()
            )));
        }
        // What ASCII cannot say is tried with all of Unicode, whose error is reported.
        let regex = build(text, false).or_else(|error| match error.syntax_error() {
            Some(_) => build(text, true),
            None => Err(error),
        });
        regex
            .map(|regex| Self::of(text, Some(regex)))
            .map_err(|error| PatternFault::Unusable(explain(&error)))
    }

    fn of(text: &str, regex: Option<Regex>) -> Self {
        let text = text.into();
        Self(Arc::new(Compiled { text, regex }))
    }

    /// Whether the expression is found in the text (anchors are the pattern's business).
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        self.0.regex.as_ref().is_some_and(|regex| regex.is_match(text))
    }

    /// The expression as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// Bytes of the compiled program and what is around it.
    #[must_use]
    pub fn program_bytes(&self) -> usize {
        const FRAME: usize = 512;
        self.0
            .regex
            .as_ref()
            .map_or(0, |regex| FRAME + self.0.text.len() + regex.memory_usage())
    }
}

impl Budget {
    fn compile(&mut self, text: &str) -> Result<Pattern, PatternFault> {
        if let Some(known) = self.known.get(text) {
            return Ok(known.clone());
        }
        let Limits { patterns, bytes } = self.limits;
        if self.exceeded || self.known.len() >= patterns {
            self.exceeded = true;
            return Err(PatternFault::Excess(patterns, bytes));
        }
        let pattern = Pattern::compile(text)?;
        self.bytes = self.bytes.saturating_add(pattern.program_bytes());
        if self.bytes > bytes {
            self.exceeded = true;
            return Err(PatternFault::Excess(patterns, bytes));
        }
        self.known.insert(text.into(), pattern.clone());
        Ok(pattern)
    }
}

fn build(text: &str, unicode: bool) -> Result<Regex, Box<BuildError>> {
    let config = Config::new()
        .nfa_size_limit(Some(MAX_PROGRAM_BYTES))
        .hybrid_cache_capacity(CACHE_BYTES)
        // Tables that are made in advance are the larger part of a program, and no faster by much.
        .dfa(false)
        .onepass(false)
        .utf8_empty(unicode);
    let syntax = syntax::Config::new()
        .unicode(unicode)
        .utf8(unicode)
        .nest_limit(NESTED);
    Regex::builder()
        .configure(config)
        .syntax(syntax)
        .build(text)
        .map_err(Box::new)
}

fn explain(error: &BuildError) -> String {
    if let Some(limit) = error.size_limit() {
        return format!("expected an expression that compiles to at most {limit} bytes");
    }
    let Some(syntax) = error.syntax_error() else {
        return format!("expected a regular expression: {error}");
    };
    let text = syntax.to_string();
    let reason = text
        .lines()
        .last()
        .unwrap_or_default()
        .trim_start_matches("error: ");
    format!("expected a regular expression without look-around or back-references: {reason}")
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
        match Self::new(&text) {
            Err(PatternFault::Excess(..)) => Ok(Self::of("", None)),
            other => other.map_err(serde::de::Error::custom),
        }
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

    fn refused(text: &str) -> String {
        Pattern::new(text).unwrap_err().to_string()
    }

    #[test]
    fn bounds_hold() {
        assert!(
            Pattern::new("^imsi-24001[0-9]{10}$")
                .unwrap()
                .matches("imsi-240010000000001")
        );
        assert!(refused("(?=x)").contains("look-around"));
        assert!(refused(&"a".repeat(MAX_PATTERN_BYTES + 1)).contains("2048"));
        assert!(refused("((((a{1,200}){1,200}){1,200}){1,200})").contains("at most"));
        assert!(refused("^[0-9]{1,2000}x$").contains("at most"));
        assert!(Pattern::new("[").is_err());
    }

    /// Expressions as operators and the standards write them.
    #[test]
    fn expressions_of_real_life_fit_the_bounds() {
        for (text, fits, other) in [
            (
                "^imsi-00101[0-9]{10}$",
                "imsi-001010000000001",
                "imsi-001020000000001",
            ),
            (r"^imsi-\d{15}$", "imsi-001010000000001", "imsi-00101000000000x"),
            (
                r"^(imsi-00101\d{10}|imsi-00102\d{9,10})$",
                "imsi-00102000000001",
                "imsi-00103000000001",
            ),
            (r"^nai-.+@company\.com$", "nai-a@company.com", "nai-a@company.org"),
            (
                r"^msisdn-467[0-9]{8,12}$",
                "msisdn-46712345678",
                "msisdn-46612345678",
            ),
            (r"^extid-[^@]+@[^@]+$", "extid-a@b", "extid-a"),
            (
                "^(.*\\.)?mnc001\\.mcc001\\.3gppnetwork\\.org$",
                "a.mnc001.mcc001.3gppnetwork.org",
                "x",
            ),
            (
                r"^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$",
                "amf.example.org",
                "-",
            ),
            (r"^\w{1,63}$", "amf_1", ""),
            (r"^(?i)udm-[a-f0-9]{8}$", "UDM-0a1b2c3D", "udm-0a1b2c3"),
            (
                r"^[A-Fa-f0-9]{8}-[0-9]{3}-[0-9]{2,3}-([A-Fa-f0-9][A-Fa-f0-9]){1,10}$",
                "A1B2C3D4-240-01-AB12",
                "A1",
            ),
            ("^[éè]$", "é", "e"),
        ] {
            let pattern = Pattern::new(text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
            assert!(pattern.matches(fits) && !pattern.matches(other), "{text}");
            assert!(
                pattern.program_bytes() < 4 * MAX_PROGRAM_BYTES,
                "{text}: {}",
                pattern.program_bytes()
            );
        }
        assert!(
            !Pattern::new(r"^\d$").unwrap().matches("\u{663}"),
            "digits are those of ASCII (ECMA-262)"
        );
    }

    #[test]
    fn a_document_has_one_budget() {
        let limits = Limits {
            patterns: 2,
            ..Limits::default()
        };
        let (list, exceeded) = within(limits, || {
            serde_json::from_str::<Vec<Pattern>>(r#"["a","b","a","c","d"]"#).unwrap()
        });
        assert!(exceeded);
        let found: Vec<bool> = list.iter().map(|pattern| pattern.matches("abcd")).collect();
        assert_eq!(
            found,
            [true, true, true, false, false],
            "one too many matches nothing"
        );
        let ((), exceeded) = within(limits, || {
            assert!(Pattern::new("a").is_ok() && Pattern::new("b").is_ok() && Pattern::new("a").is_ok());
            assert!(
                Pattern::new("c")
                    .unwrap_err()
                    .to_string()
                    .contains("at most 2 distinct")
            );
        });
        assert!(exceeded);
        assert!(Pattern::new("c").is_ok(), "the budget ends with its document");
        let bytes = Limits {
            bytes: Pattern::new("a").unwrap().program_bytes() + 1,
            ..limits
        };
        let (ends, _) = within(bytes, || (Pattern::new("a").is_ok(), Pattern::new("b").is_ok()));
        assert_eq!(ends, (true, false));
    }

    /// The inner one of two budgets does not give room that the outer one has not.
    #[test]
    fn budgets_do_not_add_up() {
        let none = Limits {
            patterns: 0,
            bytes: 0,
        };
        let ((refused, inner), outer) =
            within(none, || within(Limits::default(), || Pattern::new("a").is_err()));
        assert!(refused && inner && outer);
    }

    /// What thousands of large expressions in one profile may take: the budget, not their number.
    #[test]
    fn memory_of_a_profile_is_bounded() {
        let limits = Limits::default();
        let (bytes, exceeded) = within(limits, || {
            let made = (0..2_000).filter_map(|n| Pattern::new(&format!("^[0-9]{{1,100}}x{n}$")).ok());
            made.map(|pattern| pattern.program_bytes()).sum::<usize>()
        });
        assert!(exceeded && bytes > 0 && bytes <= limits.bytes, "{bytes}");
    }
}
