//! Who may use the console: users, their sessions, what each may see and change, and the record of it.
//!
//! Without a directory the console has no users: everyone who reaches it, on this machine alone, may do everything.
//!
//! | file | what happens there |
//! |---|---|
//! | [`users`] | the file of users, their roles and the hashes of their passwords |
//! | `sessions` | who has signed in, until when |
//! | `backoff` | how long a guesser waits |
//! | `audit` | the record of who did what |
//! | `gate` | decides on each request |
//! | `sign_in` | begins and ends sessions |
//! | `mask` | texts without identities of subscribers |

mod audit;
mod backoff;
mod gate;
mod mask;
mod sessions;
mod sign_in;
pub mod users;

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use telemetry::Journal;
use telemetry::journal::{Kind, moment};
use tokio::sync::Semaphore;

use self::audit::Audit;
pub(crate) use self::audit::Entry;
use self::backoff::Backoff;
pub(crate) use self::gate::{Gate, Right, admit, refuse_foreign_changes};
pub(crate) use self::mask::masked;
use self::sessions::Sessions;
pub(crate) use self::sign_in::{PATH as SESSION, SESSIONS, routes};
use self::users::{Role, UserFile};
use crate::metrics::Meters;

/// Interval at which the file of users is checked for changes.
const USERS_CHECKED: Duration = Duration::from_secs(1);
/// Passwords that are hashed at the same time: each takes 19 MB.
const HASHES: usize = 2;
/// How long the page of a followed subscriber is read before the audit log has another entry about it.
const READ_AGAIN: Duration = Duration::from_secs(600);

/// Text of a secret: 64 hexadecimal digits.
pub(crate) type Secret = String;
/// What is kept of a secret.
type Digest = [u8; 32];

/// Access to a console.
#[derive(Debug)]
pub(crate) struct Access {
    /// None: no users.
    known: Option<Known>,
    /// The token of changes where there are no users.
    token: Secret,
    /// Whether browsers reach it by TLS.
    is_secure: bool,
    journal: Journal,
    meters: Arc<Meters>,
}

/// What a console with users has.
#[derive(Debug)]
struct Known {
    users: Mutex<CheckedUsers>,
    sessions: Mutex<Sessions>,
    backoff: Mutex<Backoff>,
    audit: Arc<Audit>,
    hashes: Semaphore,
}

/// The users, and when their file was checked.
#[derive(Debug)]
struct CheckedUsers {
    path: std::path::PathBuf,
    file: Arc<UserFile>,
    checked: Instant,
    /// Length and time of the file that was read.
    mark: Option<(u64, SystemTime)>,
}

/// Who sends a request.
#[derive(Clone, Debug)]
pub(crate) struct Visitor {
    /// The name of the user; none: the console has no users.
    pub(crate) user: Option<String>,
    roles: Vec<Role>,
    /// The token that its changes need.
    token: Secret,
    pub(crate) from: IpAddr,
    /// The digest of its session.
    session: Option<Digest>,
}

impl Visitor {
    /// Whether it has a right.
    pub(crate) fn may(&self, right: Right) -> bool {
        match right {
            Right::See => true,
            Right::Trace => self.roles.contains(&Role::Tracer),
            Right::Operate => self.roles.contains(&Role::Operator),
        }
    }

    /// The name for records.
    pub(crate) fn name(&self) -> &str {
        self.user.as_deref().unwrap_or("a browser at the console")
    }
}

impl Access {
    /// Reads the users below `directory`; none: there are none.
    ///
    /// # Errors
    /// When the file of users is not one.
    pub(crate) fn open(
        directory: Option<&Path>,
        is_secure: bool,
        journal: Journal,
        meters: Arc<Meters>,
    ) -> Result<Self, String> {
        let known = directory.map(Known::open).transpose()?;
        Ok(Self {
            known,
            token: secret()?,
            is_secure,
            journal,
            meters,
        })
    }

    /// Whether browsers reach it by TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// Whether a visitor signs in.
    pub(crate) fn has_users(&self) -> bool {
        self.known.is_some()
    }

    /// Users that may sign in.
    pub(crate) fn users(&self) -> usize {
        self.known
            .as_ref()
            .map_or(0, |known| known.users(Instant::now()).users.len())
    }

    /// Who has this secret of a session, if any may see the console with it.
    pub(crate) fn visitor(&self, secret: Option<&str>, from: IpAddr, now: Instant) -> Option<Visitor> {
        let Some(known) = &self.known else {
            return Some(Visitor {
                user: None,
                roles: vec![Role::Viewer, Role::Tracer, Role::Operator],
                token: self.token.clone(),
                from,
                session: None,
            });
        };
        known.visitor(digest_of(secret?), from, now)
    }

    /// The visitor of an earlier request as it is now; none: its session has ended.
    pub(crate) fn again(&self, visitor: &Visitor, now: Instant) -> Option<Visitor> {
        match (&self.known, visitor.session) {
            (Some(known), Some(session)) => known.visitor(session, visitor.from, now),
            _ => Some(visitor.clone()),
        }
    }

