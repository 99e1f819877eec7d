//! The consumers of the PCF: an AMF, an SMF and an AF that listen at one address.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use super::Listener;
use loadgen::engine::TlsFiles;
use simulators::{Commands, Notices, Role, Ues};

/// A server that takes notifications; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Board {
    notices: Arc<Notices>,
    commands: Arc<Commands>,
    listener: Listener,
}

impl Board {
    /// Listens at a port of loopback, over TLS by these files where there are some.
    ///
    /// # Errors
    /// When the system refuses the port or a thread.
    pub(crate) fn start(tls: Option<&TlsFiles>) -> io::Result<Self> {
        let notices = Arc::new(Notices::default());
        let commands = Arc::new(Commands::default());
        let ues = Ues::new(commands.clone());
        let listener = Listener::start(tls, Role::consumers(notices.clone(), ues))?;
        Ok(Self {
            notices,
            commands,
            listener,
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    pub(crate) fn notices(&self) -> Arc<Notices> {
        self.notices.clone()
    }

    /// What a PCF commands the UEs of the AMF.
    pub(crate) fn commands(&self) -> Arc<Commands> {
        self.commands.clone()
    }
}
