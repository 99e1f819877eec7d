//! Why a message is not delivered, what the look-up of its number led to, what became of calls, what is said of equipment, what
//! became of segments, how transactions found their node.

/// An enumeration whose members are labels of a metric.
macro_rules! labels {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $label:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// All of them, in the order of their numbers.
            pub(crate) const ALL: &[Self] = &[$(Self::$variant),*];

            pub(crate) const fn label(self) -> &'static str {
                match self { $(Self::$variant => $label,)* }
            }
        }
    };
}

labels! {
    /// The label of a metric, and what `why` says.
    Cause {
        PointCode = "point_code",
        Loop = "loop",
        Screened = "screened",
        NoRoute = "no_route",
        Unreachable = "unreachable",
        UserPart = "user_part",
        Syntax = "syntax",
        Connection = "connection",
        NoTranslation = "no_translation",
        HopCounter = "hop_counter",
        Subsystem = "subsystem",
        Encoding = "encoding",
        Congested = "congested",
        Recovery = "recovery",
        Association = "association",
    }
}

labels! {
    /// What the look-up of a number led to: the label of a metric.
    NumberOutcome {
        Home = "home",
        Answered = "answered",
        Relayed = "relayed",
        Unlisted = "unlisted",
        Unconditioned = "unconditioned",
        Circular = "circular",
        Damaged = "damaged",
    }
}

labels! {
    /// A service of calls: the label of a metric.
    CallService {
        /// InitialDP to this STP.
        Query = "query",
        /// An IAM that passes through.
        Interception = "interception",
    }
}

labels! {
    /// What became of a call: the label of a metric.
    CallOutcome {
        Routed = "routed",
        Home = "home",
        Unlisted = "unlisted",
        Unconditioned = "unconditioned",
        Circular = "circular",
        Released = "released",
        Damaged = "damaged",
        Prepaid = "prepaid",
        Refused = "refused",
        Queried = "queried",
        Oversize = "oversize",
    }
}

labels! {
    /// What became of segments to a subsystem of this node: the label of a metric.
    Segmented {
        Whole = "whole",
        Sequence = "sequence",
        Full = "full",
        Late = "late",
    }
}

labels! {
    /// How a message to a group that shares by transaction has found its node: the label of a metric.
    Shared {
        New = "new",
        Kept = "kept",
        Moved = "moved",
        Unknown = "unknown",
        Other = "other",
    }
}

labels! {
    /// What the lists of equipment say of an IMEI: the label of a metric. The first three have the numbers of EquipmentStatus
    /// (TS 29.002 §17.7.1).
    Equipment {
        White = "white",
        Black = "black",
        Grey = "grey",
        Unknown = "unknown",
        Unreadable = "unreadable",
    }
}
