//! `signalbox up --secure`: who has no certificate, no token or another's identity gets nothing; who has them is served.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use loadgen::client::{Client, Request, Response};
use loadgen::engine::TlsFiles;
use serde_json::{Value, json};

use crate::process::{ask, log, text, until};
use crate::up::{Up, calls_stand};

/// The NF instance of `you.crt`.
const YOU: &str = "5b0000aa-51ab-4000-8000-000000000001";
const PATIENCE: Duration = Duration::from_secs(10);

/// A secure core and the certificates it has made.
struct Core {
    up: Up,
    certificates: PathBuf,
    folder: tempfile::TempDir,
}

impl Core {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let up = Up::start(folder.path(), &["--secure"]);
        up.is_populated();
        Self {
            up,
            certificates: folder.path().join("state/secure"),
            folder,
        }
    }

    /// A connection to a function with the certificate of this name.
    fn to(&self, function: &str, certificate: &str) -> Client {
        let file = |ending: &str| self.certificates.join(format!("{certificate}.{ending}"));
        let files = TlsFiles {
            certificate: file("crt"),
            key: file("key"),
            authorities: Some(self.certificates.join("authority.crt")),
            ..TlsFiles::default()
        };
        let address = self.up.address(function, "https");
        let connected = Client::connect_secure(address, PATIENCE, &lab::engine::client_tls(&files).unwrap());
        connected.unwrap_or_else(|error| panic!("{function}: {error}\n{}", log(self.folder.path())))
    }

    fn registered(&self, id: &str) -> bool {
        ask(self.up.admin("nrf"), "GET", &format!("/nrf/instances/{id}")).0 == 200
    }
}

fn exchange(client: &mut Client, request: Request) -> Response {
    client.exchange(&[request]).unwrap().remove(0)
}

fn profile(id: &str, nf_type: &str) -> Request {
    let profile = json!({"nfInstanceId": id, "nfType": nf_type, "nfStatus": "REGISTERED", "ipv4Addresses": ["127.0.0.1"]});
    Request::new("PUT", format!("/nnrf-nfm/v1/nf-instances/{id}"))
        .with("application/json", profile.to_string())
}

fn ask_token(client: &mut Client, id: &str, nf_type: &str, target: &str, scope: &str) -> Response {
    let form = format!(
        "grant_type=client_credentials&nfInstanceId={id}&nfType={nf_type}&targetNfType={target}&scope={scope}"
    );
    let request = Request::new("POST", "/oauth2/token").with("application/x-www-form-urlencoded", form);
    exchange(client, request)
}

fn token(client: &mut Client, id: &str, nf_type: &str, target: &str, scope: &str) -> String {
    let answer = ask_token(client, id, nf_type, target, scope);
    assert_eq!(answer.status, 200, "{scope}: {}", answer.text());
    let granted: Value = serde_json::from_slice(&answer.body).unwrap();
    format!("Bearer {}", granted["access_token"].as_str().unwrap())
}

/// What curl says of a URI without a certificate of its own: whether it was refused before an answer.
fn is_refused_without_certificate(authority: &Path, address: SocketAddr) -> Option<bool> {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--http2", "--max-time", "10", "--output", "/dev/null"])
        .args(["--write-out", "%{http_code}", "--cacert"])
        .arg(authority)
        .arg(format!("https://{address}/nnrf-nfm/v1/nf-instances"));
    let output = testpeer::skip::output(&mut curl)?;
    Some(!output.status.success() && text(&output.stdout) == "000")
}

