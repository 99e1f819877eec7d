//! The configuration file of a running process, changed over its admin endpoints: as a whole, or a single setting. A change is
//! checked, written beside the file, put into effect by a reload, and only then takes the place of the file: a process that is killed
//! meanwhile starts with the file of before. What a reload refuses is taken back by another one. The pages are here.
//!
//! | file | what |
//! |---|---|
//! | `edit` | one setting in the text of a file, whose other lines stay as they are |
//! | `network` | one administration of several processes: their desired configuration, alarms and measurements |

mod edit;
mod network;

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::put;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::changes;
use crate::config::Config;
use crate::reload::{Refusal, Reloader};

pub(crate) use network::{NetworkCommand, SetArgs, run, set};

/// Path of the whole file, and what paths of single settings begin with.
const FILE: &str = "/config/file";
const SETTINGS: &str = "/config/settings/";
/// Size of a file at most, and of the value of a setting.
const MOST: usize = 4 << 20;
const MOST_OF_VALUE: usize = 64 << 10;
/// What names of files begin with that are to take the place of another one.
const PREPARED: &str = ".changing-";

/// The file of this process.
pub(crate) struct Administration {
    file: Option<PathBuf>,
    accepts: changes::Config,
    reloader: Arc<Reloader>,
    /// One change at a time.
    alone: Mutex<()>,
}

impl Administration {
    pub(crate) fn new(file: Option<PathBuf>, accepts: changes::Config, reloader: Arc<Reloader>) -> Arc<Self> {
        Arc::new(Self {
            file,
            accepts,
            reloader,
            alone: Mutex::new(()),
        })
    }

    /// The pages: `PUT` and `POST /config/file`, `PUT /config/settings/{path}`.
    pub(crate) fn routes(self: &Arc<Self>) -> Router {
        let [whole, compared, single] = [(); 3].map(|()| self.clone());
        Router::new()
            .route(
                FILE,
                put(move |request: Request| answer(whole.clone(), Change::Whole, request))
                    .post(move |request: Request| answer(compared.clone(), Change::Compare, request)),
            )
            .route(
                &format!("{SETTINGS}{{path}}"),
                put(move |path: axum::extract::Path<String>, request: Request| {
                    answer(single.clone(), Change::Setting(path.0), request)
                }),
            )
    }

    /// Carries a change out, as `by` wants it.
    fn change(&self, change: &Change, body: &str, by: &str) -> Result<Value, Fault> {
        let file = self.file.as_deref().ok_or_else(|| {
            Fault(
                StatusCode::CONFLICT,
                "started without a file, so that none can be changed".to_owned(),
            )
        })?;
        let _alone = self.alone.lock();
        let _turn =
            take_turn(file).map_err(|error| Fault::of_disk(format!("{}: {error}", file.display())))?;
        let before = std::fs::read_to_string(file)
            .map_err(|error| Fault::of_disk(format!("reading {}: {error}", file.display())))?;
        let text = match change {
            Change::Compare => {
                let standing = self.reloader.standing();
                return Ok(
                    json!({ "same": body == before, "inEffect": standing["inEffect"], "detail": standing["detail"] }),
                );
            }
            Change::Whole => body.to_owned(),
            Change::Setting(path) => edit::set(&before, path, body).map_err(Fault::refused)?,
        };
        let name = file.display().to_string();
        let wanted = Config::read(&text, &name).map_err(|report| Fault::refused(report.to_string()))?;
        if wanted.changes.secret.is_none() {
            return Err(Fault::refused(
                "the file has no changes.secret: nothing could be changed from here after the next start"
                    .to_owned(),
            ));
        }
        let of_disk = |error| Fault::of_disk(format!("writing {name}: {error}"));
        let new = prepare(file, &text).map_err(of_disk)?;
        let (refused, status) = match self.reloader.reload_to(&text, by) {
            Ok(answer) if answer.get("invalid").is_none() => match put_in_place(new, file) {
                Ok(()) => {
                    let unchanged = text == before;
                    return Ok(json!({
                        "applied": answer["applied"], "refused": answer["refused"], "unchanged": unchanged,
                    }));
                }
                Err(error) => (of_disk(error).1, StatusCode::INTERNAL_SERVER_ERROR),
            },
            Ok(answer) => (in_words(&answer["invalid"]), StatusCode::UNPROCESSABLE_ENTITY),
            Err(Refusal { text, .. }) => (text, StatusCode::UNPROCESSABLE_ENTITY),
        };
        // What ran before runs on, by the file of before.
        let words = match self.reloader.reload(by) {
            Ok(_) => "nothing has changed: the file is that of before".to_owned(),
            Err(Refusal { brief, .. }) => {
                format!("the file is that of before, of which a reload says: {brief}")
            }
        };
        Err(Fault(status, format!("{refused}\n{words}")))
    }
}

