//! The nodes of the database: which one is in use, and connections to it.
//!
//! One node is used at a time, so that a function reads what it has written. When it fails, or answers but does not
//! take writes, the next that answers and is ready takes its place, for all connections; there is no way back but
//! another failure.
//!
//! **A node that was left may still live** (it was not ready for a moment, or one connection to it broke), and a
//! transaction that is in progress on it may still be committed. Two rules keep every later read from missing it:
//! a connection waits until its node has applied what others have acknowledged *after* the node came into use, and a
//! commit on a node that is not in use any more is acknowledged only when the node in use has it
//! ([`Nodes::is_in_use`], [`super::write`]).

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use mysql_async::prelude::Queryable as _;
use mysql_async::{ClientIdentity, Conn, Opts, OptsBuilder, SslOpts};
use parking_lot::Mutex;

use super::triggers::LOCAL;
use crate::config::MariadbConfig;
use crate::error::Error;

/// The list of nodes and the one in use.
pub(super) struct Nodes {
    addresses: Vec<(String, Opts)>,
    /// The [`Turn`] of the node in use.
    turn: AtomicU64,
    /// The latest turn in which a connection was made.
    reached: AtomicU64,
    /// Whether the nodes are those of a Galera cluster, which judges a transaction again when it is committed.
    certifies: AtomicBool,
    /// Why nodes were left, since a connection was made.
    reasons: Mutex<Vec<String>>,
    pub(super) failovers: AtomicU64,
    connect_timeout: Duration,
    statement_timeout: Duration,
}

/// Counts how often another node came into use, from 0. Nodes take turns in the order of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn(u64);

/// A connection, and the turn in which it was made.
pub(super) struct Connection {
    conn: Conn,
    turn: Turn,
}

/// How a statement can fail.
#[derive(Debug)]
pub(super) enum Failure {
    /// Deadlock, certification failure, lock wait: nothing was done, try again.
    Again(String),
    /// The connection is lost: try again. What was being done may have been done.
    Lost(String),
    /// The node answers but does not serve (read only, disk full), or does not answer in time: try again with
    /// another. What was being done may have been done.
    Unfit(String),
    /// A unique key exists already; which one, as far as the server tells.
    Duplicate(String),
    /// The server cannot store these values, also of another caller: the fault is the batch's.
    Refused(String),
    /// The server fails, and trying again does not help: the fault of the database or of this program.
    Failed(String),
}

impl Failure {
    /// What happened, in words.
    pub(super) fn reason(self) -> String {
        match self {
            Failure::Again(reason)
            | Failure::Lost(reason)
            | Failure::Unfit(reason)
            | Failure::Duplicate(reason)
            | Failure::Refused(reason)
            | Failure::Failed(reason) => reason,
        }
    }
}

impl From<mysql_async::Error> for Failure {
    fn from(error: mysql_async::Error) -> Failure {
        let text = error.to_string();
        let mysql_async::Error::Server(server) = error else {
            return Failure::Lost(text);
        };
        match server.code {
            // ER_DUP_ENTRY, ER_DUP_ENTRY_WITH_KEY_NAME
            1062 | 1586 => Failure::Duplicate(server.message),
            // ER_LOCK_WAIT_TIMEOUT, ER_LOCK_DEADLOCK (also certification failure), ER_CHECKREAD,
            // ER_XA_RBDEADLOCK; NDB's temporary errors come as ER_GET_TEMPORARY_ERRMSG
            1205 | 1213 | 1020 | 1614 | 1297 => Failure::Again(text),
            // ER_OPTION_PREVENTS_STATEMENT and ER_READ_ONLY_MODE (read only), ER_DISK_FULL, ER_RECORD_FILE_FULL
            1290 | 1836 | 1021 | 1114 => Failure::Unfit(text),
            // ER_UNKNOWN_COM_ERROR ("WSREP has not yet prepared node for application use"), ER_SERVER_SHUTDOWN,
            // ER_CON_COUNT_ERROR, ER_QUERY_INTERRUPTED, ER_CONNECTION_KILLED, ER_CANT_DO_THIS_DURING_AN_TRANSACTION
            1047 | 1053 | 1040 | 1317 | 1927 | 1179 | 1180 => Failure::Lost(text),
            // ER_NET_PACKET_TOO_LARGE, ER_TOO_BIG_ROWSIZE, ER_WARN_DATA_OUT_OF_RANGE, ER_WARN_DATA_TRUNCATED,
            // ER_TRUNCATED_WRONG_VALUE, ER_TRUNCATED_WRONG_VALUE_FOR_FIELD, ER_DATA_TOO_LONG
            1153 | 1118 | 1264 | 1265 | 1292 | 1366 | 1406 => Failure::Refused(text),
            _ => Failure::Failed(text),
        }
    }
}

