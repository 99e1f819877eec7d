//! A real directory: OpenLDAP's slapd (Debian: `slapd`) with two subscribers, on a port of its own.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The name and the password that may read.
pub const ADMIN: (&str, &str) = ("cn=admin,dc=example,dc=org", "secret");
/// Where the subscribers are.
pub const SUBSCRIBERS: &str = "ou=subscribers,dc=example,dc=org";

const ENTRIES: &str = "dn: dc=example,dc=org
objectClass: dcObject
objectClass: organization
o: example
dc: example

dn: ou=subscribers,dc=example,dc=org
objectClass: organizationalUnit
ou: subscribers

dn: cn=one,ou=subscribers,dc=example,dc=org
objectClass: subscriber
cn: one
imsi: 001010000000001
tier: gold
quota: 42

dn: cn=two,ou=subscribers,dc=example,dc=org
objectClass: subscriber
cn: two
imsi: 001010000000002
tier: silver

dn: cn=double,ou=subscribers,dc=example,dc=org
objectClass: subscriber
cn: double
imsi: 001010000000002

dn: ou=elsewhere,dc=example,dc=org
objectClass: referral
objectClass: extensibleObject
ou: elsewhere
ref: ldap://other.example/ou=elsewhere,dc=example,dc=org
";

/// A running slapd, killed with its files when the test is over.
pub struct Slapd {
    child: Child,
    folder: TempDir,
    pub url: String,
}

impl Slapd {
    /// Starts one, with TLS by the certificate files `cert.pem`, `key.pem` and `ca.pem` of this folder where one is given;
    /// none where slapd is missing.
    pub fn start(certificates: Option<&Path>) -> Option<Self> {
        Self::with_entries(certificates, "")
    }

    /// The same, with more entries (LDIF).
    pub fn with_entries(certificates: Option<&Path>, more: &str) -> Option<Self> {
        let slapadd = ["/usr/sbin/slapadd", "/usr/libexec/slapadd"];
        let Some(slapadd) = slapadd.into_iter().find(|path| Path::new(path).exists()) else {
            testpeer::skip::missing("slapd");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("db")).unwrap();
        std::fs::write(at("slapd.conf"), settings(folder.path(), certificates)).unwrap();
        std::fs::write(at("entries.ldif"), format!("{ENTRIES}{more}")).unwrap();
        let added = Command::new(slapadd)
            .args(["-f".as_ref(), at("slapd.conf").as_os_str()])
            .args(["-l".as_ref(), at("entries.ldif").as_os_str()])
            .output()
            .unwrap();
        assert!(
            added.status.success(),
            "{}",
            String::from_utf8_lossy(&added.stderr)
        );
        let port = free_ports::port().unwrap();
        let url = match certificates {
            Some(_) => format!("ldaps://localhost:{port}"),
            None => format!("ldap://127.0.0.1:{port}"),
        };
        let child = run(folder.path(), &url);
        Some(Self { child, folder, url })
    }

    fn signal(&self, signal: &str) {
        let killed = Command::new("kill")
            .args([signal, &self.child.id().to_string()])
            .status();
        assert!(killed.unwrap().success());
    }

    /// It keeps its connections and answers nothing.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again at the same address.
    pub fn restart(&mut self) {
        self.child = run(self.folder.path(), &self.url);
    }
}

impl Drop for Slapd {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts slapd in the foreground, and waits until it listens.
fn run(folder: &Path, url: &str) -> Child {
    let mut child = Command::new("/usr/sbin/slapd")
        .args(["-d", "0", "-h", url, "-f"])
        .arg(folder.join("slapd.conf"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let address = url
        .split_once("://")
        .map_or(url, |(_, address)| address)
        .to_owned();
    let began = Instant::now();
    while std::net::TcpStream::connect(&address).is_err() {
        let ended = child.try_wait().unwrap();
        assert!(
            ended.is_none() && began.elapsed() < Duration::from_secs(60),
            "slapd: {ended:?}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

fn settings(folder: &Path, certificates: Option<&Path>) -> String {
    let text = "1.3.6.1.4.1.1466.115.121.1.15";
    let number = "1.3.6.1.4.1.1466.115.121.1.27";
    let tls = certificates.map_or_else(String::new, |folder| {
        let folder = folder.display();
        format!(
            "TLSCertificateFile {folder}/cert.pem\nTLSCertificateKeyFile {folder}/key.pem\n\
             TLSCACertificateFile {folder}/ca.pem\n"
        )
    });
    let folder = folder.display();
    let (name, password) = ADMIN;
    format!(
        "include /etc/ldap/schema/core.schema\n\
         attributetype ( 1.1.2.1.1 NAME 'imsi' EQUALITY caseExactMatch SYNTAX {text} )\n\
         attributetype ( 1.1.2.1.2 NAME 'tier' EQUALITY caseExactMatch SYNTAX {text} )\n\
         attributetype ( 1.1.2.1.3 NAME 'quota' EQUALITY integerMatch SYNTAX {number} )\n\
         objectclass ( 1.1.2.2.1 NAME 'subscriber' SUP top STRUCTURAL MUST cn MAY ( imsi $ tier $ quota ) )\n\
         modulepath /usr/lib/ldap\nmoduleload back_mdb\nreferral ldap://other.example\n{tls}\
         pidfile {folder}/slapd.pid\ndatabase mdb\nsuffix \"dc=example,dc=org\"\nrootdn \"{name}\"\n\
         rootpw {password}\ndirectory {folder}/db\naccess to * by users read by anonymous auth\n"
    )
}
