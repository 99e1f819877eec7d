//! A repository with the thread that does what takes time: the workers of a router wait for nothing.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::sync_channel;
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::Duration;

use store::{EngineKind, Store, TableDef};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::charging::{ChargingSession, ChargingSessions};
use crate::config::{Charging, Sbr, Settings};
use crate::owed::{OwedEnd, Owing, take_over};
use crate::repository::Repository;
use crate::{tables, task};

/// Bound on what is pending.
const MAX_PENDING: usize = 100_000;
/// Pending work from which a repository is congested: what can be put off is.
const CONGESTED: usize = MAX_PENDING / 4;
/// Pending work from which a repository begins no sessions, so that those that exist go on.
const OVERLOADED: usize = MAX_PENDING / 2;
/// How long [`Opened::ask`] waits.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a store is opened for.
pub trait Contents: Clone + Send + Sync + 'static {
    /// Its settings.
    type Settings: Settings + Send + 'static;

    /// Its tables.
    fn tables() -> Vec<TableDef>;

    /// It, in an open store. With an `owner`, a number of its own, other routers write to the store.
    ///
    /// # Errors
    /// When the store has not its tables.
    fn of(store: &Store, settings: &Self::Settings, owner: Option<u64>) -> Result<Self, store::Error>;

    /// Reads what it needs before the first request.
    fn begin(&self) -> impl Future<Output = Result<(), store::Error>> + Send;

    /// Cares for it until the future is dropped.
    fn care(&self) -> impl Future<Output = Result<(), store::Error>> + Send;

    /// Writes what is not written yet, before the store closes.
    fn end(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

impl Contents for Repository {
    type Settings = Sbr;

    fn tables() -> Vec<TableDef> {
        tables()
    }

    fn of(store: &Store, settings: &Sbr, owner: Option<u64>) -> Result<Self, store::Error> {
        Self::new(store, settings, owner)
    }

    async fn begin(&self) -> Result<(), store::Error> {
        self.refresh().await?;
        take_over(self).await
    }

    async fn care(&self) -> Result<(), store::Error> {
        self.look_after().await
    }

    async fn end(&self) {
        self.owed().close();
    }
}

impl Contents for ChargingSessions {
    type Settings = Charging;

    fn tables() -> Vec<TableDef> {
        vec![TableDef::of::<ChargingSession>(), TableDef::of::<OwedEnd>()]
    }

    fn of(store: &Store, settings: &Charging, owner: Option<u64>) -> Result<Self, store::Error> {
        Self::new(store, settings, owner.is_some())
    }

    async fn begin(&self) -> Result<(), store::Error> {
        self.refresh().await?;
        take_over(self).await
    }

    async fn care(&self) -> Result<(), store::Error> {
        self.look_after().await
    }

    async fn end(&self) {
        self.owed().close();
    }
}

/// An open repository. The store closes when it is dropped.
#[derive(Debug)]
pub struct Opened<C: Contents = Repository> {
    repository: C,
    settings: C::Settings,
    handle: Handle,
    /// Whether work goes on without the thread: the embedded engine needs no runtime.
    is_embedded: bool,
    pending: Arc<AtomicUsize>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl<C: Contents> Opened<C> {
    /// Opens the store of a repository.
    ///
    /// # Errors
    /// When it cannot be opened; what is wrong.
    pub fn open(settings: &C::Settings) -> Result<Self, String> {
        let (own, (stop, stopped)) = (settings.clone(), oneshot::channel());
        let (opened, waits) = sync_channel(1);
        let work = move || run::<C>(&own, stopped, &opened);
        let thread = std::thread::Builder::new().name("sbr".to_owned()).spawn(work);
        let thread = thread.map_err(|error| error.to_string())?;
        let (repository, handle) = waits
            .recv()
            .unwrap_or_else(|_| Err("the thread of the repository has ended".to_owned()))?;
        Ok(Self {
            repository,
            settings: settings.clone(),
            handle,
            is_embedded: settings.store().engine == EngineKind::Embedded,
            pending: Arc::default(),
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// The repository.
    #[must_use]
    pub fn repository(&self) -> &C {
        &self.repository
    }

    /// Whether an application with these settings may use it, which lead to its store.
    ///
    /// # Errors
    /// When it was opened with others: those of another application.
    pub fn may_share(&self, settings: &C::Settings) -> Result<(), String> {
        settings.may_replace(&self.settings, true).map_err(|_| {
            "`repository` is that of another application, with other settings: give both the same, or one of them another store"
                .to_owned()
        })
    }

    /// What is pending.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.pending.load(Relaxed)
    }

    /// How congested it is.
    #[must_use]
    pub fn congestion(&self) -> Congestion {
        match self.pending() {
            ..CONGESTED => Congestion::None,
            CONGESTED..OVERLOADED => Congestion::Minor,
            OVERLOADED.. => Congestion::Major,
        }
    }

    /// Does something on the thread. Whether it does: not when too much is pending.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> bool {
        let work = self.counted(work);
        work.map(|work| self.handle.spawn(work)).is_some()
    }

    /// As [`Opened::spawn`], of work that takes microseconds between its waits. With the embedded engine it begins here, and goes on
    /// where it is woken: the thread, which has to be woken itself, has no part in it.
    pub fn start(&self, work: impl Future<Output = ()> + Send + 'static) -> bool {
        if !self.is_embedded {
            return self.spawn(work);
        }
        self.counted(work).map(task::start).is_some()
    }

    /// The work as one that is pending; none: too much is.
    fn counted<W>(&self, work: W) -> Option<impl Future<Output = ()> + Send + use<W, C>>
    where
        W: Future<Output = ()> + Send + 'static,
    {
        let pending = Pending(self.pending.clone());
        let is_one_more = pending.0.fetch_add(1, Relaxed) < MAX_PENDING;
        let work = async move {
            let _pending = pending;
            work.await;
        };
        is_one_more.then_some(work)
    }

    /// Begins something that the embedded engine often does at once; what is not done yet goes on as with [`Opened::start`], and
    /// `then` gets what comes of it.
    pub fn begin<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
        then: impl FnOnce(T) + Send + 'static,
    ) -> Begun<T> {
        let mut work = Box::pin(work);
        // The drivers of databases want their runtime.
        let entered = (!self.is_embedded).then(|| self.handle.enter());
        if let Poll::Ready(done) = work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return Begun::Done(done);
        }
        drop(entered);
        match self.start(async move { then(work.await) }) {
            true => Begun::GoesOn,
            false => Begun::Refused,
        }
    }

    /// What comes of something that is done on the thread; none: it takes too long. It blocks, and is for pages.
    pub fn ask<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Option<T> {
        let (answer, waits) = sync_channel(1);
        let is_taken = self.spawn(async move {
            let _ = answer.send(work.await);
        });
        is_taken.then(|| waits.recv_timeout(PATIENCE).ok())?
    }
}

/// How congested a repository is: its store is slower than messages come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Congestion {
    /// It is not.
    None,
    /// What can be put off is: the audit, and the use of sessions that is noted.
    Minor,
    /// Sessions do not begin.
    Major,
}

