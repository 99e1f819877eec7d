//! What a configuration needs of the machine that it is for: files that can be read and fit together, directories, secrets,
//! addresses. A start finds these mistakes one at a time, and a unit that restarts finds them over and over.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::path::Path;

use serde_json::{Map, Value};
use settings::{Faults, Secret, path_key};
use time::OffsetDateTime;
use tls::TlsFiles;

use crate::config::Config;
use crate::functions::ALL;

/// Keys of files that must be readable; those of TLS are judged as a set.
const FILES: [&str; 8] = [
    "authorities",
    "certificateAuthority",
    "clientCertificate",
    "clientKey",
    "file",
    "keySets",
    "passwordFile",
    "signingKeys",
];

/// Judges a configuration by this machine.
pub(crate) fn judge(config: &Config, faults: &mut Faults) {
    let value = serde_json::to_value(config).unwrap_or_default();
    walk(&value, "", faults);
    stp::check_files(&config.stp, faults);
    dsr::check_files(&config.dsr, faults);
    enum_server::check_files(&config.r#enum, faults);
    dp::check_files(&config.dp, faults);
    for function in ALL {
        for (key, address) in (function.addresses)(config) {
            // Port 0 asks for nothing but the address.
            let Err(error) = UdpSocket::bind((address.ip(), 0)) else {
                continue;
            };
            if error.kind() == ErrorKind::AddrNotAvailable {
                faults.at(format!("{}.{key}", function.name)).say(
                    format!("{} is not an address of this machine", address.ip()),
                    "an address of this machine; `--elsewhere` checks for another machine",
                );
            }
        }
    }
}

fn walk(value: &Value, path: &str, faults: &mut Faults) {
    match value {
        Value::Object(members) => object(members, path, faults),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, &format!("{path}[{index}]"), faults);
            }
        }
        _ => {}
    }
}

fn object(members: &Map<String, Value>, path: &str, faults: &mut Faults) {
    if members.contains_key("certificate") && members.contains_key("key") {
        return tls_files(members, path, faults);
    }
    if let [(key, Value::String(_))] = members.iter().collect::<Vec<_>>().as_slice()
        && matches!(key.as_str(), "file" | "env")
    {
        let secret = serde_json::from_value::<Secret>(Value::Object(members.clone()));
        if let Ok(Err(error)) = secret.map(|secret| secret.read()) {
            faults
                .at(path)
                .say(error.to_string(), "a secret that can be read");
        }
        return;
    }
    for (key, value) in members {
        let inner = path_key(path, key);
        match value {
            Value::String(name) if key == "directory" => directory(Path::new(name), &inner, faults),
            Value::String(name) if FILES.contains(&key.as_str()) => file(Path::new(name), &inner, faults),
            Value::Array(names) if FILES.contains(&key.as_str()) => {
                for (index, name) in names.iter().enumerate() {
                    let name = Path::new(name.as_str().unwrap_or_default());
                    file(name, &format!("{inner}[{index}]"), faults);
                }
            }
            Value::Object(inner_members) if key == "store" => store(inner_members, &inner, faults),
            other => walk(other, &inner, faults),
        }
    }
}

/// Only the engine in use needs its settings.
fn store(members: &Map<String, Value>, path: &str, faults: &mut Faults) {
    let engine = members.get("engine").and_then(Value::as_str).unwrap_or_default();
    if let Some(value) = members.get(engine) {
        walk(value, &path_key(path, engine), faults);
    }
}

fn tls_files(members: &Map<String, Value>, path: &str, faults: &mut Faults) {
    let Ok(files) = serde_json::from_value::<TlsFiles>(Value::Object(members.clone())) else {
        return;
    };
    if files.certificate.as_os_str().is_empty()
        && files.key.as_os_str().is_empty()
        && files.authorities.is_none()
    {
        return;
    }
    for flaw in files.flaws(OffsetDateTime::now_utc()) {
        // A setting that is missing has no line of its own.
        let path = match flaw.part {
            "authorities" if files.authorities.is_none() => path.to_owned(),
            part => path_key(path, part),
        };
        faults.at(path).say(flaw.what, flaw.expected);
    }
}

fn file(path: &Path, setting: &str, faults: &mut Faults) {
    if path.as_os_str().is_empty() {
        return;
    }
    let read = std::fs::read(path).and_then(|content| match content.is_empty() {
        true => Err(std::io::Error::other("the file is empty")),
        false => Ok(()),
    });
    if let Err(error) = read {
        let what = format!("{}: {error}", path.display());
        faults.at(setting).say(what, "a file that can be read");
    }
}

/// A directory is created where it is absent, below one that is there.
fn directory(path: &Path, setting: &str, faults: &mut Faults) {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let Some(there) = path.ancestors().find(|path| path.symlink_metadata().is_ok()) else {
        return;
    };
    if !there.is_dir() {
        let what = format!("{} is not a directory", there.display());
        faults
            .at(setting)
            .say(what, "a directory, or a path below one where it can be created");
    }
}
