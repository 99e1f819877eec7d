//! What a server has seen, counted on one worker and readable from anywhere.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! stats {
    ($($(#[doc = $doc:literal])+ $name:ident),+ $(,)?) => {
        /// Counts of one worker's server. Written by that worker only, so the counters are never contended.
        #[derive(Debug, Default)]
        pub struct ServerStats {
            $(pub(crate) $name: AtomicU64,)+
        }

        /// [`ServerStats`] at one moment.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct StatsSnapshot {
            $($(#[doc = $doc])+ pub $name: u64,)+
        }

        impl StatsSnapshot {
            /// Everything that only grows: name of the metric, what it counts in a sentence, and the count.
            #[must_use]
            pub fn counters(&self) -> Vec<(&'static str, &'static str, u64)> {
                let all = [$((
                    concat!("signalbox_sbi_server_", stringify!($name), "_total"),
                    concat!($($doc),+).trim_start(),
                    self.$name,
                )),+];
                let level = "signalbox_sbi_server_connections_open_total";
                all.into_iter().filter(|(name, _, _)| *name != level).collect()
            }
        }

        impl ServerStats {
            /// The counts now.
            #[must_use]
            pub fn snapshot(&self) -> StatsSnapshot {
                StatsSnapshot { $($name: self.$name.load(Ordering::Relaxed),)+ }
            }
        }
    };
}

stats! {
    /// Connections open now.
    connections_open,
    /// Connections accepted.
    connections_accepted,
    /// Connections closed at once because there were too many.
    connections_refused,
    /// Connections that did not finish TLS or the preface in time, or not by the rules.
    handshakes_failed,
    /// Connections closed because they were idle for too long.
    connections_idle,
    /// Connections closed because the peer did not take what it had asked for.
    connections_stalled,
    /// Connections closed because headers did not arrive in time.
    connections_slow_headers,
    /// Connections closed for too many PING, SETTINGS, PRIORITY, GOAWAY, WINDOW_UPDATE or unknown frames, or
    /// acknowledgements of what was never sent.
    connections_flooding,
    /// Connections closed because the peer reset too many streams.
    connections_resetting,
    /// Connections closed for a violation of HTTP/2 or of a limit of the engine (CONTINUATION floods, floods
    /// of small DATA frames, header lists far beyond the limit).
    connections_faulty,
    /// Streams refused before they became requests: too many at once, or headers that are malformed or far
    /// too large.
    streams_refused,
    /// Requests whose headers arrived.
    requests,
    /// Requests answered 429 because a connection sent too many.
    requests_over_rate,
    /// Requests answered 431.
    headers_too_large,
    /// Requests answered 400 because Host and :authority do not name the same.
    requests_ambiguous,
    /// Requests refused because the peer does not take its answers.
    requests_refused_untaken,
    /// Answers given up because the peer did not take them.
    answers_not_taken,
    /// Requests answered 413.
    bodies_too_large,
    /// Requests whose body did not arrive in time.
    bodies_too_slow,
    /// Requests the peer gave up.
    requests_abandoned,
    /// Bytes read.
    bytes_in,
    /// Bytes written.
    bytes_out,
}

/// Adds one; the worker that owns the counter is the only writer.
pub(crate) fn count(counter: &AtomicU64) {
    add(counter, 1);
}

/// Adds `n`, as [`count`].
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    // A load and a store cost a tenth of an atomic addition, and nobody else writes.
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}

/// Takes one away, as [`count`].
pub(crate) fn uncount(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_sub(1), Ordering::Relaxed);
}