    /// Records what a visitor did or was refused.
    ///
    /// # Errors
    /// When the audit log cannot be written: what it cannot hold must not happen.
    pub(crate) async fn record(&self, visitor: &Visitor, entry: Entry) -> Result<(), String> {
        self.record_of(visitor.name(), visitor.from, entry).await
    }

    async fn record_of(&self, user: &str, from: IpAddr, entry: Entry) -> Result<(), String> {
        if entry.is_change {
            let about = format!("{} {}", entry.what, entry.about);
            self.journal
                .record_by(Kind::Operator, &about, &entry.detail, user);
        }
        match &self.known {
            Some(known) => known.audit.clone().record(user, from, entry).await,
            None => Ok(()),
        }
    }

    /// Records that a followed subscriber is read, once for a while.
    ///
    /// # Errors
    /// As [`Access::record`].
    pub(crate) async fn record_reading(&self, visitor: &Visitor, identity: &str) -> Result<(), String> {
        let (Some(known), Some(session)) = (&self.known, visitor.session) else {
            return Ok(());
        };
        let now = Instant::now();
        if known
            .sessions
            .lock()
            .has_read(&session, identity, now, READ_AGAIN)
        {
            return Ok(());
        }
        self.record(visitor, Entry::new("reads followed messages", identity))
            .await?;
        known.sessions.lock().set_read(&session, identity, now);
        Ok(())
    }
}

impl Known {
    fn open(directory: &Path) -> Result<Self, String> {
        let path = users::path(directory);
        let file = UserFile::read(&path)?;
        if file.users.is_empty() {
            tracing::warn!(
                file = %path.display(),
                "the console has no user yet: signalbox console user add NAME --config FILE"
            );
        }
        let mark = mark(&path);
        Ok(Self {
            users: Mutex::new(CheckedUsers {
                path,
                file: Arc::new(file),
                checked: Instant::now(),
                mark,
            }),
            sessions: Mutex::default(),
            backoff: Mutex::default(),
            audit: Arc::new(Audit::new(directory)),
            hashes: Semaphore::new(HASHES),
        })
    }

    /// The users as their file says now. A file that is not one changes nothing.
    fn users(&self, now: Instant) -> Arc<UserFile> {
        let mut users = self.users.lock();
        if now.saturating_duration_since(users.checked) >= USERS_CHECKED {
            users.checked = now;
            let mark = mark(&users.path);
            if mark != users.mark {
                match UserFile::read(&users.path) {
                    Ok(file) => users.file = Arc::new(file),
                    Err(error) => tracing::error!(error, "invalid file of users; those before stay"),
                }
                users.mark = mark;
            }
        }
        users.file.clone()
    }

    fn visitor(&self, session: Digest, from: IpAddr, now: Instant) -> Option<Visitor> {
        let users = self.users(now);
        let mut sessions = self.sessions.lock();
        let found = sessions.find(&session, now)?;
        // A changed password ends the sessions that began with the one before.
        let user = users
            .find(&found.user)
            .filter(|user| digest_of(&user.password) == found.password)?;
        Some(Visitor {
            user: Some(user.name.clone()),
            roles: user.roles.iter().copied().collect(),
            token: found.token.clone(),
            from,
            session: Some(session),
        })
    }
}

/// What changes with a file.
fn mark(path: &Path) -> Option<(u64, SystemTime)> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.len(), found.modified().ok()?))
}

fn digest_of(text: &str) -> Digest {
    let made = digest(&SHA256, text.as_bytes());
    let mut octets = [0; 32];
    octets.copy_from_slice(made.as_ref());
    octets
}

/// 32 random octets as text.
fn secret() -> Result<Secret, String> {
    let mut octets = [0; 32];
    let filled = SystemRandom::new().fill(&mut octets);
    filled.map_err(|_| "the system has no random numbers".to_owned())?;
    Ok(hex(&octets))
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// The present moment as text.
fn present() -> String {
    moment(SystemTime::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_of_users_counts_within_a_second_and_what_is_not_one_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = users::path(folder.path());
        let known = Known::open(folder.path()).unwrap();
        let start = Instant::now();
        let names = |after: u64| {
            let users = known.users(start + Duration::from_secs(after));
            users
                .users
                .iter()
                .map(|user| user.name.clone())
                .collect::<Vec<_>>()
        };
        let user = users::User::new("ada", [].into(), "correct horse battery").unwrap();
        UserFile::change(&path, |file| {
            file.users.push(user);
            Ok(())
        })
        .unwrap();
        assert_eq!(names(0), [""; 0], "checked once a second");
        assert_eq!(names(2), ["ada"]);
        std::fs::write(&path, "{").unwrap();
        assert_eq!(names(4), ["ada"]);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(names(6), [""; 0]);
    }

    #[test]
    fn secrets_are_long_and_differ() {
        let secrets: std::collections::BTreeSet<Secret> = (0..100).map(|_| secret().unwrap()).collect();
        assert!(secrets.len() == 100 && secrets.iter().all(|secret| secret.len() == 64));
    }
}
