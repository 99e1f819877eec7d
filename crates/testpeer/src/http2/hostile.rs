//! Servers that break the rules: what they send to whom asks them.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;

use tokio::task::JoinHandle;

use super::frame::{self, kind};
use super::{Listener, Peer};

/// A server whose connections each run a script, inside a `LocalSet`; it ends when it is dropped.
#[derive(Debug)]
pub struct Hostile {
    /// Where it listens.
    pub address: SocketAddr,
    connections: Rc<Cell<u64>>,
    task: JoinHandle<()>,
}

impl Hostile {
    /// Runs this script for each connection, its preface taken and SETTINGS sent.
    ///
    /// # Errors
    /// When there is no port.
    pub async fn start<F, Fut>(script: F) -> std::io::Result<Self>
    where
        F: Fn(Peer) -> Fut + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        let listener = Listener::bind().await?;
        let address = listener.addr()?;
        let connections = Rc::new(Cell::new(0));
        let count = connections.clone();
        let task = tokio::task::spawn_local(async move {
            // As many as any attack needs; a client that reconnects without end is its own finding.
            while count.get() < 100_000 {
                // A client that says nothing does not end the server.
                if let Ok(peer) = listener.accept(&[]).await {
                    count.set(count.get() + 1);
                    tokio::task::spawn_local(script(peer));
                }
            }
        });
        Ok(Self {
            address,
            connections,
            task,
        })
    }

    /// Answers each request with what `frames` makes of its stream.
    ///
    /// # Errors
    /// When there is no port.
    pub async fn answering(frames: impl Fn(u32) -> Vec<u8> + 'static) -> std::io::Result<Self> {
        let frames = Rc::new(frames);
        Self::start(move |mut peer| {
            let frames = frames.clone();
            async move {
                while let Ok(Some(found)) = peer.next().await {
                    if found.kind == kind::HEADERS && peer.send(&frames(found.stream)).await.is_err() {
                        return;
                    }
                }
            }
        })
        .await
    }

    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn root(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Connections that came.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.connections.get()
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An answer whose header block holds these fields, however wrong, and a body.
#[must_use]
pub fn answer(stream: u32, fields: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut bytes = frame::headers(stream, fields, false);
    bytes.extend(frame::data(stream, body, true));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_script_for_each_connection() {
        let local = tokio::task::LocalSet::new();
        local
            .run_until(async {
                let server = Hostile::answering(|stream| answer(stream, &[(":status", "299")], b"x"))
                    .await
                    .unwrap();
                for _ in 0..2 {
                    let mut peer = Peer::client(server.address).await.unwrap();
                    peer.send(&frame::get(1, "/")).await.unwrap();
                    assert_eq!(peer.answer(1).await.unwrap().1, b"x");
                }
                assert_eq!(server.connections(), 2);
            })
            .await;
    }
}
