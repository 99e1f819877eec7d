//! What a connection permits its peer, and what it spends on it.

/// Limits of a connection, in plain numbers. Where a rate is 0, it is not limited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Streams open at once: the peer's if this side is the server (more are refused with REFUSED_STREAM), this side's
    /// if it is the client (the peer's SETTINGS_MAX_CONCURRENT_STREAMS may lower it).
    pub max_concurrent_streams: u32,
    /// Size of the header list of a message as RFC 9113 §6.5.2 counts it. Advertised twice as large: what is somewhat
    /// too large is answered 431 by the application.
    pub max_header_list: usize,
    /// Header fields of a message, pseudo-header fields among them.
    pub max_header_fields: usize,
    /// Bytes of the body of a message. The window of a stream is one byte more, so that the excess shows.
    pub max_body: usize,
    /// Bytes of bodies that are still arriving, all streams together: the window of the connection; never less than
    /// that of a stream, nor than the 65,535 bytes of RFC 9113 §6.9.2.
    pub max_arriving: usize,
    /// Payload of a frame that the peer may send, 16,384 to 16,777,215 bytes (SETTINGS_MAX_FRAME_SIZE).
    pub max_frame_size: u32,
    /// Bytes of the table that the peer's encoder may use (SETTINGS_HEADER_TABLE_SIZE).
    pub header_table_size: u32,
    /// Bytes that [`Connection::output`](crate::Connection::output) fills at most from bodies.
    pub max_output: usize,
    /// PING, SETTINGS, PRIORITY, GOAWAY and unknown frames per second, acknowledgements of what was never sent, and
    /// header blocks without a request.
    pub max_control_rate: u32,
    /// RST_STREAM frames per second from a client. A server may reset each request once.
    pub max_reset_rate: u32,
    /// WINDOW_UPDATE frames per second beyond two for each stream, two for each DATA frame sent and one for each KiB
    /// of it.
    pub max_window_update_rate: u32,
    /// Streams that may be reset for errors of the peer while the connection lasts.
    pub max_error_resets: u32,
    /// Frames that one call of [`Connection::receive`](crate::Connection::receive) handles at most.
    pub max_frames_per_receive: u32,
}

/// The limits of a server that its settings do not change.
impl Default for Config {
    fn default() -> Self {
        Self {
            max_concurrent_streams: 4_096,
            max_header_list: 64 * 1_024,
            max_header_fields: 256,
            max_body: 1_024 * 1_024,
            max_arriving: 16 * 1_024 * 1_024,
            max_frame_size: 16_384,
            header_table_size: 4_096,
            max_output: 256 * 1_024,
            max_control_rate: 100,
            max_reset_rate: 1_000,
            max_window_update_rate: 1_000,
            max_error_resets: 1_024,
            max_frames_per_receive: 1_024,
        }
    }
}
