//! What can happen in an address resolution.

telemetry::events! {
    "dsr";
    /// A request met address resolution.
    Resolved = "resolutions";
    /// Address resolution found a destination for a request.
    ResolvedTo = "resolutions_found";
}
