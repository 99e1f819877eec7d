//! The nodes of the database: which one is in use, and connections to it.
//!
//! One node is used at a time, so that a function reads what it has written. When it fails, the next that answers
//! and is ready takes its place, for all connections; there is no way back but another failure.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::Duration;

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Opts, OptsBuilder, SslOpts};

use crate::config::MariadbConfig;
use crate::error::Error;

/// The list of nodes and the one in use.
pub(super) struct Nodes {
    addresses: Vec<(String, Opts)>,
    current: AtomicUsize,
    pub(super) failovers: AtomicU64,
    connect_timeout: Duration,
    statement_timeout: Duration,
}

/// A connection, and to which node.
pub(super) struct Connection {
    pub(super) conn: Conn,
    node: usize,
}

/// How a statement can fail.
#[derive(Debug)]
pub(super) enum Failure {
    /// Deadlock, certification failure, lock wait: nothing was done, try again.
    Again(String),
    /// The node is lost, or not able to serve: try again with another. What was being done may have been done.
    Lost(String),
    /// A unique key exists already; which one, as far as the server tells.
    Duplicate(String),
    /// Trying again does not help.
    Refused(String),
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
            // ER_UNKNOWN_COM_ERROR ("WSREP has not yet prepared node for application use"), ER_SERVER_SHUTDOWN,
            // ER_CON_COUNT_ERROR, ER_OPTION_PREVENTS_STATEMENT (read only), ER_QUERY_INTERRUPTED,
            // ER_CONNECTION_KILLED, ER_CANT_DO_THIS_DURING_AN_TRANSACTION
            1047 | 1053 | 1040 | 1290 | 1317 | 1927 | 1179 | 1180 => Failure::Lost(text),
            _ => Failure::Refused(text),
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
        let tls = config.certificate_authority.as_ref().map(|path| {
            SslOpts::default()
                .with_root_certs(vec![path.clone().into()])
                .with_disable_built_in_roots(true)
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
            current: AtomicUsize::new(0),
            failovers: AtomicU64::new(0),
            connect_timeout: config.connect_timeout.duration(),
            statement_timeout: config.statement_timeout.duration(),
        })
    }

    /// Name of the node in use.
    pub(super) fn current(&self) -> &str {
        &self.addresses[self.current.load(Relaxed)].0
    }

    /// Makes sure that `slot` holds a connection to the node in use.
    pub(super) async fn connected<'a>(
        &self,
        slot: &'a mut Option<Connection>,
    ) -> Result<&'a mut Conn, Failure> {
        let current = self.current.load(Relaxed);
        if slot.as_ref().is_none_or(|connection| connection.node != current) {
            *slot = None;
            *slot = Some(self.connect().await?);
        }
        match slot {
            Some(connection) => Ok(&mut connection.conn),
            None => Err(Failure::Lost("no connection".to_owned())),
        }
    }

    /// Connects to the node in use, or to the next one that is ready, which then is the one in use.
    async fn connect(&self) -> Result<Connection, Failure> {
        let first = self.current.load(Relaxed);
        let mut reasons = Vec::new();
        for step in 0..self.addresses.len() {
            let node = (first + step) % self.addresses.len();
            let (name, options) = &self.addresses[node];
            match self.reach(options).await {
                Ok(conn) => {
                    if node != first
                        && self
                            .current
                            .compare_exchange(first, node, Relaxed, Relaxed)
                            .is_ok()
                    {
                        self.failovers.fetch_add(1, Relaxed);
                        let from = &self.addresses[first].0;
                        tracing::warn!(
                            from,
                            to = name,
                            reasons = reasons.join("; "),
                            "another node of the database is used now"
                        );
                    }
                    return Ok(Connection { conn, node });
                }
                Err(reason) => reasons.push(format!("{name}: {reason}")),
            }
        }
        Err(Failure::Lost(reasons.join("; ")))
    }

    async fn reach(&self, options: &Opts) -> Result<Conn, String> {
        let connect = async {
            let mut conn = Conn::new(options.clone())
                .await
                .map_err(|error| error.to_string())?;
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

    /// Runs a statement with the time limit; a node that exceeds it is taken for lost.
    pub(super) async fn within<T>(
        &self,
        statement: impl Future<Output = Result<T, mysql_async::Error>>,
    ) -> Result<T, Failure> {
        match tokio::time::timeout(self.statement_timeout, statement).await {
            Ok(result) => result.map_err(Failure::from),
            Err(_) => Err(Failure::Lost(format!(
                "no answer within {:?}",
                self.statement_timeout
            ))),
        }
    }
}

async fn show(conn: &mut Conn, statement: &str) -> Result<Option<String>, String> {
    let row: Option<(String, String)> = conn
        .query_first(statement)
        .await
        .map_err(|error| error.to_string())?;
    Ok(row.map(|(_, value)| value))
}
