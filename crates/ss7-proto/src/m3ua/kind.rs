//! Classes and types of messages, and which parameters each has (RFC 4666 §3.1, §3.3 to §3.8).

use super::parameter::Tag;
use crate::numbered::numbered;

numbered! {
    /// A message class (RFC 4666 §3.1.2).
    Class: u8 {
        /// Management.
        Mgmt = 0;
        /// Transfer.
        Transfer = 1;
        /// SS7 signalling network management.
        Ssnm = 2;
        /// ASP state maintenance.
        Aspsm = 3;
        /// ASP traffic maintenance.
        Asptm = 4;
        /// Routing key management.
        Rkm = 9;
    }
}

macro_rules! message_types {
    ($($(#[$doc:meta])* $name:ident = $class:ident $number:literal $text:literal,
        needs [$($need:ident),*], may [$($may:ident),*];)*) => {
        /// A message type (RFC 4666 §3.1.3).
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum MessageType {
            $($(#[$doc])* $name,)*
        }

        impl MessageType {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The type with this number in a class.
            #[inline]
            #[must_use]
            pub const fn from_numbers(class: Class, number: u8) -> Option<Self> {
                match (class, number) {
                    $((Class::$class, $number) => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The class.
            #[must_use]
            pub const fn class(self) -> Class {
                match self { $(Self::$name => Class::$class,)* }
            }

            /// The number within the class.
            #[must_use]
            pub const fn number(self) -> u8 {
                match self { $(Self::$name => $number,)* }
            }

            /// The abbreviation of the standard.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Parameters that the message needs.
            #[must_use]
            pub const fn mandatory(self) -> &'static [Tag] {
                match self { $(Self::$name => &[$(Tag::$need),*],)* }
            }

            /// Parameters that it may have besides.
            #[must_use]
            pub const fn optional(self) -> &'static [Tag] {
                match self { $(Self::$name => &[$(Tag::$may),*],)* }
            }
        }
    };
}

message_types! {
    /// Error.
    Err = Mgmt 0 "ERR", needs [ERROR_CODE], may [ROUTING_CONTEXT, NETWORK_APPEARANCE, AFFECTED_POINT_CODE, DIAGNOSTIC_INFORMATION];
    /// Notify.
    Ntfy = Mgmt 1 "NTFY", needs [STATUS], may [ASP_IDENTIFIER, ROUTING_CONTEXT];
    /// Payload data.
    Data = Transfer 1 "DATA", needs [PROTOCOL_DATA], may [NETWORK_APPEARANCE, ROUTING_CONTEXT, CORRELATION_ID];
    /// Destination unavailable.
    Duna = Ssnm 1 "DUNA", needs [AFFECTED_POINT_CODE], may [NETWORK_APPEARANCE, ROUTING_CONTEXT];
    /// Destination available.
    Dava = Ssnm 2 "DAVA", needs [AFFECTED_POINT_CODE], may [NETWORK_APPEARANCE, ROUTING_CONTEXT];
    /// Destination state audit.
    Daud = Ssnm 3 "DAUD", needs [AFFECTED_POINT_CODE], may [NETWORK_APPEARANCE, ROUTING_CONTEXT];
    /// Signalling congestion.
    Scon = Ssnm 4 "SCON", needs [AFFECTED_POINT_CODE], may [NETWORK_APPEARANCE, ROUTING_CONTEXT, CONCERNED_DESTINATION, CONGESTION_INDICATIONS];
    /// Destination user part unavailable.
    Dupu = Ssnm 5 "DUPU", needs [AFFECTED_POINT_CODE, USER_CAUSE], may [NETWORK_APPEARANCE, ROUTING_CONTEXT];
    /// Destination restricted.
    Drst = Ssnm 6 "DRST", needs [AFFECTED_POINT_CODE], may [NETWORK_APPEARANCE, ROUTING_CONTEXT];
    /// ASP up.
    Aspup = Aspsm 1 "ASPUP", needs [], may [ASP_IDENTIFIER];
    /// ASP down.
    Aspdn = Aspsm 2 "ASPDN", needs [], may [];
    /// Heartbeat.
    Beat = Aspsm 3 "BEAT", needs [], may [HEARTBEAT_DATA];
    /// ASP up acknowledgement.
    AspupAck = Aspsm 4 "ASPUP ACK", needs [], may [ASP_IDENTIFIER];
    /// ASP down acknowledgement.
    AspdnAck = Aspsm 5 "ASPDN ACK", needs [], may [];
    /// Heartbeat acknowledgement.
    BeatAck = Aspsm 6 "BEAT ACK", needs [], may [HEARTBEAT_DATA];
    /// ASP active.
    Aspac = Asptm 1 "ASPAC", needs [], may [TRAFFIC_MODE_TYPE, ROUTING_CONTEXT];
    /// ASP inactive.
    Aspia = Asptm 2 "ASPIA", needs [], may [ROUTING_CONTEXT];
    /// ASP active acknowledgement.
    AspacAck = Asptm 3 "ASPAC ACK", needs [], may [TRAFFIC_MODE_TYPE, ROUTING_CONTEXT];
    /// ASP inactive acknowledgement.
    AspiaAck = Asptm 4 "ASPIA ACK", needs [], may [ROUTING_CONTEXT];
    /// Registration request.
    RegReq = Rkm 1 "REG REQ", needs [ROUTING_KEY], may [];
    /// Registration response.
    RegRsp = Rkm 2 "REG RSP", needs [REGISTRATION_RESULT], may [];
    /// Deregistration request.
    DeregReq = Rkm 3 "DEREG REQ", needs [ROUTING_CONTEXT], may [];
    /// Deregistration response.
    DeregRsp = Rkm 4 "DEREG RSP", needs [DEREGISTRATION_RESULT], may [];
}

impl MessageType {
    /// Whether a parameter may stand in the message.
    #[must_use]
    pub fn allows(self, tag: Tag) -> bool {
        tag == Tag::INFO_STRING || self.mandatory().contains(&tag) || self.optional().contains(&tag)
    }

    /// Whether a stream may carry the message (RFC 4666 §1.4.7): DATA may not use stream 0, messages of ASPSM, MGMT and
    /// RKM other than BEAT, BEAT ACK and NTFY use stream 0.
    #[must_use]
    pub const fn may_use_stream(self, stream: u16) -> bool {
        match (self, self.class()) {
            (Self::Data, _) => stream != 0,
            (Self::Beat | Self::BeatAck | Self::Ntfy, _) => true,
            (_, Class::Aspsm | Class::Mgmt | Class::Rkm) => stream == 0,
            _ => true,
        }
    }
}
