//! Names of hosts and services: A, AAAA and SRV records (RFC 1035, RFC 2782).
//!
//! ```text
//! a worker ─ known? ──────────────── yes ─► the answer, at once
//!               │ no: one asks, whoever wants the same meanwhile waits for that answer
//!               └► thread `dns` ─ name servers ─► remembered for its time to live, and told
//! ```
//!
//! What is remembered is shared by all workers. It is looked at when a connection is made and when a producer
//! cannot be reached, never for a message that goes its usual way.

mod cache;
mod config;
mod srv;

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError as ServerError, NetError};
use hickory_resolver::proto::rr::{RData, RecordType};
use tokio::sync::mpsc;

pub use config::DnsConfig;
pub use srv::{Srv, in_order};

use crate::client::Scheme;
use cache::{Answer, Cache, Looked, Times};

/// Why a name has no records.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DnsError {
    /// The name does not exist, or has no records of the kind.
    #[error("the name has no such records")]
    NoRecords,
    /// No server has answered in time.
    #[error("no name server has answered in time")]
    Timeout,
    /// Too many names are being asked.
    #[error("too many names are being resolved")]
    Overflow,
    /// A server could not or would not answer; the text says how.
    #[error("the name could not be resolved: {0}")]
    Failed(Arc<str>),
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DnsStats {
    /// Names that are remembered.
    pub names: usize,
    /// Questions that name servers were asked.
    pub asked: u64,
    /// Questions that no name server has answered.
    pub failed: u64,
}

/// Resolves names. Cloning shares what is remembered; the thread behind it ends with the last clone.
#[derive(Clone)]
pub struct Dns(Arc<Shared>);

struct Shared {
    timeout: Duration,
    addresses: Mutex<Cache<IpAddr>>,
    services: Mutex<Cache<Srv>>,
    questions: mpsc::Sender<Question>,
    asked: AtomicU64,
    failed: AtomicU64,
}

enum Question {
    Addresses(Box<str>),
    Services(Box<str>),
}

impl std::fmt::Debug for Dns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dns").finish_non_exhaustive()
    }
}

