//! Names of hosts and services: A, AAAA, SRV and NAPTR records (RFC 1035, RFC 2782, RFC 3403).
//!
//! ```text
//! a worker ─ known? ──────────────── yes ─► the answer, at once
//!               │ no: one query in flight; other callers wait for its answer
//!               └► thread `dns` ─ name servers ─► cached for its time to live, and delivered
//! ```
//!
//! All workers share the cache. A worker reads it when it makes a connection and when a producer is unreachable, never
//! for a message on an open connection.

mod cache;
mod config;
mod naptr;
mod srv;

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError as ServerError, NetError};
use hickory_resolver::proto::rr::{RData, RecordType};
use hickory_resolver::system_conf::parse_resolv_conf;
use sbi_proto::{Origin, Scheme};
use tokio::sync::mpsc;

pub use config::DnsConfig;
pub use naptr::Naptr;
pub use srv::{Srv, in_order};

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
    /// Too many queries are in flight.
    #[error("too many names are being resolved")]
    Overflow,
    /// A server could not or would not answer; the text says how.
    #[error("the name could not be resolved: {0}")]
    Failed(Arc<str>),
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DnsStats {
    /// Names in the cache.
    pub names: usize,
    /// Queries sent to name servers.
    pub asked: u64,
    /// Queries that no name server has answered.
    pub failed: u64,
}

/// Resolves names. Clones share the cache; the thread of the resolver ends with the last clone.
#[derive(Clone)]
pub struct Dns(Arc<Shared>);

struct Shared {
    timeout: Duration,
    addresses: Mutex<Cache<IpAddr>>,
    services: Mutex<Cache<Srv>>,
    naptrs: Mutex<Cache<Naptr>>,
    questions: mpsc::Sender<Question>,
    asked: AtomicU64,
    failed: AtomicU64,
}

enum Question {
    Addresses(Box<str>),
    Services(Box<str>),
    Naptrs(Box<str>),
}

impl std::fmt::Debug for Dns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dns").finish_non_exhaustive()
    }
}

