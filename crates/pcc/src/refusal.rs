//! Why the service of an AF is refused, on N5 and on Rx.

use std::fmt;

/// The causes of TS 29.514 table 5.7-1 and the Experimental-Result-Codes of TS 29.214 §5.5.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The service information is incomplete, inconsistent or wrong.
    InvalidServiceInformation,
    /// A flow description breaks the restrictions on filters.
    FilterRestrictions,
    /// The service is not allowed for the subscriber.
    RequestedServiceNotAuthorized,
    /// The service is not allowed now; another try later may succeed.
    RequestedServiceTemporarilyNotAuthorized,
    /// The session belongs to another AF session already.
    DuplicatedAfSession,
    /// The UE's session is unknown.
    SessionNotAvailable,
    /// The sponsor has no agreement with the operator.
    UnauthorizedSponsoredDataConnectivity,
    /// The UE may make emergency calls only.
    UnauthorizedNonEmergencySession,
    /// The access network cannot serve the request now.
    TemporaryNetworkFailure,
}

impl Cause {
    const ALL: [Self; 9] = [
        Self::InvalidServiceInformation,
        Self::FilterRestrictions,
        Self::RequestedServiceNotAuthorized,
        Self::RequestedServiceTemporarilyNotAuthorized,
        Self::DuplicatedAfSession,
        Self::SessionNotAvailable,
        Self::UnauthorizedSponsoredDataConnectivity,
        Self::UnauthorizedNonEmergencySession,
        Self::TemporaryNetworkFailure,
    ];

    /// The cause of a name of TS 29.514 table 5.7-1.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.name() == name)
    }

    /// `cause` of the problem details.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InvalidServiceInformation => "INVALID_SERVICE_INFORMATION",
            Self::FilterRestrictions => "FILTER_RESTRICTIONS",
            Self::RequestedServiceNotAuthorized => "REQUESTED_SERVICE_NOT_AUTHORIZED",
            Self::RequestedServiceTemporarilyNotAuthorized => "REQUESTED_SERVICE_TEMPORARILY_NOT_AUTHORIZED",
            Self::DuplicatedAfSession => "DUPLICATED_AF_SESSION",
            Self::SessionNotAvailable => "PDU_SESSION_NOT_AVAILABLE",
            Self::UnauthorizedSponsoredDataConnectivity => "UNAUTHORIZED_SPONSORED_DATA_CONNECTIVITY",
            Self::UnauthorizedNonEmergencySession => "UNAUTHORIZED_NON_EMERGENCY_SESSION",
            Self::TemporaryNetworkFailure => "TEMPORARY_NETWORK_FAILURE",
        }
    }

    /// The HTTP status of the problem details (TS 29.514 table 5.7-1).
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::InvalidServiceInformation | Self::FilterRestrictions => 400,
            Self::SessionNotAvailable => 500,
            _ => 403,
        }
    }

    /// The Experimental-Result-Code of 3GPP (TS 29.214 §5.5.2, §5.5.3).
    #[must_use]
    pub const fn code(self) -> u32 {
        match self {
            Self::RequestedServiceTemporarilyNotAuthorized => 4261,
            Self::InvalidServiceInformation => 5061,
            Self::FilterRestrictions => 5062,
            Self::RequestedServiceNotAuthorized => 5063,
            Self::DuplicatedAfSession => 5064,
            Self::SessionNotAvailable => 5065,
            Self::UnauthorizedNonEmergencySession => 5066,
            Self::UnauthorizedSponsoredDataConnectivity => 5067,
            Self::TemporaryNetworkFailure => 5068,
        }
    }
}

/// A refusal, with what is wrong and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The standard's cause.
    pub cause: Cause,
    /// JSON pointer into `AppSessionContextReqData`; empty where no single member is at fault.
    pub at: String,
    /// What is wrong and what would be right.
    pub detail: String,
}

impl Refusal {
    pub(crate) fn new(cause: Cause, at: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            cause,
            at: at.into(),
            detail: detail.into(),
        }
    }

    pub(crate) fn invalid(at: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Cause::InvalidServiceInformation, at, detail)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.at.is_empty() {
            write!(f, "{}: {}", self.cause.name(), self.detail)
        } else {
            write!(f, "{}: {}: {}", self.cause.name(), self.at, self.detail)
        }
    }
}

impl std::error::Error for Refusal {}
