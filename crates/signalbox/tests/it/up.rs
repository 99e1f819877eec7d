//! `signalbox up`: a core whose functions find each other, and simulated functions that answer.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use loadgen::client::{Client, Request};
use serde_json::Value;

use crate::process::{ask, harmless, log, until};

/// A running `signalbox up`, killed when the test is over.
pub(crate) struct Up {
    child: Child,
    /// What it printed.
    pub(crate) page: String,
}

impl Up {
    /// Starts it with state and ports of its own, and waits until it has printed its page.
    pub(crate) fn start(folder: &Path, args: &[&str]) -> Self {
        let config = harmless(None, folder);
        Self::of(config.to_str().unwrap(), folder, args)
    }

    /// As [`Up::start`], by a configuration that a test has made.
    pub(crate) fn of(config: &str, folder: &Path, args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_signalbox"))
            .args(["up", "--config", config])
            .args(args)
            .env_remove("RUST_LOG")
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(folder.join("log")).unwrap())
            .spawn()
            .unwrap();
        let mut page = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        while !page.ends_with("/metrics\n\n") {
            if out.read_line(&mut page).unwrap() == 0 {
                let _ = child.wait();
                panic!("{page}\n{}", log(folder));
            }
        }
        Self { child, page }
    }

    /// The address of a function's interface.
    pub(crate) fn address(&self, function: &str, scheme: &str) -> SocketAddr {
        let lines = self.page.lines().map(str::split_whitespace);
        let mut found = lines.filter_map(|mut words| {
            let here = words.next()? == function && words.next()? == "SBI";
            let root = words.next().filter(|_| here)?;
            root.strip_prefix(&format!("{scheme}://"))?.parse().ok()
        });
        found
            .next()
            .unwrap_or_else(|| panic!("{function}: {}", self.page))
    }

    /// The address of a function's admin endpoint.
    pub(crate) fn admin(&self, function: &str) -> SocketAddr {
        let mut lines = self.page.lines().map(str::trim);
        let line = lines.find(|line| line.starts_with(&format!("{function} ")));
        let uri = line.and_then(|line| line.split_whitespace().last());
        let address = uri.and_then(|uri| uri.strip_prefix("http://"));
        address
            .unwrap_or_else(|| panic!("{}", self.page))
            .parse()
            .unwrap()
    }

    /// Waits until the simulated functions are registered.
    pub(crate) fn is_populated(&self) {
        let admin = self.admin("nrf");
        until("simulated functions to register", || {
            let metrics = ask(admin, "GET", "/metrics").1;
            ["{nf_type=\"AMF\"} 2", "{nf_type=\"NEF\"} 1"]
                .iter()
                .all(|part| metrics.contains(&format!("signalbox_nrf_profiles{part}")))
        });
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Every address in a profile, and every name at which it could be reached. (`pgwFqdn` of an SMF is neither: it is what
/// its PGW is called.)
fn addresses(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                if matches!(name.as_str(), "fqdn" | "interPlmnFqdn") {
                    found.push(format!("{name}: {value}"));
                }
                addresses(value, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| addresses(item, found)),
        Value::String(text) if text.parse::<IpAddr>().is_ok() => found.push(text.clone()),
        _ => {}
    }
}

#[test]
fn what_simulated_functions_offer_is_on_this_machine_and_answers() {
    let folder = tempfile::tempdir().unwrap();
    let up = Up::start(folder.path(), &[]);
    up.is_populated();
    let listed: Value = serde_json::from_str(&ask(up.admin("nrf"), "GET", "/nrf/instances").1).unwrap();
    let simulated: Vec<&Value> = listed
        .as_array()
        .unwrap()
        .iter()
        // Those of this process have other identities.
        .filter(|one| one["nfInstanceId"].as_str().unwrap().starts_with("5b0000d"))
        .collect();
    assert_eq!(simulated.len(), 11, "{listed}");
    for one in simulated {
        let path = format!("/nrf/instances/{}", one["nfInstanceId"].as_str().unwrap());
        let profile: Value = serde_json::from_str(&ask(up.admin("nrf"), "GET", &path).1).unwrap();
        let mut found = Vec::new();
        addresses(&profile, &mut found);
        assert!(!found.is_empty());
        for address in found {
            let ip: Result<IpAddr, _> = address.parse();
            assert!(ip.is_ok_and(|ip| ip.is_loopback()), "{address}: {profile}");
        }
    }
    // The SCP asks the NRF beside it, and what is found answers.
    let mut scp = Client::connect(up.address("scp", "http"), Duration::from_secs(10)).unwrap();
    for (nf_type, service, path) in [
        ("UDM", "nudm-sdm", "/nudm-sdm/v1/imsi-001010000000001/am-data"),
        ("AUSF", "nausf-auth", "/nausf-auth/v1/ue-authentications/1"),
    ] {
        let request = Request::new("GET", path)
            .header("3gpp-sbi-discovery-target-nf-type", nf_type)
            .header("3gpp-sbi-discovery-requester-nf-type", "AMF")
            .header("3gpp-sbi-discovery-service-names", service);
        let answer = scp.exchange(&[request]).unwrap().remove(0);
        assert_eq!(answer.status, 200, "{nf_type}: {}", answer.text());
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        assert!(body.is_object(), "{body}");
    }
}

/// Waits for something that takes a few seconds, on a slow machine many more.
pub(crate) fn patiently(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..1_200 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("it never came: {what}");
}

/// Waits until twelve calls stand and two have ended, through NRF, SCP, PCF, BSF and router.
pub(crate) fn calls_stand(up: &Up) {
    let list = |function: &str, path: &str| -> Vec<Value> {
        serde_json::from_str(&ask(up.admin(function), "GET", path).1).unwrap_or_default()
    };
    patiently("bindings of the sessions of calls", || {
        list("bsf", "/bsf/bindings").len() == 12
    });
    patiently("sessions with a voice call at the PCF", || {
        let sessions = list("pcf", "/pcf/sessions");
        let calls = sessions
            .iter()
            .filter(|one| one["afSessions"].as_str().is_some_and(|af| af.starts_with("rx:")));
        // Each call has an AM and a UE policy association as well.
        sessions.len() == 36 && calls.count() == 12
    });
    patiently("locations and calls through the router", || {
        let peers = list("dsr", "/dsr/peers");
        let is_busy = |name: &str| {
            peers.iter().any(|peer| {
                let is_named = peer["host"].as_str().is_some_and(|host| host.starts_with(name));
                is_named && peer["state"] == "available" && peer["messagesIn"].as_u64() > Some(3)
            })
        };
        ["mme1.", "hss1.", "pcscf001.", "bsf."]
            .iter()
            .all(|name| is_busy(name))
    });
    let sum = |function: &str, name: &str| -> f64 {
        let metrics = ask(up.admin(function), "GET", "/metrics").1;
        let samples = metrics.lines().filter(|line| line.starts_with(name));
        let values = samples.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        values.sum()
    };
    patiently("calls to end", || {
        sum("pcf", "signalbox_pcf_sm_deleted_total") >= 2.0
    });
    // The UE of each call stores the policy that the PCF commands it.
    patiently("UE policies to be delivered", || {
        sum("pcf", "signalbox_pcf_ue_policies_delivered_total") >= 12.0
    });
    assert_eq!(sum("pcf", "signalbox_pcf_ue_policies_failed_total"), 0.0);
    // Five requests through the SCP to begin a call, four to end it.
    assert!(sum("scp", "signalbox_scp_requests_total") >= 12.0 * 5.0);
    assert!(sum("bsf", "signalbox_bsf_rx_requests_total") >= 14.0);
}

#[test]
fn calls_pass_through_every_function() {
    let folder = tempfile::tempdir().unwrap();
    let up = Up::start(folder.path(), &[]);
    calls_stand(&up);
    // The request that `up` suggests finds a binding.
    let mut bsf = Client::connect(up.address("bsf", "http"), Duration::from_secs(10)).unwrap();
    let request = Request::new("GET", "/nbsf-management/v1/pcfBindings?ipv4Addr=10.0.0.1");
    assert_eq!(bsf.exchange(&[request]).unwrap()[0].status, 200);
}

/// Who discovers a BSF finds the one that has the bindings, and no simulated one.
#[test]
fn up_registers_its_own_bsf_alone() {
    let folder = tempfile::tempdir().unwrap();
    let up = Up::start(folder.path(), &[]);
    up.is_populated();
    let listed = || -> Vec<Value> {
        let all: Value = serde_json::from_str(&ask(up.admin("nrf"), "GET", "/nrf/instances").1).unwrap();
        let all = all.as_array().unwrap().iter();
        all.filter(|one| one["nfType"] == "BSF").cloned().collect()
    };
    until("the BSF to register", || !listed().is_empty());
    let all = listed();
    assert_eq!(all.len(), 1, "{all:?}");
    assert!(
        !all[0]["nfInstanceId"].as_str().unwrap().starts_with("5b0000d"),
        "{all:?}"
    );
}

#[test]
fn a_fresh_start_leaves_the_state_of_an_earlier_one_aside() {
    let folder = tempfile::tempdir().unwrap();
    drop(Up::start(folder.path(), &["--no-traffic"]));
    let again = Up::start(folder.path(), &["--no-traffic"]);
    assert!(
        again.page.contains("(from an earlier start)") && again.page.contains("up --fresh"),
        "{}",
        again.page
    );
    drop(again);
    let fresh = Up::start(folder.path(), &["--no-traffic", "--fresh"]);
    assert!(!fresh.page.contains("(from an earlier start)"), "{}", fresh.page);
    assert!(folder.path().join("state/nrf.old/store.json").exists());
}

#[test]
fn an_msc_and_an_hlr_speak_through_the_stp() {
    let folder = tempfile::tempdir().unwrap();
    let up = Up::start(folder.path(), &[]);
    let stp = up.admin("stp");
    let page =
        |path: &str| -> Vec<Value> { serde_json::from_str(&ask(stp, "GET", path).1).unwrap_or_default() };
    patiently("messages both ways", || {
        let links = page("/stp/links");
        links.len() == 2
            && links.iter().all(|link| {
                link["state"] == "active"
                    && link["received"].as_u64() > Some(1)
                    && link["sent"].as_u64() > Some(1)
            })
    });
    let routes = page("/stp/routes");
    assert_eq!(routes.len(), 2, "{routes:?}");
    assert!(
        routes.iter().all(|route| route["state"] == "available"),
        "{routes:?}"
    );
    assert!(page("/stp/translations")[0]["messages"].as_u64() > Some(1));
    assert!(up.page.contains("stp links"), "{}", up.page);
}

/// At a terminal the page fits 80 columns and 24 lines, and what is logged is in a file.
#[test]
fn a_terminal_shows_a_page_that_fits_it() {
    let folder = tempfile::tempdir().unwrap();
    let config = harmless(None, folder.path());
    let program = env!("CARGO_BIN_EXE_signalbox");
    // `script` (util-linux) gives the command a terminal. Its shell makes room for the program: dash, for one, would end by
    // Ctrl-C itself, and `script` return the shell's status.
    let command = format!("exec {program} up --no-traffic --config {}", config.display());
    let started = Command::new("script")
        .args(["-qfec", &command, "/dev/null"])
        .env_remove("RUST_LOG")
        .env("SHELL", "/bin/sh")
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = started else {
        return testpeer::skip::missing("script (util-linux)");
    };
    let mut keyboard = child.stdin.take().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut page = String::new();
    while !page.contains("Log: ") {
        if out.read_line(&mut page).unwrap() == 0 {
            panic!("{page}");
        }
    }
    let shown = &page[page.find("Signalbox is up.").unwrap()..];
    assert!(shown.lines().count() < 24, "{shown}");
    assert!(
        shown.contains("state/up.txt") && shown.contains("state/up.log"),
        "{shown}"
    );
    let state = folder.path().join("state");
    assert!(
        std::fs::read_to_string(state.join("up.txt"))
            .unwrap()
            .contains("/metrics")
    );
    until("the log to be a file", || state.join("up.log").exists());
    // Ctrl-C ends it.
    keyboard.write_all(&[3]).unwrap();
    keyboard.flush().unwrap();
    assert!(child.wait().unwrap().success());
}

/// Without simulated traffic the STP has the links of its settings alone.
#[test]
fn without_simulated_traffic_the_stp_has_no_links() {
    let folder = tempfile::tempdir().unwrap();
    let up = Up::start(folder.path(), &["--no-traffic"]);
    assert_eq!(ask(up.admin("stp"), "GET", "/stp/links").1, "[]");
}
