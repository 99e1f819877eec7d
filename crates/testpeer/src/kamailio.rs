//! Kamailio as a node of an IMS (Debian: `kamailio`, `kamailio-ims-modules`): a P-CSCF with Rx, an S-CSCF that charges over Ro, an
//! OCS. Routers connect to it. And as a proxy that resolves numbers by ENUM.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const PROGRAM: &str = "/usr/sbin/kamailio";
const DIAMETER: &str = include_str!("../data/kamailio/cdp.xml");

/// What it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A P-CSCF (`ims_qos`): AF of Rx.
    Pcscf,
    /// An S-CSCF (`ims_charging`): CTF of Ro.
    Ctf,
    /// An OCS (`ims_ocs`).
    Ocs,
}

impl Role {
    const fn settings(self) -> &'static str {
        match self {
            Self::Pcscf => include_str!("../data/kamailio/pcscf.cfg"),
            Self::Ctf => include_str!("../data/kamailio/ctf.cfg"),
            Self::Ocs => include_str!("../data/kamailio/ocs.cfg"),
        }
    }

    const fn module(self) -> &'static str {
        match self {
            Self::Pcscf => "ims_qos.so",
            Self::Ctf => "ims_charging.so",
            Self::Ocs => "ims_ocs.so",
        }
    }

    const fn application(self) -> u32 {
        match self {
            Self::Pcscf => 16_777_236,
            Self::Ctf | Self::Ocs => 4,
        }
    }
}

/// How it is set up.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// What it is.
    pub role: Role,
    /// Its DiameterIdentity and realm.
    pub host: &'a str,
    /// Its realm.
    pub realm: &'a str,
    /// The router, which connects to it.
    pub router: &'a str,
    /// Where SIP requests go on to.
    pub next: SocketAddr,
    /// A folder for its files.
    pub folder: &'a Path,
}

/// A running Kamailio; ended when dropped.
#[derive(Debug)]
pub struct Kamailio {
    program: Program,
    /// Where it takes SIP over UDP.
    pub sip: SocketAddr,
    /// Where it waits for the router.
    pub diameter: SocketAddr,
}

impl Kamailio {
    /// Whether the modules of all roles are installed. Where they are not, it says so.
    #[must_use]
    pub fn is_installed() -> bool {
        let roles = [Role::Pcscf, Role::Ctf, Role::Ocs];
        let is_installed = roles.iter().all(|role| modules(role.module()).is_some());
        if !is_installed {
            crate::skip::missing(
                "Kamailio with its modules for an IMS (apt-get install kamailio-ims-modules)",
            );
        }
        is_installed
    }

    /// Starts one.
    ///
    /// # Panics
    /// When it is not installed or cannot be started.
    #[must_use]
    pub fn start(setup: Setup<'_>) -> Self {
        let modules = modules(setup.role.module()).expect("it is installed");
        let [sip, diameter] = [(); 2].map(|()| free_ports::address().expect("a free port"));
        let folder = setup.folder.join(setup.host);
        std::fs::create_dir_all(&folder).expect("its folder can be made");
        let peers = folder.join("cdp.xml");
        let made = |text: &str| {
            let ipsec = || free_ports::port().expect("a free port").to_string();
            text.replace("@SIP@", &sip.to_string())
                .replace("@NEXT@", &setup.next.to_string())
                .replace("@MODULES@", &format!("{}/", modules.display()))
                .replace("@CDP@", &peers.display().to_string())
                .replace("@HOST@", setup.host)
                .replace("@REALM@", setup.realm)
                .replace("@ROUTER@", setup.router)
                .replace("@ACCEPTOR@", &diameter.port().to_string())
                .replace("@APPLICATION@", &setup.role.application().to_string())
                .replace("@IPSEC_CLIENT@", &ipsec())
                .replace("@IPSEC_SERVER@", &ipsec())
        };
        std::fs::write(&peers, made(DIAMETER)).expect("its files can be written");
        let program = Program::start(command(), &folder, &made(setup.role.settings()));
        Self {
            program,
            sip,
            diameter,
        }
    }

