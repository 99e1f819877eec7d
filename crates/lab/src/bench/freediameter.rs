//! freeDiameter (Debian: `freediameterd`, `freediameter-extensions`) as a relay.

use std::fmt::Write;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use crate::run::{Guarded, Place, RigError, RunError, free_address};
use simulators::diameter::DiameterSettings;
use tls::authority::Authority;
use workload::dsr::REALM;

const PROGRAM: &str = "freeDiameterd";
const IDENTITY: &str = "fd";
/// Diffie-Hellman parameters in the only form that freeDiameter reads (RFC 7919, ffdhe2048).
const PARAMETERS: &str = include_str!("../../../testpeer/data/ffdhe2048.pem");

/// Whether it is installed.
pub(super) fn find() -> Result<(), RunError> {
    let asked = Command::new(PROGRAM)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match asked {
        Ok(_) => Ok(()),
        Err(_) => Err(RunError::Missing {
            program: PROGRAM,
            packages: "freediameterd freediameter-extensions",
        }),
    }
}

/// Whom it serves.
pub(super) struct Served<'a> {
    /// The realm of its clients.
    pub(super) clients: &'a str,
    /// Names of its servers, and where they listen.
    pub(super) names: DiameterSettings,
    pub(super) servers: &'a [SocketAddr],
    /// Rules of its extension `rt_default`; empty: without it.
    pub(super) rules: String,
}

/// Starts it on the cores of the function, connected to its servers; returns its address.
pub(super) fn start(place: &Place, served: &Served<'_>) -> Result<(Guarded, SocketAddr), RigError> {
    let (address, secure) = (free_address()?, free_address()?);
    let folder = place.folder.join("freediameter");
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text)
            .map(|()| path.display().to_string())
            .map_err(RigError::io(format!("writing {}", path.display())))
    };
    std::fs::create_dir_all(&folder).map_err(RigError::io(format!("making {}", folder.display())))?;
    // freeDiameter does not start without TLS files, although no peer of this run uses TLS.
    let made = Authority::new(REALM).and_then(|authority| {
        let identity = authority.issue(&[&format!("{IDENTITY}.{REALM}")])?;
        Ok((authority, identity))
    });
    let (authority, identity) =
        made.map_err(|error| RigError::Settings(format!("certificates cannot be made: {error}")))?;
    let trusted = write("authority.pem", authority.pem().to_owned())?;
    let certificate = write("certificate.pem", identity.certificate)?;
    let key = write("key.pem", identity.key)?;
    let parameters = write("dh.pem", PARAMETERS.to_owned())?;
    let access = write("acl.conf", format!("ALLOW_IPSEC *.{}\n", served.clients))?;
    let mut text = format!(
        "Identity = \"{IDENTITY}.{REALM}\";\n\
         Realm = \"{IDENTITY}.{REALM}\";\n\
         Port = {};\nSecPort = {};\nNo_SCTP;\nListenOn = \"127.0.0.1\";\nTcTimer = 1;\n\
         TLS_Cred = \"{certificate}\", \"{key}\";\nTLS_CA = \"{trusted}\";\n\
         TLS_DH_File = \"{parameters}\";\n\
         LoadExtension = \"acl_wl.fdx\" : \"{access}\";\n\
         LoadExtension = \"dict_nasreq.fdx\";\nLoadExtension = \"dict_dcca.fdx\";\n\
         LoadExtension = \"dict_dcca_3gpp.fdx\";\n",
        address.port(),
        secure.port()
    );
    if !served.rules.is_empty() {
        let rules = write("rt_default.conf", served.rules.clone())?;
        // Writing to a String cannot fail.
        let _ = writeln!(text, "LoadExtension = \"rt_default.fdx\" : \"{rules}\";");
    }
    for (number, peer) in served.servers.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "ConnectPeer = \"{}\" {{ ConnectTo = \"{}\"; Port = {}; No_TLS; No_SCTP; }};",
            served.names.host(number),
            peer.ip(),
            peer.port()
        );
    }
    let file = write("freediameter.conf", text)?;
    let mut command = Command::new(PROGRAM);
    command
        .arg("-c")
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let log = place.folder.join("freediameter.log");
    let mut child = Guarded::start("freediameter", command, &place.function_cpus, &log)?;
    child.wait_for(address)?;
    Ok((child, address))
}