/// What is wanted.
enum Change {
    Whole,
    /// Nothing: whether the file has this text.
    Compare,
    /// A setting by its path, such as `dsr.routing.routeGroups[0].name`.
    Setting(String),
}

/// Why nothing was changed.
struct Fault(StatusCode, String);

impl Fault {
    fn refused(words: String) -> Self {
        Self(StatusCode::UNPROCESSABLE_ENTITY, words)
    }

    fn of_disk(words: String) -> Self {
        Self(StatusCode::INTERNAL_SERVER_ERROR, words)
    }
}

/// The parts that cannot be used, each with its reason.
fn in_words(invalid: &Value) -> String {
    let text = |one: &Value, member: &str| one[member].as_str().unwrap_or_default().trim_end().to_owned();
    let all = invalid.as_array().into_iter().flatten();
    let lines = all.map(|one| format!("{}:\n{}", text(one, "what"), text(one, "reason")));
    lines.collect::<Vec<_>>().join("\n")
}

/// A header field of a request, where it is text.
fn header_of(request: &Request, name: header::HeaderName) -> Option<String> {
    let value = request.headers().get(name)?;
    value.to_str().ok().map(str::to_owned)
}

async fn answer(administration: Arc<Administration>, change: Change, request: Request) -> Response {
    let authorization = header_of(&request, header::AUTHORIZATION);
    if let Err(why) = administration.accepts.admit(authorization.as_deref()) {
        let status = match administration.accepts.secret {
            Some(_) => StatusCode::UNAUTHORIZED,
            None => StatusCode::FORBIDDEN,
        };
        return (status, why + "\n").into_response();
    }
    let by = match header_of(&request, header::USER_AGENT) {
        Some(agent) => format!(
            "the admin endpoint ({})",
            agent.chars().take(100).collect::<String>()
        ),
        None => "the admin endpoint".to_owned(),
    };
    let most = match change {
        Change::Setting(_) => MOST_OF_VALUE,
        Change::Whole | Change::Compare => MOST,
    };
    let Ok(body) = to_bytes(request.into_body(), most).await else {
        return (
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("more than {most} octets\n"),
        )
            .into_response();
    };
    let Ok(body) = String::from_utf8(body.to_vec()) else {
        return (StatusCode::BAD_REQUEST, "not UTF-8\n").into_response();
    };
    // It reads and writes files; other pages are served meanwhile.
    let changed = tokio::task::spawn_blocking(move || administration.change(&change, &body, &by)).await;
    match changed {
        Ok(Ok(answer)) => axum::Json(answer).into_response(),
        Ok(Err(Fault(status, words))) => (status, words + "\n").into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

fn folder_of(file: &Path) -> &Path {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Has processes with one file, or with files in one folder, change them one after the other, as far as the file system has locks.
/// Removes what one has left there that was killed.
fn take_turn(file: &Path) -> io::Result<File> {
    let folder = folder_of(file);
    let turn = File::open(folder)?;
    if turn.lock().is_ok() {
        let entries = std::fs::read_dir(folder)?.filter_map(Result::ok);
        let is_left = |entry: &std::fs::DirEntry| {
            entry
                .file_name()
                .as_encoded_bytes()
                .starts_with(PREPARED.as_bytes())
        };
        for left in entries.filter(is_left) {
            std::fs::remove_file(left.path())?;
        }
    }
    Ok(turn)
}

/// Writes a text beside a file, durably, with the rights that the file has.
fn prepare(file: &Path, text: &str) -> io::Result<NamedTempFile> {
    let mut new = tempfile::Builder::new()
        .prefix(PREPARED)
        .tempfile_in(folder_of(file))?;
    new.write_all(text.as_bytes())?;
    new.as_file()
        .set_permissions(std::fs::metadata(file)?.permissions())?;
    new.as_file().sync_all()?;
    Ok(new)
}

/// Puts it in the place of the file, whole or not at all.
fn put_in_place(new: NamedTempFile, file: &Path) -> io::Result<()> {
    new.persist(file).map_err(|error| error.error)?;
    File::open(folder_of(file))?.sync_all()
}
