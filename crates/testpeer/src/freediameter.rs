//! Real freeDiameter processes as peers (Debian: `freediameterd`, `freediameter-extensions`). Where the program
//! is missing, [`FreeDiameter::start`] says so and gives none: the test then passes.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use diameter_proto::{AvpType, Avps, Dictionary, Message};
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
        Self::launch(setup, Some(("rx", role)), None).await
    }

    /// `extension`: the name of its source in `data`, and its argument.
    async fn launch(setup: Setup<'_>, extension: Option<(&str, &str)>, sctp: Option<IpAddr>) -> Option<Self> {
        let version = Command::new("freeDiameterd")
            .arg("--version")
            .stdout(Stdio::null())
            .status();
        if version.is_err() {
            crate::skip::missing("freeDiameterd");
            return None;
        }
        let port = if setup.port == 0 {
            free_ports::port().expect("a free port")
        } else {
            setup.port
        };
        let folder = tempfile::tempdir().expect("a folder can be made");
        write_files(folder.path(), &setup, port, sctp).expect("its files can be written");
        if let Some((name, argument)) = extension {
            let extension = compiled(folder.path(), name)?;
            let argument = argument.replace("FOLDER", &folder.path().display().to_string());
            let conf = folder.path().join("fd.conf");
            let mut text = std::fs::read_to_string(&conf).expect("its files can be read");
            let _ = writeln!(
                text,
                "LoadExtension = \"{}\" : \"{argument}\";",
                extension.display()
            );
            std::fs::write(conf, text).expect("its files can be written");
        }
        let log = std::fs::File::create(folder.path().join("log")).expect("its log can be made");
        let child = Command::new("freeDiameterd")
            .arg("-c")
            .arg(folder.path().join("fd.conf"))
            .stdin(Stdio::piped())
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

/// A freeDiameter that sends the requests of a test and records what it receives (`data/console.c`).
#[derive(Debug)]
pub struct Console {
    running: FreeDiameter,
    input: ChildStdin,
}

impl Console {
    /// Starts one that serves these applications, and waits until it is connected to all its peers. None as for
    /// [`FreeDiameter::start_rx`].
    ///
    /// # Panics
    /// As [`FreeDiameter::start`].
    pub async fn start(setup: Setup<'_>, applications: &[u32]) -> Option<Self> {
        let mut argument = "FOLDER/messages".to_owned();
        for application in applications {
            let _ = write!(argument, " {application}");
        }
        let mut waits = String::new();
        for (peer, _) in setup.peers {
            let _ = writeln!(waits, "peer {peer}");
        }
        let mut running = FreeDiameter::launch(setup, Some(("console", &argument)), None).await?;
        let mut input = running.child.stdin.take().expect("its input is a pipe");
        input.write_all(waits.as_bytes()).expect("it reads its input");
        Some(Self { running, input })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.running.address
    }

    /// Sends a request with the AVPs of this one, once it is connected: freeDiameter encodes it by its own dictionary.
    /// Origin-Host and Origin-Realm are its own.
    ///
    /// # Panics
    /// When an AVP is not in the dictionary, or freeDiameter has ended.
    pub fn send(&mut self, request: &Message) {
        let dictionary = Dictionary::standard();
        let command = dictionary
            .command(request.command(), request.application())
            .expect("the command is known");
        let mut text = format!("send {}-Request {}\n", command.name, request.application());
        put_lines(&mut text, request.avps());
        text.push_str("end\n");
        self.input.write_all(text.as_bytes()).expect("it reads its input");
    }

    /// What it has received, in order: each message as the head of `data/console.c` shows it.
    #[must_use]
    pub fn received(&self) -> Vec<String> {
        let file = self.running.folder.path().join("messages");
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let whole = text.split_inclusive("\n}\n");
        whole
            .filter(|message| message.ends_with("\n}\n"))
            .map(str::to_owned)
            .collect()
    }

    /// Waits for the message of this number, from 1, of this command (`Re-Auth-Request`).
    ///
    /// # Panics
    /// When it does not come, with what freeDiameter has logged.
    pub async fn expect(&self, command: &str, number: usize) -> String {
        for _ in 0..2_000 {
            let received = self.received();
            let mut fitting = received
                .into_iter()
                .filter(|message| message.split(' ').next() == Some(command));
            if let Some(message) = fitting.nth(number - 1) {
                return message;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!(
            "{command} {number} has not come:\n{}\n{}",
            self.received().concat(),
            self.running.log()
        );
    }
}

/// AVPs as lines that the console reads.
fn put_lines(text: &mut String, avps: Avps<'_>) {
    for avp in avps {
        let avp = avp.expect("the message is well formed");
        let known = Dictionary::standard()
            .avp(avp.key())
            .unwrap_or_else(|| panic!("{} is not in the dictionary", avp.key()));
        if ["Origin-Host", "Origin-Realm"].contains(&&*known.name) {
            continue;
        }
        let _ = match known.kind {
            AvpType::Grouped => {
                let _ = writeln!(text, "{} = {{", known.name);
                put_lines(text, avp.group());
                writeln!(text, "}}")
            }
            AvpType::Enumerated | AvpType::Unsigned32 | AvpType::Integer32 => {
                let bytes = avp.data.try_into().expect("a number of 32 bits has four bytes");
                writeln!(text, "{} = {}", known.name, u32::from_be_bytes(bytes))
            }
            AvpType::Unsigned64 | AvpType::Integer64 => {
                let bytes = avp.data.try_into().expect("a number of 64 bits has eight bytes");
                writeln!(text, "{} = {}", known.name, u64::from_be_bytes(bytes))
            }
            _ => {
                let hex: String = avp.data.iter().map(|byte| format!("{byte:02x}")).collect();
                writeln!(text, "{} = {hex}", known.name)
            }
        };
    }
}

/// An extension of `data`, if it can be compiled.
fn compiled(folder: &Path, name: &str) -> Option<std::path::PathBuf> {
    let made = folder.join(name).with_extension("fdx");
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("data")
        .join(name)
        .with_extension("c");
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
        free_ports::port().expect("a free port"),
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
