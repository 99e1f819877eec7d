//! Kamailio as the P-CSCF of a network (`ims_qos`): it registers a UE and calls through router, BSF and PCF.
//!
//! ```text
//!  UE ── SIP ── P-CSCF ── SIP ── S-CSCF and callee        UE, S-CSCF and callee are sockets of this test
//!                 │ Rx
//!                DSR ── BSF ── PCF
//! ```

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loadgen::client::{Client, Request, Response};
use serde_json::json;
use testpeer::kamailio::{Kamailio, Role, Setup};
use testpeer::sip::{self, Sip};

use crate::process::{Process, ask, log, until};

/// How long a message may take.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_p_cscf_registers_and_calls_through_router_bsf_and_pcf() {
    if !Kamailio::is_installed() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (ue, network) = (Sip::bind("ue"), Sip::bind("callee"));
    let pcscf = Kamailio::start(Setup {
        role: Role::Pcscf,
        host: "pcscf.example.org",
        realm: "example.org",
        router: "dsr.example.org",
        next: network.address,
        folder: folder.path(),
    });
    let core = Core::start(folder.path(), pcscf.diameter);
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
    ue.register(&network, pcscf.sip, "registration");
    until("the AAR of the registration is counted", || {
        core.commands("AAR") == 1
    });

    // A call of which the caller hangs up.
    let route = ue.call(&network, pcscf.sip, "first");
    until("the AAR of the call is counted", || core.commands("AAR") == 2);
    ue.hang_up(&network, pcscf.sip, "first", &route);
    until("the AF session of the call is ended", || {
        core.commands("STR") == 1
    });

    // A call whose session the network ends.
    ue.call(&network, pcscf.sip, "second");
    until("the AAR of the second call is counted", || {
        core.commands("AAR") == 3
    });
    core.delete(&session);
    // Both parties get a BYE, and both AF sessions end.
    for party in [&ue, &network] {
        let bye = party.receive("BYE", "second");
        party.send(pcscf.sip, &sip::answer(&bye, &[], ""));
    }
    until("the AF sessions of call and registration are aborted", || {
        core.commands("ASR") >= 2
    });
    until("and are ended by the P-CSCF", || core.commands("STR") == 3);
    assert_eq!(core.metric("pcf", "pcf_af_created_total"), 3);
}

/// Router, BSF and PCF in a process.
struct Core {
    process: Process,
    folder: PathBuf,
}

impl Core {
    /// Starts them; the P-CSCF waits for the router at this address.
    fn start(folder: &Path, pcscf: SocketAddr) -> Self {
        let ports: Vec<u16> = (0..3).map(|_| free_ports::port().unwrap()).collect();
        let at = |port: u16| format!("127.0.0.1:{port}");
        let store = |name: &str| json!({"embedded": {"directory": folder.join(name)}});
        let rx = 16_777_236;
        let sbi = at(ports[2]);
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
                    {"host": "pcscf.example.org", "addresses": [pcscf], "timers": {"reconnectMin": "100ms", "reconnectMax": "1s"}}
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
