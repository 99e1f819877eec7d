//! The alarms of a router, by the numbers of the vendor's guides.

use telemetry::{AlarmKind, Severity};

macro_rules! alarms {
    ($($const:ident = $number:literal $name:literal $severity:ident: $text:literal, $advice:literal;)*) => {
        $(pub(super) const $const: AlarmKind = AlarmKind {
            number: $number,
            name: $name,
            severity: Severity::$severity,
            text: $text,
            advice: $advice,
        };)*

        /// Every alarm that a router can raise.
        pub const ALARMS: &[AlarmKind] = &[$($const),*];
    };
}

alarms! {
    STASIS = 5005 "IPFE Backend in Stasis" Minor: "A congested message processor takes no new connections and keeps those it has.",
        "Add message processors or lower the load; see alarm 22200.";
    MESSAGE_SIZE = 10133 "RxMsgSizeAvg" Minor: "Messages are larger on average than the router was planned for.",
        "Find the peer that sends them (`signalbox dsr peers`), and raise `indicators.messageSize` when they are expected.";
    MP_CPU = 10204 "MpCPUAvg" Minor: "A message processor is busier than its planning allows.",
        "Add a message processor (`workers`), or spread the connections over several.";
    CONNECTION_MPS = 10500 "RxConnAvgMPS" Minor: "The rate of a connection is near its maximum.",
        "Configure additional connections of the peer, or raise its `ingress.maximum`.";
    HOLD = 10502 "Transaction Hold Time" Minor: "Requests are pending for long before they are answered.",
        "Check the load of the servers and the network to them.";
    TRAFFIC = 10501 "MP Message Rate" Minor: "A message processor handles much of what its profile is planned for.",
        "Add a message processor, or choose the profile that fits this machine (`overload.profile`).";
    POOL = 10503 "PDU Message Pool" Minor: "Pending requests take much of the memory of their pool.",
        "Find the server that does not answer (`signalbox dsr peers`, column pending), or raise `limits.pendingBytes`.";
    TRACE = 10517 "Trace Not Written" Minor: "The files of a trace point cannot be written; they stay as they are.",
        "Make room in `trace.directory`, or correct its permissions. A point with several `files` begins new ones within a minute; one with a single file after a restart.";
    REFUSED = 10518 "Connection Refused" Minor: "A connection was refused in the last five minutes: a peer that is not configured, a second one under the same name, or one that is configured differently.",
        "Compare Origin-Host, address and applications of the peer with `peers` and `dynamicPeers`; `signalbox_dsr_connection_incidents_total` counts by reason.";
    BAD_ANSWERS = 10519 "Answer Of Another Request" Minor: "A peer sends answers whose Command-Code, Application-Id or End-to-End Identifier is not that of the request; they are dropped.",
        "Report it to the vendor of the peer: RFC 6733 §6.2 has the answer copy the three from the request. The clients get the answer of `exceptions.noAnswer`.";
    PROCESSOR_STATE = 19816 "Communication Agent Connection State Changed" Info: "Connections to database processors were made or lost in the last second.",
        "Where they were lost, check that the processor runs and is reachable (`fabr.processors`); the log has its address and the reason.";
    ROUTED_SERVICE = 19822 "Communication Agent Routed Service Congested" Major: "Full address resolution gets more requests in a second than `fabr.queriesPerSecond` permits, or than database processors answer.",
        "Add message processors, or raise `fabr.queriesPerSecond`; `fabr.onDatabaseCongested` says what becomes of the requests.";
    FAILURE_RATE = 19825 "Communication Agent Transaction Failure Rate" Minor: "Queries of full address resolution met damaged entries of the file of numbers, or no database processor answered them.",
        "`signalbox numbers explain FILE` names the damaged blocks; import the file again from its source. With `fabr.processors` see alarms 19816 and 19831.";
    PROCESSOR_CONGESTED = 19826 "Communication Agent Connection Congested" Major: "Database processors answer queries as congested.",
        "Add a database processor to `fabr.processors`, or raise `dp.queriesPerSecond`; `fabr.onDatabaseCongested` says what becomes of the requests.";
    SERVICE_STATE = 19831 "Communication Agent Service Operational State Changed" Info: "Message processors have no database processor that answers; `fabr.onDatabaseError` says what becomes of the requests.",
        "Check that the processors of `fabr.processors` run and are reachable, and that they have data (`signalbox dp data`).";
    PEER = 22051 "Peer Unavailable" Critical: "All connections to the peer are down.",
        "Check that the peer runs and is reachable; `signalbox dsr peers` shows the state of each connection.";
    CONNECTION = 22101 "Connection Unavailable" Major: "The connection cannot be used for requests and answers.",
        "Check address, port, Origin-Host and applications of the peer; the log has the reason.";
    CONGESTED = 22200 "MP CPU Congested" Major: "The Diameter process is near or over its engineered capacity.",
        "Lower the load, or add message processors; what is discarded is set by `overload.levels`.";
    DISCARDED = 22215 "Ingress Message Discarded: DA MP Overload Control" Major: "Requests are discarded because of CPU congestion or the danger of it.",
        "Lower the load, or add message processors; requests of priority 0 and 1 still pass.";
    SYSTEM_CPU = 31052 "CPU_UtilPct_Average" Minor: "The machine's processors are busier than planned.",
        "Find the process that uses them (`top`); move other work away, or raise `indicators.systemCpu`.";
    SYSTEM_RAM = 31056 "RAM_UtilPct_Average" Minor: "The machine's memory is fuller than planned.",
        "Find the process that uses it (`top`); move other work away, or raise `indicators.systemMemory`.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarms_have_numbers_of_their_own() {
        let mut numbers: Vec<u32> = ALARMS.iter().map(|alarm| alarm.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), ALARMS.len());
    }
}
