//! Kamailio as the P-CSCF of a network (`ims_qos`): it registers a UE and calls through router, BSF and PCF.
//!
//! ```text
//!  UE ── SIP ── P-CSCF ── SIP ── S-CSCF and callee        UE, S-CSCF and callee are sockets of this test
//!                 │ Rx
//!                DSR ── BSF ── PCF
//! ```

use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use loadgen::client::{Client, Request, Response};
use serde_json::json;

use crate::process::{Process, ask, log, until};

/// How long a message may take.
const PATIENCE: Duration = Duration::from_secs(60);
const PROGRAM: &str = "/usr/sbin/kamailio";

#[test]
fn a_p_cscf_registers_and_calls_through_router_bsf_and_pcf() {
    let Some(modules) = modules() else {
        return testpeer::skip::missing("Kamailio with ims_qos (apt-get install kamailio-ims-modules)");
    };
    let folder = tempfile::tempdir().unwrap();
    let core = Core::start(folder.path());
    let (ue, network) = (Sip::bind(), Sip::bind());
    let pcscf = Pcscf::start(folder.path(), &modules, &core, network.address);
    until("the router has the P-CSCF as a peer", || {
        core.metric("dsr", r#"dsr_peers{state="available"}"#) >= 2
    });
    until("the BSF has the PCF as a peer", || {
        log(&core.folder).contains("Diameter peer up host=pcf.example.org")
    });
    let session = core.session(ue.address);
    until("the BSF has the session", || {
        core.metric("bsf", "bsf_registrations_total") >= 1
    });

    // Signalling: the AAR of the registration.
    ue.send(
        pcscf.sip,
        &request(
            &ue,
            "REGISTER",
            &network,
            "registration",
            1,
            &["Expires: 600".to_owned()],
            "",
        ),
    );
    let register = network.receive("REGISTER", "registration");
    let granted = [
        format!("Contact: <sip:ue@{}>;expires=600", ue.address),
        format!("Service-Route: <sip:{};lr>", network.address),
        "P-Associated-URI: <sip:ue@ims.example>".to_owned(),
    ];
    network.send(pcscf.sip, &answer(&register, &granted, ""));
    ue.receive("SIP/2.0 200", "registration");
    until("the AAR of the registration is counted", || {
        core.commands("AAR") == 1
    });

    // A call of which the caller hangs up.
    let route = call(&ue, &network, &pcscf, "first");
    until("the AAR of the call is counted", || core.commands("AAR") == 2);
    ue.send(pcscf.sip, &request(&ue, "BYE", &network, "first", 2, &route, ""));
    network.send(pcscf.sip, &answer(&network.receive("BYE", "first"), &[], ""));
    ue.receive("SIP/2.0 200", "first");
    until("the AF session of the call is ended", || {
        core.commands("STR") == 1
    });

    // A call whose session the network ends.
    call(&ue, &network, &pcscf, "second");
    until("the AAR of the second call is counted", || {
        core.commands("AAR") == 3
    });
    core.delete(&session);
    // Both parties get a BYE, and both AF sessions end.
    for party in [&ue, &network] {
        let bye = party.receive("BYE", "second");
        party.send(pcscf.sip, &answer(&bye, &[], ""));
    }
    until("the AF sessions of call and registration are aborted", || {
        core.commands("ASR") >= 2
    });
    until("and are ended by the P-CSCF", || core.commands("STR") == 3);
    assert_eq!(core.metric("pcf", "pcf_af_created_total"), 3);
}

/// The folder of the modules, where Kamailio and those of an IMS are installed.
fn modules() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").ok()?;
    let folders = folders.filter_map(|folder| Some(folder.ok()?.path().join("kamailio/modules")));
    let mut folders = folders.chain([PathBuf::from("/usr/lib/kamailio/modules")]);
    let installed = Path::new(PROGRAM).exists();
    folders.find(|folder| installed && folder.join("ims_qos.so").exists())
}

