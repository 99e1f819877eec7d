//! The pages with their scripts and style, embedded as they are.

use axum::Router;
use axum::http::header;
use axum::routing::get;
use bytes::Bytes;

/// What a client without a session gets.
pub(crate) fn open<S: Clone + Send + Sync + 'static>() -> Router<S> {
    served(OPEN)
}

/// What every user gets.
pub(crate) fn seeing<S: Clone + Send + Sync + 'static>() -> Router<S> {
    served(SEEING).merge(shelled(SEEING_PAGES))
}

/// What those get who see subscribers.
pub(crate) fn tracing<S: Clone + Send + Sync + 'static>() -> Router<S> {
    served(TRACING).merge(shelled(TRACING_PAGES))
}

macro_rules! files {
    ($($path:literal = $name:literal as $kind:expr;)+) => {
        &[$(($path, $kind, include_str!(concat!("../web/", $name)))),+]
    };
}

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// A file by its path, with its media type.
type Files = &'static [(&'static str, &'static str, &'static str)];

const OPEN: Files = files! {
    "/sign-in" = "sign-in.html" as HTML;
    "/sign-in.js" = "sign-in.js" as SCRIPT;
    "/style.css" = "style.css" as STYLE;
};

const SEEING: Files = files! {
    "/" = "index.html" as HTML;
    "/app.js" = "app.js" as SCRIPT;
    "/view.js" = "view.js" as SCRIPT;
    "/session.js" = "session.js" as SCRIPT;
    "/configuration.js" = "configuration.js" as SCRIPT;
    "/account.js" = "account.js" as SCRIPT;
    "/policy.js" = "policy.js" as SCRIPT;
    "/difference.js" = "difference.js" as SCRIPT;
};

const TRACING: Files = files! {
    "/follow.js" = "follow.js" as SCRIPT;
    "/ladder.js" = "ladder.js" as SCRIPT;
    "/sessions.js" = "sessions.js" as SCRIPT;
    "/why.js" = "why.js" as SCRIPT;
};

/// What all pages have around their own part.
const SHELL: &str = include_str!("../web/shell.html");

/// A page in the shell: its name, which is its path and that of its script, its title, where its link past the navigation leads,
/// with the words of that link, and its own part.
type Shelled = (
    &'static str,
    &'static str,
    (&'static str, &'static str),
    &'static str,
);

const SEEING_PAGES: &[Shelled] = &[
    (
        "configuration",
        "Configuration",
        ("function", "To the function"),
        include_str!("../web/configuration.html"),
    ),
    (
        "policy",
        "Policy",
        ("function", "To the PCF"),
        include_str!("../web/policy.html"),
    ),
    (
        "account",
        "Account",
        ("sessions", "To the sessions"),
        include_str!("../web/account.html"),
    ),
];

const TRACING_PAGES: &[Shelled] = &[
    (
        "follow",
        "Follow",
        ("identity", "To the identity"),
        include_str!("../web/follow.html"),
    ),
    (
        "sessions",
        "Bindings and sessions",
        ("identity", "To the identity"),
        include_str!("../web/sessions.html"),
    ),
    (
        "why",
        "Why",
        ("message", "To the message"),
        include_str!("../web/why.html"),
    ),
];

fn served<S: Clone + Send + Sync + 'static>(files: Files) -> Router<S> {
    files.iter().fold(Router::new(), |router, (path, kind, text)| {
        let answer = ([(header::CONTENT_TYPE, *kind)], *text);
        let file = get(move || async move { answer });
        router.route(path, file)
    })
}

fn shelled<S: Clone + Send + Sync + 'static>(pages: &[Shelled]) -> Router<S> {
    pages
        .iter()
        .fold(Router::new(), |router, (name, title, (skip, words), body)| {
            let parts = [
                ("{title}", title),
                ("{name}", name),
                ("{skip}", skip),
                ("{words}", words),
                ("{body}", body),
            ];
            let whole = parts
                .iter()
                .fold(SHELL.to_owned(), |text, (mark, part)| text.replace(mark, part));
            let page = Bytes::from(whole);
            let answer = get(move || async move { ([(header::CONTENT_TYPE, HTML)], page) });
            router.route(&format!("/{name}"), answer)
        })
}