#[test]
fn certificate_token_and_identity_are_all_needed_and_enough() {
    let core = Core::start();
    // Files are for their owner.
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&core.certificates), 0o700);
    assert_eq!(mode(&core.certificates.join("nrf.key")), 0o600);

    // Nothing without a certificate; and nothing in the clear.
    for function in ["nrf", "scp", "bsf", "pcf", "scef", "sds"] {
        let address = core.up.address(function, "https");
        let refused = is_refused_without_certificate(&core.certificates.join("authority.crt"), address);
        assert_ne!(refused, Some(false), "{function}");
        assert!(
            Client::connect(address, Duration::from_secs(2)).is_err(),
            "{function}"
        );
    }

    // Diameter begins with TLS, or not at all.
    let diameter: Vec<SocketAddr> = core
        .up
        .page
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("aaas://")?.parse().ok())
        .collect();
    assert!(
        diameter.len() >= 2 && !core.up.page.contains("aaa://"),
        "{}",
        core.up.page
    );
    for address in diameter {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // A Capabilities-Exchange-Request of the header alone.
        let header = [1, 0, 0, 20, 0x80, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1];
        stream.write_all(&header).unwrap();
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
        assert_ne!(said.first(), Some(&1), "an answer in Diameter: {said:?}");
    }

    // With a certificate, and no token: 401.
    let mut you = core.to("nrf", "you");
    let discover = || {
        Request::new(
            "GET",
            "/nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type=AF",
        )
    };
    let list = || Request::new("GET", "/nnrf-nfm/v1/nf-instances");
    assert_eq!(exchange(&mut you, discover()).status, 401);
    assert_eq!(exchange(&mut you, list()).status, 401);
    let bindings = || Request::new("GET", "/nbsf-management/v1/pcfBindings?ipv4Addr=10.0.0.77");
    assert_eq!(exchange(&mut core.to("bsf", "you"), bindings()).status, 401);

    // The right identity registers, gets tokens and discovers.
    assert_eq!(exchange(&mut you, profile(YOU, "AF")).status, 201);
    let disc = token(&mut you, YOU, "AF", "NRF", "nnrf-disc");
    let found = exchange(&mut you, discover().header("authorization", &disc));
    assert_eq!(found.status, 200, "{}", found.text());
    let found: Value = serde_json::from_slice(&found.body).unwrap();
    assert_eq!(found["nfInstances"].as_array().unwrap().len(), 2, "{found}");
    let udm = found["nfInstances"][0]["nfInstanceId"]
        .as_str()
        .unwrap()
        .to_owned();

    // The wrong identity: 403, and nothing has changed.
    let nfm = token(&mut you, YOU, "AF", "NRF", "nnrf-nfm");
    let other = "5b0000aa-51ab-4000-8000-00000000000f";
    for forged in [
        profile(other, "UDM"),
        profile(&udm, "UDM"),
        Request::new("DELETE", format!("/nnrf-nfm/v1/nf-instances/{udm}")),
        Request::new("PATCH", format!("/nnrf-nfm/v1/nf-instances/{udm}")).with(
            "application/json-patch+json",
            r#"[{"op":"replace","path":"/nfStatus","value":"SUSPENDED"}]"#,
        ),
    ] {
        let (method, path) = (forged.method, forged.path.clone());
        let refused = exchange(&mut you, forged.header("authorization", &nfm));
        assert_eq!(refused.status, 403, "{method} {path}: {}", refused.text());
    }
    assert!(core.registered(&udm) && !core.registered(other));
    assert_eq!(ask_token(&mut you, &udm, "UDM", "AMF", "namf-comm").status, 403);
    // A token that was stolen opens nothing to another certificate.
    let mut thief = core.to("nrf", "simulated-udr-7");
    let refused = exchange(&mut thief, list().header("authorization", &nfm));
    assert_eq!(refused.status, 403, "{}", refused.text());

    // Through the SCP to what simulated functions offer.
    let mut scp = core.to("scp", "you");
    let relayed = || {
        Request::new("GET", "/nudm-sdm/v1/imsi-001010000000001/am-data")
            .header("3gpp-sbi-discovery-target-nf-type", "UDM")
            .header("3gpp-sbi-discovery-requester-nf-type", "AF")
            .header("3gpp-sbi-discovery-service-names", "nudm-sdm")
    };
    let sdm = token(&mut you, YOU, "AF", "UDM", "nudm-sdm");
    let answer = exchange(&mut scp, relayed().header("authorization", &sdm));
    assert_eq!(
        answer.status,
        200,
        "{}\n{}",
        answer.text(),
        log(core.folder.path())
    );
    // Without a token the SCP asks for one, and the NRF does not take its word for who asks.
    let refused = exchange(&mut scp, relayed());
    assert_eq!(refused.status, 403, "{}", refused.text());
    assert!(
        refused.text().contains("ACCESS_TOKEN_DENIED"),
        "{}",
        refused.text()
    );

    // A binding at the BSF, which has the NRF's keys by now.
    let mut bsf = core.to("bsf", "you");
    let token = token(&mut you, YOU, "AF", "BSF", "nbsf-management");
    until("the BSF to have the keys of the NRF", || {
        exchange(&mut bsf, bindings().header("authorization", &token)).status != 401
    });
    let binding = json!({"supi": "imsi-001010000000001", "ipv4Addr": "10.0.0.77", "dnn": "internet", "snssai": {"sst": 1},
        "pcfFqdn": "pcf.test", "pcfIpEndPoints": [{"ipv4Address": "127.0.0.1", "port": 1}]});
    let made =
        Request::new("POST", "/nbsf-management/v1/pcfBindings").with("application/json", binding.to_string());
    let made = exchange(&mut bsf, made.header("authorization", &token));
    assert_eq!(made.status, 201, "{}", made.text());
    let found = exchange(&mut bsf, bindings().header("authorization", &token));
    assert_eq!(found.status, 200, "{}", found.text());

    // An AF gets no token for the policies of sessions.
    let refused = ask_token(&mut you, YOU, "AF", "PCF", "npcf-smpolicycontrol");
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(refused.text().contains("invalid_scope"), "{}", refused.text());

    // SCP and BSF are registered, by tokens of their own once they beat.
    until("SCP and BSF to be registered", || {
        let metrics = ask(core.up.admin("nrf"), "GET", "/metrics").1;
        metrics.contains("signalbox_nrf_profiles{nf_type=\"SCP\"} 1")
            && metrics.contains("signalbox_nrf_profiles{nf_type=\"BSF\"} 1")
    });
}

#[test]
fn calls_pass_through_every_function_with_certificates_and_tokens() {
    let core = Core::start();
    calls_stand(&core.up);
    // Consumers are known by their tokens, also behind the SCP.
    let refused = "signalbox_pcf_identities_refused_total 0.0";
    let metrics = ask(core.up.admin("pcf"), "GET", "/metrics").1;
    assert!(metrics.lines().any(|line| line == refused), "{metrics}");
}

#[test]
fn the_examples_that_are_printed_work() {
    let core = Core::start();
    let lines: Vec<&str> = core
        .up
        .page
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("you") || line.starts_with("token()"))
        .collect();
    assert_eq!(lines.len(), 6, "{}", core.up.page);
    if testpeer::skip::output(Command::new("curl").arg("--version")).is_none() {
        return;
    }
    // The BSF fetches the keys of the NRF shortly after the start.
    until("every example to be answered", || {
        let output = Command::new("sh")
            .args(["-c", &lines.join("\n")])
            .current_dir(core.folder.path())
            .output()
            .unwrap();
        let said = text(&output.stdout);
        let answers: Vec<&str> = said.lines().collect();
        let good = matches!(answers.as_slice(), [registered, discovered, relayed, bound]
            if registered.contains(YOU) && discovered.contains("nfInstances") && relayed.contains("data") && bound.contains("10.0.0.1"));
        if !good {
            eprintln!("{said}\n{}", text(&output.stderr));
        }
        good
    });
}
