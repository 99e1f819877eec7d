//! Names of the headers, in the lower case of HTTP/2.

use http::HeaderName;

macro_rules! names {
    ($($(#[$doc:meta])* $constant:ident = $name:literal;)+) => {
        $($(#[$doc])* #[doc = concat!("`", $name, "`")] pub const $constant: HeaderName = HeaderName::from_static($name);)+
    };
}

names! {
    /// Priority of the message.
    MESSAGE_PRIORITY = "3gpp-sbi-message-priority";
    /// Which notification a callback request is.
    CALLBACK = "3gpp-sbi-callback";
    /// API root of the target, for indirect communication.
    TARGET_API_ROOT = "3gpp-sbi-target-apiroot";
    /// Binding of the resource that a request is for.
    ROUTING_BINDING = "3gpp-sbi-routing-binding";
    /// Binding that a sender wants for later requests.
    BINDING = "3gpp-sbi-binding";
    /// Who produced a response.
    PRODUCER_ID = "3gpp-sbi-producer-id";
    /// Overload control information.
    OCI = "3gpp-sbi-oci";
    /// Load control information.
    LCI = "3gpp-sbi-lci";
    /// Client credentials assertion.
    CLIENT_CREDENTIALS = "3gpp-sbi-client-credentials";
    /// Client credentials assertion of the consumer behind a data collection function.
    SOURCE_NF_CLIENT_CREDENTIALS = "3gpp-sbi-source-nf-client-credentials";
    /// URIs of an NRF's services.
    NRF_URI = "3gpp-sbi-nrf-uri";
    /// URIs of an NRF's services for callbacks.
    NRF_URI_CALLBACK = "3gpp-sbi-nrf-uri-callback";
    /// Group of the NF that the request is for.
    TARGET_NF_GROUP_ID = "3gpp-sbi-target-nf-group-id";
    /// Further scopes of access tokens.
    OTHER_ACCESS_SCOPES = "3gpp-sbi-other-access-scopes";
    /// Access token for further use.
    ACCESS_TOKEN = "3gpp-sbi-access-token";
    /// Another CHF instance.
    ALTERNATE_CHF_ID = "3gpp-sbi-alternate-chf-id";
    /// Codings that a notification consumer accepts.
    NOTIF_ACCEPTED_ENCODING = "3gpp-sbi-notif-accepted-encoding";
    /// Why a message crosses between networks.
    INTERPLMN_PURPOSE = "3gpp-sbi-interplmn-purpose";
    /// Whether the request may be tried again.
    RETRY_INFO = "3gpp-sbi-retry-info";
    /// The instance a redirected request is for.
    TARGET_NF_ID = "3gpp-sbi-target-nf-id";
    /// How many SCPs may still forward the request.
    MAX_FORWARD_HOPS = "3gpp-sbi-max-forward-hops";
    /// Where the message comes from.
    ORIGINATING_NETWORK_ID = "3gpp-sbi-originating-network-id";
    /// Scope of the access token that the request needs.
    ACCESS_SCOPE = "3gpp-sbi-access-scope";
    /// Who talks to whom behind proxies.
    NF_PEER_INFO = "3gpp-sbi-nf-peer-info";
    /// When the sender sent the message.
    SENDER_TIMESTAMP = "3gpp-sbi-sender-timestamp";
    /// How long the sender waits for the response.
    MAX_RSP_TIME = "3gpp-sbi-max-rsp-time";
    /// Which subscriber the message is about.
    CORRELATION_INFO = "3gpp-sbi-correlation-info";
    /// What a notification consumer supports.
    CONSUMER_INFO = "3gpp-sbi-consumer-info";
    /// Facts about how the response came to be.
    RESPONSE_INFO = "3gpp-sbi-response-info";
    /// Facts about how the request came to be.
    REQUEST_INFO = "3gpp-sbi-request-info";
    /// Whom not to select again.
    SELECTION_INFO = "3gpp-sbi-selection-info";
}

/// How the name of every discovery header begins; the rest is the name of the query parameter.
pub const DISCOVERY_PREFIX: &str = "3gpp-sbi-discovery-";
