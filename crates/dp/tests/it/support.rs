//! A processor, and routers made by hand.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use dp::Config;
use dp_proto::{Answer, Bundle, Frame, Kind, Outcome, Query};
use numbers::csv::{self, Options};
use numbers::{Key, Load, Map, Place};
use settings::Listen;

/// Bound of each wait.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn config() -> Config {
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    Config {
        workers: 2,
        admin: local,
        listen: Listen(vec![local]),
        ..Config::default()
    }
}

/// Two numbers and three names in files of this folder.
pub(crate) fn with_files(folder: &Path) -> Config {
    imported(
        folder,
        "imsi,001010000000001,hss1,pcrf=pcrf7\nmsisdn,49151100001,hss2\n",
    );
    let names = "name,Meter7@iot.example,hss1\nnai,*@iot.example,hss2\nname,sip:*@ims.example,ims-hss=hss3\n";
    std::fs::write(folder.join("names.csv"), names).unwrap();
    Config {
        numbers: Some(folder.join("s.num")),
        names: Some(folder.join("names.csv")),
        ..config()
    }
}

pub(crate) fn imported(folder: &Path, lines: &str) {
    let options = Options {
        sort: true,
        sort_memory: 1 << 20,
    };
    csv::import(lines.as_bytes(), &folder.join("s.num"), options, |_| Ok(())).unwrap();
}

/// Damages the block of an IMSI in a file of numbers.
pub(crate) fn damage(path: &Path, imsi: &str) {
    let key = Key::new(numbers::Kind::Imsi, imsi.as_bytes()).unwrap();
    let map = Map::open(path, None, Load::Copied).unwrap();
    let Place::Base(offset) = map.explain(key).place else {
        panic!("no block");
    };
    let mut bytes = std::fs::read(path).unwrap();
    bytes[offset as usize] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

/// A router's connection.
pub(crate) struct Router {
    pub(crate) stream: TcpStream,
    input: Vec<u8>,
}

impl Router {
    pub(crate) fn new(processor: SocketAddr) -> Self {
        let stream = TcpStream::connect(processor).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self {
            stream,
            input: Vec::new(),
        }
    }

    /// Sends queries, bundled; their ids are their positions.
    pub(crate) fn send(&mut self, queries: &[(Kind, &str, &str)]) {
        self.stream.write_all(&bundled(queries)).unwrap();
    }

    /// The answers of the next frame; none: the processor has closed the connection.
    pub(crate) fn next(&mut self) -> Option<Vec<(u32, Outcome, String)>> {
        loop {
            if let Some((frame, length)) = Frame::<Answer<'_>>::split(&self.input).unwrap() {
                let mut answers = Vec::new();
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                frame
                    .each(|one| answers.push((one.id, one.outcome, text(one.destination))))
                    .unwrap();
                self.input.drain(..length);
                return Some(answers);
            }
            let mut chunk = [0; 4096];
            match self.stream.read(&mut chunk) {
                Ok(0) => return None,
                Ok(read) => self.input.extend_from_slice(&chunk[..read]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// The outcome of one query, with its destination.
    pub(crate) fn ask(&mut self, kind: Kind, service: &str, value: &str) -> String {
        self.send(&[(kind, service, value)]);
        let answers = self.next().expect("an answer");
        let [(0, outcome, destination)] = &answers[..] else {
            panic!("{answers:?}");
        };
        format!("{} {destination}", outcome.as_str())
            .trim_end()
            .to_owned()
    }

    pub(crate) fn imsi(&mut self, digits: &str) -> String {
        self.ask(Kind::Imsi, "", digits)
    }
}

pub(crate) fn bundled(queries: &[(Kind, &str, &str)]) -> Vec<u8> {
    let (mut bundle, mut out) = (Bundle::default(), Vec::new());
    for (id, (kind, service, value)) in (0..).zip(queries) {
        bundle.push(&Query {
            id,
            kind: *kind,
            service: service.as_bytes(),
            value: value.as_bytes(),
        });
    }
    bundle.take_into(&mut out);
    out
}

/// The value of a metric, by the beginning of its line.
pub(crate) fn metric(processor: &dp::Running, name: &str) -> f64 {
    let page = processor.handle().registry().render();
    let line = page.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok())
        .unwrap_or(0.0)
}

pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + PATIENCE;
    while !done() {
        assert!(std::time::Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