/// The critical sections only call methods of the map, so a panic there leaves the cache consistent: a poisoned lock
/// may be used.
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
        // Capacity for all queries of each kind that may be in flight.
        let (questions, asked) = mpsc::channel(3 * most_asking);
        let shared = Arc::new(Shared {
            timeout: config.timeout.duration(),
            addresses: Mutex::new(Cache::new(config.cache_size, most_asking, times)),
            services: Mutex::new(Cache::new(config.cache_size, most_asking, times)),
            naptrs: Mutex::new(Cache::new(config.cache_size, most_asking, times)),
            questions,
            asked: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        });
        let (config, back) = (config.clone(), Arc::downgrade(&shared));
        let (ready, started) = std::sync::mpsc::sync_channel(1);
        // The runtime begins and ends with its thread: the caller may be inside another one, where none may be dropped.
        let run = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let built = runtime.and_then(|runtime| {
                // The resolver may spawn tasks.
                let resolver = runtime.block_on(async { resolver(&config) });
                Ok((runtime, resolver.map_err(io::Error::other)?))
            });
            match built {
                Ok((runtime, resolver)) => {
                    let _ = ready.send(Ok(()));
                    runtime.block_on(answer(asked, resolver, back));
                }
                Err(error) => drop(ready.send(Err(error))),
            }
        };
        std::thread::Builder::new().name("dns".to_owned()).spawn(run)?;
        started.recv().map_err(io::Error::other)??;
        Ok(Self(shared))
    }

    /// The addresses of a host.
    ///
    /// # Errors
    /// Why there are none.
    pub async fn addresses(&self, host: &str) -> Result<Arc<[IpAddr]>, DnsError> {
        let looked = locked(&self.0.addresses).look(host, Instant::now());
        self.0.answer(looked, || Question::Addresses(host.into())).await
    }

    /// The addresses of a host as name servers said at most this long ago: the cached ones refuse connections.
    ///
    /// # Errors
    /// Why there are none.
    pub async fn newer_addresses(&self, host: &str, age: Duration) -> Result<Arc<[IpAddr]>, DnsError> {
        let now = Instant::now();
        let looked = locked(&self.0.addresses).look_since(host, now.checked_sub(age), now);
        self.0.answer(looked, || Question::Addresses(host.into())).await
    }

    /// When the addresses of a host last changed.
    #[must_use]
    pub fn moved(&self, host: &str) -> Option<Instant> {
        locked(&self.0.addresses).moved(host)
    }

    /// Where `_http._tcp` or `_https._tcp` of a name is offered; in no particular order, see [`in_order`].
    ///
    /// # Errors
    /// Why there are none.
    pub async fn services(&self, scheme: Scheme, name: &str) -> Result<Arc<[Srv]>, DnsError> {
        self.srv(&format!("_{}._tcp.{name}", scheme.as_str())).await
    }

    /// The SRV records of a name such as `_diameter._tcp.example.org`; in no particular order, see [`in_order`].
    ///
    /// # Errors
    /// Why there are none.
    pub async fn srv(&self, name: &str) -> Result<Arc<[Srv]>, DnsError> {
        let name = format!("{}.", name.trim_end_matches('.'));
        let looked = locked(&self.0.services).look(&name, Instant::now());
        self.0
            .answer(looked, || Question::Services(name.as_str().into()))
            .await
    }

    /// The NAPTR records of a name, in the order in which they are to be tried.
    ///
    /// # Errors
    /// Why there are none.
    pub async fn naptrs(&self, name: &str) -> Result<Arc<[Naptr]>, DnsError> {
        let name = format!("{}.", name.trim_end_matches('.'));
        let looked = locked(&self.0.naptrs).look(&name, Instant::now());
        self.0
            .answer(looked, || Question::Naptrs(name.as_str().into()))
            .await
    }

    /// The origins that the SRV records of an origin's name have, in the order in which they are to be tried; none for an
    /// address, and where no server answers. `random` answers any number.
    pub async fn alternates(&self, origin: &Origin, random: impl FnMut() -> u64) -> Vec<Origin> {
        if origin.host().parse::<IpAddr>().is_ok() || origin.host().starts_with('[') {
            return Vec::new();
        }
        let Ok(found) = self.services(origin.scheme(), origin.host()).await else {
            return Vec::new();
        };
        let ordered = in_order(&found, random);
        let at = |one: &Srv| Origin::new(origin.scheme(), &format!("{}:{}", one.host, one.port)).ok();
        ordered.iter().filter_map(at).collect()
    }

    /// Counts since the start.
    #[must_use]
    pub fn stats(&self) -> DnsStats {
        DnsStats {
            names: locked(&self.0.addresses).len()
                + locked(&self.0.services).len()
                + locked(&self.0.naptrs).len(),
            asked: self.0.asked.load(Ordering::Relaxed),
            failed: self.0.failed.load(Ordering::Relaxed),
        }
    }
}

impl Shared {
    async fn answer<T>(&self, looked: Looked<T>, question: impl FnOnce() -> Question) -> Answer<T> {
        let mut waiter = match looked {
            Looked::Known(answer) => return answer,
            Looked::Full => return Err(DnsError::Overflow),
            Looked::Wait(waiter) => waiter,
            Looked::Ask(waiter) => {
                if self.questions.try_send(question()).is_err() {
                    return Err(DnsError::Failed("the resolver has ended".into()));
                }
                waiter
            }
        };
        // The thread enforces the timeout; a caller that waits a little longer detects a thread that is stuck.
        let patience = self.timeout + Duration::from_millis(500);
        let answered = tokio::time::timeout(patience, waiter.wait_for(Option::is_some));
        match answered.await {
            Ok(Ok(answer)) => answer.clone().unwrap_or(Err(DnsError::Timeout)),
            Ok(Err(_)) | Err(_) => Err(DnsError::Timeout),
        }
    }
}