/// Router, BSF and PCF in a process.
struct Core {
    process: Process,
    folder: PathBuf,
    /// Where the P-CSCF waits for the router.
    acceptor: u16,
}

impl Core {
    fn start(folder: &Path) -> Self {
        let ports: Vec<u16> = (0..4).map(|_| free_ports::port().unwrap()).collect();
        let at = |port: u16| format!("127.0.0.1:{port}");
        let store = |name: &str| json!({"embedded": {"directory": folder.join(name)}});
        let rx = 16_777_236;
        let sbi = at(ports[3]);
        let config = json!({
            "bsf": {
                "listen": [&sbi], "admin": "127.0.0.1:0", "store": store("bsf"),
                "rx": {"host": "bsf.example.org", "realm": "example.org", "listen": [at(ports[0])],
                    "peers": [{"host": "pcf.example.org", "addresses": [at(ports[1])]}]}
            },
            "pcf": {
                "listen": ["127.0.0.1:0"], "admin": "127.0.0.1:0", "store": store("pcf"),
                "diameter": {"host": "pcf.example.org", "realm": "example.org", "listen": [at(ports[1])], "agents": ["bsf.example.org"]},
                "bsf": {"apiRoots": [format!("http://{sbi}")], "binding": {"pcfDiamHost": "pcf.example.org", "pcfDiamRealm": "example.org"}}
            },
            "dsr": {
                "admin": "127.0.0.1:0",
                // Kamailio takes a node that only relays for none that serves Rx.
                "localNodes": [{"host": "dsr.example.org", "realm": "example.org", "listen": ["127.0.0.1:0"], "applications": [rx]}],
                "peers": [
                    {"host": "bsf.example.org", "addresses": [at(ports[0])], "timers": {"reconnectMin": "100ms"}},
                    {"host": "pcscf.example.org", "addresses": [at(ports[2])], "timers": {"reconnectMin": "100ms", "reconnectMax": "1s"}}
                ],
                "dynamicPeers": [{"realms": ["example.org"], "networks": ["127.0.0.0/8"]}],
                "routing": {
                    "peerRouteTables": [{"name": "default", "rules": [{"name": "rx", "priority": 10,
                        "when": {"applications": [rx], "destinationHost": {"present": false}}, "action": {"routeList": "bsf"}}]}],
                    "routeLists": [{"name": "bsf", "groups": ["bsf"]}],
                    "routeGroups": [{"name": "bsf", "peers": [{"host": "bsf.example.org", "weight": 1}]}]
                }
            }
        });
        let file = folder.join("config.yaml");
        std::fs::write(&file, settings::to_yaml(&config)).unwrap();
        let args = ["run", "bsf", "pcf", "dsr", "--config", file.to_str().unwrap()];
        Self {
            process: Process::start(&args, folder),
            folder: folder.to_owned(),
            acceptor: ports[2],
        }
    }

    /// A metric without its prefix; 0 where there is none yet.
    fn metric(&self, function: &str, name: &str) -> u64 {
        let admin = self.process.address(&format!("{function} admin"));
        let (_, page) = ask(admin, "GET", "/metrics");
        let line = page
            .lines()
            .find_map(|line| line.strip_prefix("signalbox_")?.strip_prefix(name));
        let value = line.and_then(|rest| rest.trim().parse::<f64>().ok());
        value.map_or(0, |value| value as u64)
    }

