//! `kill -9` during registration churn: what was acknowledged is there after the restart.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use loadgen::client::{Client, Request};

/// How often the process is killed; `SIGNALBOX_CRASH_ROUNDS` makes it more.
fn rounds() -> u32 {
    std::env::var("SIGNALBOX_CRASH_ROUNDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(3)
}

fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // SIGKILL: what Rust's kill sends.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(folder: &Path, address: SocketAddr) -> Process {
    let file = folder.join("nrf.yaml");
    let data = folder.join("data");
    let text = format!(
        "nrf:\n  listen: [\"{address}\"]\n  admin: \"{}\"\n  workers: 1\n  store:\n    embedded:\n      directory: {}\n",
        free(),
        data.display()
    );
    std::fs::write(&file, text).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_signalbox"))
        .args(["run", "nrf", "--config"])
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let process = Process(child);
    for _ in 0..400 {
        if std::net::TcpStream::connect(address).is_ok() {
            return process;
        }
        std::thread::sleep(Duration::from_millis(25));
    }
    panic!("the NRF did not start");
}

fn path(number: u32) -> String {
    format!("/nnrf-nfm/v1/nf-instances/00000000-0000-4000-8000-{number:012x}")
}

fn register(number: u32) -> Request {
    let id = format!("00000000-0000-4000-8000-{number:012x}");
    let profile = format!(
        r#"{{"nfInstanceId":"{id}","nfType":"UDM","nfStatus":"REGISTERED","ipv4Addresses":["127.0.0.1"],"pad":"{}"}}"#,
        "x".repeat(2_000)
    );
    Request::new("PUT", path(number)).with("application/json", profile)
}

#[test]
fn kill_9_loses_nothing_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let address = free();
    let mut acknowledged: Vec<u32> = Vec::new();
    let mut next = 0;
    for round in 0..rounds() {
        let process = start(folder.path(), address);
        let mut client = Client::connect(address, Duration::from_secs(5)).unwrap();
        for number in &acknowledged {
            let got = client.exchange(&[Request::new("GET", path(*number))]).unwrap();
            assert_eq!(got[0].status, 200, "round {round}: registration {number} is lost");
        }
        let stop = AtomicBool::new(false);
        let (kept, last) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut kept = Vec::new();
                let mut number = next;
                while !stop.load(Ordering::Relaxed) {
                    match client.exchange(&[register(number)]) {
                        Ok(answers) if answers[0].status == 201 => kept.push(number),
                        Ok(answers) => panic!("refused: {}", answers[0].text()),
                        // The process is gone; what was on its way is not acknowledged.
                        Err(_) => break,
                    }
                    number += 1;
                }
                (kept, number + 1)
            });
            std::thread::sleep(Duration::from_millis(300));
            drop(process);
            stop.store(true, Ordering::Relaxed);
            writer.join().unwrap()
        });
        assert!(!kept.is_empty(), "round {round}: nothing was written");
        acknowledged.extend(kept);
        next = last;
    }
    let _process = start(folder.path(), address);
    let mut client = Client::connect(address, Duration::from_secs(5)).unwrap();
    for number in &acknowledged {
        let got = client.exchange(&[Request::new("GET", path(*number))]).unwrap();
        assert_eq!(got[0].status, 200, "registration {number} is lost");
    }
}
