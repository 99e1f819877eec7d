//! Requests to an admin endpoint.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

/// Timeout of a connection, and of an answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The largest page that is read.
const MOST: u64 = 256 << 20;

/// An answer.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: String,
}

/// The first line of an admin endpoint's index: `nrf 0.1.0, process 4711`. `None` where none answers soon.
pub(crate) fn identify(admin: SocketAddr) -> Option<String> {
    const SOON: Duration = Duration::from_millis(500);
    let answer = ask_within(SOON, admin, ("GET", "/"), "", "").ok()?;
    let first = answer.body.lines().next()?;
    (answer.status == 200).then(|| first.to_owned())
}

/// Why a page was not answered.
pub(crate) enum Unreached {
    /// Nothing listens there.
    Refused(String),
    /// It does not answer in time, or breaks off.
    Silent(String),
    /// Another status than 200, with what it said.
    Status(u16, String),
}

impl std::fmt::Display for Unreached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(why) => write!(f, "not running: {why}"),
            Self::Silent(why) => write!(f, "no answer: {why}"),
            Self::Status(status, text) => write!(f, "answered {status}: {}", text.trim()),
        }
    }
}

/// A page within this time, each step of it.
pub(crate) fn fetch(admin: SocketAddr, path: &str, timeout: Duration) -> Result<String, Unreached> {
    answered(ask_within(timeout, admin, ("GET", path), "", ""), timeout)
}

/// What a change answers, which the function carries out for a client that knows this secret, within this time.
pub(crate) fn entrusted(
    admin: SocketAddr,
    request: (&str, &str),
    body: &str,
    (secret, timeout): (&str, Duration),
) -> Result<String, Unreached> {
    let header = format!("Authorization: Bearer {secret}\r\n");
    answered(ask_within(timeout, admin, request, &header, body), timeout)
}

fn answered(asked: anyhow::Result<Answer>, timeout: Duration) -> Result<String, Unreached> {
    let answer = asked.map_err(|error| {
        let cause = error.root_cause();
        let io = cause.downcast_ref::<std::io::Error>();
        let is_refused = io.is_some_and(|io| io.kind() == std::io::ErrorKind::ConnectionRefused);
        match (is_refused, io.map(std::io::Error::kind)) {
            (true, _) => Unreached::Refused("connection refused".to_owned()),
            (_, Some(std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)) => {
                Unreached::Silent(format!("no answer within {} s", timeout.as_secs()))
            }
            _ => Unreached::Silent(cause.to_string()),
        }
    })?;
    match answer.status {
        200 => Ok(answer.body),
        status => Err(Unreached::Status(status, answer.body)),
    }
}

/// The body of a page.
pub(crate) fn get(admin: SocketAddr, path: &str) -> anyhow::Result<String> {
    successful(admin, path, ask(admin, "GET", path, "")?)
}

/// What a change answers.
pub(super) fn post(admin: SocketAddr, path: &str, body: &str) -> anyhow::Result<String> {
    successful(admin, path, ask(admin, "POST", path, body)?)
}

/// What another change answers, by its method.
pub(crate) fn change(admin: SocketAddr, method: &str, path: &str) -> anyhow::Result<String> {
    successful(admin, path, ask(admin, method, path, "")?)
}

/// Deletes what has this path, unless it has ended already.
pub(crate) fn remove(admin: SocketAddr, path: &str) -> anyhow::Result<()> {
    let answer = ask(admin, "DELETE", path, "")?;
    if answer.status == 404 {
        return Ok(());
    }
    successful(admin, path, answer).map(drop)
}

fn successful(admin: SocketAddr, path: &str, answer: Answer) -> anyhow::Result<String> {
    if (200..300).contains(&answer.status) {
        return Ok(answer.body);
    }
    bail!(
        "http://{admin}{path} answered {}: {}",
        answer.status,
        answer.body.trim_end()
    );
}

/// One request, one response. HTTP/1.0 keeps this short: the answer ends with the connection.
pub(super) fn ask(admin: SocketAddr, method: &str, path: &str, body: &str) -> anyhow::Result<Answer> {
    ask_within(TIMEOUT, admin, (method, path), "", body)
}

fn ask_within(
    timeout: Duration,
    admin: SocketAddr,
    (method, path): (&str, &str),
    header: &str,
    body: &str,
) -> anyhow::Result<Answer> {
    let mut stream = TcpStream::connect_timeout(&admin, timeout).with_context(|| {
        format!("no admin endpoint at {admin}; is the function running? (--admin ADDRESS, --config FILE)")
    })?;
    stream.set_read_timeout(Some(timeout))?;
    let length = body.len();
    // The journal names who has changed something; it is what the caller says of itself, no proof.
    let user: String = std::env::var("USER").unwrap_or_default();
    let user: String = user.chars().filter(|c| c.is_ascii_graphic()).take(32).collect();
    let agent = if user.is_empty() {
        "signalbox".to_owned()
    } else {
        format!("signalbox, user {user}")
    };
    let head = format!(
        "{method} {path} HTTP/1.0\r\nHost: {admin}\r\nUser-Agent: {agent}\r\n{header}Content-Length: {length}\r\n\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes())?;
    let answer = read_within(stream, timeout).with_context(|| format!("reading from {admin}"))?;
    parse(&answer).with_context(|| format!("{admin} does not answer as an admin endpoint does"))
}

/// All of an answer, which comes within this time and a second for each MiB, not an octet now and then for ever.
fn read_within(mut stream: TcpStream, timeout: Duration) -> std::io::Result<String> {
    let begun = Instant::now();
    let (mut answer, mut chunk) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        let size = Duration::from_secs(answer.len() as u64 >> 20);
        let left = (timeout + size).saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let read = stream.read(&mut chunk)?;
        answer.extend_from_slice(&chunk[..read]);
        if read == 0 || answer.len() as u64 >= MOST {
            break;
        }
    }
    String::from_utf8(answer).map_err(|_| std::io::ErrorKind::InvalidData.into())
}

fn parse(answer: &str) -> Option<Answer> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.lines().next()?.split(' ').nth(1)?.parse().ok()?;
    Some(Answer {
        status,
        body: body.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_taken_apart() {
        let answer = parse("HTTP/1.0 503 Service Unavailable\r\na: b\r\n\r\nstore: gone\n").unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (503, "store: gone\n"));
        for odd in ["", "HTTP/1.0\r\n\r\n", "HTTP/1.0 x\r\n\r\n", "\r\n\r\n"] {
            assert!(parse(odd).is_none(), "{odd:?}");
        }
    }

    #[test]
    fn an_octet_now_and_then_is_no_answer() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let admin = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            while stream.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        assert!(ask_within(Duration::from_millis(200), admin, ("GET", "/"), "", "").is_err());
    }
}
