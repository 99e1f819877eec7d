//! The users of a console and what each may do: a file that `signalbox console user` writes.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use argon2::password_hash::{PasswordHash, PasswordHasher as _, PasswordVerifier as _, SaltString};
use argon2::{ARGON2ID_IDENT, Argon2};
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};

/// Users of one console at most.
const MOST_USERS: usize = 1_000;
/// Octets of the file.
const MOST_FILE: u64 = 1 << 20;
/// Characters of a name.
const MOST_NAME: usize = 64;
/// Characters of a password at least.
pub const LEAST_PASSWORD: usize = 12;
/// Octets of a password at most: all of them are hashed.
pub const MOST_PASSWORD: usize = 1_024;

/// What a user may do. Every user may look at functions, with identities of subscribers masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Looks at functions.
    Viewer,
    /// Sees subscribers: searches, follows, asks why.
    Tracer,
    /// Changes what functions do.
    Operator,
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "viewer" => Ok(Self::Viewer),
            "tracer" => Ok(Self::Tracer),
            "operator" => Ok(Self::Operator),
            _ => Err(format!(
                "`{text}` is not a role; valid are viewer, tracer, operator"
            )),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Viewer => "viewer",
            Self::Tracer => "tracer",
            Self::Operator => "operator",
        })
    }
}

/// A user.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// Its name.
    pub name: String,
    /// What it may do.
    pub roles: BTreeSet<Role>,
    /// The argon2id hash of its password, in PHC form.
    pub password: String,
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the hash.
        f.debug_struct("User")
            .field("name", &self.name)
            .field("roles", &self.roles)
            .finish_non_exhaustive()
    }
}

impl User {
    /// A user with this password.
    ///
    /// # Errors
    /// Why name or password cannot be used.
    pub fn new(name: &str, roles: BTreeSet<Role>, password: &str) -> Result<Self, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._@-".contains(c);
        if name.is_empty() || name.len() > MOST_NAME || !name.chars().all(is_plain) {
            return Err(format!(
                "`{name}` is not a name; use letters, digits, `.`, `_`, `@` and `-`, at most {MOST_NAME} of them"
            ));
        }
        if password.chars().count() < LEAST_PASSWORD || password.len() > MOST_PASSWORD {
            return Err(format!(
                "the password is too short or too long; use {LEAST_PASSWORD} characters or more, at most {MOST_PASSWORD} octets"
            ));
        }
        if password.to_lowercase().contains(&name.to_lowercase()) && name.len() * 2 > password.len() {
            return Err("the password is hardly more than the name".to_owned());
        }
        let mut roles = roles;
        roles.insert(Role::Viewer);
        Ok(Self {
            name: name.to_owned(),
            roles,
            password: hash(password)?,
        })
    }

    /// Whether this is its password. Takes as long as a hash does.
    pub(crate) fn has_password(&self, password: &str) -> bool {
        let Ok(hash) = PasswordHash::new(&self.password) else {
            return false;
        };
        Argon2::default()
            .verify_password(password.as_bytes(), &hash)
            .is_ok()
    }
}

/// Takes as long as [`User::has_password`], for a name without a user.
pub(crate) fn spend(password: &str) {
    let _ = Argon2::default().hash_password_into(password.as_bytes(), &[0; 16], &mut [0; 32]);
}

fn hash(password: &str) -> Result<String, String> {
    let mut octets = [0; 16];
    let filled = SystemRandom::new().fill(&mut octets);
    filled.map_err(|_| "the system has no random numbers".to_owned())?;
    let salt = SaltString::encode_b64(&octets).map_err(|error| error.to_string())?;
    // Argon2id, version 19, 19 MiB, two passes.
    let hash = Argon2::default().hash_password(password.as_bytes(), &salt);
    hash.map(|hash| hash.to_string())
        .map_err(|error| error.to_string())
}

/// The file of users.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserFile {
    version: u32,
    /// The users.
    pub users: Vec<User>,
}

impl Default for UserFile {
    fn default() -> Self {
        Self {
            version: 1,
            users: Vec::new(),
        }
    }
}

/// The file of users of a console with this directory.
#[must_use]
pub fn path(directory: &Path) -> PathBuf {
    directory.join("users.json")
}

impl UserFile {
    /// Reads the file; one that does not exist has no users.
    ///
    /// # Errors
    /// Why it cannot be used, with its path.
    pub fn read(path: &Path) -> Result<Self, String> {
        let fault = |words: &dyn fmt::Display| format!("{}: {words}", path.display());
        let mut text = String::new();
        match File::open(path) {
            Ok(file) => {
                let read = file.take(MOST_FILE + 1).read_to_string(&mut text);
                read.map_err(|error| fault(&error))?;
            }
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(fault(&error)),
        }
        if text.len() as u64 > MOST_FILE {
            return Err(fault(&format!("has more than {MOST_FILE} octets")));
        }
        let file: Self = serde_json::from_str(&text).map_err(|error| fault(&error))?;
        file.check().map_err(|words| fault(&words))?;
        Ok(file)
    }

    fn check(&self) -> Result<(), String> {
        if self.version != 1 {
            return Err(format!(
                "has version {}; this release reads version 1",
                self.version
            ));
        }
        if self.users.len() > MOST_USERS {
            return Err(format!("has {} users, at most {MOST_USERS}", self.users.len()));
        }
        let mut names = BTreeSet::new();
        for user in &self.users {
            if !names.insert(&user.name) {
                return Err(format!("has two users `{}`", user.name));
            }
            let hash = PasswordHash::new(&user.password).ok();
            if hash.is_none_or(|hash| hash.algorithm != ARGON2ID_IDENT) {
                return Err(format!(
                    "the password of `{}` is not a hash by argon2id",
                    user.name
                ));
            }
        }
        Ok(())
    }

