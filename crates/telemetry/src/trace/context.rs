//! W3C trace context: where a request stands in a trace, as its headers say.

use std::fmt;
use std::str::FromStr;

/// Name of the header that carries the trace.
pub const TRACEPARENT: &str = "traceparent";
/// Name of the header that carries what tracing systems add; passed on as it is.
pub const TRACESTATE: &str = "tracestate";

/// Where a request stands in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceContext {
    /// The trace; not 0.
    pub trace: u128,
    /// The span that sent the request; not 0.
    pub span: u64,
    /// Whether the sender records the trace.
    pub sampled: bool,
}

/// Why a header is not a valid trace context. Such a header is ignored, never an error of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotTraceContext;

impl fmt::Display for NotTraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a traceparent header (00-<32 hex digits>-<16 hex digits>-<2 hex digits>)")
    }
}

impl std::error::Error for NotTraceContext {}

impl TraceContext {
    /// A new trace; zeros, which the standard forbids, become ones.
    #[must_use]
    pub fn begin(random_trace: u128, random_span: u64, sampled: bool) -> Self {
        Self {
            trace: random_trace.max(1),
            span: random_span.max(1),
            sampled,
        }
    }

    /// The same trace, as a span of ours sends it on.
    #[must_use]
    pub fn child(self, random_span: u64) -> Self {
        Self {
            span: random_span.max(1),
            ..self
        }
    }
}

impl FromStr for TraceContext {
    type Err = NotTraceContext;

    fn from_str(text: &str) -> Result<Self, NotTraceContext> {
        let bytes = text.as_bytes();
        // Version 00 has exactly these parts; a later one may have more behind a dash.
        let shape = bytes.len() >= 55 && [2, 35, 52].iter().all(|at| bytes.get(*at) == Some(&b'-'));
        let hex = |range: std::ops::Range<usize>| {
            text.get(range).filter(|part| {
                part.bytes()
                    .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
            })
        };
        let version = hex(0..2).filter(|_| shape).ok_or(NotTraceContext)?;
        let longer = bytes.len() > 55;
        if version == "ff" || (longer && (version == "00" || bytes.get(55) != Some(&b'-'))) {
            return Err(NotTraceContext);
        }
        let trace = hex(3..35).and_then(|part| u128::from_str_radix(part, 16).ok());
        let span = hex(36..52).and_then(|part| u64::from_str_radix(part, 16).ok());
        let flags = hex(53..55).and_then(|part| u8::from_str_radix(part, 16).ok());
        match (trace, span, flags) {
            (Some(trace), Some(span), Some(flags)) if trace != 0 && span != 0 => Ok(Self {
                trace,
                span,
                sampled: flags & 1 != 0,
            }),
            _ => Err(NotTraceContext),
        }
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "00-{:032x}-{:016x}-{:02x}",
            self.trace,
            self.span,
            u8::from(self.sampled)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EXAMPLE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn the_standards_example_is_read_and_written() {
        let context: TraceContext = EXAMPLE.parse().unwrap();
        assert!(context.sampled);
        assert_eq!(context.to_string(), EXAMPLE);
        assert_eq!(context.child(7).trace, context.trace);
        // A later version may add parts.
        assert!(
            format!("cc-{}-more", &EXAMPLE[3..])
                .parse::<TraceContext>()
                .is_ok()
        );
    }

    #[test]
    fn what_the_standard_forbids_is_refused() {
        for bad in [
            "",
            &EXAMPLE.to_uppercase(),
            &format!("ff-{}", &EXAMPLE[3..]),
            &format!("{EXAMPLE}-more"),
            &format!("cc-{}more", &EXAMPLE[3..]),
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
            "00-é4bf92f3577b34da6a3ce929d0e0e47-00f067aa0ba902b7-01",
        ] {
            assert_eq!(bad.parse::<TraceContext>(), Err(NotTraceContext), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn written_and_read_back_is_the_same(trace: u128, span: u64, sampled: bool) {
            let context = TraceContext::begin(trace, span, sampled);
            prop_assert_eq!(context.to_string().parse(), Ok(context));
        }

        #[test]
        fn any_text_is_answered(text in "\\PC{0,60}") {
            let _ = text.parse::<TraceContext>();
        }
    }
}
