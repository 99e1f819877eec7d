//! `signalbox status` and `signalbox journal`: what an operator asks first.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::process::{Process, ask, signalbox, text, until};

/// An NRF and a BSF that registers there, each a process of its own, and an SCP that does not run.
struct Core {
    folder: tempfile::TempDir,
    config: PathBuf,
    admins: [SocketAddr; 3],
}

impl Core {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = || free_ports::address().unwrap();
        let (listen, admins) = (address(), [address(), address(), address()]);
        let [nrf, bsf, scp] = admins;
        let state = folder.path().join("state");
        let state = state.display();
        let words = format!(
            "log: {{filter: info}}\n\
             nrf: {{listen: \"{listen}\", admin: \"{nrf}\", workers: 1, store: {{embedded: {{directory: \"{state}/nrf\"}}}}}}\n\
             bsf:\n  listen: \"127.0.0.1:0\"\n  admin: \"{bsf}\"\n  workers: 1\n  rx: {{enabled: false}}\n  \
             store: {{embedded: {{directory: \"{state}/bsf\"}}}}\n  nrf: {{apiRoots: [\"http://{listen}\"], heartBeat: 1s, timeout: 1s}}\n\
             scp: {{listen: \"127.0.0.1:0\", admin: \"{scp}\", directory: \"{state}/scp\"}}\n"
        );
        let config = folder.path().join("core.yaml");
        std::fs::write(&config, words).unwrap();
        Self {
            folder,
            config,
            admins,
        }
    }

    fn file(&self) -> &str {
        self.config.to_str().unwrap()
    }

    fn start(&self, function: &str) -> Process {
        let folder = self.folder.path().join(function);
        std::fs::create_dir_all(&folder).unwrap();
        Process::start(&["run", function, "--config", self.file()], &folder)
    }

    /// Exit code and words of a command about this core.
    fn says(&self, args: &[&str]) -> (Option<i32>, String) {
        let output = signalbox(&[args, &["--config", self.file()]].concat());
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    }

    /// The row of a function in `signalbox status --json`.
    fn row(&self, function: &str) -> Value {
        let (_, said) = self.says(&["status", function, "--json"]);
        let page: Value = serde_json::from_str(&said).unwrap();
        page["functions"][0].clone()
    }
}

