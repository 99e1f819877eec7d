//! Processors that send back what they get, and a front end before them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use ipfe::config::{Backend, Check, Config, TargetSet};
use settings::Period;

/// Bound of each wait.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A message processor that echoes what it receives, and reports its state at `/readyz`.
pub(crate) struct Echo {
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
    /// The status of `/readyz`.
    pub(crate) status: Arc<AtomicU16>,
}

impl Echo {
    pub(crate) fn start() -> Self {
        let status = Arc::new(AtomicU16::new(200));
        let (traffic, admin) = (listener(), listener());
        let said = status.clone();
        let echo = Self {
            address: traffic.local_addr().unwrap(),
            admin: admin.local_addr().unwrap(),
            status,
        };
        each(traffic, |mut stream| {
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                if stream.write_all(&buffer[..count]).is_err() {
                    break;
                }
            }
        });
        each(admin, move |mut stream| {
            let mut request = [0; 512];
            let _ = stream.read(&mut request);
            let status = said.load(Ordering::Relaxed);
            let _ = write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
        });
        echo
    }

    pub(crate) fn backend(&self, name: &str) -> Backend {
        Backend {
            name: name.to_owned(),
            address: self.address,
            admin: Some(self.admin),
            ..Backend::default()
        }
    }
}

pub(crate) fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

pub(crate) fn each(listener: TcpListener, serve: impl Fn(TcpStream) + Clone + Send + 'static) {
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = serve.clone();
            std::thread::spawn(move || serve(stream));
        }
    });
}

pub(crate) fn config(backends: Vec<Backend>, most: usize) -> Config {
    Config {
        workers: 2,
        target_sets: vec![TargetSet {
            name: "tsa1".to_owned(),
            listen: "127.0.0.1:0".parse::<SocketAddr>().unwrap().into(),
            backends,
            max_connections: most,
            ..TargetSet::default()
        }],
        check: Check {
            interval: Period::from_millis(20),
            ..Check::default()
        },
        drain: Period::from_millis(100),
        ..Config::default()
    }
}

pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A connection that works.
pub(crate) fn connect(front: &ipfe::Running) -> TcpStream {
    let mut stream = TcpStream::connect(front.addresses()[0]).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"hello").unwrap();
    let mut back = [0; 5];
    stream.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"hello");
    stream
}

pub(crate) fn counts(front: &ipfe::Running) -> Vec<usize> {
    front.backends().iter().map(|row| row.connections).collect()
}
