//! One administration of several routers: desired configuration, alarms and measurements; single settings.

use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::process::{Process, ask, signalbox, text};
use crate::up::patiently;

const SECRET: &str = "0123456789abcdef";

/// What all routers have, but for host, admin endpoint and weight. The comment stays through all changes of single settings.
const TEMPLATE: &str = r#"# One of our routers.
changes: {secret: {file: SECRET}}
dsr:
  admin: "${ADMIN}"
  localNodes:
    - {host: "${HOST}", realm: example, listen: ["127.0.0.1:0"]}
  peers:
    - host: hss1.example
      addresses: ["127.0.0.1:1"]
  routing:
    peerRouteTables:
      - name: default
        rules:
          - {name: all, priority: 10, action: {routeList: hss}}
    routeLists:
      - {name: hss, groups: [hss]}
    routeGroups:
      - name: hss
        peers:
          - {host: hss1.example, weight: 2}   # the only one
"#;

/// Two routers that run, and the folder of their administration.
struct Network {
    folder: tempfile::TempDir,
    admins: [SocketAddr; 2],
    processes: [Option<Process>; 2],
}

impl Network {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret");
        std::fs::write(&secret, format!("{SECRET}\n")).unwrap();
        let template = TEMPLATE.replace("SECRET", secret.to_str().unwrap());
        std::fs::write(folder.path().join("router.yaml"), &template).unwrap();
        let admins = [(); 2].map(|()| free_ports::address().unwrap());
        let mut network = "secret: {file: secret}\ntemplate: router.yaml\nprocesses:\n".to_owned();
        for (at, admin) in admins.iter().enumerate() {
            network.push_str(&format!(
                "  - {{name: dsr-{at}, admin: \"{admin}\", values: {{HOST: dsr{at}.example, ADMIN: \"{admin}\"}}}}\n"
            ));
        }
        std::fs::write(folder.path().join("network.yaml"), network).unwrap();
        let mut this = Self {
            folder,
            admins,
            processes: [None, None],
        };
        for (at, admin) in admins.iter().enumerate() {
            let own = this.own(at);
            std::fs::create_dir(own.parent().unwrap()).unwrap();
            let text = template
                .replace("${HOST}", &format!("dsr{at}.example"))
                .replace("${ADMIN}", &admin.to_string());
            std::fs::write(&own, text.replace("weight: 2", "weight: 1")).unwrap();
            let file = own.to_str().unwrap();
            let process = Process::start(&["run", "dsr", "--config", file], own.parent().unwrap());
            this.processes[at] = Some(process);
        }
        this
    }

    /// The file of a router.
    fn own(&self, at: usize) -> PathBuf {
        self.folder.path().join(format!("dsr-{at}")).join("config.yaml")
    }

    fn template(&self) -> PathBuf {
        self.folder.path().join("router.yaml")
    }

    fn change(&self, file: &Path, old: &str, new: &str) {
        let text = std::fs::read_to_string(file).unwrap();
        assert!(text.contains(old), "{text}");
        std::fs::write(file, text.replace(old, new)).unwrap();
    }

    /// `signalbox network COMMAND`: exit code and what it said.
    fn ask(&self, command: &[&str]) -> (Option<i32>, String) {
        let file = self.folder.path().join("network.yaml");
        let [name, options @ ..] = command else {
            panic!("a command")
        };
        let mut args = vec!["network", name, file.to_str().unwrap()];
        args.extend(options);
        let output = signalbox(&args);
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        (output.status.code(), said)
    }

    fn weight(&self, at: usize) -> Value {
        let config: Value = serde_json::from_str(&ask(self.admins[at], "GET", "/config").1).unwrap();
        config["dsr"]["routing"]["routeGroups"][0]["peers"][0]["weight"].clone()
    }
}

