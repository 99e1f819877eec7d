//! Begins and ends sessions: the page for signing in, and `/api/v1/session`.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{delete, get, post};
use axum::{Extension, Json, RequestExt as _, Router};
use cookie::{Cookie, SameSite};
use serde::Deserialize;
use serde_json::json;

use super::gate::{COOKIE, address, secret_of};
use super::sessions::{Beginning, LONGEST};
use super::users::{MOST_PASSWORD, spend};
use super::{Access, Entry, Gate, Known, Right, Visitor, admit, digest_of, secret};

/// The session of the request: begun, shown, ended.
pub(crate) const PATH: &str = "/api/v1/session";
/// All sessions that a visitor may see.
pub(crate) const SESSIONS: &str = "/api/v1/sessions";

/// Serves sessions.
pub(crate) fn routes(access: &Arc<Access>) -> Router {
    let gate = Gate {
        access: access.clone(),
        right: Right::See,
    };
    let own = Router::new()
        .route(PATH, get(shown).delete(sign_out))
        .route(SESSIONS, get(list))
        .route(&format!("{SESSIONS}/{{number}}"), delete(revoke))
        .route_layer(from_fn_with_state(gate, admit));
    Router::new()
        .route(PATH, post(sign_in))
        .merge(own)
        .with_state(access.clone())
}

type Shared = State<Arc<Access>>;

/// Name and password.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    name: String,
    password: String,
}

/// Begins a session. The session that the browser had before ends.
async fn sign_in(State(access): Shared, request: Request) -> Response {
    let (from, headers) = (address(&request), request.headers().clone());
    let form: Result<Json<Form>, JsonRejection> = request.extract().await;
    let Some(known) = &access.known else {
        return refused(StatusCode::NOT_FOUND, "this console has no users");
    };
    let Ok(Json(form)) = form else {
        return refused(StatusCode::BAD_REQUEST, "expected JSON with name and password");
    };
    // One more than fits in a name is recorded at most.
    let name: String = form.name.chars().filter(|c| !c.is_control()).take(65).collect();
    if form.password.len() > MOST_PASSWORD {
        return refused(StatusCode::UNAUTHORIZED, WRONG);
    }
    let Ok(_hash) = known.hashes.try_acquire() else {
        access.meters.busy.inc();
        return refused(
            StatusCode::SERVICE_UNAVAILABLE,
            "others sign in at this moment; try again",
        );
    };
    let attempt = known.backoff.lock().attempt(&name, from, Instant::now());
    if let Err(wait) = attempt {
        access.meters.waiting.inc();
        if wait.is_first {
            let entry = Entry::new("sign-ins refused for a while", "")
                .detail(&format!("{} s", wait.time.as_secs() + 1));
            let _ = access.record_of(&name, from, entry).await;
        }
        let seconds = wait.time.as_secs() + 1;
        let words = format!("too many failures; try again in {seconds} s\n");
        return (
            StatusCode::TOO_MANY_REQUESTS,
            [(header::RETRY_AFTER, seconds.to_string())],
            words,
        )
            .into_response();
    }
    let user = known.users(Instant::now()).find(&name).cloned();
    let hash = user.as_ref().map(|user| digest_of(&user.password));
    let is_right = tokio::task::spawn_blocking(move || match user {
        Some(user) => user.has_password(&form.password),
        None => {
            spend(&form.password);
            false
        }
    });
    let is_right = is_right.await.unwrap_or(false);
    let Some(password) = hash.filter(|_| is_right) else {
        access.meters.refused.inc();
        let _ = access
            .record_of(&name, from, Entry::change("sign-in refused", ""))
            .await;
        return refused(StatusCode::UNAUTHORIZED, WRONG);
    };
    access.meters.accepted.inc();
    known.backoff.lock().succeeded(&name, from);
    if let Err(words) = access.record_of(&name, from, Entry::change("signs in", "")).await {
        return refused(StatusCode::SERVICE_UNAVAILABLE, &words);
    }
    let begun = begin(known, &name, password, from, &headers);
    begun.unwrap_or_else(|words| refused(StatusCode::SERVICE_UNAVAILABLE, &words))
}

/// The same whether name or password is wrong.
const WRONG: &str = "name or password is wrong";

fn refused(status: StatusCode, words: &str) -> Response {
    (status, format!("{words}\n")).into_response()
}

fn begin(
    known: &Known,
    name: &str,
    password: [u8; 32],
    from: std::net::IpAddr,
    headers: &HeaderMap,
) -> Result<Response, String> {
    let (value, token) = (secret()?, secret()?);
    let agent = headers
        .get(header::USER_AGENT)
        .and_then(|agent| agent.to_str().ok());
    let beginning = Beginning {
        user: name,
        password,
        token,
        from,
        agent: agent.unwrap_or_default(),
    };
    let mut sessions = known.sessions.lock();
    if let Some(before) = secret_of(headers) {
        sessions.end(&digest_of(before));
    }
    sessions.begin(&value, beginning, Instant::now());
    let cookie = [(header::SET_COOKIE, cookie(&value, LONGEST.as_secs() as i64))];
    Ok((StatusCode::NO_CONTENT, cookie).into_response())
}

fn cookie(value: &str, seconds: i64) -> String {
    Cookie::build((COOKIE, value))
        .path("/")
        .secure(true)
        .http_only(true)
        .same_site(SameSite::Strict)
        .max_age(cookie::time::Duration::seconds(seconds))
        .build()
        .to_string()
}

/// Who the visitor is, and the token for its changes.
async fn shown(State(access): Shared, Extension(visitor): Extension<Visitor>) -> Response {
    Json(json!({
        "user": visitor.user,
        "signIn": access.has_users(),
        "mayTrace": visitor.may(Right::Trace),
        "mayOperate": visitor.may(Right::Operate),
        "token": visitor.token,
    }))
    .into_response()
}

async fn sign_out(State(access): Shared, Extension(visitor): Extension<Visitor>) -> Response {
    if let (Some(known), Some(session)) = (&access.known, visitor.session) {
        known.sessions.lock().end(&session);
    }
    let _ = access.record(&visitor, Entry::change("signs out", "")).await;
    let cookie = [(header::SET_COOKIE, cookie("", 0))];
    (StatusCode::NO_CONTENT, cookie).into_response()
}

/// The own sessions; an operator sees those of all.
fn scope(visitor: &Visitor) -> Option<&str> {
    visitor.user.as_deref().filter(|_| !visitor.may(Right::Operate))
}

async fn list(State(access): Shared, Extension(visitor): Extension<Visitor>) -> Response {
    let rows = access.known.as_ref().map(|known| {
        let sessions = known.sessions.lock();
        sessions.list(scope(&visitor), visitor.session.as_ref(), Instant::now())
    });
    Json(json!({ "version": 1, "sessions": rows.unwrap_or_default() })).into_response()
}

async fn revoke(
    State(access): Shared,
    Extension(visitor): Extension<Visitor>,
    Path(number): Path<String>,
) -> Response {
    let ended = access
        .known
        .as_ref()
        .and_then(|known| known.sessions.lock().revoke(&number, scope(&visitor)));
    let Some(user) = ended else {
        return refused(
            StatusCode::NOT_FOUND,
            "the session has ended already, or is of another user",
        );
    };
    let _ = access
        .record(&visitor, Entry::change("ends a session", &user))
        .await;
    StatusCode::NO_CONTENT.into_response()
}
