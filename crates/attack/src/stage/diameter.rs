//! The honest HSS behind a router.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::BytesMut;
use diameter_proto::known::{self, application, command};
use diameter_proto::peer::{ApplicationId, Capabilities};
use diameter_proto::{MessageBuilder, MessageMut, Origin, ResultCode, next_frame};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use worker::Shutdown;

use crate::epc::{HSS, REALM};

/// What all of them speak.
const APPLICATIONS: [ApplicationId; 3] = [
    ApplicationId::tgpp(application::S6A),
    ApplicationId::tgpp(application::RX),
    ApplicationId::tgpp(application::GX),
];

/// The longest message that honest peers read.
const LONGEST: usize = 1 << 24;

/// A server that answers every request with success.
#[derive(Debug)]
pub struct Hss {
    /// Where it listens.
    pub address: SocketAddr,
    answered: Arc<AtomicU64>,
    stop: Shutdown,
    thread: Option<JoinHandle<()>>,
}

impl Hss {
    /// Waits for connections at a free port.
    ///
    /// # Errors
    /// When there is none.
    pub fn start() -> anyhow::Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (answered, stop) = (Arc::new(AtomicU64::new(0)), Shutdown::new());
        let (count, its_stop) = (answered.clone(), stop.clone());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let thread = std::thread::spawn(move || {
            tokio::task::LocalSet::new().block_on(&runtime, async move {
                let Ok(listener) = TcpListener::from_std(listener) else {
                    return;
                };
                while !its_stop.has_fired() {
                    let accepted = tokio::time::timeout(Duration::from_millis(50), listener.accept());
                    if let Ok(Ok((stream, _))) = accepted.await {
                        tokio::task::spawn_local(serve(stream, count.clone()));
                    }
                }
            });
        });
        Ok(Self {
            address,
            answered,
            stop,
            thread: Some(thread),
        })
    }

    /// Requests of applications that it has answered.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }
}

impl Drop for Hss {
    fn drop(&mut self) {
        self.stop.fire();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve(mut stream: TcpStream, answered: Arc<AtomicU64>) {
    let _ = stream.set_nodelay(true);
    let origin = Origin::new(HSS, REALM);
    let mut buffer = BytesMut::new();
    loop {
        while let Ok(Some(request)) = next_frame(&mut buffer, LONGEST) {
            if !request.is_request() {
                continue;
            }
            let mut answer = MessageBuilder::answer(&request);
            if request.command() == command::CAPABILITIES_EXCHANGE {
                answer.put(known::RESULT_CODE, ResultCode::SUCCESS.0);
                let mut own = Capabilities::new(HSS, REALM).with_applications(APPLICATIONS);
                own.addresses
                    .extend(stream.local_addr().map(|address| address.ip()));
                own.write(&mut answer);
            } else {
                answer.result(ResultCode::SUCCESS, &origin);
            }
            if !request_is_of_the_base(&request) {
                answered.fetch_add(1, Ordering::Relaxed);
            }
            let Ok(answer) = answer.finish() else { continue };
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
        match stream.read_buf(&mut buffer).await {
            Ok(1..) => {}
            Ok(0) | Err(_) => return,
        }
    }
}

fn request_is_of_the_base(request: &MessageMut) -> bool {
    request.application() == 0
}
