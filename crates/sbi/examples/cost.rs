//! What the interface alone costs: CPU time per request of a server and of a relay that does nothing else.
//!
//! ```sh
//! cargo run --release -p sbi --example cost            # drives itself with h2load and prints a table
//! cargo run --release -p sbi --example cost -- --serve # only serves, until it is killed (for perf)
//! ```
//!
//! The origin answers 4.8 KB (any path) or 20 KB (`/large`); the relay sends everything on to the origin.
//! Each has a thread and a core of its own, h2load shares the origin's core; the program reads their CPU time in
//! `/proc`.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fs;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use sbi::client::{Client, ClientConfig, Origin, SendOptions};
use sbi::problem::{Cause, Problem};
use sbi::{Request, Response, Service, server};
use worker::{Pinning, Shutdown, Waiting, WorkerContext};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Requests of one measurement: enough for a few seconds.
const REQUESTS: u64 = 400_000;

struct Fixed {
    small: Bytes,
    large: Bytes,
}

impl Service for Fixed {
    fn call(self: Rc<Self>, request: Request) -> impl Future<Output = Response> + 'static {
        let body = if request.path() == "/large" {
            &self.large
        } else {
            &self.small
        };
        std::future::ready(Response::ok(body.clone()))
    }
}

struct Relay {
    client: Client,
    origin: Origin,
}

impl Service for Relay {
    async fn call(self: Rc<Self>, request: Request) -> Response {
        match self
            .client
            .send(&self.origin, request, SendOptions::default())
            .await
        {
            Ok(response) => response,
            Err(error) => Problem::new(Cause::TargetNfNotReachable)
                .detail(error.to_string())
                .into_response(),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let shutdown = Shutdown::new();
    let (origin, relay) = (free()?, free()?);
    let waiting = Waiting::Sockets;
    let serving = worker::spawn(
        1,
        "origin",
        &Pinning::Cores(vec![1]),
        waiting,
        &shutdown,
        move |context| {
            let service = Fixed {
                small: Bytes::from(vec![b'a'; 4_800]),
                large: Bytes::from(vec![b'a'; 20_000]),
            };
            serve(origin, service, context)
        },
    )?;
    let relaying = worker::spawn(
        1,
        "relay",
        &Pinning::Cores(vec![0]),
        waiting,
        &shutdown,
        move |context| async move {
            let client = Client::new(Arc::new(ClientConfig::default()), None);
            let target = format!("http://{origin}").parse().map_err(io::Error::other)?;
            serve(
                relay,
                Relay {
                    client,
                    origin: target,
                },
                context,
            )
            .await
        },
    )?;
    println!("origin http://{origin}/ and /large, relay http://{relay}/");
    if std::env::args().any(|argument| argument == "--serve") {
        relaying.join()?;
        return Ok(serving.join()?);
    }
    let body = std::env::temp_dir().join(format!("signalbox-cost-{}", std::process::id()));
    fs::write(&body, vec![b'a'; 4_200])?;
    let measured = measure(origin, relay, &body.display().to_string());
    fs::remove_file(&body)?;
    shutdown.fire();
    relaying.join()?;
    serving.join()?;
    measured
}

async fn serve<S: Service>(addr: SocketAddr, service: S, context: WorkerContext) -> io::Result<()> {
    let listener = server::bind(addr)?;
    server::serve(
        listener,
        Rc::new(service),
        Arc::default(),
        None,
        Arc::default(),
        context.shutdown,
    )
    .await
}

/// An address at which no program listens yet.
fn free() -> io::Result<SocketAddr> {
    std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()
}

fn measure(origin: SocketAddr, relay: SocketAddr, body: &str) -> Result<(), Box<dyn Error>> {
    for addr in [origin, relay] {
        while std::net::TcpStream::connect(addr).is_err() {
            std::thread::yield_now();
        }
    }
    println!("| what | thread | user µs | system µs | sum | requests/s |\n|---|---|---|---|---|---|");
    let scenarios = [
        ("warm-up", "relay-0", format!("http://{relay}/"), Some(body)),
        (
            "relay, POST 4.2 KB, answer 4.8 KB",
            "relay-0",
            format!("http://{relay}/"),
            Some(body),
        ),
        (
            "server, GET, answer 20 KB",
            "origin-0",
            format!("http://{origin}/large"),
            None,
        ),
        (
            "server, GET, answer 4.8 KB",
            "origin-0",
            format!("http://{origin}/"),
            None,
        ),
    ];
    for (what, thread, url, body) in scenarios {
        let before = cpu_of(thread)?;
        let rate = load(&url, body)?;
        let after = cpu_of(thread)?;
        let each = |ticks: u64| ticks as f64 * 10_000.0 / REQUESTS as f64;
        let (user, system) = (each(after.0 - before.0), each(after.1 - before.1));
        println!(
            "| {what} | {thread} | {user:.2} | {system:.2} | {:.2} | {rate} |",
            user + system
        );
    }
    Ok(())
}

/// Runs h2load; the rate it reports.
fn load(url: &str, body: Option<&str>) -> Result<String, Box<dyn Error>> {
    let requests = REQUESTS.to_string();
    let mut command = Command::new("taskset");
    command.args(["-c", "1", "h2load", "-n", &requests, "-c", "8", "-m", "32"]);
    if let Some(body) = body {
        command.args(["-d", body]);
    }
    let output = String::from_utf8(command.arg(url).output()?.stdout)?;
    if !output.contains(&format!("{REQUESTS} succeeded")) {
        return Err(format!("h2load saw failures:\n{output}").into());
    }
    let rate = output
        .split_once(" req/s")
        .and_then(|(before, _)| before.rsplit(' ').next());
    Ok(rate.unwrap_or("?").to_owned())
}

/// User and system time of a thread of ours, in ticks of 10 ms.
fn cpu_of(thread: &str) -> Result<(u64, u64), Box<dyn Error>> {
    for task in fs::read_dir("/proc/self/task")? {
        let stat = fs::read_to_string(task?.path().join("stat"))?;
        // The name stands in parentheses and may hold anything; the numbers follow it.
        let (name, rest) = stat.rsplit_once(')').ok_or("a stat file without a name")?;
        if name.ends_with(&format!("({thread}")) {
            let field = |at: usize| rest.split(' ').nth(at).unwrap_or_default().parse();
            return Ok((field(12)?, field(13)?));
        }
    }
    Err(format!("no thread {thread}").into())
}
