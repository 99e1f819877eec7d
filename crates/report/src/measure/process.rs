//! A process as `/proc` shows it.

use std::collections::HashSet;
use std::fs;
use std::time::Duration;

/// A process that is measured.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    id: u32,
    ticks_per_second: u64,
}

/// What a process has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time since it began, in user and kernel mode, over all threads.
    pub cpu: Duration,
    /// The part of it in user mode; the rest is the kernel's.
    pub user: Duration,
    /// Resident memory in bytes.
    pub rss: u64,
    /// Threads.
    pub threads: u64,
}

/// A thread of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its id, which no other thread of the machine has.
    pub id: u32,
    /// Its name; the kernel keeps the first 15 bytes.
    pub name: String,
    /// Processor time since it began, in user and kernel mode.
    pub cpu: Duration,
}

/// Established TCP connections of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Those that peers made to a port it listens on.
    pub incoming: u32,
    /// Those that it made.
    pub outgoing: u32,
}

impl Process {
    /// The process with this id.
    #[must_use]
    pub fn new(id: u32) -> Self {
        Self {
            id,
            ticks_per_second: rustix::param::clock_ticks_per_second(),
        }
    }

    /// What it has used; `None` when it has ended.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id)).ok()?;
        let (user, system, threads, pages) = stat_fields(&stat)?;
        Some(Usage {
            cpu: self.time(user + system),
            user: self.time(user),
            rss: pages * rustix::param::page_size() as u64,
            threads,
        })
    }

    fn time(&self, ticks: u64) -> Duration {
        Duration::from_nanos(ticks.saturating_mul(1_000_000_000 / self.ticks_per_second.max(1)))
    }

    /// Its threads.
    #[must_use]
    pub fn threads(&self) -> Vec<Thread> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.id));
        let thread = |entry: fs::DirEntry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let (user, system, ..) = stat_fields(&stat)?;
            Some(Thread {
                id,
                name: stat.get(stat.find('(')? + 1..stat.rfind(')')?)?.to_owned(),
                cpu: self.time(user + system),
            })
        };
        tasks.into_iter().flatten().flatten().filter_map(thread).collect()
    }

    /// Its established connections; those to a port that it listens on are incoming.
    #[must_use]
    pub fn connections(&self) -> Connections {
        let inodes: HashSet<String> = fs::read_dir(format!("/proc/{}/fd", self.id))
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let target = fs::read_link(entry.path()).ok()?;
                Some(
                    target
                        .to_str()?
                        .strip_prefix("socket:[")?
                        .strip_suffix(']')?
                        .to_owned(),
                )
            })
            .collect();
        let mut rows = Vec::new();
        for table in ["tcp", "tcp6"] {
            let text = fs::read_to_string(format!("/proc/{}/net/{table}", self.id)).unwrap_or_default();
            rows.extend(
                text.lines()
                    .skip(1)
                    .filter_map(row)
                    .filter(|row| inodes.contains(&row.inode)),
            );
        }
        count(&rows)
    }
}

/// User time, system time, threads and resident pages of a line of `/proc/<id>/stat` (proc_pid_stat(5)).
fn stat_fields(stat: &str) -> Option<(u64, u64, u64, u64)> {
    // The name may hold spaces and parentheses; the fields begin after the last closing one.
    let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse().ok();
    Some((number(11)?, number(12)?, number(17)?, number(21)?))
}

/// A row of `/proc/net/tcp`.
#[derive(Debug)]
struct Row {
    port: u16,
    state: u8,
    inode: String,
}

const ESTABLISHED: u8 = 0x01;
const LISTEN: u8 = 0x0a;

fn row(line: &str) -> Option<Row> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    Some(Row {
        port: u16::from_str_radix(fields.get(1)?.rsplit_once(':')?.1, 16).ok()?,
        state: u8::from_str_radix(fields.get(3)?, 16).ok()?,
        inode: (*fields.get(9)?).to_owned(),
    })
}

fn count(rows: &[Row]) -> Connections {
    let listening: HashSet<u16> = rows
        .iter()
        .filter(|r| r.state == LISTEN)
        .map(|r| r.port)
        .collect();
    let mut connections = Connections::default();
    for row in rows.iter().filter(|r| r.state == ESTABLISHED) {
        if listening.contains(&row.port) {
            connections.incoming += 1;
        } else {
            connections.outgoing += 1;
        }
    }
    connections
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn this_process_is_seen() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let _server = listener.accept().unwrap();
        let process = Process::new(std::process::id());
        let usage = process.usage().unwrap();
        assert!(usage.rss > 1 << 20 && usage.threads >= 1);
        assert!(usage.user <= usage.cpu);
        let connections = process.connections();
        assert!(
            connections.incoming >= 1 && connections.outgoing >= 1,
            "{connections:?}"
        );
    }

    #[test]
    fn threads_have_their_names() {
        let (done, wait) = std::sync::mpsc::sync_channel::<()>(1);
        let thread = std::thread::Builder::new().name("named-7".into());
        let thread = thread.spawn(move || wait.recv()).unwrap();
        let process = Process::new(std::process::id());
        let end = std::time::Instant::now() + Duration::from_secs(20);
        // A thread names itself when it has begun.
        while !process.threads().iter().any(|one| one.name == "named-7") {
            assert!(std::time::Instant::now() < end, "{:?}", process.threads());
            std::thread::yield_now();
        }
        drop(done);
        let _ = thread.join();
    }

    #[test]
    fn a_name_with_parentheses_does_not_move_the_fields() {
        let mut line = "7 (a) b) c) S".to_owned();
        (4..=24).for_each(|field| line += &format!(" {field}"));
        assert_eq!(stat_fields(&line), Some((14, 15, 20, 24)));
        assert_eq!(stat_fields("7 (x"), None);
    }
}