    /// What it has logged.
    #[must_use]
    pub fn log(&self) -> String {
        self.program.log()
    }
}

/// A proxy that answers each request with what the module `enum` makes of its number (`300`, the Request-URI in `X-Target`, further
/// branches behind it), or 404; ended when dropped.
#[derive(Debug)]
pub struct EnumProxy {
    program: Program,
    /// Where it takes SIP over UDP.
    pub sip: SocketAddr,
}

impl EnumProxy {
    /// Starts one that asks a name server at port 53 of an address for numbers below an apex. `None` where Kamailio is missing, or
    /// this user may not give a process a resolver of its own.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start(folder: &Path, server: IpAddr, apex: &str) -> Option<Self> {
        let Some(modules) = modules("enum.so") else {
            crate::skip::missing("Kamailio (apt-get install kamailio)");
            return None;
        };
        let resolver = folder.join("resolv.conf");
        std::fs::write(&resolver, format!("nameserver {server}\n")).expect("its files can be written");
        // Kamailio asks where /etc/resolv.conf says: it gets one of its own.
        let script = "mount --bind \"$0\" /etc/resolv.conf && exec \"$@\"";
        let alone = |program: &str| {
            let mut command = Command::new("unshare");
            command
                .args(["--mount", "sh", "-c", script])
                .arg(&resolver)
                .arg(program);
            command
        };
        let probe = alone("true").stdin(Stdio::null()).stderr(Stdio::null()).status();
        if !probe.is_ok_and(|status| status.success()) {
            crate::skip::unavailable("no mount namespace for a resolver of its own");
            return None;
        }
        let sip = free_ports::address().expect("a free port");
        let settings = include_str!("../data/kamailio/enum.cfg")
            .replace("@SIP@", &sip.to_string())
            .replace("@MODULES@", &format!("{}/", modules.display()))
            .replace("@APEX@", apex);
        let program = Program::start(alone(PROGRAM), folder, &settings);
        Some(Self { program, sip })
    }

    /// What it has logged.
    #[must_use]
    pub fn log(&self) -> String {
        self.program.log()
    }
}

/// A process of Kamailio with its log.
#[derive(Debug)]
struct Program {
    child: Child,
    log: PathBuf,
}

impl Program {
    fn start(mut command: Command, folder: &Path, settings: &str) -> Self {
        let [config, log] = ["kamailio.cfg", "log"].map(|name| folder.join(name));
        std::fs::write(&config, settings).expect("its files can be written");
        let output = std::fs::File::create(&log).expect("its log can be made");
        let child = command
            .args(["-DD", "-E", "-f"])
            .arg(&config)
            .arg("-P")
            .arg(folder.join("pid"))
            .arg("-Y")
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("the log can be shared"))
            .stderr(output)
            .spawn()
            .expect("it can be started");
        Self { child, log }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
        // It ends its own processes when it is asked to.
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}

/// The folder of the modules, where Kamailio and this one are installed.
fn modules(module: &str) -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").ok()?;
    let folders = folders.filter_map(|folder| Some(folder.ok()?.path().join("kamailio/modules")));
    let mut folders = folders.chain([PathBuf::from("/usr/lib/kamailio/modules")]);
    let installed = Path::new(PROGRAM).exists();
    folders.find(|folder| installed && folder.join(module).exists())
}

/// One of its modules would remove the IPsec associations of this machine, which it may not.
fn command() -> Command {
    if may_administer() {
        let mut without = Command::new("setpriv");
        without.args(["--bounding-set=-net_admin", PROGRAM]);
        return without;
    }
    Command::new(PROGRAM)
}

/// Whether this process may change the machine's network (`CAP_NET_ADMIN`).
fn may_administer() -> bool {
    const NET_ADMIN: u64 = 1 << 12;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    effective.is_some_and(|bits| bits & NET_ADMIN != 0)
}
