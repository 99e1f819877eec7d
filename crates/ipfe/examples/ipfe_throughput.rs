//! Throughput of a front end: `ipfe_throughput [SECONDS]`. Clients send messages of a size over a number of connections,
//! a processor sends them back; bits of both directions per second, and the processor time of the front end's worker
//! (`/proc/self/task/*/schedstat`). The front end has one worker; clients and processor have a thread each.

use std::cell::Cell;
use std::io::Write as _;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ipfe::config::{Backend, Config, TargetSet};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

type Failure = Box<dyn std::error::Error>;

/// Messages of each connection in flight.
const WINDOW: usize = 8;

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Echoes received bytes, on a thread of its own.
fn echo() -> Result<SocketAddr, Failure> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    listener.set_nonblocking(true)?;
    std::thread::spawn(move || -> std::io::Result<()> {
        tokio::task::LocalSet::new().block_on(&runtime()?, async {
            let listener = TcpListener::from_std(listener)?;
            loop {
                let (mut stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                tokio::task::spawn_local(async move {
                    let (mut reader, mut writer) = stream.split();
                    tokio::io::copy(&mut reader, &mut writer).await
                });
            }
        })
    });
    Ok(address)
}

/// Bytes that came back from this address in the time.
fn load(to: SocketAddr, connections: usize, size: usize, length: Duration) -> Result<u64, Failure> {
    let bytes = Rc::new(Cell::new(0_u64));
    tokio::task::LocalSet::new().block_on(&runtime()?, async {
        let mut streams = Vec::new();
        for _ in 0..connections {
            let stream = TcpStream::connect(to).await?;
            stream.set_nodelay(true)?;
            streams.push(stream);
        }
        let end = Instant::now() + length;
        let mut tasks = Vec::new();
        for mut stream in streams {
            let bytes = bytes.clone();
            tasks.push(tokio::task::spawn_local(async move {
                let out = vec![0x55; size * WINDOW];
                let mut back = vec![0; size * WINDOW];
                while Instant::now() < end {
                    stream.write_all(&out).await?;
                    stream.read_exact(&mut back).await?;
                    bytes.set(bytes.get() + back.len() as u64);
                }
                std::io::Result::Ok(())
            }));
        }
        for task in tasks {
            task.await.map_err(std::io::Error::other)??;
        }
        std::io::Result::Ok(())
    })?;
    Ok(bytes.get())
}

/// Processor time of the front end's worker in seconds.
fn used() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let time = |path: std::path::PathBuf| {
        let name = std::fs::read_to_string(path.join("comm")).ok()?;
        let spent = std::fs::read_to_string(path.join("schedstat")).ok()?;
        let first = spent.split(' ').next()?.parse::<f64>().ok()?;
        (name.trim() == "ipfe-0").then_some(first / 1e9)
    };
    tasks.filter_map(|task| time(task.path())).sum()
}

fn main() -> Result<(), Failure> {
    let seconds: u64 = std::env::args().nth(1).map_or(Ok(4), |text| text.parse())?;
    let length = Duration::from_secs(seconds);
    let backend = echo()?;
    let front = ipfe::start(Config {
        workers: 1,
        target_sets: vec![TargetSet {
            name: "tsa".to_owned(),
            listen: "127.0.0.1:0".parse::<SocketAddr>()?.into(),
            backends: vec![Backend {
                name: "mp1".to_owned(),
                address: backend,
                ..Backend::default()
            }],
            max_connections: 4000,
            ..TargetSet::default()
        }],
        ..Config::default()
    })?;
    let address = *front.addresses().first().ok_or("no address")?;
    writeln!(
        std::io::stdout(),
        "| connections | message | Gbit/s | Gbit/s direct | core | Gbit/s per core |\n|--:|--:|--:|--:|--:|--:|"
    )?;
    for (connections, size) in [(16, 2200), (16, 600), (500, 2200), (2000, 2200), (2000, 600)] {
        let gigabits = |bytes: u64, seconds: f64| bytes as f64 * 2.0 * 8.0 / 1e9 / seconds;
        let begun = Instant::now();
        let direct = gigabits(
            load(backend, connections, size, length)?,
            begun.elapsed().as_secs_f64(),
        );
        let (before, begun) = (used(), Instant::now());
        let through = load(address, connections, size, length)?;
        let elapsed = begun.elapsed().as_secs_f64();
        let (through, core) = (gigabits(through, elapsed), (used() - before) / elapsed);
        writeln!(
            std::io::stdout(),
            "| {connections} | {size} B | {through:.2} | {direct:.2} | {core:.2} | {:.2} |",
            through / core.max(1e-9)
        )?;
    }
    front.stop()?;
    Ok(())
}
