//! The connection to the cluster: statements with deadlines, and what an error of one means.

use std::num::NonZeroUsize;
use std::sync::Arc;

use scylla::client::PoolSize;
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::deserialize::row::DeserializeRow;
use scylla::errors::{DbError, ExecutionError, RequestAttemptError};
use scylla::frame::types::{Consistency, SerialConsistency};
use scylla::policies::load_balancing::DefaultPolicy;
use scylla::policies::retry::FallthroughRetryPolicy;
use scylla::response::query_result::QueryResult;
use scylla::response::{PagingState, PagingStateResponse};
use scylla::serialize::row::SerializeRow;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::{CqlValue, Row};

use crate::config::{CassandraConfig, CassandraConsistency, CassandraSerial};
use crate::error::Error;

/// How a statement can fail.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// It was not carried out: too few replicas, no connection.
    Unreachable(String),
    /// No answer in time, or of too few replicas: it may have been carried out, or may still be.
    Doubt(String),
    /// The cluster cannot store these values: the fault of the batch.
    Refused(String),
    /// Trying again does not help: the fault of the cluster's configuration or of this program.
    Failed(String),
}

impl Failure {
    pub(super) fn reason(self) -> String {
        match self {
            Failure::Unreachable(reason)
            | Failure::Doubt(reason)
            | Failure::Refused(reason)
            | Failure::Failed(reason) => reason,
        }
    }
}

impl From<ExecutionError> for Failure {
    fn from(error: ExecutionError) -> Failure {
        let text = error.to_string();
        match error {
            ExecutionError::EmptyPlan | ExecutionError::ConnectionPoolError(_) => Failure::Unreachable(text),
            ExecutionError::BadQuery(_) => Failure::Refused(text),
            ExecutionError::LastAttemptError(RequestAttemptError::DbError(kind, message)) => match kind {
                // An `UNAVAILABLE` comes before anything is written, but a conditional write has several rounds.
                DbError::Unavailable { .. } => Failure::Doubt(text),
                DbError::IsBootstrapping | DbError::Overloaded => Failure::Doubt(text),
                DbError::Invalid => Failure::Refused(message),
                DbError::SyntaxError
                | DbError::Unauthorized
                | DbError::AuthenticationError
                | DbError::ConfigError
                | DbError::AlreadyExists { .. } => Failure::Failed(message),
                _ => Failure::Doubt(text),
            },
            ExecutionError::LastAttemptError(
                RequestAttemptError::SerializationError(_) | RequestAttemptError::CqlRequestSerialization(_),
            ) => Failure::Refused(text),
            ExecutionError::LastAttemptError(RequestAttemptError::UnableToAllocStreamId) => {
                Failure::Unreachable(text)
            }
            _ => Failure::Doubt(text),
        }
    }
}

/// A session of the driver.
pub(super) struct Client {
    pub(super) session: Session,
    serial: SerialConsistency,
}

impl Client {
    pub(super) async fn connect(config: &CassandraConfig) -> Result<Client, Error> {
        let serial = match config.serial_consistency {
            CassandraSerial::LocalSerial => SerialConsistency::LocalSerial,
            CassandraSerial::Serial => SerialConsistency::Serial,
        };
        let balancing = DefaultPolicy::builder()
            .prefer_datacenter(config.datacentre.clone())
            .token_aware(true)
            .permit_dc_failover(false)
            .build();
        let profile = ExecutionProfile::builder()
            .consistency(match config.consistency {
                CassandraConsistency::LocalQuorum => Consistency::LocalQuorum,
                CassandraConsistency::Quorum => Consistency::Quorum,
            })
            .serial_consistency(Some(serial))
            .request_timeout(Some(config.statement_timeout.duration()))
            .load_balancing_policy(balancing)
            // What was not answered is settled by reading, see `transaction`: the driver repeats nothing.
            .retry_policy(Arc::new(FallthroughRetryPolicy))
            .build();
        let mut builder = SessionBuilder::new()
            .known_nodes(config.nodes.iter().map(ToString::to_string))
            .default_execution_profile_handle(profile.into_handle())
            .connection_timeout(config.connect_timeout.duration())
            .keepalive_interval(config.connect_timeout.duration())
            .keepalive_timeout(config.connect_timeout.duration())
            .pool_size(PoolSize::PerHost(NonZeroUsize::MIN))
            .fetch_schema_metadata(true);
        if !config.user.is_empty() {
            let password = match &config.password {
                Some(secret) => secret
                    .read()
                    .map_err(|error| Error::Open(format!("cassandra.password: {error}")))?,
                None => String::new(),
            };
            builder = builder.user(&config.user, password);
        }
        #[cfg(feature = "cql-tls")]
        if let Some(tls) = super::tls::context(config)? {
            builder = builder.tls_context(Some(tls));
        }
        let session = builder
            .build()
            .await
            .map_err(|error| Error::Open(format!("Cassandra at {}: {error}", addresses(config))))?;
        let state = session.get_cluster_state();
        let mut names: Vec<&str> = state
            .get_nodes_info()
            .iter()
            .filter_map(|node| node.datacenter.as_deref())
            .collect();
        names.sort_unstable();
        names.dedup();
        if !names.contains(&config.datacentre.as_str()) {
            return Err(Error::Open(format!(
                "cassandra.datacentre: no node is in {}; the cluster has {}",
                config.datacentre,
                names.join(", ")
            )));
        }
        Ok(Client { session, serial })
    }