    /// Requests of a command that the BSF has passed on and answered.
    fn commands(&self, command: &str) -> u64 {
        self.metric(
            "bsf",
            &format!(r#"bsf_rx_request_seconds_count{{command="{command}"}}"#),
        )
    }

    /// An SM policy of the UE: its path.
    fn session(&self, ue: SocketAddr) -> String {
        let context = json!({
            "supi": "imsi-001010000000001", "pduSessionId": 1, "pduSessionType": "IPV4", "dnn": "ims",
            "notificationUri": "http://127.0.0.1:9/smf", "sliceInfo": {"sst": 1}, "ipv4Address": ue.ip(),
        });
        let answer = self.post("/npcf-smpolicycontrol/v1/sm-policies", context.to_string());
        assert_eq!(answer.status, 201, "{}\n{}", answer.text(), log(&self.folder));
        answer.location.parse::<http::Uri>().unwrap().path().to_owned()
    }

    fn delete(&self, session: &str) {
        assert_eq!(
            self.post(&format!("{session}/delete"), "{}".to_owned()).status,
            204
        );
    }

    fn post(&self, path: &str, body: String) -> Response {
        let pcf = self.process.address("pcf SBI");
        let mut client = Client::connect(pcf, PATIENCE).unwrap();
        let request = Request::new("POST", path).with("application/json", body);
        client.exchange(&[request]).unwrap().remove(0)
    }
}

/// Kamailio; ended when dropped.
struct Pcscf {
    child: Child,
    sip: SocketAddr,
    log: PathBuf,
}

impl Pcscf {
    fn start(folder: &Path, modules: &Path, core: &Core, network: SocketAddr) -> Self {
        let [sip, client, server] = [(); 3].map(|()| free_ports::port().unwrap());
        let sip = SocketAddr::from(([127, 0, 0, 1], sip));
        let made = |text: &str| {
            text.replace("@PCSCF@", &sip.to_string())
                .replace("@CORE@", &network.to_string())
                .replace("@FOLDER@", folder.to_str().unwrap())
                .replace("@MODULES@", &format!("{}/", modules.display()))
                .replace("@ACCEPTOR@", &core.acceptor.to_string())
                .replace("@IPSEC_CLIENT@", &client.to_string())
                .replace("@IPSEC_SERVER@", &server.to_string())
        };
        std::fs::write(folder.join("pcscf.cfg"), made(include_str!("kamailio/pcscf.cfg"))).unwrap();
        std::fs::write(folder.join("cdp.xml"), made(include_str!("kamailio/cdp.xml"))).unwrap();
        let log = folder.join("kamailio.log");
        let output = std::fs::File::create(&log).unwrap();
        // One of its modules would remove the IPsec associations of this machine, which it may not.
        let mut command = if may_administer() {
            let mut without = Command::new("setpriv");
            without.args(["--bounding-set=-net_admin", PROGRAM]);
            without
        } else {
            Command::new(PROGRAM)
        };
        let child = command
            .args(["-DD", "-E", "-f"])
            .arg(folder.join("pcscf.cfg"))
            .arg("-P")
            .arg(folder.join("kamailio.pid"))
            .arg("-Y")
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap();
        Self { child, sip, log }
    }
}

/// Whether this process may change the machine's network (`CAP_NET_ADMIN`).
fn may_administer() -> bool {
    const NET_ADMIN: u64 = 1 << 12;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    effective.is_some_and(|bits| bits & NET_ADMIN != 0)
}

impl Drop for Pcscf {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", std::fs::read_to_string(&self.log).unwrap_or_default());
        }
        // It ends its own processes when it is asked to.
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}

/// An end of SIP over UDP.
struct Sip {
    socket: UdpSocket,
    address: SocketAddr,
}

impl Sip {
    fn bind() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let address = socket.local_addr().unwrap();
        Self { socket, address }
    }

    fn send(&self, to: SocketAddr, message: &str) {
        self.socket.send_to(message.as_bytes(), to).unwrap();
    }

    /// The next message of a dialogue whose first line begins so; provisional answers, repetitions and other messages pass.
    fn receive(&self, begins: &str, id: &str) -> String {
        let mut buffer = vec![0; 65_536];
        let mut others = Vec::new();
        loop {
            let Ok((length, _)) = self.socket.recv_from(&mut buffer) else {
                panic!("no {begins} came, but {others:#?}");
            };
            let message = String::from_utf8_lossy(&buffer[..length]).into_owned();
            if message.starts_with(begins) && lines(&message, "Call-ID").any(|line| line.ends_with(id)) {
                return message;
            }
            others.push(message);
        }
    }
}

