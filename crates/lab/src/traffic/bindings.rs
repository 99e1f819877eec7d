//! A simulated PCF at a BSF: it keeps a few bindings of PDU sessions, which an AF discovers by address.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Counts, PATIENCE, PAUSE, wait};
use loadgen::client::{Client, Request};

/// Bindings that are kept: of 10.0.0.1 and the addresses behind it.
const SESSIONS: u32 = 12;
const PATH: &str = "/nbsf-management/v1/pcfBindings";

/// Keeps bindings until the end, and removes those that it has made.
pub(super) fn run(bsf: SocketAddr, pcf: &str, stop: &AtomicBool, counts: &Counts) {
    let mut made = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        // An error means that the BSF is unreachable: begin again.
        if live(bsf, pcf, &mut made, stop, counts).is_err() {
            counts.count(false);
            wait(PAUSE, stop);
        }
    }
}

fn live(
    bsf: SocketAddr,
    pcf: &str,
    made: &mut Vec<String>,
    stop: &AtomicBool,
    counts: &Counts,
) -> io::Result<()> {
    let mut client = Client::connect(bsf, PATIENCE)?;
    let mut ask = |request: Request| -> io::Result<(u16, String)> {
        let answer = client.exchange(&[request])?.pop().unwrap_or_default();
        counts.count((200..300).contains(&answer.status));
        Ok((answer.status, answer.location))
    };
    for session in 1..=SESSIONS {
        // An earlier process that was killed may have left it.
        if ask(discovery(session))?.0 == 204 {
            let (status, location) = ask(binding(session, pcf))?;
            if status == 201 {
                made.extend(path_of(&location));
            }
        }
    }
    let mut session = 0;
    while !stop.load(Ordering::Relaxed) {
        session = session % SESSIONS + 1;
        ask(discovery(session))?;
        wait(PAUSE, stop);
    }
    while let Some(path) = made.pop() {
        ask(Request::new("DELETE", path))?;
    }
    Ok(())
}

fn discovery(session: u32) -> Request {
    Request::new("GET", format!("{PATH}?ipv4Addr=10.0.0.{session}"))
}

fn binding(session: u32, pcf: &str) -> Request {
    let body = format!(
        r#"{{"supi":"imsi-0010100000000{session:02}","ipv4Addr":"10.0.0.{session}","dnn":"internet","snssai":{{"sst":1}},"pcfId":"{pcf}","pcfFqdn":"pcf1.example.org","pcfIpEndPoints":[{{"ipv4Address":"127.0.0.1","port":8097}}]}}"#
    );
    Request::new("POST", PATH).with("application/json", body)
}

/// The path of a URI.
fn path_of(uri: &str) -> Option<String> {
    let (_, rest) = uri.split_once("://")?;
    rest.find('/')
        .and_then(|start| rest.get(start..))
        .map(str::to_owned)
}
