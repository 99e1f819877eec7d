//! A simulated server on a thread of this process.

use std::io;
use std::net::SocketAddr;
use std::thread::JoinHandle;

use loadgen::engine::TlsFiles;
use simulators::{Handle, Role, Server, Settings};

/// A server; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Listener {
    address: SocketAddr,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Listens at a port of loopback, over TLS by these files where there are some.
    ///
    /// # Errors
    /// When the system refuses the port or a thread.
    pub(crate) fn start(tls: Option<&TlsFiles>, role: Role) -> io::Result<Self> {
        let settings = Settings {
            tls: tls.cloned(),
            ..Settings::default()
        };
        let server = Server::bind_as(&settings, role)?;
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
            handle,
            thread: Some(thread),
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes how it answers.
    pub(crate) fn handle(&self) -> Handle {
        self.handle.clone()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.handle.stop();
        self.thread.take().map(JoinHandle::join);
    }
}