/// A call that is set up, with its bearer granted: the route set of the caller.
fn call(ue: &Sip, network: &Sip, pcscf: &Pcscf, id: &str) -> Vec<String> {
    ue.send(
        pcscf.sip,
        &request(ue, "INVITE", network, id, 1, &[], &description(ue)),
    );
    let invite = network.receive("INVITE", id);
    let contact = format!("Contact: <sip:callee@{}>", network.address);
    network.send(pcscf.sip, &answer(&invite, &[contact], &description(network)));
    let accepted = ue.receive("SIP/2.0 200", id);
    let route: Vec<String> = lines(&accepted, "Record-Route")
        .map(|line| line.replace("Record-Route", "Route"))
        .collect();
    // Kamailio 5.6 confirms a dialog after it has sent the answer, and does not for an ACK that comes before: repetitions do.
    for _ in 0..3 {
        ue.send(pcscf.sip, &request(ue, "ACK", network, id, 1, &route, ""));
        network.receive("ACK", id);
        std::thread::sleep(Duration::from_millis(200));
    }
    route
}

fn description(at: &Sip) -> String {
    let port = at.address.port();
    format!(
        "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio {port} RTP/AVP 0\r\nb=AS:41\r\n\
         a=rtpmap:0 PCMU/8000\r\n"
    )
}

fn lines<'m>(message: &'m str, name: &'m str) -> impl Iterator<Item = &'m str> {
    let head = message.split("\r\n\r\n").next().unwrap_or_default();
    head.split("\r\n").filter(move |line| {
        let given = line.split(':').next().unwrap_or_default();
        given.eq_ignore_ascii_case(name)
    })
}

fn message(mut head: Vec<String>, body: &str) -> String {
    if !body.is_empty() {
        head.push("Content-Type: application/sdp".to_owned());
    }
    head.push(format!("Content-Length: {}", body.len()));
    format!("{}\r\n\r\n{body}", head.join("\r\n"))
}

/// A request of the UE. One within a call goes to the contact of the callee.
fn request(
    ue: &Sip,
    method: &str,
    callee: &Sip,
    id: &str,
    number: u32,
    more: &[String],
    body: &str,
) -> String {
    let (to, uri) = match method {
        "REGISTER" => ("<sip:ue@ims.example>", "sip:ims.example".to_owned()),
        "INVITE" => ("<sip:callee@ims.example>", "sip:callee@ims.example".to_owned()),
        _ => (
            "<sip:callee@ims.example>;tag=callee",
            format!("sip:callee@{}", callee.address),
        ),
    };
    let head = [
        format!("{method} {uri} SIP/2.0"),
        format!(
            "Via: SIP/2.0/UDP {};branch=z9hG4bK{id}{method}{number}",
            ue.address
        ),
        "Max-Forwards: 70".to_owned(),
        "From: <sip:ue@ims.example>;tag=ue".to_owned(),
        format!("To: {to}"),
        format!("Call-ID: {id}"),
        format!("CSeq: {number} {method}"),
        format!("Contact: <sip:ue@{}>", ue.address),
    ];
    message(head.into_iter().chain(more.iter().cloned()).collect(), body)
}

/// The answer 200 to a request.
fn answer(request: &str, more: &[String], body: &str) -> String {
    let mut head = vec!["SIP/2.0 200 OK".to_owned()];
    for name in ["Via", "Record-Route", "From", "To", "Call-ID", "CSeq"] {
        head.extend(lines(request, name).map(|line| match name {
            "To" if !line.contains("tag=") => format!("{line};tag=callee"),
            _ => line.to_owned(),
        }));
    }
    head.extend_from_slice(more);
    message(head, body)
}