/// Where the system says which name servers it has.
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// The name servers and options of a `resolv.conf`. Where it is absent, as in a container of one program, or names no server, that
/// is the one of this machine (resolv.conf(5)): names fail then, addresses work.
fn system(text: io::Result<Vec<u8>>) -> Result<(ResolverConfig, ResolverOpts), NetError> {
    let mut text = match text {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        other => other?,
    };
    parse_resolv_conf(&text).or_else(|_| {
        text.extend_from_slice(b"\nnameserver 127.0.0.1\n");
        let found = parse_resolv_conf(&text)?;
        tracing::warn!(
            "{RESOLV_CONF} names no name server; 127.0.0.1 is asked. Name one there, or in dns.servers"
        );
        Ok(found)
    })
}

fn resolver(config: &DnsConfig) -> Result<TokioResolver, NetError> {
    let mut builder = if config.servers.is_empty() {
        let (servers, options) = system(std::fs::read(RESOLV_CONF))?;
        TokioResolver::builder_with_config(servers, TokioRuntimeProvider::default()).with_options(options)
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
    // This module bounds, counts and shares the cache, so the library's own cache is off.
    options.cache_size = 0;
    builder.build()
}

/// Serves queries until every handle is dropped.
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
                    learn(&shared, |shared| &shared.addresses, &name, asked);
                }
                Question::Services(name) => {
                    let asked = tokio::time::timeout(patience, services(&resolver, &name)).await;
                    learn(&shared, |shared| &shared.services, &name, asked);
                }
                Question::Naptrs(name) => {
                    let asked = tokio::time::timeout(patience, naptrs(&resolver, &name)).await;
                    learn(&shared, |shared| &shared.naptrs, &name, asked);
                }
            }
        });
    }
}

/// Records and the time for which they may be used; an empty list is an answer as well.
type Records<T> = Result<(Vec<T>, Duration), DnsError>;

/// Delivers an answer to the callers that wait for it, and caches it.
fn learn<T: PartialEq>(
    shared: &Weak<Shared>,
    cache: fn(&Shared) -> &Mutex<Cache<T>>,
    name: &str,
    asked: Result<Records<T>, tokio::time::error::Elapsed>,
) {
    let Some(shared) = shared.upgrade() else { return };
    let answer = shared.counted(asked);
    locked(cache(&shared)).learn(name, answer, Instant::now());
}

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

async fn naptrs(resolver: &TokioResolver, name: &str) -> Records<Naptr> {
    match resolver.lookup(name, RecordType::NAPTR).await {
        Ok(found) => {
            let ttl = found.valid_until().saturating_duration_since(Instant::now());
            let records = found.answers().iter().filter_map(|record| match &record.data {
                RData::NAPTR(naptr) => Some(Naptr::new(naptr)),
                _ => None,
            });
            let mut records: Vec<Naptr> = records.collect();
            records.sort_by_key(|record| (record.order, record.preference));
            Ok((records, ttl))
        }
        Err(error) => nothing(&error),
    }
}

/// Maps an error of the library: no records, or a failure.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(text: io::Result<Vec<u8>>) -> Vec<String> {
        let (servers, _) = system(text).unwrap();
        servers
            .name_servers()
            .iter()
            .map(|server| server.ip.to_string())
            .collect()
    }

    #[test]
    fn a_system_without_name_servers_asks_its_own() {
        let absent = io::Error::from(io::ErrorKind::NotFound);
        assert_eq!(servers(Err(absent)), ["127.0.0.1"]);
        assert_eq!(
            servers(Ok(b"search example.org\noptions ndots:2".to_vec())),
            ["127.0.0.1"]
        );
        assert_eq!(servers(Ok(b"nameserver 192.0.2.53".to_vec())), ["192.0.2.53"]);
    }

    #[test]
    fn name_servers_that_cannot_be_read_are_said() {
        let refused = system(Err(io::Error::from(io::ErrorKind::PermissionDenied)));
        assert!(refused.unwrap_err().to_string().contains("permission denied"));
    }

    /// Functions open inside a runtime.
    #[test]
    fn a_resolver_starts_and_ends_inside_a_runtime() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            drop(Dns::start(&DnsConfig::default()).unwrap());
        });
    }
}
