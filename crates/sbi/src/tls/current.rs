//! TLS that changes while a function runs: files are read again, and the next handshake uses what is in them.
//!
//! What is swapped is a whole configuration with its store of sessions, so that no session is resumed which other
//! certificates or authorities have vouched for. Connections that are there go on as they began.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rustls::{ClientConfig, ServerConfig};

use super::{Material, TlsError, TlsFiles};

/// A configuration of TLS in effect.
#[derive(Debug)]
pub struct Current<C>(Arc<ArcSwap<C>>);

/// That of a server.
pub type ServerTls = Current<ServerConfig>;
/// That of a client.
pub type ClientTls = Current<ClientConfig>;

impl<C> Clone for Current<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C> From<Arc<C>> for Current<C> {
    fn from(config: Arc<C>) -> Self {
        Self(Arc::new(ArcSwap::new(config)))
    }
}

impl<C> Current<C> {
    /// The configuration for a handshake that begins now.
    #[must_use]
    pub fn load(&self) -> Arc<C> {
        self.0.load_full()
    }
}

/// TLS of a function: of its interface and of the connections it makes, each if it has files.
#[derive(Debug)]
pub struct Tls {
    server: Option<Side<ServerConfig>>,
    client: Option<Side<ClientConfig>>,
    /// One change at a time: two could each take half of what the other has read.
    changing: Mutex<()>,
}

#[derive(Debug)]
struct Side<C> {
    /// Its key among the settings.
    key: &'static str,
    make: fn(&Material) -> Result<Arc<C>, TlsError>,
    current: Current<C>,
    /// The files, and what was in them when `current` was made.
    from: Mutex<(TlsFiles, Material)>,
}

/// What a side is to be.
struct Next<C> {
    from: (TlsFiles, Material),
    /// None: nothing in the files has changed.
    made: Option<Arc<C>>,
}

/// How long it takes to notice that files are to be looked at, when they were not before.
const UNWATCHED: Duration = Duration::from_secs(60);

impl<C> Side<C> {
    fn open(
        key: &'static str,
        files: &TlsFiles,
        make: fn(&Material) -> Result<Arc<C>, TlsError>,
    ) -> Result<Self, String> {
        let made = Material::read(files).and_then(|material| Ok((make(&material)?, material)));
        let (config, material) = made.map_err(|error| format!("{key}: {error}"))?;
        Ok(Self {
            key,
            make,
            current: config.into(),
            from: Mutex::new((files.clone(), material)),
        })
    }

    fn next(&self, files: &TlsFiles) -> Result<Next<C>, String> {
        let fault = |error: TlsError| format!("{}: {error}", self.key);
        let material = Material::read(files).map_err(fault)?;
        let made = match self.from.lock().1 == material {
            true => None,
            false => Some((self.make)(&material).map_err(fault)?),
        };
        Ok(Next {
            from: (files.clone(), material),
            made,
        })
    }

    /// Whether something has changed.
    fn take(&self, next: Next<C>) -> bool {
        *self.from.lock() = next.from;
        let changed = next.made.is_some();
        if let Some(made) = next.made {
            self.current.0.store(made);
            tracing::info!(
                tls = self.key,
                "handshakes from now on use the files as they are now"
            );
        }
        changed
    }

    fn files(&self) -> TlsFiles {
        self.from.lock().0.clone()
    }
}

/// What a side is to be with these files; a side cannot come or go.
fn planned<C>(side: Option<&Side<C>>, files: Option<&TlsFiles>) -> Result<Option<Next<C>>, String> {
    match (side, files) {
        (None, None) => Ok(None),
        (Some(side), Some(files)) => side.next(files).map(Some),
        _ => Err("TLS cannot be switched on or off without a restart".to_owned()),
    }
}

impl Tls {
    /// Reads the files of `tls` and of `clientTls`, where they are named.
    ///
    /// # Errors
    /// What cannot be used, after the key that names it.
    pub fn open(server: Option<&TlsFiles>, client: Option<&TlsFiles>) -> Result<Arc<Self>, String> {
        let server = server.map(|files| Side::open("tls", files, Material::server));
        let client = client.map(|files| Side::open("clientTls", files, Material::client));
        Ok(Arc::new(Self {
            server: server.transpose()?,
            client: client.transpose()?,
            changing: Mutex::default(),
        }))
    }

    /// For the interface; none: cleartext.
    #[must_use]
    pub fn server(&self) -> Option<ServerTls> {
        self.server.as_ref().map(|side| side.current.clone())
    }

    /// For clients; none: cleartext peers only.
    #[must_use]
    pub fn client(&self) -> Option<ClientTls> {
        self.client.as_ref().map(|side| side.current.clone())
    }

    /// Uses these files from now on, as they are now. Answers whether something has changed.
    ///
    /// # Errors
    /// What cannot be used; all goes on as it was then.
    pub fn reload(&self, server: Option<&TlsFiles>, client: Option<&TlsFiles>) -> Result<bool, String> {
        let _one = self.changing.lock();
        let server = planned(self.server.as_ref(), server)?;
        let client = planned(self.client.as_ref(), client)?;
        let server = self.server.as_ref().zip(server);
        let client = self.client.as_ref().zip(client);
        let changed = server.is_some_and(|(side, next)| side.take(next));
        Ok(client.is_some_and(|(side, next)| side.take(next)) || changed)
    }

    /// Reads the files in use again. Answers whether something has changed.
    ///
    /// # Errors
    /// As [`Tls::reload`].
    pub fn reread(&self) -> Result<bool, String> {
        let server = self.server.as_ref().map(Side::files);
        let client = self.client.as_ref().map(Side::files);
        self.reload(server.as_ref(), client.as_ref())
    }

    /// Looks at the files again and again, as often as they say. Never ends; belongs on a control thread.
    pub async fn follow(self: Arc<Self>) {
        let mut told = None;
        loop {
            let interval = self.interval();
            tokio::time::sleep(interval.unwrap_or(UNWATCHED)).await;
            if interval.is_none() {
                continue;
            }
            let this = self.clone();
            // Where the files are may be slow; a panic there is in the log already.
            let read = tokio::task::spawn_blocking(move || this.reread()).await;
            let fault = read.ok().and_then(Result::err);
            if let Some(fault) = fault.as_ref().filter(|fault| told.as_ref() != Some(*fault)) {
                tracing::warn!(%fault, "TLS files cannot be used; handshakes go on with what was in them before");
            }
            told = fault;
        }
    }

    fn interval(&self) -> Option<Duration> {
        let server = self.server.as_ref().map(|side| side.from.lock().0.check_interval);
        let client = self.client.as_ref().map(|side| side.from.lock().0.check_interval);
        let wished = [server, client].into_iter().flatten();
        let wished = wished.filter(|period| !period.is_zero());
        wished.map(settings::Period::duration).min()
    }
}