/// Nothing can go wrong while it is held but a panic of the map's, and then what it holds is still whole.
fn locked<T>(cache: &Mutex<Cache<T>>) -> MutexGuard<'_, Cache<T>> {
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Dns {
    /// Starts the thread that asks name servers.
    ///
    /// # Errors
    /// When the thread cannot be started, or the system's name servers cannot be read.
    pub fn start(config: &DnsConfig) -> io::Result<Self> {
        let times = Times {
            max_ttl: config.max_ttl.duration(),
            negative_ttl: config.negative_ttl.duration(),
            retry_after: config.retry_after.duration(),
            max_stale: config.max_stale.duration(),
        };
        let most_asking = config.max_asking.clamp(1, 1 << 20);
        // Room for all that may be asked of both kinds.
        let (questions, asked) = mpsc::channel(2 * most_asking);
        let shared = Arc::new(Shared {
            timeout: config.timeout.duration(),
            addresses: Mutex::new(Cache::new(config.cache_size, most_asking, times)),
            services: Mutex::new(Cache::new(config.cache_size, most_asking, times)),
            questions,
            asked: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let resolver = {
            // It may want to spawn.
            let _inside = runtime.enter();
            resolver(config).map_err(|error| io::Error::other(error.to_string()))?
        };
        let back = Arc::downgrade(&shared);
        std::thread::Builder::new()
            .name("dns".to_owned())
            .spawn(move || runtime.block_on(answer(asked, resolver, back)))?;
        Ok(Self(shared))
    }

    /// The addresses of a host.
    ///
    /// # Errors
    /// Why there are none.
    pub async fn addresses(&self, host: &str) -> Result<Arc<[IpAddr]>, DnsError> {
        let looked = locked(&self.0.addresses).look(host, Instant::now());
        self.0.hear(looked, || Question::Addresses(host.into())).await
    }

    /// Where `_http._tcp` or `_https._tcp` of a name is offered; in no particular order, see [`in_order`].
    ///
    /// # Errors
    /// Why there are none.
    pub async fn services(&self, scheme: Scheme, name: &str) -> Result<Arc<[Srv]>, DnsError> {
        let name = format!("_{}._tcp.{}.", scheme.as_str(), name.trim_end_matches('.'));
        let looked = locked(&self.0.services).look(&name, Instant::now());
        self.0
            .hear(looked, || Question::Services(name.as_str().into()))
            .await
    }

    /// Counts since the start.
    #[must_use]
    pub fn stats(&self) -> DnsStats {
        DnsStats {
            names: locked(&self.0.addresses).len() + locked(&self.0.services).len(),
            asked: self.0.asked.load(Ordering::Relaxed),
            failed: self.0.failed.load(Ordering::Relaxed),
        }
    }
}

impl Shared {
    async fn hear<T>(&self, looked: Looked<T>, question: impl FnOnce() -> Question) -> Answer<T> {
        let mut hears = match looked {
            Looked::Known(answer) => return answer,
            Looked::Full => return Err(DnsError::Overflow),
            Looked::Wait(hears) => hears,
            Looked::Ask(hears) => {
                if self.questions.try_send(question()).is_err() {
                    return Err(DnsError::Failed("the resolver has ended".into()));
                }
                hears
            }
        };
        // The thread keeps the time; a little more shows that it is stuck.
        let patience = self.timeout + Duration::from_millis(500);
        let told = tokio::time::timeout(patience, hears.wait_for(Option::is_some));
        match told.await {
            Ok(Ok(answer)) => answer.clone().unwrap_or(Err(DnsError::Timeout)),
            Ok(Err(_)) | Err(_) => Err(DnsError::Timeout),
        }
    }
}

fn resolver(config: &DnsConfig) -> Result<TokioResolver, NetError> {
    let mut builder = if config.servers.is_empty() {
        TokioResolver::builder_tokio()?
    } else {
        let servers = config.servers.iter().map(|server| {
            let at = |mut connection: ConnectionConfig| {
                connection.port = server.port();
                connection
            };
            let ways = vec![at(ConnectionConfig::udp()), at(ConnectionConfig::tcp())];
            NameServerConfig::new(server.ip(), true, ways)
        });
        let servers = ResolverConfig::from_name_servers(servers.collect());
        TokioResolver::builder_with_config(servers, TokioRuntimeProvider::default())
    };
    let options = builder.options_mut();
    let attempts = usize::from(config.attempts.max(1));
    options.attempts = attempts - 1;
    options.timeout = config.timeout.duration() / u32::from(config.attempts.max(1));
    // What is remembered is bounded, counted and shared here.
    options.cache_size = 0;
    builder.build()
}

/// Asks until nobody can ask any more.
async fn answer(mut questions: mpsc::Receiver<Question>, resolver: TokioResolver, shared: Weak<Shared>) {
    while let Some(question) = questions.recv().await {
        let Some(patience) = shared.upgrade().map(|shared| shared.timeout) else {
            return;
        };
        let (resolver, shared) = (resolver.clone(), shared.clone());
        tokio::spawn(async move {
            match question {
                Question::Addresses(name) => {
                    let asked = tokio::time::timeout(patience, addresses(&resolver, &name)).await;
                    let Some(shared) = shared.upgrade() else { return };
                    let answer = shared.counted(asked);
                    locked(&shared.addresses).learn(&name, answer, Instant::now());
                }
                Question::Services(name) => {
                    let asked = tokio::time::timeout(patience, services(&resolver, &name)).await;
                    let Some(shared) = shared.upgrade() else { return };
                    let answer = shared.counted(asked);
                    locked(&shared.services).learn(&name, answer, Instant::now());
                }
            }
        });
    }
}

/// Records and how long they may be used; none at all is an answer, too.
type Records<T> = Result<(Vec<T>, Duration), DnsError>;

impl Shared {
    fn counted<T>(&self, asked: Result<Records<T>, tokio::time::error::Elapsed>) -> Records<T> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let answer = asked.unwrap_or(Err(DnsError::Timeout));
        if answer.is_err() {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }
}

async fn addresses(resolver: &TokioResolver, name: &str) -> Records<IpAddr> {
    match resolver.lookup_ip(name).await {
        Ok(found) => {
            let ttl = found.valid_until().saturating_duration_since(Instant::now());
            Ok((found.iter().collect(), ttl))
        }
        Err(error) => nothing(&error),
    }
}

async fn services(resolver: &TokioResolver, name: &str) -> Records<Srv> {
    match resolver.lookup(name, RecordType::SRV).await {
        Ok(found) => {
            let ttl = found.valid_until().saturating_duration_since(Instant::now());
            let records = found.answers().iter().filter_map(|record| match &record.data {
                // A target of the root says that the service is not offered (RFC 2782).
                RData::SRV(srv) if !srv.target.is_root() => Some(Srv {
                    priority: srv.priority,
                    weight: srv.weight,
                    port: srv.port,
                    host: srv
                        .target
                        .to_ascii()
                        .trim_end_matches('.')
                        .to_ascii_lowercase()
                        .into(),
                }),
                _ => None,
            });
            Ok((records.collect(), ttl))
        }
        Err(error) => nothing(&error),
    }
}

/// What an error says: that there are no records, or nothing.
fn nothing<T>(error: &NetError) -> Records<T> {
    match error {
        NetError::Timeout => Err(DnsError::Timeout),
        NetError::Dns(ServerError::NoRecordsFound(none)) => {
            let ttl = none.negative_ttl.map(u64::from);
            Ok((Vec::new(), ttl.map_or(Duration::MAX, Duration::from_secs)))
        }
        _ => Err(DnsError::Failed(error.to_string().into())),
    }
}