    /// Nodes of the datacentres.
    pub(super) fn nodes(&self) -> usize {
        self.session.get_cluster_state().get_nodes_info().len()
    }

    /// A definition: of a keyspace or table.
    pub(super) async fn define(&self, statement: &str) -> Result<(), Error> {
        let defined = self.session.query_unpaged(statement, ()).await;
        defined
            .map(drop)
            .map_err(|error| Error::Open(format!("{statement}: {error}")))
    }

    /// Creates a table (`KEYSPACE.NAME`) that was absent when the driver looked last.
    pub(super) async fn create(&self, name: &str, statement: &str) -> Result<(), Error> {
        let state = self.session.get_cluster_state();
        let (keyspace, table) = name.split_once('.').unwrap_or_default();
        let is_there = state
            .get_keyspace(keyspace)
            .is_some_and(|keyspace| keyspace.tables.contains_key(table));
        if is_there {
            return Ok(());
        }
        self.define(statement).await
    }

    /// Reads which nodes and tables there are.
    pub(super) async fn refresh(&self) -> Result<(), Error> {
        let refreshed = self.session.refresh_metadata().await;
        refreshed.map_err(|error| Error::Open(format!("the cluster's description: {error}")))
    }

    pub(super) async fn prepare(&self, statement: String) -> Result<PreparedStatement, Error> {
        let prepared = self.session.prepare(statement.as_str()).await;
        prepared.map_err(|error| Error::Open(format!("{statement}: {error}")))
    }

    /// A read that settles what is in progress first, and sees it.
    pub(super) async fn prepare_serial(&self, statement: String) -> Result<PreparedStatement, Error> {
        let mut prepared = self.prepare(statement).await?;
        prepared.set_consistency(match self.serial {
            SerialConsistency::Serial => Consistency::Serial,
            SerialConsistency::LocalSerial => Consistency::LocalSerial,
        });
        Ok(prepared)
    }

    pub(super) async fn run(
        &self,
        statement: &PreparedStatement,
        values: impl SerializeRow,
    ) -> Result<QueryResult, Failure> {
        Ok(self.session.execute_unpaged(statement, values).await?)
    }

    pub(super) async fn rows<R: for<'r> DeserializeRow<'r, 'r>>(
        &self,
        statement: &PreparedStatement,
        values: impl SerializeRow,
    ) -> Result<Vec<R>, Failure> {
        decode(self.run(statement, values).await?)
    }

    pub(super) async fn page<R: for<'r> DeserializeRow<'r, 'r>>(
        &self,
        statement: &PreparedStatement,
        place: Option<Vec<u8>>,
    ) -> Result<(Vec<R>, Option<Vec<u8>>), Failure> {
        let place = place.map_or_else(PagingState::start, PagingState::new_from_raw_bytes);
        let (result, next) = self.session.execute_single_page(statement, (), place).await?;
        let next = match next {
            PagingStateResponse::HasMorePages { state } => state.as_bytes_slice().map(|bytes| bytes.to_vec()),
            PagingStateResponse::NoMorePages => None,
        };
        Ok((decode(result)?, next))
    }

    /// Whether the condition of a conditional write held.
    pub(super) async fn applied(
        &self,
        statement: &PreparedStatement,
        values: impl SerializeRow,
    ) -> Result<bool, Failure> {
        // Its first column says so; which others there are depends on the server and on the outcome.
        let rows: Vec<Row> = self.rows(statement, values).await?;
        let first = rows.first().and_then(|row| row.columns.first());
        match first {
            Some(Some(CqlValue::Boolean(applied))) => Ok(*applied),
            _ => Err(Failure::Failed(
                "a conditional write was not answered with its outcome".to_owned(),
            )),
        }
    }
}

fn decode<R: for<'r> DeserializeRow<'r, 'r>>(result: QueryResult) -> Result<Vec<R>, Failure> {
    let failed = |error: &dyn std::error::Error| Failure::Failed(format!("an unexpected answer: {error}"));
    let rows = result.into_rows_result().map_err(|error| failed(&error))?;
    let rows = rows.rows::<R>().map_err(|error| failed(&error))?;
    rows.map(|row| row.map_err(|error| failed(&error))).collect()
}

fn addresses(config: &CassandraConfig) -> String {
    let all: Vec<String> = config.nodes.iter().map(ToString::to_string).collect();
    all.join(", ")
}
