//! The observability pack: the committed files are those of this build, `promtool` judges rules and their tests, and a
//! real Prometheus gets data of a running core for every query.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use testpeer::skip;

use crate::documents::blocks;
use crate::process::{ask, signalbox, text};
use crate::up::{Up, calls_stand};

/// Metrics of which `signalbox up` shows no series, with the reason.
const ABSENT: &[(&str, &str)] = &[
    ("signalbox_alarm_details", "no alarm is active"),
    ("signalbox_tls_certificate_expiry_seconds", "runs without TLS"),
    (
        "signalbox_store_replication_delay_seconds",
        "no database with sites",
    ),
    ("_overload_refusals_total", "nothing is overloaded"),
    ("_dropped_members_total", "the simulators send what is valid"),
    ("signalbox_nrf_cluster_", "a single NRF"),
    ("signalbox_scp_feed_", "no broker"),
    ("signalbox_dsr_connection_incidents_total", "no connection fails"),
    ("signalbox_dsr_profile_messages_per_second", "no profile is set"),
    ("signalbox_dsr_application_", "no application runs"),
    ("signalbox_dsr_security_findings_total", "no application runs"),
    ("signalbox_dsr_throttle_group_", "no throttle group is set"),
    ("signalbox_ipfe_takeovers_total", "no pair of front ends"),
    ("signalbox_ipfe_connections{", "no set of backends"),
    ("signalbox_ipfe_backend_", "no set of backends"),
    ("signalbox_ipfe_client_bytes", "no set of backends"),
    ("signalbox_scef_responses", "no SCS/AS asks"),
    ("signalbox_sds_responses", "no system provisions"),
    ("signalbox_sds_poll_", "no database processor polls"),
    ("signalbox_stp_screening_", "no screening list is set"),
    ("signalbox_enum_changed_numbers", "no directory of changes is set"),
];

fn committed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/observability")
}

