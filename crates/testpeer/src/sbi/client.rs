//! What a test sends, and what it reads of the answer.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method, StatusCode};
use sbi::client::{Client, ClientConfig, Origin, SendError, SendOptions};
use sbi::{Body, Response};
use serde_json::Value;

/// A client with this `User-Agent`.
#[must_use]
pub fn client(user_agent: &str) -> Client {
    let config = ClientConfig {
        user_agent: user_agent.into(),
        ..ClientConfig::default()
    };
    Client::new(Arc::new(config), None)
}

/// A request. An empty `content_type` sends none.
///
/// # Panics
/// When the path is not one.
pub fn request(method: Method, path: &str, content_type: &str, body: impl Into<Body>) -> http::Request<Body> {
    let mut request = http::Request::builder().method(method).uri(path);
    if !content_type.is_empty() {
        request = request.header("content-type", content_type);
    }
    request.body(body.into()).expect("a valid request")
}

/// Sends a request with a deadline of twenty seconds.
///
/// # Errors
/// When there is no answer.
pub async fn send(client: &Client, to: &Origin, request: http::Request<Body>) -> Result<Got, SendError> {
    let options = SendOptions {
        deadline: Duration::from_secs(20),
        ..SendOptions::default()
    };
    client.send(to, request, options).await.map(Got::from)
}

/// A `204 No Content`.
#[must_use]
pub fn no_content() -> Response {
    Response::new(StatusCode::NO_CONTENT)
}

/// The parts of a response.
#[derive(Clone, Debug)]
pub struct Got {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body without its content coding; null where it is empty or not JSON.
    pub json: Value,
}

/// The most bytes that a test reads of an answer, unpacked.
const LARGEST_BODY: usize = 64 << 20;

impl From<Response> for Got {
    fn from(response: Response) -> Self {
        let (head, body) = response.into_parts();
        let body = sbi::coding::decode(&head.fields, body, LARGEST_BODY).unwrap_or_default();
        Self {
            status: head.status,
            headers: (&head.fields).into(),
            json: serde_json::from_slice(&body.into_bytes()).unwrap_or_default(),
        }
    }
}

impl Got {
    /// The cause in its problem details.
    #[must_use]
    pub fn cause(&self) -> &str {
        self.json["cause"].as_str().unwrap_or_default()
    }

    /// The member `by` of its body: the producer that answered, in tests that have several.
    #[must_use]
    pub fn by(&self) -> &str {
        self.json["by"].as_str().unwrap_or_default()
    }

    /// A header as text; empty where it is absent.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        super::server::header(&self.headers, name)
    }
}