#[test]
fn status_says_what_is_wrong_since_when_and_the_remedy() {
    let core = Core::new();
    let (code, said) = core.says(&["status"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("0 of 3 functions serve") && said.contains("not running"),
        "{said}"
    );
    // What is asked at an address is not the function that was named.
    let (code, said) = core.says(&["status", "nrf", "--admin", "127.0.0.1:9"]);
    assert_eq!(code, Some(2), "{said}");
    let nrf = core.start("nrf");
    let _bsf = core.start("bsf");
    until("the registration", || {
        core.says(&["status", "nrf", "bsf"]).0 == Some(0)
    });
    let (code, said) = core.says(&["status"]);
    assert_eq!(code, Some(1), "the SCP of the file does not run: {said}");
    for part in [
        "registered at http://",
        "scp: admin endpoint: ",
        "connection refused",
        "signalbox run scp --config ",
        "2 of 3 functions serve and lack nothing; not so: scp (not running)",
    ] {
        assert!(said.contains(part), "{part} is missing:\n{said}");
    }
    drop(nrf);
    until("the BSF to say that the NRF is gone", || {
        core.row("bsf")["state"] == "serves, needs attention"
    });
    let row = core.row("bsf");
    let registered = &row["registered"];
    assert_eq!(registered["state"], "failing", "{row:#}");
    for member in ["since", "lastSuccess", "lastErrorAt"] {
        assert!(
            registered[member].as_str().is_some_and(|at| at.starts_with("20")),
            "{member}: {row:#}"
        );
    }
    assert!(
        registered["lastError"]
            .as_str()
            .unwrap()
            .contains("no NRF has accepted"),
        "{row:#}"
    );
    let (status, ready) = ask(core.admins[1], "GET", "/readyz");
    assert!(
        status == 200 && ready.contains("registration: failing since"),
        "{ready}"
    );
    assert!(ready.contains("alarm 10540 "), "{ready}");
    let (code, said) = core.says(&["status", "bsf"]);
    assert!(code == Some(1) && said.contains("NOT REGISTERED since"), "{said}");
    let _nrf = core.start("nrf");
    until("the registration", || {
        core.says(&["status", "nrf", "bsf"]).0 == Some(0)
    });
    assert_eq!(ask(core.admins[1], "GET", "/readyz"), (200, "ready\n".to_owned()));
}

#[test]
fn a_file_that_is_not_in_effect_needs_attention() {
    let core = Core::new();
    let _nrf = core.start("nrf");
    assert_eq!(core.row("nrf")["state"], "serves");
    let before = std::fs::read_to_string(&core.config).unwrap();
    std::fs::write(&core.config, before + "# changed\n").unwrap();
    let row = core.row("nrf");
    assert_eq!(row["configuration"]["inEffect"], false);
    assert!(
        row["wrong"][0]["detail"]
            .as_str()
            .unwrap()
            .contains("was not reloaded"),
        "{row:#}"
    );
    assert_eq!(core.says(&["nrf", "reload"]).0, Some(0));
    assert_eq!(core.row("nrf")["state"], "serves");
}

#[test]
fn the_journal_tells_what_changed_also_of_a_function_that_is_down() {
    let core = Core::new();
    let nrf = core.start("nrf");
    let bsf = core.start("bsf");
    let good = std::fs::read_to_string(&core.config).unwrap();
    std::fs::write(&core.config, good.replace("filter: info", "filter: warn")).unwrap();
    assert_eq!(core.says(&["nrf", "reload"]).0, Some(0));
    // A reload that is refused, by a signal.
    std::fs::write(&core.config, good.clone() + "nfr: 1\n").unwrap();
    nrf.signal("HUP");
    let refused = || ask(core.admins[0], "GET", "/journal").1.contains("reloadRefused");
    until("the refusal", refused);
    std::fs::write(&core.config, &good).unwrap();
    assert_eq!(
        ask(core.admins[0], "POST", "/log-level").0,
        400,
        "without a filter"
    );
    // One ends in order, the other is killed.
    bsf.signal("TERM");
    assert!(bsf.ended().success());
    drop(nrf);
    let (code, said) = core.says(&["journal", "nrf", "bsf"]);
    assert_eq!(code, Some(0), "{said}");
    for part in [
        "started         nrf: release ",
        "applied: log.filter [127.0.0.1:",
        "nfr",
        "[SIGHUP]",
        "operator        POST /log-level: answered 400 Bad Request",
        "stopped         bsf: ",
        "its journal is read from ",
    ] {
        assert!(said.contains(part), "{part} is missing:\n{said}");
    }
    let times: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("20")).collect();
    assert!(times.is_sorted_by_key(|line| &line[..22]), "{said}");
    // Both go on where they ended.
    let (_nrf, _bsf) = (core.start("nrf"), core.start("bsf"));
    let starts = |function: &str| {
        let (_, said) = core.says(&["journal", function]);
        let starts = said.lines().filter(|line| line.contains(" started "));
        starts.map(str::to_owned).collect::<Vec<_>>()
    };
    let (nrf, bsf) = (starts("nrf"), starts("bsf"));
    assert_eq!((nrf.len(), bsf.len()), (2, 2));
    assert!(nrf[1].contains("ended without a stop in order"), "{nrf:?}");
    assert!(!bsf[1].contains("ended without"), "{bsf:?}");
    let (_, said) = core.says(&["journal", "nrf", "--since", "1h", "--json"]);
    let last: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    assert_eq!(last["functions"][0], "nrf");
    assert_eq!(core.says(&["journal", "nrf", "--since", "2999-01-01"]).1, "");
    // The store is as it was: the files are none of its own.
    let store = Path::new(&core.folder.path().join("state/nrf")).to_owned();
    assert!(store.join("nrf-journal.jsonl").exists());
    drop(_nrf);
    let verified = signalbox(&["store", "verify", store.to_str().unwrap()]);
    assert!(verified.status.success(), "{}", text(&verified.stderr));
}
