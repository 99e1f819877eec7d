//! The consumers of the PCF: an AMF, an SMF and an AF that listen at one address.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use loadgen::engine::TlsFiles;
use simulators::{Handle, Notices, Role, Server, Settings};

/// A server that takes notifications; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Board {
    address: SocketAddr,
    notices: Arc<Notices>,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Board {
    /// Listens at a port of loopback, over TLS by these files where there are some.
    ///
    /// # Errors
    /// When the system refuses the port or a thread.
    pub(crate) fn start(tls: Option<&TlsFiles>) -> io::Result<Self> {
        let notices = Arc::new(Notices::default());
        let settings = Settings {
            tls: tls.cloned(),
            ..Settings::default()
        };
        let server = Server::bind_as(&settings, Role::consumers(notices.clone()))?;
        let address = server.addresses().first().copied();
        let address = address.ok_or_else(|| io::Error::other("the consumers listen nowhere"))?;
        let handle = server.handle();
        let thread = std::thread::Builder::new()
            .name("consumers".into())
            .spawn(move || {
                if let Err(error) = server.run() {
                    eprintln!("simulated consumers answer no more: {error}");
                }
            })?;
        Ok(Self {
            address,
            notices,
            handle,
            thread: Some(thread),
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn notices(&self) -> Arc<Notices> {
        self.notices.clone()
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        self.handle.stop();
        self.thread.take().map(JoinHandle::join);
    }
}
