//! Counters of a server, written by one worker and readable from any thread.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! stats {
    ($($side:literal { $($(#[doc = $doc:literal])+ $name:ident),+ $(,)? })+) => {
        /// Counts of one worker's server, and of the clients beside it. Written by that worker only, so the
        /// counters are never contended.
        #[derive(Debug, Default)]
        pub struct ServerStats {
            $($(pub(crate) $name: AtomicU64,)+)+
        }

        /// [`ServerStats`] at one moment.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct StatsSnapshot {
            $($($(#[doc = $doc])+ pub $name: u64,)+)+
        }

        impl StatsSnapshot {
            /// Everything that only grows: name of the metric, what it counts in a sentence, and the count.
            #[must_use]
            pub fn counters(&self) -> Vec<(&'static str, &'static str, u64)> {
                let all = [$($((
                    concat!("signalbox_sbi_", $side, "_", stringify!($name), "_total"),
                    concat!($($doc),+).trim_start(),
                    self.$name,
                )),+),+];
                let levels = [
                    "signalbox_sbi_server_connections_open_total",
                    "signalbox_sbi_server_memory_held_total",
                ];
                all.into_iter().filter(|(name, _, _)| !levels.contains(name)).collect()
            }
        }

        impl ServerStats {
            /// The counts now.
            #[must_use]
            pub fn snapshot(&self) -> StatsSnapshot {
                StatsSnapshot { $($($name: self.$name.load(Ordering::Relaxed),)+)+ }
            }
        }
    };
}

stats! {
    "server" {
        /// Connections open now.
        connections_open,
        /// Bytes held now for the connections of this worker, its clients' included.
        memory_held,
        /// Connections accepted.
        connections_accepted,
        /// Connections closed at once because there were too many and none of them was idle.
        connections_refused,
        /// Connections closed at once because there were too many from the same address.
        connections_refused_address,
        /// Idle connections closed because new connections needed their slots.
        connections_displaced,
        /// Connections closed before they had finished TLS and the preface, because there were too many such.
        handshakes_displaced,
        /// Connections that did not finish TLS or the preface in time, or not by the rules.
        handshakes_failed,
        /// Connections that spoke HTTP/1 to an interface of HTTP/2 alone, and were answered 426.
        connections_http1,
        /// Connections closed because they were idle for too long.
        connections_idle,
        /// Connections closed because the peer did not read its answers.
        connections_stalled,
        /// Connections closed because headers did not arrive in time.
        connections_slow_headers,
        /// Connections closed for too many PING, SETTINGS, PRIORITY, GOAWAY, WINDOW_UPDATE or unknown frames, or
        /// acknowledgements of what was never sent.
        connections_flooding,
        /// Connections closed because the peer reset too many streams.
        connections_resetting,
        /// Connections closed because they held most when all connections of the worker together held more than
        /// maxMemory.
        connections_greedy,
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
        /// Requests refused because the peer does not read its answers.
        requests_refused_untaken,
        /// Requests refused because their connection held more memory than was still free.
        requests_refused_memory,
        /// Requests refused because too many requests of their connection were pending for their bodies.
        requests_refused_unfinished,
        /// Answers given up because the peer did not read them.
        answers_not_taken,
        /// Requests answered 413.
        bodies_too_large,
        /// Requests whose body did not arrive in time.
        bodies_too_slow,
        /// Requests that the peer cancelled.
        requests_abandoned,
        /// Requests whose handling panicked: a defect of the function. Their streams were reset.
        requests_panicked,
        /// Connections closed because their handling panicked: a defect of the function.
        connections_panicked,
        /// Bytes read.
        bytes_in,
        /// Bytes written.
        bytes_out,
    }
    "client" {
        /// Connections to peers closed because the peer sent too many frames.
        peers_flooding,
        /// Connections to peers closed because they held most when all connections of the worker together held more
        /// than maxMemory.
        peers_greedy,
        /// Requests not sent because every connection of their origin was at maxRequestRate.
        requests_over_connection_rate,
    }
}

/// Adds one; the worker that owns the counter is the only writer.
pub(crate) fn count(counter: &AtomicU64) {
    add(counter, 1);
}

/// Adds `n`, as [`count`].
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    // A load and a store cost a tenth of an atomic addition, and there is no other writer.
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}

/// Takes one away, as [`count`].
pub(crate) fn uncount(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_sub(1), Ordering::Relaxed);
}

/// Sets what goes up and down, as [`count`].
pub(crate) fn set(level: &AtomicU64, value: u64) {
    level.store(value, Ordering::Relaxed);
}
