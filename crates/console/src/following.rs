//! Following a subscriber: begins and ends it at the functions, and puts what they have copied into one order.

use std::net::SocketAddr;

use follow::{Message, Page, ladder};
use function::pages::segment;
use futures_util::future::join_all;
use hyper::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::Connection;
use crate::observation::cut;

/// Octets of a page of a function: the pages have 4 MB of content, which JSON and hexadecimal digits enlarge.
const MOST_PAGE: usize = 32 << 20;
/// Messages of one function that are shown; `signalbox follow` has all.
const MOST_MESSAGES: usize = 2_000;

/// Characters of a reason.
const WHY: usize = 300;

/// A function by its name and its admin endpoint.
pub(crate) type Asked = (String, SocketAddr);

/// What was asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Form {
    pub(crate) identity: String,
    /// How long; only where following begins.
    #[serde(rename = "for")]
    period: String,
}

/// Begins or ends following at all functions; what each of them answers.
pub(crate) async fn change(form: &Form, method: Method, functions: Vec<Asked>) -> Value {
    let mut path = format!("/follow/{}", segment(&form.identity));
    if method == Method::PUT && !form.period.is_empty() {
        path.push_str(&format!("?for={}", segment(&form.period)));
    }
    let (path, method) = (&path, &method);
    let each = functions.into_iter().map(|(name, admin)| async move {
        let answer = async {
            let mut connection = Connection::open(admin).await?;
            connection.ask(method.clone(), path, MOST_PAGE).await
        };
        match answer.await {
            Ok(page) if page.status == 200 => json!({ "function": name, "done": true }),
            Ok(page) => {
                let why = String::from_utf8_lossy(&page.body).trim().to_owned();
                json!({ "function": name, "done": false, "why": cut(&why, WHY) })
            }
            Err(failure) => json!({ "function": name, "done": false, "why": failure.to_string() }),
        }
    });
    json!({ "version": 1, "functions": join_all(each).await })
}

/// What one function has.
struct Part {
    name: String,
    is_following: bool,
    messages: Vec<Message>,
    not_shown: usize,
    failure: Option<String>,
}

/// The ladder of a subscriber.
pub(crate) async fn shown(identity: &str, functions: Vec<Asked>) -> Value {
    let parts = functions
        .into_iter()
        .map(|(name, admin)| part(name, admin, identity));
    let mut parts: Vec<Part> = join_all(parts).await;
    let row = |part: &Part| {
        json!({
            "function": part.name,
            "following": part.is_following,
            "messages": part.messages.len(),
            "notShown": part.not_shown,
            "failure": part.failure,
        })
    };
    let functions: Vec<Value> = parts.iter().map(row).collect();
    let lists = parts.iter_mut().map(|part| {
        let mut messages = std::mem::take(&mut part.messages);
        // Two functions of one kind are two lanes.
        for message in &mut messages {
            message.function.clone_from(&part.name);
        }
        messages
    });
    let arrows = ladder::arrows(lists.collect());
    json!({ "version": 1, "identity": identity, "functions": functions, "arrows": arrows })
}

async fn part(name: String, admin: SocketAddr, identity: &str) -> Part {
    let mut part = Part {
        name,
        is_following: false,
        messages: Vec::new(),
        not_shown: 0,
        failure: None,
    };
    if let Err(why) = part.read(admin, identity).await {
        part.failure = Some(cut(&why, WHY));
    }
    part
}

impl Part {
    async fn read(&mut self, admin: SocketAddr, identity: &str) -> Result<(), String> {
        let mut connection = Connection::open(admin)
            .await
            .map_err(|failure| failure.to_string())?;
        let listed: Value = page(&mut connection, "/follow").await?;
        let mut followed = listed["followed"].as_array().into_iter().flatten();
        self.is_following = followed.any(|one| one["identity"] == *identity);
        let mut after = 0;
        loop {
            let path = format!("/follow/messages?after={after}&identity={}", segment(identity));
            let page: Page = page(&mut connection, &path).await?;
            let has_more = page.more && page.next > after;
            after = page.next;
            self.messages.extend(page.messages);
            if self.messages.len() > MOST_MESSAGES {
                self.not_shown = self.messages.len() - MOST_MESSAGES;
                self.messages.truncate(MOST_MESSAGES);
                return Ok(());
            }
            if !has_more {
                return Ok(());
            }
        }
    }
}

async fn page<T: serde::de::DeserializeOwned>(connection: &mut Connection, path: &str) -> Result<T, String> {
    let page = connection
        .get(path, MOST_PAGE)
        .await
        .map_err(|failure| failure.to_string())?;
    if page.status != 200 {
        return Err(format!(
            "answered {}: an earlier release cannot follow a subscriber",
            page.status
        ));
    }
    serde_json::from_slice(&page.body).map_err(|error| error.to_string())
}
