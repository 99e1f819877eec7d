//! Well-formed requests of honest and dishonest clients.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use sbi::Body;
use sbi::client::{Client, ClientConfig, Origin, SendOptions};
use serde_json::Value;

/// A request.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Its method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
    /// How long its answer is awaited.
    pub deadline: Duration,
}

/// How long an answer may take before it counts as none; a busy machine takes its time.
const DEADLINE: Duration = Duration::from_secs(10);

impl Ask {
    /// A request without a body.
    #[must_use]
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            headers: Vec::new(),
            body: Vec::new(),
            deadline: DEADLINE,
        }
    }

    /// GET.
    #[must_use]
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    /// The same with a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// The same with a body of this content type.
    #[must_use]
    pub fn with(self, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let mut this = self.header("content-type", content_type);
        this.body = body.into();
        this
    }

    /// The same with a JSON body.
    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        self.with("application/json", body.to_string())
    }

    /// The same, its answer awaited so long.
    #[must_use]
    pub const fn within(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Got {
    /// Status; 0 when there was none.
    pub status: u16,
    /// Headers.
    pub headers: http::HeaderMap,
    /// Body, or why there is none.
    pub body: Vec<u8>,
}

impl Got {
    /// The body as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Status and the beginning of the body, for messages.
    #[must_use]
    pub fn text(&self) -> String {
        let text: String = String::from_utf8_lossy(&self.body).chars().take(200).collect();
        format!("{} {text}", self.status)
    }
}

/// A client with one connection to each origin, in cleartext.
#[must_use]
pub fn client(user_agent: &str) -> Client {
    client_over(user_agent, None)
}

/// The same over TLS.
#[must_use]
pub fn client_over(user_agent: &str, tls: Option<Arc<rustls::ClientConfig>>) -> Client {
    let config = ClientConfig {
        user_agent: user_agent.to_owned(),
        connections_per_origin: 1,
        backoff_min: settings::Period::from_millis(1),
        backoff_max: settings::Period::from_millis(50),
        connect_timeout: settings::Period::from_secs(10),
        ..ClientConfig::default()
    };
    Client::new(Arc::new(config), tls)
}

/// Sends a request; when there is no answer, the status is 0 and the body says why.
pub async fn send(client: &Client, origin: &Origin, ask: &Ask) -> Got {
    let none = |why: String| Got {
        status: 0,
        headers: http::HeaderMap::new(),
        body: why.into_bytes(),
    };
    let mut request = http::Request::builder()
        .method(ask.method.clone())
        .uri(&*ask.path);
    for (name, value) in &ask.headers {
        request = request.header(name, value);
    }
    let request = match request.body(Body::from(ask.body.clone())) {
        Ok(request) => request,
        Err(error) => return none(error.to_string()),
    };
    let options = SendOptions {
        deadline: ask.deadline,
        ..SendOptions::default()
    };
    match client.send(origin, request, options).await {
        Ok(response) => {
            let (head, body) = response.into_parts();
            Got {
                status: head.status.as_u16(),
                headers: (&head.fields).into(),
                body: body.into_bytes().to_vec(),
            }
        }
        Err(error) => none(error.to_string()),
    }
}