    /// The user of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&User> {
        self.users.iter().find(|user| user.name == name)
    }

    /// Changes the file: reads it, has `change` change it, and replaces it in one step, readable by its owner alone.
    /// Creates the directory. Returns what `change` does.
    ///
    /// # Errors
    /// What `change` refuses, or why the file cannot be read or written; nothing has changed then.
    pub fn change<T>(path: &Path, change: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        let fault = |path: &Path, error: &dyn fmt::Display| format!("{}: {error}", path.display());
        if let Some(directory) = path.parent() {
            let made = fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory);
            made.map_err(|error| fault(directory, &error))?;
        }
        let directory = path.parent().unwrap_or(Path::new("."));
        let _turn = take_turn(directory).map_err(|words| fault(directory, &words))?;
        let mut users = Self::read(path)?;
        let outcome = change(&mut users)?;
        users.check()?;
        let mut text = serde_json::to_string_pretty(&users).map_err(|error| error.to_string())?;
        text.push('\n');
        let next = path.with_extension("json.new");
        let replaced = || {
            // One that was killed may have left its own.
            fs::remove_file(&next).or_else(|error| match error.kind() {
                ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            })?;
            let mut options = OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(0o600).open(&next)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&next, path)?;
            File::open(directory)?.sync_all()
        };
        replaced().map_err(|error| {
            // It may have been renamed already.
            let _ = fs::remove_file(&next);
            fault(path, &error)
        })?;
        Ok(outcome)
    }
}

/// Refuses other changes in a directory, until it is dropped or the process ends.
fn take_turn(directory: &Path) -> Result<File, String> {
    let turn = File::open(directory).map_err(|error| error.to_string())?;
    match turn.try_lock() {
        Ok(()) => Ok(turn),
        Err(TryLockError::WouldBlock) => Err("another change is in progress".to_owned()),
        Err(TryLockError::Error(error)) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const PASSWORD: &str = "correct horse battery";

    fn add(path: &Path, name: &str, roles: &[Role]) -> Result<(), String> {
        let user = User::new(name, roles.iter().copied().collect(), PASSWORD)?;
        UserFile::change(path, |file| {
            file.users.push(user);
            Ok(())
        })
    }

    #[test]
    fn a_user_is_kept_as_a_hash_that_its_owner_alone_reads() {
        let folder = tempfile::tempdir().unwrap();
        let path = path(&folder.path().join("new"));
        add(&path, "ada", &[Role::Tracer]).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            !text.contains(PASSWORD) && text.contains("$argon2id$v=19$m=19456,t=2,p=1$"),
            "{text}"
        );
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        let file = UserFile::read(&path).unwrap();
        let user = file.find("ada").unwrap();
        assert!(user.has_password(PASSWORD) && !user.has_password("correct horse batter"));
        assert_eq!(user.roles, [Role::Viewer, Role::Tracer].into());
        assert!(!format!("{file:?}").contains("argon2"), "{file:?}");
        assert!(add(&path, "ada", &[]).unwrap_err().contains("two users"));
        assert_eq!(UserFile::read(&path).unwrap().users.len(), 1);
    }

    #[test]
    fn a_change_in_progress_refuses_a_second_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = path(folder.path());
        UserFile::change(&path, |_| {
            let second = UserFile::change(&path, |_| Ok(())).unwrap_err();
            assert!(second.contains("another change is in progress"), "{second}");
            Ok(())
        })
        .unwrap();
        UserFile::change(&path, |_| Err::<(), _>("no".to_owned())).unwrap_err();
        UserFile::change(&path, |_| Ok(())).unwrap();
    }

    #[test]
    fn a_change_that_was_killed_hinders_none_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = path(folder.path());
        add(&path, "ada", &[]).unwrap();
        let left = path.with_extension("json.new");
        fs::write(&left, "{\"version\"").unwrap();
        fs::set_permissions(&left, fs::Permissions::from_mode(0o644)).unwrap();
        add(&path, "bob", &[]).unwrap();
        assert_eq!(UserFile::read(&path).unwrap().users.len(), 2);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!((mode & 0o777, left.exists()), (0o600, false));
    }

    #[test]
    fn names_and_passwords_have_bounds() {
        for name in ["", "a b", "<b>", "../x", &"x".repeat(65)] {
            assert!(User::new(name, BTreeSet::new(), PASSWORD).is_err(), "{name}");
        }
        for password in ["", "short", "administrator", &"x".repeat(2_000)] {
            assert!(
                User::new("administrator", BTreeSet::new(), password).is_err(),
                "{password}"
            );
        }
    }

    #[test]
    fn what_is_not_a_file_of_users_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = path(folder.path());
        assert!(UserFile::read(&path).unwrap().users.is_empty());
        for (text, word) in [
            ("{", "EOF"),
            ("{\"version\":2,\"users\":[]}", "version 2"),
            (
                "{\"version\":1,\"users\":[{\"name\":\"a\",\"roles\":[],\"password\":\"1423\"}]}",
                "argon2id",
            ),
            ("{\"version\":1,\"users\":[],\"admin\":\"1423\"}", "unknown field"),
        ] {
            fs::write(&path, text).unwrap();
            let refused = UserFile::read(&path).unwrap_err();
            assert!(
                refused.contains(word) && refused.contains("users.json"),
                "{refused}"
            );
        }
        fs::write(&path, " ".repeat(2 << 20)).unwrap();
        assert!(UserFile::read(&path).unwrap_err().contains("octets"));
    }
}
