//! Names of the headers: those of [`http2::name`], by what they are for.

use http2::{Name, name};

macro_rules! names {
    ($($(#[$doc:meta])* $constant:ident = $name:ident;)+) => {
        $($(#[$doc])* pub const $constant: Name<'static> = name::$name;)+
    };
}

names! {
    /// Priority of the message.
    MESSAGE_PRIORITY = SBI_MESSAGE_PRIORITY;
    /// Which notification a callback request is.
    CALLBACK = SBI_CALLBACK;
    /// API root of the target, for indirect communication.
    TARGET_API_ROOT = SBI_TARGET_API_ROOT;
    /// Binding of the resource that a request is for.
    ROUTING_BINDING = SBI_ROUTING_BINDING;
    /// Binding that a sender wants for later requests.
    BINDING = SBI_BINDING;
    /// Who produced a response.
    PRODUCER_ID = SBI_PRODUCER_ID;
    /// Overload control information.
    OCI = SBI_OCI;
    /// Load control information.
    LCI = SBI_LCI;
    /// Client credentials assertion.
    CLIENT_CREDENTIALS = SBI_CLIENT_CREDENTIALS;
    /// Client credentials assertion of the consumer behind a data collection function.
    SOURCE_NF_CLIENT_CREDENTIALS = SBI_SOURCE_NF_CLIENT_CREDENTIALS;
    /// URIs of an NRF's services.
    NRF_URI = SBI_NRF_URI;
    /// URIs of an NRF's services for callbacks.
    NRF_URI_CALLBACK = SBI_NRF_URI_CALLBACK;
    /// Group of the NF that the request is for.
    TARGET_NF_GROUP_ID = SBI_TARGET_NF_GROUP_ID;
    /// Further scopes of access tokens.
    OTHER_ACCESS_SCOPES = SBI_OTHER_ACCESS_SCOPES;
    /// Access token for further use.
    ACCESS_TOKEN = SBI_ACCESS_TOKEN;
    /// Another CHF instance.
    ALTERNATE_CHF_ID = SBI_ALTERNATE_CHF_ID;
    /// Codings that a notification consumer accepts.
    NOTIF_ACCEPTED_ENCODING = SBI_NOTIF_ACCEPTED_ENCODING;
    /// Why a message crosses between networks.
    INTERPLMN_PURPOSE = SBI_INTERPLMN_PURPOSE;
    /// Whether the request may be tried again.
    RETRY_INFO = SBI_RETRY_INFO;
    /// The instance a redirected request is for.
    TARGET_NF_ID = SBI_TARGET_NF_ID;
    /// How many SCPs may still forward the request.
    MAX_FORWARD_HOPS = SBI_MAX_FORWARD_HOPS;
    /// Where the message comes from.
    ORIGINATING_NETWORK_ID = SBI_ORIGINATING_NETWORK_ID;
    /// Scope of the access token that the request needs.
    ACCESS_SCOPE = SBI_ACCESS_SCOPE;
    /// Who talks to whom behind proxies.
    NF_PEER_INFO = SBI_NF_PEER_INFO;
    /// When the sender sent the message.
    SENDER_TIMESTAMP = SBI_SENDER_TIMESTAMP;
    /// When the procedure that a request belongs to was begun.
    ORIGINATION_TIMESTAMP = SBI_ORIGINATION_TIMESTAMP;
    /// How long the sender waits for the response.
    MAX_RSP_TIME = SBI_MAX_RSP_TIME;
    /// Which subscriber the message is about.
    CORRELATION_INFO = SBI_CORRELATION_INFO;
    /// What a notification consumer supports.
    CONSUMER_INFO = SBI_CONSUMER_INFO;
    /// Facts about how the response came to be.
    RESPONSE_INFO = SBI_RESPONSE_INFO;
    /// Facts about how the request came to be.
    REQUEST_INFO = SBI_REQUEST_INFO;
    /// Whom not to select again.
    SELECTION_INFO = SBI_SELECTION_INFO;
}

/// How the name of every discovery header begins; the rest is the name of the query parameter.
pub use http2::name::DISCOVERY_PREFIX;
