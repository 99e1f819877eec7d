//! Error codes, and why connections and streams end.

use std::fmt;

/// An error code (RFC 9113 §7). Codes that are not known are kept as they came.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reason(u32);

macro_rules! reasons {
    ($($name:ident $code:literal)+) => {
        impl Reason {
            $(
                #[doc = concat!("`", stringify!($name), "`")]
                pub const $name: Self = Self($code);
            )+

            /// The name of a code of RFC 9113 §7.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($code => Some(stringify!($name)),)+
                    _ => None,
                }
            }
        }
    };
}

reasons! {
    NO_ERROR 0
    PROTOCOL_ERROR 1
    INTERNAL_ERROR 2
    FLOW_CONTROL_ERROR 3
    SETTINGS_TIMEOUT 4
    STREAM_CLOSED 5
    FRAME_SIZE_ERROR 6
    REFUSED_STREAM 7
    CANCEL 8
    COMPRESSION_ERROR 9
    CONNECT_ERROR 10
    ENHANCE_YOUR_CALM 11
    INADEQUATE_SECURITY 12
    HTTP_1_1_REQUIRED 13
}

impl Reason {
    /// The code on the wire.
    #[must_use]
    pub const fn code(self) -> u32 {
        self.0
    }
}

impl From<u32> for Reason {
    fn from(code: u32) -> Self {
        Self(code)
    }
}

impl From<Reason> for u32 {
    fn from(reason: Reason) -> Self {
        reason.0
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "error code {}", self.0),
        }
    }
}

impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a peer sent too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flood {
    /// PING, SETTINGS, PRIORITY, GOAWAY and unknown frames, acknowledgements of what was never sent, and header
    /// blocks without a request.
    Control,
    /// RST_STREAM (rapid reset, CVE-2023-44487).
    Resets,
    /// WINDOW_UPDATE beyond what DATA and streams give reason for.
    WindowUpdates,
    /// DATA frames without a byte that do not end the stream.
    EmptyData,
    /// A header block in too many frames, or longer than any list of the permitted size.
    HeaderBlock,
    /// Stream errors that made us reset streams (CVE-2025-8671).
    StreamErrors,
}

impl Flood {
    /// The flood in words, for logs and problem details.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Control => "too many control frames",
            Self::Resets => "too many resets of streams",
            Self::WindowUpdates => "too many updates of windows",
            Self::EmptyData => "too many DATA frames without data",
            Self::HeaderBlock => "a header block in too many frames or too many bytes",
            Self::StreamErrors => "too many stream errors",
        }
    }
}

/// Why this side ends a connection: a connection error (RFC 9113 §5.4.1). The GOAWAY is in the output already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {detail}")]
pub struct Fault {
    /// The code in the GOAWAY.
    pub reason: Reason,
    /// The violated rule.
    pub detail: &'static str,
    /// The limit that was passed, where it was one.
    pub flood: Option<Flood>,
    /// The peer does not speak HTTP/2: its first bytes are not the preface (RFC 9113 §3.4).
    pub is_preface: bool,
}

/// Why no stream was opened for a request. Nothing of the request was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOpened {
    /// As many streams are open as the peer or this side permits.
    #[error("no room for another stream")]
    NoRoom,
    /// The connection takes no more requests: GOAWAY was sent or received, or the stream identifiers are used up.
    #[error("the connection takes no more requests")]
    Closing,
}
