//! Types of messages and the parts of each (Q.713 §2.1, §4).

macro_rules! message_types {
    ($($(#[$doc:meta])* $name:ident = $number:literal $text:literal, $fixed:literal fixed, $variable:literal variable, $optional:literal;)*) => {
        /// A message type (Q.713 §2.1).
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub enum MessageType {
            $($(#[$doc])* $name = $number,)*
        }

        impl MessageType {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The type with this number.
            #[inline]
            #[must_use]
            pub const fn from_number(number: u8) -> Option<Self> {
                Some(match number { $($number => Self::$name,)* _ => return None })
            }

            /// The abbreviation of the standard.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Octets of the fixed part behind the type, number of variable parameters, whether a pointer to an optional
            /// part follows.
            #[inline]
            pub(super) const fn parts(self) -> (usize, usize, bool) {
                match self { $(Self::$name => ($fixed, $variable, $optional),)* }
            }
        }
    };
}

message_types! {
    /// Connection request.
    Cr = 0x01 "CR", 4 fixed, 1 variable, true;
    /// Connection confirm.
    Cc = 0x02 "CC", 7 fixed, 0 variable, true;
    /// Connection refused.
    Cref = 0x03 "CREF", 4 fixed, 0 variable, true;
    /// Released.
    Rlsd = 0x04 "RLSD", 7 fixed, 0 variable, true;
    /// Release complete.
    Rlc = 0x05 "RLC", 6 fixed, 0 variable, false;
    /// Data form 1.
    Dt1 = 0x06 "DT1", 4 fixed, 1 variable, false;
    /// Data form 2.
    Dt2 = 0x07 "DT2", 5 fixed, 1 variable, false;
    /// Data acknowledgement.
    Ak = 0x08 "AK", 5 fixed, 0 variable, false;
    /// Unitdata.
    Udt = 0x09 "UDT", 1 fixed, 3 variable, false;
    /// Unitdata service.
    Udts = 0x0a "UDTS", 1 fixed, 3 variable, false;
    /// Expedited data.
    Ed = 0x0b "ED", 3 fixed, 1 variable, false;
    /// Expedited data acknowledgement.
    Ea = 0x0c "EA", 3 fixed, 0 variable, false;
    /// Reset request.
    Rsr = 0x0d "RSR", 7 fixed, 0 variable, false;
    /// Reset confirm.
    Rsc = 0x0e "RSC", 6 fixed, 0 variable, false;
    /// Protocol data unit error.
    Err = 0x0f "ERR", 4 fixed, 0 variable, false;
    /// Inactivity test.
    It = 0x10 "IT", 10 fixed, 0 variable, false;
    /// Extended unitdata.
    Xudt = 0x11 "XUDT", 2 fixed, 3 variable, true;
    /// Extended unitdata service.
    Xudts = 0x12 "XUDTS", 2 fixed, 3 variable, true;
    /// Long unitdata.
    Ludt = 0x13 "LUDT", 2 fixed, 3 variable, true;
    /// Long unitdata service.
    Ludts = 0x14 "LUDTS", 2 fixed, 3 variable, true;
}

impl MessageType {
    /// Whether the message belongs to a connection.
    #[must_use]
    pub const fn is_connection_oriented(self) -> bool {
        !matches!(
            self,
            Self::Udt | Self::Udts | Self::Xudt | Self::Xudts | Self::Ludt | Self::Ludts
        )
    }

    /// Whether the message returns data that were not delivered.
    #[must_use]
    pub const fn is_service(self) -> bool {
        matches!(self, Self::Udts | Self::Xudts | Self::Ludts)
    }

    /// Whether pointers have two octets, and the length of the data too (Q.713 §4.18).
    #[inline]
    pub(super) const fn is_long(self) -> bool {
        matches!(self, Self::Ludt | Self::Ludts)
    }

    /// The message that returns this one.
    #[must_use]
    pub const fn service(self) -> Option<Self> {
        match self {
            Self::Udt => Some(Self::Udts),
            Self::Xudt => Some(Self::Xudts),
            Self::Ludt => Some(Self::Ludts),
            _ => None,
        }
    }

    /// Octets of fixed part at which references begin: destination, source.
    pub(super) const fn references(self) -> (bool, bool) {
        match self {
            Self::Cr => (false, true),
            Self::Cc | Self::Rlsd | Self::Rlc | Self::Rsr | Self::Rsc | Self::It => (true, true),
            Self::Cref | Self::Dt1 | Self::Dt2 | Self::Ak | Self::Ed | Self::Ea | Self::Err => (true, false),
            _ => (false, false),
        }
    }
}
