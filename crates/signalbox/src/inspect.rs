//! Looking inside running functions through their admin endpoints.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::check::print;
use crate::run::Failure;

/// How long an admin endpoint may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The registered NF instances of an NRF.
pub(crate) fn nrf_instances(admin: SocketAddr, json: bool) -> Result<(), Failure> {
    let body = fetch(admin, "/nrf/instances")?;
    if json {
        print(&format!("{body}\n"));
        return Ok(());
    }
    let list: Vec<Value> = serde_json::from_str(&body)?;
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let mut out = format!(
        "{:<38}{:<8}{:<12}{:>5}  services\n",
        "instance", "type", "status", "load"
    );
    for one in &list {
        let services: Vec<String> = one["services"]
            .as_array()
            .into_iter()
            .flatten()
            .map(text)
            .collect();
        let load = one["load"]
            .as_u64()
            .map_or("-".to_owned(), |load| load.to_string());
        out.push_str(&format!(
            "{:<38}{:<8}{:<12}{load:>5}  {}\n",
            text(&one["nfInstanceId"]),
            text(&one["nfType"]),
            text(&one["nfStatus"]),
            services.join(" ")
        ));
    }
    out.push_str(&format!("{} registered\n", list.len()));
    print(&out);
    Ok(())
}

/// The body of a page of an admin endpoint. HTTP/1.0 keeps this short: one answer, then the end.
fn fetch(admin: SocketAddr, path: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect_timeout(&admin, TIMEOUT).with_context(|| {
        format!("no admin endpoint at {admin}; is the function running? (--admin ADDRESS)")
    })?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {admin}\r\n\r\n")?;
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .with_context(|| format!("reading from {admin}"))?;
    let (head, body) = answer.split_once("\r\n\r\n").context("the answer is not HTTP")?;
    let status = head.lines().next().unwrap_or_default();
    if !status.contains(" 200") {
        bail!("{admin}{path} answered {status}");
    }
    Ok(body.to_owned())
}
