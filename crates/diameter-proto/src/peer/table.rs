//! The peer state machine as RFC 6733 §5.6 prints it: state, event, actions, next state.

use std::fmt;

/// The two possible connections with a peer: the one that this node opened or the one that the peer opened.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// This node opened it: `I-` in the table.
    Initiator,
    /// The peer opened it: `R-` in the table.
    Responder,
}

macro_rules! named {
    ($(#[$doc:meta])* $enum:ident { $($(#[$variant_doc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $enum { $($(#[$variant_doc])* $variant,)* }

        impl $enum {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The standard's name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }

        impl fmt::Display for $enum {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

named! {
    /// States.
    State {
        /// No connection.
        Closed = "Closed",
        /// This node is connecting.
        WaitConnAck = "Wait-Conn-Ack",
        /// A CER is sent.
        WaitICea = "Wait-I-CEA",
        /// This node is connecting, and the peer has connected and sent a CER.
        WaitConnAckElect = "Wait-Conn-Ack/Elect",
        /// A CER is sent, and the peer's CER has arrived on another connection.
        WaitReturns = "Wait-Returns",
        /// Open on the connection the peer opened.
        ROpen = "R-Open",
        /// Open on the connection that this node opened.
        IOpen = "I-Open",
        /// A DPR was sent or answered; the connection is about to end.
        Closing = "Closing",
    }
}

named! {
    /// Events.
    Event {
        /// A connection is wanted.
        Start = "Start",
        /// The peer connected to us and sent a CER.
        RConnCer = "R-Conn-CER",
        /// Our connection attempt succeeded.
        IRcvConnAck = "I-Rcv-Conn-Ack",
        /// Our connection attempt failed.
        IRcvConnNack = "I-Rcv-Conn-Nack",
        /// A timer ended.
        Timeout = "Timeout",
        /// A CEA came on our connection.
        IRcvCea = "I-Rcv-CEA",
        /// Another message came on our connection where a CEA was due.
        IRcvNonCea = "I-Rcv-Non-CEA",
        /// Our connection broke.
        IPeerDisc = "I-Peer-Disc",
        /// The peer's connection broke.
        RPeerDisc = "R-Peer-Disc",
        /// The peer's connection is the one to keep.
        WinElection = "Win-Election",
        /// A message is to be sent.
        SendMessage = "Send-Message",
        /// A message of an application came on our connection.
        IRcvMessage = "I-Rcv-Message",
        /// A message of an application came on the peer's connection.
        RRcvMessage = "R-Rcv-Message",
        /// A DWR came on our connection.
        IRcvDwr = "I-Rcv-DWR",
        /// A DWR came on the peer's connection.
        RRcvDwr = "R-Rcv-DWR",
        /// A DWA came on our connection.
        IRcvDwa = "I-Rcv-DWA",
        /// A DWA came on the peer's connection.
        RRcvDwa = "R-Rcv-DWA",
        /// A DPR came on our connection.
        IRcvDpr = "I-Rcv-DPR",
        /// A DPR came on the peer's connection.
        RRcvDpr = "R-Rcv-DPR",
        /// A DPA came on our connection.
        IRcvDpa = "I-Rcv-DPA",
        /// A DPA came on the peer's connection.
        RRcvDpa = "R-Rcv-DPA",
        /// No connection is wanted any more.
        Stop = "Stop",
    }
}

named! {
    /// Actions.
    Action {
        /// Open a connection.
        ISndConnReq = "I-Snd-Conn-Req",
        /// Take the peer's connection as the responder's.
        RAccept = "R-Accept",
        /// Refuse the peer's connection.
        RReject = "R-Reject",
        /// Check the CER.
        ProcessCer = "Process-CER",
        /// Answer the CER.
        RSndCea = "R-Snd-CEA",
        /// Send a CER.
        ISndCer = "I-Snd-CER",
        /// Check the CEA.
        ProcessCea = "Process-CEA",
        /// Abandon the attempt.
        Cleanup = "Cleanup",
        /// End both connections.
        Error = "Error",
        /// Compare the names.
        Elect = "Elect",
        /// End our connection.
        IDisc = "I-Disc",
        /// End the peer's connection.
        RDisc = "R-Disc",
        /// Send a message on our connection.
        ISndMessage = "I-Snd-Message",
        /// Send a message on the peer's connection.
        RSndMessage = "R-Snd-Message",
        /// Deliver a message.
        Process = "Process",
        /// Process a DWR.
        ProcessDwr = "Process-DWR",
        /// Answer a DWR on our connection.
        ISndDwa = "I-Snd-DWA",
        /// Answer a DWR on the peer's connection.
        RSndDwa = "R-Snd-DWA",
        /// Process a DWA.
        ProcessDwa = "Process-DWA",
        /// Send a DPR on our connection.
        ISndDpr = "I-Snd-DPR",
        /// Send a DPR on the peer's connection.
        RSndDpr = "R-Snd-DPR",
        /// Answer a DPR on our connection.
        ISndDpa = "I-Snd-DPA",
        /// Answer a DPR on the peer's connection.
        RSndDpa = "R-Snd-DPA",
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// In this state …
    pub state: State,
    /// … when this happens …
    pub event: Event,
    /// … do this …
    pub actions: &'static [Action],
    /// … and be in this state.
    pub next: State,
}

macro_rules! rows {
    ($($state:ident: $($event:ident => [$($action:ident),*] $next:ident,)*;)*) => {
        &[$($(Row {
            state: State::$state,
            event: Event::$event,
            actions: &[$(Action::$action),*],
            next: State::$next,
        },)*)*]
    };
}

/// The table of RFC 6733 §5.6.
pub const ROWS: &[Row] = rows! {
    Closed:
        Start => [ISndConnReq] WaitConnAck,
        RConnCer => [RAccept, ProcessCer, RSndCea] ROpen,;
    WaitConnAck:
        IRcvConnAck => [ISndCer] WaitICea,
        IRcvConnNack => [Cleanup] Closed,
        RConnCer => [RAccept, ProcessCer] WaitConnAckElect,
        Timeout => [Error] Closed,;
    WaitICea:
        IRcvCea => [ProcessCea] IOpen,
        RConnCer => [RAccept, ProcessCer, Elect] WaitReturns,
        IPeerDisc => [IDisc] Closed,
        IRcvNonCea => [Error] Closed,
        Timeout => [Error] Closed,;
    WaitConnAckElect:
        IRcvConnAck => [ISndCer, Elect] WaitReturns,
        IRcvConnNack => [RSndCea] ROpen,
        RPeerDisc => [RDisc] WaitConnAck,
        RConnCer => [RReject] WaitConnAckElect,
        Timeout => [Error] Closed,;
    WaitReturns:
        WinElection => [IDisc, RSndCea] ROpen,
        IPeerDisc => [IDisc, RSndCea] ROpen,
        IRcvCea => [RDisc] IOpen,
        RPeerDisc => [RDisc] WaitICea,
        RConnCer => [RReject] WaitReturns,
        Timeout => [Error] Closed,;
    ROpen:
        SendMessage => [RSndMessage] ROpen,
        RRcvMessage => [Process] ROpen,
        RRcvDwr => [ProcessDwr, RSndDwa] ROpen,
        RRcvDwa => [ProcessDwa] ROpen,
        RConnCer => [RReject] ROpen,
        Stop => [RSndDpr] Closing,
        RRcvDpr => [RSndDpa] Closing,
        RPeerDisc => [RDisc] Closed,;
    IOpen:
        SendMessage => [ISndMessage] IOpen,
        IRcvMessage => [Process] IOpen,
        IRcvDwr => [ProcessDwr, ISndDwa] IOpen,
        IRcvDwa => [ProcessDwa] IOpen,
        RConnCer => [RReject] IOpen,
        Stop => [ISndDpr] Closing,
        IRcvDpr => [ISndDpa] Closing,
        IPeerDisc => [IDisc] Closed,;
    Closing:
        IRcvDpa => [IDisc] Closed,
        RRcvDpa => [RDisc] Closed,
        Timeout => [Error] Closed,
        IPeerDisc => [IDisc] Closed,
        RPeerDisc => [RDisc] Closed,;
};

/// Rows for cases on which the RFC is silent.
pub const ROWS_BEYOND: &[Row] = rows! {
    // The function may stop at any time.
    Closed: Stop => [Cleanup] Closed,;
    WaitConnAck: Stop => [Error] Closed,;
    WaitICea: Stop => [Error] Closed,;
    WaitConnAckElect: Stop => [Error] Closed,;
    // A CEA is due; the election continues without other messages.
    WaitReturns:
        Stop => [Error] Closed,
        IRcvNonCea => [IDisc, RSndCea] ROpen,;
    // The watchdog found the peer unreachable.
    ROpen: Timeout => [Error] Closed,;
    IOpen: Timeout => [Error] Closed,;
    // Until the connection ends: a DPR that crossed ours is answered, messages in flight are delivered, watchdogs are
    // answered, a new connection has to wait.
    Closing:
        IRcvDpr => [ISndDpa] Closing,
        RRcvDpr => [RSndDpa] Closing,
        IRcvMessage => [Process] Closing,
        RRcvMessage => [Process] Closing,
        IRcvDwr => [ISndDwa] Closing,
        RRcvDwr => [RSndDwa] Closing,
        IRcvDwa => [] Closing,
        RRcvDwa => [] Closing,
        RConnCer => [RReject] Closing,
        Stop => [] Closing,;
};

/// The row for an event in a state. None when the event has no meaning there.
#[must_use]
pub fn row(state: State, event: Event) -> Option<&'static Row> {
    ROWS.iter()
        .chain(ROWS_BEYOND)
        .find(|row| row.state == state && row.event == event)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_table_is_whole() {
        assert_eq!(ROWS.len(), 43, "RFC 6733 §5.6 has 43 rows");
        let mut seen = HashSet::new();
        for row in ROWS.iter().chain(ROWS_BEYOND) {
            assert!(
                seen.insert((row.state, row.event)),
                "{} {} twice",
                row.state,
                row.event
            );
        }
    }

    #[test]
    fn every_state_is_reached_and_left() {
        for &state in State::ALL {
            assert!(ROWS.iter().any(|row| row.next == state));
            assert!(
                ROWS.iter().any(|row| row.state == state && row.next != state),
                "{state}"
            );
            assert!(row(state, Event::Stop).is_some(), "{state} can be stopped");
        }
        for &event in Event::ALL {
            assert!(ROWS.iter().any(|row| row.event == event), "{event}");
        }
        for action in Action::ALL {
            assert!(ROWS.iter().any(|row| row.actions.contains(action)), "{action}");
        }
    }
}