/// Every file below a folder, by its path in there.
fn files(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_owned();
                found.insert(name, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

/// Writes the pack into `folder`.
fn write(folder: &Path) {
    let output = signalbox(&["observability", "write", folder.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// Runs promtool in a folder; none where it is missing.
fn promtool(folder: &Path, args: &[&str]) -> Option<Output> {
    skip::output(Command::new("promtool").args(args).current_dir(folder))
}

fn assert_passes(output: &Output) {
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[test]
fn the_committed_pack_is_that_of_this_build() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let (generated, kept) = (files(folder.path()), files(&committed()));
    let names = |files: &BTreeMap<PathBuf, String>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&generated), names(&kept), "run `make docs` and commit it");
    for (name, text) in &generated {
        let same = kept.get(name) == Some(text);
        assert!(
            same,
            "deploy/observability/{} is stale: run `make docs` and commit it",
            name.display()
        );
    }
}

#[test]
fn links_to_runbooks_begin_as_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let output = signalbox(&[
        "observability",
        "write",
        path,
        "--docs",
        "https://wiki.example/signalbox/",
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let rules = std::fs::read_to_string(folder.path().join("rules/alerts.yaml")).unwrap();
    let mut links = rules
        .lines()
        .filter(|line| line.trim_start().starts_with("runbook_url:"));
    assert!(links.all(|line| line.contains("\"https://wiki.example/signalbox/d")));
}

#[test]
fn every_alert_fires_and_rests_as_its_declaration_says() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let rules = ["rules/alerts.yaml", "rules/recording.yaml"];
    let Some(checked) = promtool(folder.path(), &[&["check", "rules"], &rules[..]].concat()) else {
        return;
    };
    assert_passes(&checked);
    let test = || promtool(folder.path(), &["test", "rules", "tests.yaml"]).unwrap();
    assert_passes(&test());
    // The tests judge: a condition that never holds fails one, and one that always does fails another.
    let file = folder.path().join("rules/alerts.yaml");
    let mut rules = std::fs::read_to_string(&file).unwrap();
    for (from, to) in [
        (" == 0\"", " == 7\""),
        ("signalbox_config_differs > 0", "signalbox_config_differs >= 0"),
    ] {
        assert!(rules.contains(from), "{from}");
        rules = rules.replace(from, to);
    }
    std::fs::write(&file, rules).unwrap();
    let wrong = test();
    let said = text(&wrong.stdout) + &text(&wrong.stderr);
    assert!(!wrong.status.success(), "{said}");
    assert!(
        said.contains("SignalboxUnreachable") && said.contains("SignalboxConfigDiffers"),
        "{said}"
    );
}

/// A Prometheus, killed when the test is over.
struct Prometheus {
    child: Child,
    address: SocketAddr,
}

impl Prometheus {
    /// Starts it in `folder` with the rules of `folder/pack`, to scrape these targets each second.
    fn start(folder: &Path, targets: &[SocketAddr]) -> Self {
        let targets: Vec<String> = targets.iter().map(|target| format!("\"{target}\"")).collect();
        let config = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n\
             rule_files: [\"pack/rules/*.yaml\"]\n\
             scrape_configs: [{{job_name: signalbox, static_configs: [{{targets: [{}]}}]}}]\n",
            targets.join(",")
        );
        std::fs::write(folder.join("prometheus.yml"), config).unwrap();
        let address = free_ports::address().unwrap();
        let child = Command::new("prometheus")
            .args([
                "--config.file=prometheus.yml",
                "--storage.tsdb.path=data",
                "--log.level=warn",
            ])
            .arg(format!("--web.listen-address={address}"))
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(folder.join("prometheus.log")).unwrap())
            .spawn()
            .unwrap();
        let this = Self { child, address };
        patiently("Prometheus to start", || {
            match std::net::TcpStream::connect(address) {
                Ok(_) if ask(address, "GET", "/-/ready").0 == 200 => Vec::new(),
                _ => vec![std::fs::read_to_string(folder.join("prometheus.log")).unwrap()],
            }
        });
        this
    }

    fn get(&self, path: &str) -> Value {
        let (status, body) = ask(self.address, "GET", path);
        assert_eq!(status, 200, "{path}: {body}");
        let answer: Value = serde_json::from_str(&body).unwrap();
        answer["data"].clone()
    }

    /// How many series an expression has now. It parses, or the test fails.
    fn count(&self, expression: &str) -> usize {
        let data = self.get(&format!("/api/v1/query?query={}", escaped(expression)));
        data["result"].as_array().unwrap().len()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn escaped(query: &str) -> String {
    query.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Waits until nothing is missing, however slow the machine is.
fn patiently(what: &str, mut missing: impl FnMut() -> Vec<String>) {
    let mut left = Vec::new();
    for _ in 0..600 {
        left = missing();
        if left.is_empty() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    panic!("{what}: {left:#?}");
}

/// The expressions of all dashboards, with what Grafana puts in the place of variables.
fn expressions(pack: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for (name, text) in files(&pack.join("dashboards")) {
        let dashboard: Value = serde_json::from_str(&text).unwrap();
        assert!(
            dashboard.get("id").is_none() && dashboard.get("__inputs").is_none(),
            "{name:?}"
        );
        let variables = dashboard["templating"]["list"].as_array().unwrap();
        assert_eq!(variables[0]["type"], "datasource", "{name:?}");
        for variable in variables.iter().filter(|variable| variable["type"] == "query") {
            // label_values(series, label)
            let query = variable["query"]["query"].as_str().unwrap();
            let series = query
                .strip_prefix("label_values(")
                .unwrap()
                .rsplit_once(',')
                .unwrap()
                .0;
            all.push(series.to_owned());
        }
        let panels = dashboard["panels"].as_array().unwrap().iter();
        let targets = panels.filter_map(|panel| panel["targets"].as_array()).flatten();
        for target in targets {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{name:?}");
            all.push(target["expr"].as_str().unwrap().to_owned());
        }
    }
    let filled = all.iter().map(|expression| {
        let expression = expression.replace("$__rate_interval", "1m");
        expression.replace("$job", ".*").replace("$instance", ".*")
    });
    filled.collect()
}

fn is_absent(expression: &str) -> bool {
    ABSENT.iter().any(|(metric, _)| expression.contains(metric))
}

/// The values that rules look at: the expression of a recording rule, what an alert compares.
fn values(prometheus: &Prometheus) -> Vec<String> {
    let rules = prometheus.get("/api/v1/rules");
    let groups = rules["groups"].as_array().unwrap().iter();
    let mut all = Vec::new();
    for rule in groups.flat_map(|group| group["rules"].as_array().unwrap()) {
        assert_ne!(rule["health"], "err", "{rule}");
        let query = rule["query"].as_str().unwrap();
        let compared = [" > ", " < ", " == "]
            .iter()
            .find_map(|sign| query.rsplit_once(sign));
        all.push(match rule["type"] == "alerting" {
            true => compared.unwrap().0.to_owned(),
            false => query.to_owned(),
        });
    }
    all
}

#[test]
fn a_real_prometheus_gets_data_for_every_query() {
    if skip::output(Command::new("prometheus").arg("--version")).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let up = Up::start(folder.path(), &[]);
    calls_stand(&up);
    let pack = folder.path().join("pack");
    write(&pack);
    let targets = [
        "nrf", "scp", "bsf", "pcf", "scef", "dsr", "ipfe", "stp", "enum", "sds", "dp", "console",
    ]
    .map(|function| up.admin(function));
    let prometheus = Prometheus::start(folder.path(), &targets);
    patiently("every function to be scraped", || {
        let scraped = prometheus.get("/api/v1/targets");
        let scraped = scraped["activeTargets"].as_array().unwrap();
        let well = scraped.iter().filter(|target| target["health"] == "up").count();
        if well == targets.len() {
            Vec::new()
        } else {
            scraped.iter().map(Value::to_string).collect()
        }
    });
    let shown = expressions(&pack);
    assert!(shown.len() > 400, "{}", shown.len());
    let compared_values = values(&prometheus);
    assert!(compared_values.len() > 80, "{}", compared_values.len());
    let (absent, mut open): (Vec<String>, Vec<String>) = shown
        .into_iter()
        .chain(compared_values)
        .partition(|expression| is_absent(expression));
    // These parse at least, and each reason is of use.
    for expression in &absent {
        prometheus.count(expression);
    }
    patiently("data for every query", || {
        open.retain(|expression| prometheus.count(expression) == 0);
        open.clone()
    });
    let stale = ABSENT.iter().filter(|(metric, _)| {
        let mut of_metric = absent.iter().filter(|expression| expression.contains(metric));
        of_metric.all(|expression| prometheus.count(expression) > 0)
    });
    assert_eq!(stale.collect::<Vec<_>>(), Vec::<&(&str, &str)>::new());
    assert!(!values(&prometheus).is_empty());
    an_alarm_becomes_an_alert(folder.path(), &up, &prometheus);
}

/// A reload that is refused raises an alarm, which Prometheus has as an alert.
fn an_alarm_becomes_an_alert(folder: &Path, up: &Up, prometheus: &Prometheus) {
    std::fs::write(folder.join("config.yaml"), "nrf: {lissen: no}\n").unwrap();
    assert_eq!(ask(up.admin("nrf"), "POST", "/config/reload").0, 422);
    patiently("the alert", || {
        let alert = "ALERTS{alertname=\"SignalboxConfigurationRefused\",severity=\"minor\"}";
        let count = prometheus.count(alert);
        if count > 0 {
            Vec::new()
        } else {
            vec![alert.to_owned()]
        }
    });
    // Of both formats, and of each metric of the process at one function only.
    let page = |function: &str| ask(up.admin(function), "GET", "/metrics").1;
    assert!(page("nrf").contains("signalbox_build_info{version="));
    for function in [
        "scp", "bsf", "pcf", "scef", "dsr", "ipfe", "stp", "enum", "sds", "dp",
    ] {
        assert!(!page(function).contains("signalbox_build_info"), "{function}");
    }
    assert_eq!(prometheus.count("signalbox_process_cpu_seconds_total"), 1);
}

#[test]
fn the_page_is_followed_to_the_letter() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/observability.md");
    let folder = tempfile::tempdir().unwrap();
    if promtool(folder.path(), &["--version"]).is_none() {
        return;
    }
    let program = Path::new(env!("CARGO_BIN_EXE_signalbox"));
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", program.parent().unwrap().display());
    let commands = blocks(&page, "sh");
    assert!(!commands.is_empty());
    for (name, text) in [
        ("prometheus.yml", "prometheus.yml"),
        ("provisioning.yaml", "apiVersion"),
    ] {
        let found = blocks(&page, "yaml")
            .into_iter()
            .find(|(_, block)| block.contains(text));
        let (_, block) = found.unwrap_or_else(|| panic!("{name}"));
        std::fs::write(folder.path().join(name), block).unwrap();
    }
    for (line, block) in commands {
        let output = Command::new("sh")
            .args(["-e", "-c", &block])
            .env("PATH", &path)
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(output.status.success(), "docs/observability.md:{line}: {said}");
    }
}