impl Nodes {
    pub(super) fn new(config: &MariadbConfig) -> Result<Nodes, Error> {
        let password = match &config.password {
            Some(secret) => Some(
                secret
                    .read()
                    .map_err(|error| Error::Open(format!("mariadb.password: {error}")))?,
            ),
            None => None,
        };
        let identity = config.client_certificate.clone().zip(config.client_key.clone());
        let tls = config.certificate_authority.as_ref().map(|path| {
            SslOpts::default()
                .with_root_certs(vec![path.clone().into()])
                .with_disable_built_in_roots(true)
                .with_client_identity(
                    identity.map(|(certificate, key)| ClientIdentity::new(certificate.into(), key.into())),
                )
        });
        let options = |host: &str, port| {
            OptsBuilder::default()
                .ip_or_hostname(host)
                .tcp_port(port)
                .user(Some(config.user.as_str()))
                .pass(password.clone())
                .db_name(Some(config.database.as_str()))
                .prefer_socket(false)
                .tcp_nodelay(true)
                .stmt_cache_size(256)
                .ssl_opts(tls.clone())
                // No gap locks: a group locks the rows it names and nothing else.
                .setup(vec!["SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"])
                .into()
        };
        let addresses = config
            .nodes
            .iter()
            .map(|node| (node.to_string(), options(&node.host, node.port)))
            .collect();
        Ok(Nodes {
            addresses,
            turn: AtomicU64::new(0),
            reached: AtomicU64::new(0),
            certifies: AtomicBool::new(false),
            reasons: Mutex::default(),
            failovers: AtomicU64::new(0),
            connect_timeout: config.connect_timeout.duration(),
            statement_timeout: config.statement_timeout.duration(),
        })
    }

    /// Name of the node in use.
    pub(super) fn current(&self) -> &str {
        self.node(self.turn()).0.as_str()
    }

    fn turn(&self) -> Turn {
        Turn(self.turn.load(SeqCst))
    }

    fn node(&self, turn: Turn) -> &(String, Opts) {
        // The remainder is below the length, which is a `usize`.
        &self.addresses[(turn.0 % self.addresses.len() as u64) as usize]
    }

    /// Whether the nodes are those of a Galera cluster.
    pub(super) fn certify(&self) -> bool {
        self.certifies.load(Relaxed)
    }

    /// Whether connections of this turn are those to use; otherwise another node has come into use since.
    pub(super) fn is_in_use(&self, turn: Turn) -> bool {
        turn == self.turn()
    }

