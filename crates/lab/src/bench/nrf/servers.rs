//! The servers of the comparison.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::Command;

use bytes::Bytes;
use serde_json::json;

use super::population::{PATH, profiles, queries};
use super::{NGINX, OURS, Settings};
use crate::bench::contest::{Requests, Subject};
use crate::bench::processes::{self, PATIENCE, register, start};
use crate::run::{Guarded, Place, RigError, free_address};
use loadgen::client::{Client, Request};

/// Everything that runs during the comparison.
pub(super) struct Rig {
    servers: Vec<Guarded>,
    pub(super) subjects: Vec<Subject>,
    /// Of our NRF's answer, and of the file.
    pub(super) answer_bytes: u64,
}

impl Rig {
    pub(super) fn start(place: &Place, settings: &Settings) -> Result<Self, RigError> {
        let (command, ours) = nrf(place, settings.function_config.as_deref())?;
        let mut servers = vec![start(place, OURS, command, &place.function_cpus, ours)?];
        register(ours, &profiles())?;
        let answer = ask(ours)?;
        let mut subjects = vec![subject(OURS, ours, answer.len(), &servers[0])];
        let (command, file) = nginx(place, &answer)?;
        servers.push(start(place, NGINX, command, &place.function_cpus, file)?);
        subjects.push(subject(NGINX, file, ask(file)?.len(), &servers[1]));
        for other in &settings.others {
            let server = other.start(place)?;
            register(other.address, &profiles())?;
            subjects.push(subject(
                &other.name,
                other.address,
                ask(other.address)?.len(),
                &server,
            ));
            servers.push(server);
        }
        Ok(Self {
            servers,
            subjects,
            answer_bytes: answer.len() as u64,
        })
    }

    pub(super) fn stop(self) {
        self.servers.into_iter().for_each(Guarded::stop);
    }
}

fn subject(name: &str, address: SocketAddr, answer_bytes: usize, server: &Guarded) -> Subject {
    let bytes = answer_bytes as u64;
    Subject {
        name: name.to_owned(),
        targets: vec![address],
        // A validity or a load in the answer may get a digit more or less.
        source: Box::new(requests(bytes * 98 / 100..=bytes * 102 / 100)),
        process: Some(server.process()),
    }
}

/// Discoveries whose answers have about this many bytes.
pub(in crate::bench) fn requests(answer_bytes: RangeInclusive<u64>) -> Requests {
    Requests {
        method: "GET",
        paths: queries(),
        headers: vec![("accept", "application/json".to_owned())],
        rotating: Vec::new(),
        body: Bytes::new(),
        status: 200,
        answer_bytes,
    }
}

/// The answer of a server to the first discovery.
pub(in crate::bench) fn ask(server: SocketAddr) -> Result<Vec<u8>, RigError> {
    let request = Request::new("GET", queries().first().map_or(PATH, String::as_str));
    let answers = Client::connect(server, PATIENCE)
        .and_then(|mut client| client.exchange(&[request]))
        .map_err(RigError::io(format!("a discovery at {server}")))?;
    match answers.into_iter().next() {
        Some(answer) if answer.status == 200 && answer.body.len() > 1000 => Ok(answer.body),
        answer => {
            let (status, text) = answer.map_or_else(Default::default, |one| (one.status, one.text()));
            Err(RigError::Settings(format!(
                "the server at {server} answers {status} to a discovery: {text}"
            )))
        }
    }
}

/// The command line of our NRF on one worker, and where it will listen.
pub(in crate::bench) fn nrf(place: &Place, over: Option<&Path>) -> Result<(Command, SocketAddr), RigError> {
    // A run begins with an empty NRF, also in a folder that was used before.
    let store = place.empty_folder("nrf-store")?;
    processes::function(place, "nrf", over, |address, admin| {
        json!({"nrf": {
            "listen": [address], "admin": admin, "workers": 1, "cores": place.function_cpus,
            "store": {"embedded": {"directory": store}}
        }})
    })
}

/// The command line of nginx on one thread that serves this file at the path of discoveries, and where it will listen.
pub(in crate::bench) fn nginx(place: &Place, file: &[u8]) -> Result<(Command, SocketAddr), RigError> {
    let address = free_address()?;
    // A path of its own: nginx takes relative ones from its prefix.
    let folder =
        std::path::absolute(place.folder.join("nginx")).map_err(RigError::io("making nginx's folder"))?;
    let served = folder.join("www").join(PATH.trim_start_matches('/'));
    let written = || -> std::io::Result<()> {
        std::fs::create_dir_all(served.parent().unwrap_or(&folder))?;
        std::fs::write(&served, file)?;
        std::fs::write(folder.join("nginx.conf"), configuration(&folder, address))
    };
    written().map_err(RigError::io(format!("writing {}", folder.display())))?;
    let mut command = Command::new("nginx");
    command
        .arg("-e")
        .arg("stderr")
        .arg("-p")
        .arg(&folder)
        .arg("-c")
        .arg(folder.join("nginx.conf"));
    Ok((command, address))
}

fn configuration(folder: &Path, address: SocketAddr) -> String {
    let version = Command::new("nginx").arg("-v").output();
    let version = version.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    let listen = if has_http2_directive(&version) {
        format!("listen {address}; http2 on;")
    } else {
        format!("listen {address} http2;")
    };
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|name| format!("  {name}_temp_path {};\n", folder.join(name).display()))
        .collect();
    // As nginx serves fastest: no log, the file held open, connections that never end.
    format!(
        "daemon off;\nmaster_process off;\nworker_processes 1;\npid {folder}/nginx.pid;\nerror_log stderr error;\n\
         events {{ worker_connections 4096; }}\n\
         http {{\n{temporary}  access_log off;\n  sendfile on;\n  tcp_nodelay on;\n  default_type application/json;\n  \
         keepalive_timeout 1h;\n  keepalive_requests 1000000000;\n  http2_max_concurrent_streams 1000;\n  \
         open_file_cache max=100 inactive=1h;\n  open_file_cache_valid 1h;\n  \
         server {{ {listen} root {folder}/www; }}\n}}\n",
        folder = folder.display()
    )
}

/// Whether this nginx has `http2 on` (1.25.1), and warns of `listen … http2`.
fn has_http2_directive(version: &str) -> bool {
    let numbers = version.split("nginx/").nth(1).unwrap_or_default();
    let numbers: Vec<u32> = numbers
        .split(|c: char| !c.is_ascii_digit())
        .take(3)
        .filter_map(|part| part.parse().ok())
        .collect();
    numbers >= vec![1, 25, 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http2_is_switched_on_as_the_version_has_it() {
        for (version, expected) in [
            ("nginx version: nginx/1.22.1", false),
            ("nginx version: nginx/1.25.0", false),
            ("nginx version: nginx/1.25.1 (Ubuntu)", true),
            ("nginx version: nginx/1.26.0", true),
            ("", false),
        ] {
            assert_eq!(has_http2_directive(version), expected, "{version}");
        }
    }
}
