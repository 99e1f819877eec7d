//! Real freeDiameter processes as peers (Debian: `freediameterd`, `freediameter-extensions`). Where the program
//! is missing, [`FreeDiameter::start`] says so and gives none: the test then passes.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

/// The shortest watchdog interval it takes.
pub const WATCHDOG: Duration = Duration::from_secs(6);

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A running freeDiameter.
#[derive(Debug)]
pub struct FreeDiameter {
    child: Child,
    address: SocketAddr,
    folder: TempDir,
}

/// How it is set up.
#[derive(Clone, Debug)]
pub struct Setup<'a> {
    /// Its DiameterIdentity, which ends in `.example`.
    pub identity: &'a str,
    /// Its realm.
    pub realm: &'a str,
    /// Where it listens; 0: a free port.
    pub port: u16,
    /// The peers that it connects to.
    pub peers: &'a [(&'a str, SocketAddr)],
}

/// A port that no program uses at this moment.
///
/// # Panics
/// When the machine has none left.
#[must_use]
pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0")
        .expect("there is a free port")
        .local_addr()
        .expect("it has an address")
        .port()
}

impl FreeDiameter {
    /// Starts one that lets every `*.example` in without TLS. None when it is not installed.
    ///
    /// # Panics
    /// When it is installed and does not start; with what it said.
    pub async fn start(setup: Setup<'_>) -> Option<Self> {
        Self::launch(setup, None, None).await
    }

    /// As [`FreeDiameter::start`], one that prefers SCTP. It listens at this address of the machine; it takes none of the
    /// loopback network for SCTP.
    ///
    /// # Panics
    /// As [`FreeDiameter::start`].
    pub async fn start_sctp(setup: Setup<'_>, at: IpAddr) -> Option<Self> {
        Self::launch(setup, None, Some(at)).await
    }

    /// As [`FreeDiameter::start`], one that speaks Rx itself: as `pcf`, or as `af BSF`, which sends an AAR for
    /// 10.0.0.1 to the peer of that name (`data/rx.c` says more). None also when its extension cannot be
    /// compiled for want of a C compiler or freeDiameter's headers (Debian: `libfreediameter-dev`).
    ///
    /// # Panics
    /// As [`FreeDiameter::start`].
    pub async fn start_rx(setup: Setup<'_>, role: &str) -> Option<Self> {
        Self::launch(setup, Some(role), None).await
    }

    async fn launch(setup: Setup<'_>, rx: Option<&str>, sctp: Option<IpAddr>) -> Option<Self> {
        let version = Command::new("freeDiameterd")
            .arg("--version")
            .stdout(Stdio::null())
            .status();
        if version.is_err() {
            crate::skip::missing("freeDiameterd");
            return None;
        }
        let port = if setup.port == 0 { free_port() } else { setup.port };
        let folder = tempfile::tempdir().expect("a folder can be made");
        write_files(folder.path(), &setup, port, sctp).expect("its files can be written");
        if let Some(role) = rx {
            let extension = compiled(folder.path())?;
            let conf = folder.path().join("fd.conf");
            let mut text = std::fs::read_to_string(&conf).expect("its files can be read");
            let _ = writeln!(text, "LoadExtension = \"{}\" : \"{role}\";", extension.display());
            std::fs::write(conf, text).expect("its files can be written");
        }
        let log = std::fs::File::create(folder.path().join("log")).expect("its log can be made");
        let child = Command::new("freeDiameterd")
            .arg("-c")
            .arg(folder.path().join("fd.conf"))
            .stdout(log.try_clone().expect("the log can be shared"))
            .stderr(log)
            .spawn()
            .expect("it can be started");
        let mut running = Self {
            child,
            address: SocketAddr::new(sctp.unwrap_or(LOOPBACK), port),
            folder,
        };
        while tokio::net::TcpStream::connect(running.address).await.is_err() {
            if let Ok(Some(status)) = running.child.try_wait() {
                panic!("freeDiameterd ended with {status}:\n{}", running.log());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Some(running)
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it has said.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Asks it to leave in order.
    ///
    /// # Panics
    /// When the signal cannot be sent.
    pub fn terminate(&self) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(
            sent.is_ok_and(|status| status.success()),
            "the signal cannot be sent"
        );
    }
}

impl Drop for FreeDiameter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The Rx extension, if it can be compiled.
fn compiled(folder: &Path) -> Option<std::path::PathBuf> {
    let made = folder.join("rx.fdx");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/rx.c");
    let compiler = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&made)
        .arg(source)
        .output();
    match compiler {
        Ok(done) if done.status.success() => Some(made),
        _ => {
            crate::skip::missing("a C compiler, or the headers of freeDiameter (libfreediameter-dev),");
            None
        }
    }
}

fn write_files(folder: &Path, setup: &Setup<'_>, port: u16, sctp: Option<IpAddr>) -> std::io::Result<()> {
    let file = |name: &str| folder.join(name);
    let certificate = rcgen::generate_simple_self_signed(vec![setup.identity.to_owned()])
        .expect("a certificate can be made");
    std::fs::write(file("cert.pem"), certificate.cert.pem())?;
    std::fs::write(file("key.pem"), certificate.signing_key.serialize_pem())?;
    // freeDiameter needs TLS files although no peer uses TLS, and the parameters in the old form only.
    let dh = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/ffdhe2048.pem");
    std::fs::write(file("acl.conf"), "ALLOW_IPSEC *.example\n")?;
    let without_sctp = if sctp.is_some() { "" } else { "No_SCTP;" };
    let at = sctp.unwrap_or(LOOPBACK);
    let mut conf = format!(
        "Identity = \"{}\";\nRealm = \"{}\";\nPort = {port};\nSecPort = {};\n{without_sctp}\n\
         ListenOn = \"{at}\";\nTwTimer = {};\nTcTimer = 1;\n\
         TLS_Cred = \"{}\", \"{}\";\nTLS_CA = \"{}\";\nTLS_DH_File = \"{}\";\n\
         LoadExtension = \"acl_wl.fdx\" : \"{}\";\nLoadExtension = \"dict_nasreq.fdx\";\n\
         LoadExtension = \"dict_dcca.fdx\";\nLoadExtension = \"dict_dcca_3gpp.fdx\";\n",
        setup.identity,
        setup.realm,
        free_port(),
        WATCHDOG.as_secs(),
        file("cert.pem").display(),
        file("key.pem").display(),
        file("cert.pem").display(),
        dh.display(),
        file("acl.conf").display(),
    );
    for (host, address) in setup.peers {
        let _ = writeln!(
            conf,
            "ConnectPeer = \"{host}\" {{ ConnectTo = \"{}\"; Port = {}; No_TLS; {without_sctp} }};",
            address.ip(),
            address.port()
        );
    }
    std::fs::write(file("fd.conf"), conf)
}
