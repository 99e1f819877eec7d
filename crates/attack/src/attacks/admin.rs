//! The admin endpoint, as a page in a browser or a stranger in the same network reaches it.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::attack::{Attack, attack};
use crate::field::Field;
use crate::stage::Stage::Nrf;

const ALL: &[Attack] = &[
    attack(
        "admin.rebinding",
        "requests under names that are not the endpoint's own",
        Nrf,
        |f| Box::pin(rebinding(f)),
    ),
    attack(
        "admin.foreign-pages",
        "changes asked for by pages of other sites",
        Nrf,
        |f| Box::pin(foreign(f)),
    ),
    attack(
        "admin.idle-connections",
        "idle connections; a probe of liveness wants an answer",
        Nrf,
        |f| Box::pin(idle(f)),
    ),
    attack(
        "admin.empty-files",
        "reloads of a file that a full disk has emptied, or filled with zeros",
        Nrf,
        |f| Box::pin(empty(f)),
    ),
    attack(
        "admin.bad-requests",
        "paths out of the tree, methods, long heads, bytes that are not HTTP",
        Nrf,
        |f| Box::pin(bad(f)),
    ),
];

pub(super) fn all() -> Vec<Attack> {
    ALL.to_vec()
}

/// Sends this and reads to the end of the connection, at most so long.
async fn raw(admin: SocketAddr, request: &[u8], time: Duration) -> anyhow::Result<String> {
    let work = async {
        let mut stream = TcpStream::connect(admin).await?;
        // A head that is too long is cut off while it is written.
        let _ = stream.write_all(request).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        anyhow::Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    timeout(time, work).await.context("no end of the connection")?
}

/// A page with its head.
pub(super) async fn get_whole(admin: SocketAddr, path: &str) -> anyhow::Result<String> {
    let request = format!("GET {path} HTTP/1.0\r\nHost: {admin}\r\n\r\n");
    raw(admin, request.as_bytes(), Duration::from_secs(10)).await
}

/// The body of a page.
pub(super) async fn get(admin: SocketAddr, path: &str) -> anyhow::Result<String> {
    let answer = get_whole(admin, path).await?;
    let (_, body) = answer.split_once("\r\n\r\n").context("no page")?;
    Ok(body.to_owned())
}

fn status(answer: &str) -> u16 {
    answer
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .unwrap_or(0)
}

const PATIENCE: Duration = Duration::from_secs(10);

async fn rebinding(field: Rc<Field>) -> anyhow::Result<()> {
    let admin = field.world.borrow().admin;
    for host in [
        "evil.example",
        &format!("evil.example:{}", admin.port()),
        "",
        "127.0.0.1.evil.example",
        "localhost@evil.example",
    ] {
        for path in ["/config", "/metrics", "/nrf/instances"] {
            let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            let answer = raw(admin, request.as_bytes(), PATIENCE).await?;
            field.check(
                status(&answer) != 200,
                format_args!("{path} is shown under the name {host:?}"),
            );
        }
    }
    // Its own address is let in.
    field.check(
        get(admin, "/metrics").await?.contains("signalbox"),
        "the metrics are not shown",
    );
    Ok(())
}

async fn foreign(field: Rc<Field>) -> anyhow::Result<()> {
    let admin = field.world.borrow().admin;
    for (method, path) in [("POST", "/config/reload"), ("POST", "/log-level")] {
        for header in [
            "Origin: http://evil.example",
            "Origin: null",
            "Sec-Fetch-Site: cross-site",
        ] {
            let request = format!(
                "{method} {path} HTTP/1.1\r\nHost: {admin}\r\n{header}\r\nContent-Length: 5\r\nConnection: close\r\n\r\ntrace"
            );
            let answer = raw(admin, request.as_bytes(), PATIENCE).await?;
            field.check(
                !(200..400).contains(&status(&answer)),
                format_args!("{method} {path} with {header}: {}", status(&answer)),
            );
        }
    }
    Ok(())
}

async fn idle(field: Rc<Field>) -> anyhow::Result<()> {
    let admin = field.world.borrow().admin;
    let mut held = Vec::new();
    for n in 0..field.of(400, 100) {
        let mut stream = TcpStream::connect(admin).await?;
        if n % 2 == 0 {
            let _ = stream.write_all(b"GET /livez HTTP/1.1\r\nHost: ").await;
        }
        held.push(stream);
    }
    let request = format!("GET /livez HTTP/1.0\r\nHost: {admin}\r\n\r\n");
    let answer = raw(admin, request.as_bytes(), PATIENCE).await;
    field.check(
        answer.as_deref().map(status).unwrap_or(0) == 200,
        format_args!("no probe is answered beside {} idle connections", held.len()),
    );
    Ok(())
}

async fn bad(field: Rc<Field>) -> anyhow::Result<()> {
    let admin = field.world.borrow().admin;
    let long = "a".repeat(500_000);
    for request in [
        "GET /../../etc/passwd HTTP/1.0\r\n\r\n".to_owned(),
        "GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.0\r\n\r\n".to_owned(),
        format!("GET /nrf/instances/..%2f..%2fconfig HTTP/1.0\r\nHost: {admin}\r\n\r\n"),
        format!("DELETE /config HTTP/1.0\r\nHost: {admin}\r\n\r\n"),
        format!("TRACE / HTTP/1.0\r\nHost: {admin}\r\n\r\n"),
        format!("CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n"),
        format!("GET /{long} HTTP/1.0\r\n\r\n"),
        format!("GET / HTTP/1.0\r\nX: {long}\r\n\r\n"),
        format!(
            "POST /config/reload HTTP/1.0\r\nHost: {admin}\r\nOrigin: http://evil\r\nContent-Length: 99999999999\r\n\r\nx"
        ),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        "\0\0\0\0\r\n\r\n".to_owned(),
    ] {
        let shown: String = request.chars().take(60).collect();
        let answer = raw(admin, request.as_bytes(), PATIENCE).await.unwrap_or_default();
        field.check(
            status(&answer) == 0 || status(&answer) >= 400,
            format_args!("{shown:?}: answered {}", status(&answer)),
        );
        field.check(
            !answer.contains("root:"),
            format_args!("{shown:?}: a file is shown"),
        );
    }
    Ok(())
}

/// What runs goes on by what it has read before.
async fn empty(field: Rc<Field>) -> anyhow::Result<()> {
    let (admin, file) = {
        let world = field.world.borrow();
        (world.admin, world.folder.path().join("nrf.yaml"))
    };
    let good = std::fs::read(&file)?;
    let before = get(admin, "/config").await?;
    for (what, content) in [
        ("an empty file", Vec::new()),
        ("blanks", b"  \n\n".to_vec()),
        ("a comment", b"# nothing\n".to_vec()),
        ("a word", b"null\n".to_vec()),
        ("zeros", vec![0; 4_096]),
        ("control characters", vec![1; 64]),
    ] {
        std::fs::write(&file, content)?;
        let request = format!("POST /config/reload HTTP/1.0\r\nHost: {admin}\r\nContent-Length: 0\r\n\r\n");
        let answer = raw(admin, request.as_bytes(), PATIENCE).await;
        std::fs::write(&file, &good)?;
        let answer = answer?;
        field.check(
            (400..500).contains(&status(&answer)),
            format_args!("a reload of {what}: {answer:.80}"),
        );
    }
    field.check(
        before == get(admin, "/config").await?,
        "a refused file has changed settings",
    );
    Ok(())
}
