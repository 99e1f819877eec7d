//! Why a message is not delivered.

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