/// How something has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun<T> {
    /// It is done.
    Done(T),
    /// It goes on.
    GoesOn,
    /// Too much is pending; it was not done.
    Refused,
}

/// One of those that are pending, until it is dropped.
struct Pending(Arc<AtomicUsize>);

impl Drop for Pending {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl<C: Contents> Drop for Opened<C> {
    fn drop(&mut self) {
        drop(self.stop.take());
        let thread = self.thread.take();
        // What it was doing last may hold the last handle.
        let other = thread.filter(|thread| thread.thread().id() != std::thread::current().id());
        if let Some(thread) = other {
            let _ = thread.join();
        }
    }
}

type Started<C> = Result<(C, Handle), String>;

/// The life of the thread.
fn run<C: Contents>(
    settings: &C::Settings,
    stopped: oneshot::Receiver<()>,
    opened: &std::sync::mpsc::SyncSender<Started<C>>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = opened.send(Err(error.to_string()));
            return;
        }
    };
    runtime.block_on(async {
        let (store, repository) = match open::<C>(settings).await {
            Ok(both) => both,
            Err(error) => {
                let _ = opened.send(Err(error.to_string()));
                return;
            }
        };
        let _ = opened.send(Ok((repository.clone(), Handle::current())));
        tokio::select! {
            _ = stopped => {}
            ended = repository.care() => {
                if let Err(error) = ended {
                    tracing::warn!(%error, "stale sessions are not removed");
                }
            }
        }
        repository.end().await;
        store.close().await;
    });
}

async fn open<C: Contents>(settings: &C::Settings) -> Result<(Store, C), store::Error> {
    let config = settings.store();
    let store = Store::open(config, &C::tables()).await?;
    let owner = match config.engine {
        EngineKind::Embedded => None,
        EngineKind::Mariadb | EngineKind::Cassandra => Some(ahash::RandomState::new().hash_one(0_u8)),
    };
    let repository = C::of(&store, settings, owner)?;
    repository.begin().await?;
    Ok((store, repository))
}
