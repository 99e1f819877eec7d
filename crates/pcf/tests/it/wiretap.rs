//! A TCP proxy in front of the Diameter port of a PCF, which captures what passes, message by message.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::SystemTime;

use diameter::capture::Capture;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Where peers connect to, and the capture of what they exchange.
pub struct Wiretap {
    pub address: SocketAddr,
    pub file: PathBuf,
    capture: Rc<RefCell<Capture<std::fs::File>>>,
}

impl Wiretap {
    /// A proxy to this address. It captures into a file of this folder.
    pub async fn start(to: SocketAddr, folder: &Path) -> Self {
        let file = folder.join("diameter.pcapng");
        let capture = Capture::new(std::fs::File::create(&file).unwrap()).unwrap();
        let capture = Rc::new(RefCell::new(capture));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let messages = capture.clone();
        tokio::task::spawn_local(async move {
            while let Ok((near, from)) = listener.accept().await {
                let far = TcpStream::connect(to).await.unwrap();
                let (near, far) = (near.into_split(), far.into_split());
                tokio::task::spawn_local(pass(near.0, far.1, (from, to), messages.clone()));
                tokio::task::spawn_local(pass(far.0, near.1, (to, from), messages.clone()));
            }
        });
        Self {
            address,
            file,
            capture,
        }
    }

    /// Writes what was captured to the file.
    pub fn flush(&self) {
        self.capture.borrow_mut().flush().unwrap();
    }
}

/// Passes messages on until one side closes the connection.
async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    (source, destination): (SocketAddr, SocketAddr),
    capture: Rc<RefCell<Capture<std::fs::File>>>,
) -> std::io::Result<()> {
    loop {
        // Version, and the length of the message in three bytes (RFC 6733 §3).
        let head = from.read_u32().await?;
        let mut message = vec![0; (head & 0x00ff_ffff) as usize];
        message[..4].copy_from_slice(&head.to_be_bytes());
        from.read_exact(&mut message[4..]).await?;
        capture
            .borrow_mut()
            .message(SystemTime::now(), source, destination, &[&message], "")?;
        to.write_all(&message).await?;
    }
}