    /// Makes sure that `slot` holds a connection to the node in use.
    pub(super) async fn connected<'a>(
        &self,
        slot: &'a mut Option<Connection>,
    ) -> Result<&'a mut Conn, Failure> {
        self.connected_in_turn(slot).await.map(|(conn, _)| conn)
    }

    /// As [`Nodes::connected`], with the turn of the connection.
    pub(super) async fn connected_in_turn<'a>(
        &self,
        slot: &'a mut Option<Connection>,
    ) -> Result<(&'a mut Conn, Turn), Failure> {
        // While this connects, another may come into use.
        for _ in 0..=self.addresses.len() {
            if slot
                .as_ref()
                .is_some_and(|connection| self.is_in_use(connection.turn))
            {
                break;
            }
            *slot = None;
            *slot = Some(self.connect().await?);
        }
        match slot {
            Some(connection) if self.is_in_use(connection.turn) => {
                Ok((&mut connection.conn, connection.turn))
            }
            _ => Err(Failure::Lost("the node in use keeps changing".to_owned())),
        }
    }

    /// Connects to the node in use, or to the next one that is ready, which then is the one in use.
    async fn connect(&self) -> Result<Connection, Failure> {
        let mut reasons = Vec::new();
        for _ in 0..self.addresses.len() {
            // Before the causal wait, see the head of this file.
            let turn = self.turn();
            let (name, options) = self.node(turn);
            match self.reach(options).await {
                Ok(conn) => {
                    self.arrived(turn);
                    return Ok(Connection { conn, turn });
                }
                Err(reason) => {
                    reasons.push(format!("{name}: {reason}"));
                    self.leave(turn, &reason);
                }
            }
        }
        Err(Failure::Lost(reasons.join("; ")))
    }

    /// Counts and logs the first connection to another node.
    fn arrived(&self, turn: Turn) {
        let before = Turn(self.reached.fetch_max(turn.0, Relaxed));
        let reasons = std::mem::take(&mut *self.reasons.lock());
        let (from, to) = (&self.node(before).0, &self.node(turn).0);
        if before < turn && from != to {
            self.failovers.fetch_add(1, Relaxed);
            let reasons = reasons.join("; ");
            tracing::warn!(from, to, reasons, "another node of the database is used now");
        }
    }

    /// Takes the next node into use, unless that has happened since this turn.
    fn leave(&self, turn: Turn, reason: &str) {
        let next = self
            .turn
            .compare_exchange(turn.0, turn.0.wrapping_add(1), SeqCst, SeqCst);
        if next.is_ok() {
            let mut reasons = self.reasons.lock();
            if reasons.len() < self.addresses.len() {
                reasons.push(format!("{}: {reason}", self.node(turn).0));
            }
        }
    }

    /// Drops a connection on which a statement failed, when it is of no use any more. With `leave`, a node that
    /// does not serve is left.
    pub(super) fn failed(&self, slot: &mut Option<Connection>, failure: &Failure, leave: bool) {
        if !matches!(failure, Failure::Lost(_) | Failure::Unfit(_)) {
            return;
        }
        if let (Some(connection), Failure::Unfit(reason), true) = (slot.take(), failure, leave) {
            self.leave(connection.turn, reason);
        }
    }

    async fn reach(&self, options: &Opts) -> Result<Conn, String> {
        let connect = async {
            let mut conn = Conn::new(options.clone())
                .await
                .map_err(|error| error.to_string())?;
            // A program that stands still in the middle of a transaction keeps its locks no longer than that (MariaDB only):
            // others wait for them, and find it dead only when they can write its record.
            let idle = self.statement_timeout.as_secs().max(1);
            let lock = lock_timeout(self.statement_timeout);
            let set = format!(
                "SET {LOCAL} = 1, SESSION innodb_lock_wait_timeout = {lock} /*M! , SESSION idle_transaction_timeout = {idle} */"
            );
            conn.query_drop(set).await.map_err(|error| error.to_string())?;
            if show(&mut conn, "SHOW VARIABLES LIKE 'wsrep_on'")
                .await?
                .as_deref()
                == Some("ON")
            {
                if show(&mut conn, "SHOW STATUS LIKE 'wsrep_ready'")
                    .await?
                    .as_deref()
                    != Some("ON")
                {
                    return Err("the node is not ready (wsrep_ready is OFF)".to_owned());
                }
                self.certifies.store(true, Relaxed);
                // What other nodes have acknowledged before now is seen from here on.
                for statement in [
                    "SET SESSION wsrep_sync_wait = 1",
                    "SELECT 1",
                    "SET SESSION wsrep_sync_wait = 0",
                ] {
                    conn.query_drop(statement)
                        .await
                        .map_err(|error| error.to_string())?;
                }
            }
            Ok(conn)
        };
        tokio::time::timeout(self.connect_timeout, connect)
            .await
            .unwrap_or_else(|_| Err(format!("no connection within {:?}", self.connect_timeout)))
    }

    /// Runs a statement with the time limit.
    pub(super) async fn within<T>(
        &self,
        statement: impl Future<Output = Result<T, mysql_async::Error>>,
    ) -> Result<T, Failure> {
        match tokio::time::timeout(self.statement_timeout, statement).await {
            Ok(result) => result.map_err(Failure::from),
            Err(_) => Err(Failure::Unfit(format!(
                "no answer within {:?}",
                self.statement_timeout
            ))),
        }
    }
}

/// Seconds that a statement waits for a lock: a fraction of those it may take. The server breaks a circle of transactions
/// that wait for each other, but does not see one which contains the order in which replication commits; there this
/// transaction gives way and is tried again. A statement whose answer is awaited no longer would go on waiting, with its
/// locks, for the 50 s of the server's default.
fn lock_timeout(statement: Duration) -> u64 {
    (statement.as_secs() / 2).max(1)
}

async fn show(conn: &mut Conn, statement: &str) -> Result<Option<String>, String> {
    let row: Option<(String, String)> = conn
        .query_first(statement)
        .await
        .map_err(|error| error.to_string())?;
    Ok(row.map(|(_, value)| value))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only a value that no server could store is the fault of who sent it.
    #[test]
    fn whose_fault_an_error_of_the_server_is() {
        let of = |code: u16| {
            let error = mysql_async::ServerError {
                code,
                message: "message".to_owned(),
                state: "HY000".to_owned(),
            };
            Failure::from(mysql_async::Error::Server(error))
        };
        for code in [1205, 1213] {
            assert!(matches!(of(code), Failure::Again(_)), "{code}");
        }
        // Table full, disk full, read only.
        for code in [1114, 1021, 1290, 1836] {
            assert!(matches!(of(code), Failure::Unfit(_)), "{code}");
        }
        // No privilege for the table, unknown column, no such table, and what is not known here.
        for code in [1142, 1054, 1146, 4_999] {
            assert!(matches!(of(code), Failure::Failed(_)), "{code}");
        }
        for code in [1153, 1406] {
            assert!(matches!(of(code), Failure::Refused(_)), "{code}");
        }
    }
}