#[test]
fn routers_get_what_is_desired_and_are_seen_together() {
    let mut network = Network::start();
    assert_eq!(network.ask(&["check"]).0, Some(0));
    let (code, said) = network.ask(&["status"]);
    assert!(
        code == Some(1) && said.matches("another one").count() == 2,
        "{said}"
    );
    let (code, said) = network.ask(&["push"]);
    assert!(code == Some(0) && said.matches("has it").count() == 2, "{said}");
    assert!(said.contains("dsr.routing.routeGroups"), "{said}");
    assert_eq!([network.weight(0), network.weight(1)], [2, 2]);
    let (code, said) = network.ask(&["push", "--only", "dsr-1"]);
    assert!(code == Some(0) && said.contains("had it already"), "{said}");
    let (_, said) = network.ask(&["status"]);
    assert_eq!(said.matches("as desired").count(), 2, "{said}");

    // Alarms of both stand in one list: neither has a server.
    patiently("an alarm of each router", || {
        let (code, said) = network.ask(&["alarms", "--json"]);
        let alarms: Value = serde_json::from_str(&said).unwrap();
        let of = |name: &str| {
            let mut all = alarms.as_array().unwrap().iter();
            all.any(|alarm| alarm["process"] == name && alarm["number"] == 22051)
        };
        code == Some(0) && of("dsr-0") && of("dsr-1")
    });

    let into = network.folder.path().join("measured");
    for _ in 0..2 {
        let (code, said) = network.ask(&["measurements", "--into", into.to_str().unwrap()]);
        assert_eq!(code, Some(0), "{said}");
    }
    let file = std::fs::read_dir(&into).unwrap().next().unwrap().unwrap().path();
    let csv = std::fs::read_to_string(file).unwrap();
    assert_eq!(csv.matches("time,process,kind").count(), 1, "{csv}");
    for name in ["dsr-0", "dsr-1"] {
        assert_eq!(csv.matches(&format!(",{name},rule,all,")).count(), 2, "{csv}");
    }

    // One that is down is named, and nothing is said of the others.
    network.processes[1] = None;
    let (code, said) = network.ask(&["status"]);
    assert!(
        code == Some(1) && said.contains("no answer") && said.contains("as desired"),
        "{said}"
    );
    let (code, said) = network.ask(&["alarms"]);
    assert!(code == Some(1) && said.contains("dsr-1: not running"), "{said}");
}

#[test]
fn a_configuration_that_is_refused_changes_nothing() {
    let network = Network::start();
    assert_eq!(network.ask(&["push"]).0, Some(0));
    let before = std::fs::read_to_string(network.own(0)).unwrap();
    // A mistake of form or content is found before any router is asked.
    network.change(&network.template(), "routeList: hss", "routeList: hsx");
    let (code, said) = network.ask(&["push"]);
    assert!(
        code == Some(2) && said.contains("unknown route list `hsx`"),
        "{said}"
    );
    network.change(&network.template(), "routeList: hsx", "routeList: hss");
    // What only the router itself can know: a file of a list that is not there.
    let missing = "  applications: [{name: register, eir: {file: /nonexistent/list.csv}}]\n  routing:";
    network.change(&network.template(), "  routing:", missing);
    let (code, said) = network.ask(&["push"]);
    assert!(
        code == Some(1) && said.contains("/nonexistent/list.csv"),
        "{said}"
    );
    network.change(&network.template(), missing, "  routing:");
    // Without the secret nothing could be changed any longer.
    network.change(&network.template(), "changes:", "#changes:");
    let (code, said) = network.ask(&["push"]);
    assert!(code == Some(1) && said.contains("no changes.secret"), "{said}");
    assert!(said.contains("left as it is"), "{said}");
    assert_eq!(std::fs::read_to_string(network.own(0)).unwrap(), before);
    assert_eq!(network.weight(0), 2);
    let journal = ask(network.admins[0], "GET", "/journal").1;
    assert!(journal.contains("dsr.routing.routeGroups"), "{journal}");
}

