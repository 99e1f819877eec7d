//! Following a subscriber: begins and ends it at the functions, and puts what they have copied into one order.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
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
/// Messages of one function that are shown with all their content; `signalbox follow` has all.
const MOST_WHOLE: usize = 2_000;
/// Messages of one function of which the outline is shown: as many as a function copies of a subscriber.
const MOST_OUTLINES: usize = 10_000;

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
    /// Without header fields and bodies of the messages.
    outline: bool,
    /// The state of the functions that the page has drawn: while it is the same, no message is read.
    known: String,
}

/// Which message of which function is opened.
#[derive(Debug, Deserialize)]
pub(crate) struct Opened {
    pub(crate) identity: String,
    function: String,
    number: u64,
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
    admin: SocketAddr,
    /// Its answer to who is followed: the entry of the subscriber, and its start.
    entry: Value,
    start: Value,
    messages: Vec<Message>,
    not_shown: usize,
    failure: Option<String>,
}

/// The ladder of a subscriber; where nothing has changed since the state that the page knows, that alone.
pub(crate) async fn shown(form: &Form, functions: Vec<Asked>) -> Value {
    let identity = &form.identity;
    let parts = functions
        .into_iter()
        .map(|(name, admin)| Part::listed(name, admin, identity));
    let mut parts: Vec<Part> = join_all(parts).await;
    let state = state(&parts);
    if form.known == state {
        return json!({ "version": 1, "identity": identity, "state": state, "unchanged": true });
    }
    join_all(parts.iter_mut().map(|part| part.fill(identity, form.outline))).await;
    let row = |part: &Part| {
        json!({
            "function": part.name,
            "following": !part.entry.is_null(),
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
    let mut arrows = ladder::arrows(lists.collect());
    if form.outline {
        for arrow in &mut arrows {
            arrow.message.headers.clear();
        }
    }
    json!({ "version": 1, "identity": identity, "state": state, "functions": functions, "arrows": arrows })
}

/// A number that changes with the messages of the functions.
fn state(parts: &[Part]) -> String {
    let mut hash = DefaultHasher::new();
    for part in parts {
        let texts = (part.start.to_string(), part.entry.to_string());
        (&part.name, texts, &part.failure).hash(&mut hash);
    }
    format!("{:016x}", hash.finish())
}

/// One message with all its content.
pub(crate) async fn opened(wanted: &Opened, functions: &[Asked]) -> Result<Value, String> {
    let found = functions.iter().find(|(name, _)| *name == wanted.function);
    let Some((name, admin)) = found else {
        let name = cut(&wanted.function, 80);
        return Err(format!("`{name}` is not a function that this console follows"));
    };
    let mut connection = open(*admin).await?;
    let before = wanted.number.saturating_sub(1);
    let page = messages(&mut connection, before, &wanted.identity).await?;
    let message = page.messages.into_iter().next();
    match message.filter(|message| message.number == wanted.number) {
        Some(message) => Ok(json!({ "version": 1, "function": name, "message": message })),
        None => Err(format!(
            "{name} has dropped message {}: its copies end with the following, or made room for newer ones",
            wanted.number
        )),
    }
}

impl Part {
    /// What the function says of the subscriber, without its messages.
    async fn listed(name: String, admin: SocketAddr, identity: &str) -> Self {
        let listed = async {
            let mut connection = open(admin).await?;
            page::<Value>(&mut connection, "/follow").await
        };
        let (listed, failure) = match listed.await {
            Ok(listed) => (listed, None),
            Err(why) => (Value::Null, Some(cut(&why, WHY))),
        };
        let mut followed = listed["followed"].as_array().into_iter().flatten();
        let entry = followed.find(|one| one["identity"] == *identity);
        Self {
            name,
            admin,
            entry: entry.cloned().unwrap_or_default(),
            start: listed["start"].clone(),
            messages: Vec::new(),
            not_shown: 0,
            failure,
        }
    }

    async fn fill(&mut self, identity: &str, is_outline: bool) {
        if self.failure.is_none()
            && let Err(why) = self.read(identity, is_outline).await
        {
            self.failure = Some(cut(&why, WHY));
        }
    }

    async fn read(&mut self, identity: &str, is_outline: bool) -> Result<(), String> {
        let mut connection = open(self.admin).await?;
        let most = if is_outline { MOST_OUTLINES } else { MOST_WHOLE };
        let mut after = 0;
        loop {
            let page = messages(&mut connection, after, identity).await?;
            let has_more = page.more && page.next > after;
            after = page.next;
            let outlined = page
                .messages
                .into_iter()
                .map(|message| if is_outline { outline(message) } else { message });
            self.messages.extend(outlined);
            if self.messages.len() > most {
                self.not_shown = self.messages.len() - most;
                self.messages.truncate(most);
                return Ok(());
            }
            if !has_more {
                return Ok(());
            }
        }
    }
}

/// A message without its content. What a client says of itself stays for now: a lane is named by it.
fn outline(mut message: Message) -> Message {
    message.headers.retain(|(name, _)| name == "user-agent");
    message.text = String::new();
    message.hex = String::new();
    message
}

async fn open(admin: SocketAddr) -> Result<Connection, String> {
    let connection = Connection::open(admin).await;
    connection.map_err(|failure| failure.to_string())
}

/// The messages of a subscriber after a number, a page of them.
async fn messages(connection: &mut Connection, after: u64, identity: &str) -> Result<Page, String> {
    let path = format!("/follow/messages?after={after}&identity={}", segment(identity));
    page(connection, &path).await
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
