//! What can happen in a full address resolution.

telemetry::events! {
    "dsr";
    /// A request met full address resolution.
    Requests = "subscriber_resolutions";
    /// Full address resolution asked its database about a request (measurement 4170, DpQueriesReceived).
    Queries = "subscriber_queries";
    /// Full address resolution knew the address of a request.
    Exact = "subscriber_resolutions_exact";
    /// A prefix, a range or a realm held the address of a request that is not known itself.
    Ranged = "subscriber_resolutions_ranged";
    /// A request with an address that is not known went to the default.
    Defaulted = "subscriber_resolutions_default";
    /// No lookup of full address resolution applied to a request.
    UnknownCommand = "subscriber_unknown_commands";
    /// A request had no valid address.
    NoValidAddress = "subscriber_addresses_invalid";
    /// No address of a request was known.
    NoMatch = "subscriber_unmatched";
    /// The entry of an address was damaged, or no database processor answered.
    DatabaseError = "subscriber_database_errors";
    /// Requests beyond the queries that a worker makes in a second, or that a database processor answers.
    DatabaseCongested = "subscriber_database_congested";
    /// A database processor answers on a connection.
    ProcessorConnected = "subscriber_processor_connections";
    /// The connection to a database processor that had answered was lost, or the processor was silent.
    ProcessorLost = "subscriber_processor_losses";
    /// A database processor answered a query as congested.
    ProcessorCongested = "subscriber_processor_congested_answers";
    /// A query was sent to another database processor: the first one was lost, silent or without data.
    Repeated = "subscriber_queries_repeated";
    /// The last database processor of a worker was lost, or a worker has begun without one.
    ServiceLost = "subscriber_service_losses";
    /// A database processor of a worker without one answers again.
    ServiceRestored = "subscriber_service_recoveries";
}
