//! Why a message is not delivered, what the look-up of its number led to, what became of calls, what is said of equipment.

/// The label of a metric, and what `why` says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    PointCode,
    Loop,
    Screened,
    NoRoute,
    Unreachable,
    UserPart,
    Syntax,
    Connection,
    NoTranslation,
    HopCounter,
    Subsystem,
    Encoding,
    Congested,
    Recovery,
    Association,
}

impl Cause {
    pub(crate) const ALL: [Self; 15] = [
        Self::PointCode,
        Self::Loop,
        Self::Screened,
        Self::NoRoute,
        Self::Unreachable,
        Self::UserPart,
        Self::Syntax,
        Self::Connection,
        Self::NoTranslation,
        Self::HopCounter,
        Self::Subsystem,
        Self::Encoding,
        Self::Congested,
        Self::Recovery,
        Self::Association,
    ];

    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::PointCode => "point_code",
            Self::Loop => "loop",
            Self::Screened => "screened",
            Self::NoRoute => "no_route",
            Self::Unreachable => "unreachable",
            Self::UserPart => "user_part",
            Self::Syntax => "syntax",
            Self::Connection => "connection",
            Self::NoTranslation => "no_translation",
            Self::HopCounter => "hop_counter",
            Self::Subsystem => "subsystem",
            Self::Encoding => "encoding",
            Self::Congested => "congested",
            Self::Recovery => "recovery",
            Self::Association => "association",
        }
    }
}

/// What the look-up of a number led to: the label of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NumberOutcome {
    Home,
    Answered,
    Relayed,
    Unlisted,
    Unconditioned,
    Circular,
    Damaged,
}

impl NumberOutcome {
    pub(crate) const ALL: [Self; 7] = [
        Self::Home,
        Self::Answered,
        Self::Relayed,
        Self::Unlisted,
        Self::Unconditioned,
        Self::Circular,
        Self::Damaged,
    ];

    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Home => "home",
            Self::Answered => "answered",
            Self::Relayed => "relayed",
            Self::Unlisted => "unlisted",
            Self::Unconditioned => "unconditioned",
            Self::Circular => "circular",
            Self::Damaged => "damaged",
        }
    }
}

/// A service of calls: the label of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CallService {
    /// InitialDP to this STP.
    Query,
    /// An IAM that passes through.
    Interception,
}

impl CallService {
    pub(crate) const ALL: [Self; 2] = [Self::Query, Self::Interception];

    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Interception => "interception",
        }
    }
}

/// What became of a call: the label of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CallOutcome {
    Routed,
    Home,
    Unlisted,
    Unconditioned,
    Circular,
    Released,
    Damaged,
    Prepaid,
    Refused,
    Queried,
    Oversize,
}

impl CallOutcome {
    pub(crate) const ALL: [Self; 11] = [
        Self::Routed,
        Self::Home,
        Self::Unlisted,
        Self::Unconditioned,
        Self::Circular,
        Self::Released,
        Self::Damaged,
        Self::Prepaid,
        Self::Refused,
        Self::Queried,
        Self::Oversize,
    ];

    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Routed => "routed",
            Self::Home => "home",
            Self::Unlisted => "unlisted",
            Self::Unconditioned => "unconditioned",
            Self::Circular => "circular",
            Self::Released => "released",
            Self::Damaged => "damaged",
            Self::Prepaid => "prepaid",
            Self::Refused => "refused",
            Self::Queried => "queried",
            Self::Oversize => "oversize",
        }
    }
}

/// What the lists of equipment say of an IMEI: the label of a metric. The first three have the numbers of EquipmentStatus
/// (TS 29.002 §17.7.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Equipment {
    White,
    Black,
    Grey,
    Unknown,
    Unreadable,
}

impl Equipment {
    pub(crate) const ALL: [Self; 5] = [
        Self::White,
        Self::Black,
        Self::Grey,
        Self::Unknown,
        Self::Unreadable,
    ];

    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::White => "white",
            Self::Black => "black",
            Self::Grey => "grey",
            Self::Unknown => "unknown",
            Self::Unreadable => "unreadable",
        }
    }
}
