//! Words of the settings and of files: entities, AVPs, services.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a subscriber is known by.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Entity {
    /// IMSI, alone or in a NAI or URI of TS 23.003 §13, §14 and §19.
    #[default]
    Imsi,
    /// MSISDN: digits with or without `+`, TBCD, `tel:` and `sip:+…` URIs.
    Msisdn,
    /// Private identity, `user@realm` (TS 23.003 §13.3).
    Impi,
    /// Public identity, a `sip:`, `sips:` or `tel:` URI (TS 23.003 §13.4), without parameters, port and password.
    Impu,
    /// NAI (RFC 7542); of a decorated one `home!user@visited` the subscriber's `user@home`.
    Nai,
    /// External Identifier, `local@domain` (TS 23.003 §19.7.2).
    ExternalIdentifier,
}

impl Entity {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Imsi,
        Self::Msisdn,
        Self::Impi,
        Self::Impu,
        Self::Nai,
        Self::ExternalIdentifier,
    ];

    /// Its word in files and pages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Imsi => "imsi",
            Self::Msisdn => "msisdn",
            Self::Impi => "impi",
            Self::Impu => "impu",
            Self::Nai => "nai",
            Self::ExternalIdentifier => "externalIdentifier",
        }
    }

    /// The entity of a word.
    ///
    /// # Errors
    /// When there is none; the words.
    pub fn from_word(word: &str) -> Result<Self, String> {
        let mut all = Self::ALL.into_iter();
        all.find(|known| known.as_str() == word).ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            let word: String = word.chars().take(40).collect();
            format!("the entity `{word}` does not exist; valid are {known}")
        })
    }
}

/// An AVP that has an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Avp {
    /// User-Name (1).
    #[default]
    UserName,
    /// Subscription-Id (443) of type END_USER_E164 (0), also within Service-Information (TS 32.299 §7.2.192).
    SubscriptionIdE164,
    /// Subscription-Id of type END_USER_IMSI (1).
    SubscriptionIdImsi,
    /// Subscription-Id of type END_USER_SIP_URI (2).
    SubscriptionIdSipUri,
    /// Subscription-Id of type END_USER_NAI (3).
    SubscriptionIdNai,
    /// Subscription-Id of type END_USER_PRIVATE (4).
    SubscriptionIdPrivate,
    /// MSISDN (701) of 3GPP, in TBCD.
    Msisdn,
    /// Public-Identity (601) of 3GPP.
    PublicIdentity,
    /// MSISDN within User-Identity (700), TS 29.329 §6.3.1.
    UserIdentityMsisdn,
    /// Public-Identity within User-Identity.
    UserIdentityPublicIdentity,
    /// External-Identifier within User-Identity.
    UserIdentityExternalIdentifier,
    /// User-Name within User-Identifier (3102), TS 29.336 §6.4.2.
    UserIdentifierUserName,
    /// MSISDN within User-Identifier.
    UserIdentifierMsisdn,
    /// External-Identifier within User-Identifier.
    UserIdentifierExternalIdentifier,
    /// External-Identifier (3111) of 3GPP.
    ExternalIdentifier,
}

impl Avp {
    /// Whether its digits are in TBCD: it has an MSISDN and nothing else.
    pub(crate) const fn is_tbcd(self) -> bool {
        matches!(
            self,
            Self::Msisdn | Self::UserIdentityMsisdn | Self::UserIdentifierMsisdn
        )
    }

    /// Its name in explanations.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::UserName => "User-Name",
            Self::SubscriptionIdE164 => "Subscription-Id of END_USER_E164",
            Self::SubscriptionIdImsi => "Subscription-Id of END_USER_IMSI",
            Self::SubscriptionIdSipUri => "Subscription-Id of END_USER_SIP_URI",
            Self::SubscriptionIdNai => "Subscription-Id of END_USER_NAI",
            Self::SubscriptionIdPrivate => "Subscription-Id of END_USER_PRIVATE",
            Self::Msisdn => "MSISDN",
            Self::PublicIdentity => "Public-Identity",
            Self::UserIdentityMsisdn => "User-Identity.MSISDN",
            Self::UserIdentityPublicIdentity => "User-Identity.Public-Identity",
            Self::UserIdentityExternalIdentifier => "User-Identity.External-Identifier",
            Self::UserIdentifierUserName => "User-Identifier.User-Name",
            Self::UserIdentifierMsisdn => "User-Identifier.MSISDN",
            Self::UserIdentifierExternalIdentifier => "User-Identifier.External-Identifier",
            Self::ExternalIdentifier => "External-Identifier",
        }
    }
}

/// The kind of server that a request is for: a subscriber has a destination for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// HSS of the IMS.
    ImsHss,
    /// HSS of LTE.
    LteHss,
    /// HSS of machine type communication.
    MtcHss,
    /// PCRF.
    Pcrf,
    /// Online charging system.
    Ocs,
    /// Offline charging system.
    Ofcs,
    /// AAA server.
    Aaa,
}

impl Service {
    /// All of them.
    pub(crate) const ALL: [Self; 7] = [
        Self::ImsHss,
        Self::LteHss,
        Self::MtcHss,
        Self::Pcrf,
        Self::Ocs,
        Self::Ofcs,
        Self::Aaa,
    ];

    /// Its word in destination sets.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::ImsHss => "ims-hss",
            Self::LteHss => "lte-hss",
            Self::MtcHss => "mtc-hss",
            Self::Pcrf => "pcrf",
            Self::Ocs => "ocs",
            Self::Ofcs => "ofcs",
            Self::Aaa => "aaa",
        }
    }
}