#[test]
fn a_setting_changes_alone_by_who_knows_the_secret() {
    let network = Network::start();
    let admin = network.admins[0].to_string();
    let secret = network.folder.path().join("secret");
    let set = |path: &str, value: &str, secret: &Path| {
        let secret = secret.to_str().unwrap();
        let output = signalbox(&[
            "config", "set", path, value, "--admin", &admin, "--secret", secret,
        ]);
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    let path = "dsr.routing.routeGroups[0].peers[0].weight";
    let (code, said) = set(path, "9", &secret);
    assert!(
        code == Some(0) && said.contains("dsr.routing.routeGroups"),
        "{said}"
    );
    assert_eq!(network.weight(0), 9);
    let file = std::fs::read_to_string(network.own(0)).unwrap();
    assert!(
        file.contains("weight: 9}   # the only one") && file.starts_with("# One of our routers."),
        "{file}"
    );
    let (code, said) = set(path, "many", &secret);
    assert!(code == Some(1) && said.contains("weight"), "{said}");
    let (code, said) = set("dsr.limits.nothingOfThis", "1", &secret);
    assert!(code == Some(1) && said.contains("nothingOfThis"), "{said}");
    assert_eq!(std::fs::read_to_string(network.own(0)).unwrap(), file);

    let wrong = network.folder.path().join("wrong");
    std::fs::write(&wrong, "fedcba9876543210").unwrap();
    let (code, said) = set(path, "3", &wrong);
    assert!(code == Some(1) && said.contains("401"), "{said}");
    for (method, path) in [
        ("PUT", "/config/file"),
        ("POST", "/config/file"),
        ("PUT", "/config/settings/dsr.admin"),
    ] {
        assert_eq!(ask(network.admins[0], method, path).0, 401, "{method} {path}");
    }
    assert_eq!(network.weight(0), 9);
    let journal = ask(network.admins[0], "GET", "/journal").1;
    assert!(
        journal.contains("PUT /config/settings/") && journal.contains("signalbox"),
        "{journal}"
    );
    assert!(!journal.contains(SECRET) && !ask(network.admins[0], "GET", "/config").1.contains(SECRET));
}

/// The router is killed while it takes a configuration, in the moment that is long here: it reads a list that comes slowly.
#[test]
fn a_router_that_is_killed_within_a_change_has_the_file_of_before() {
    let mut network = Network::start();
    let before = std::fs::read_to_string(network.own(0)).unwrap();
    let list = network.folder.path().join("list.csv");
    let made = Command::new("mkfifo").arg(&list).status().unwrap();
    assert!(made.success());
    let slow = format!(
        "  applications: [{{name: register, eir: {{file: {}}}}}]\n  routing:",
        list.display()
    );
    network.change(&network.template(), "  routing:", &slow);
    let file = network.folder.path().join("network.yaml");
    let mut push = Command::new(env!("CARGO_BIN_EXE_signalbox"))
        .args(["network", "push", file.to_str().unwrap(), "--only", "dsr-0"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // A pipe can be written to as soon as it is read.
    let mut pipe = None;
    patiently("the list to be read", || {
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let opened = File::options().write(true).custom_flags(nonblocking).open(&list);
        pipe = opened.ok();
        pipe.is_some()
    });
    network.processes[0] = None;
    assert!(!push.wait().unwrap().success());
    drop(pipe);
    assert_eq!(std::fs::read_to_string(network.own(0)).unwrap(), before);
    // What it has left is removed by the next change.
    let file = network.own(0);
    let folder = file.parent().unwrap();
    let left = || {
        let entries = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        entries
            .filter(|name| name.as_encoded_bytes().starts_with(b".changing-"))
            .count()
    };
    assert_eq!(left(), 1);
    network.processes[0] = Some(Process::start(
        &["run", "dsr", "--config", file.to_str().unwrap()],
        folder,
    ));
    network.change(&network.template(), &slow, "  routing:");
    let (code, said) = network.ask(&["push", "--only", "dsr-0"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!((left(), network.weight(0)), (0, Value::from(2)));
}

/// Two processes have one file, and an administrator each.
#[test]
fn changes_by_way_of_two_processes_with_one_file_do_not_undo_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let (file, secret) = (folder.path().join("config.yaml"), folder.path().join("secret"));
    std::fs::write(&secret, SECRET).unwrap();
    let admins = [(); 2].map(|()| free_ports::address().unwrap());
    let text = format!(
        "changes: {{secret: {{file: {}}}}}\nlog: {{maxPerSecond: 100, maxValueLength: 100}}\n\
         stp: {{admin: \"{}\"}}\nipfe: {{admin: \"{}\"}}\n",
        secret.display(),
        admins[0],
        admins[1]
    );
    std::fs::write(&file, text).unwrap();
    let start = |name: &str| {
        let own = folder.path().join(name);
        std::fs::create_dir(&own).unwrap();
        Process::start(&["run", name, "--config", file.to_str().unwrap()], &own)
    };
    let _processes = ["stp", "ipfe"].map(start);
    let set = |admin: SocketAddr, path: &str| {
        for value in 101..=120 {
            let output = signalbox(&[
                "config",
                "set",
                path,
                &value.to_string(),
                "--admin",
                &admin.to_string(),
                "--secret",
                secret.to_str().unwrap(),
            ]);
            assert!(output.status.success(), "{}", self::text(&output.stderr));
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| set(admins[0], "log.maxPerSecond"));
        set(admins[1], "log.maxValueLength");
    });
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("maxPerSecond: 120, maxValueLength: 120"), "{text}");
}
