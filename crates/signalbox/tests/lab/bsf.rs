//! The traffic of a BSF, against one that is small enough to be seen to be right, and against the real one.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use lab::report::Report;
use lab::run::{Database, Options, Progress, Rate};

use crate::program;

/// Bindings by their identifiers, and how often a discovery has the wrong answer: one in `wrong_every`.
struct Bindings {
    held: RefCell<HashMap<String, Bytes>>,
    next: Cell<u64>,
    discoveries: Cell<u64>,
    wrong_every: u64,
}

impl Bindings {
    fn answer(&self, request: &Request<()>, body: Bytes) -> (StatusCode, Option<String>, Bytes) {
        let path = request.uri().path();
        match *request.method() {
            Method::POST => {
                let id = format!("{:032x}", self.next.replace(self.next.get() + 1));
                let location = format!("http://bsf.example{path}/{id}");
                self.held.borrow_mut().insert(id, body.clone());
                (StatusCode::CREATED, Some(location), body)
            }
            Method::DELETE => {
                let id = path.rsplit('/').next().unwrap();
                match self.held.borrow_mut().remove(id) {
                    Some(_) => (StatusCode::NO_CONTENT, None, Bytes::new()),
                    None => (StatusCode::NOT_FOUND, None, Bytes::new()),
                }
            }
            _ => {
                let count = self.discoveries.replace(self.discoveries.get() + 1) + 1;
                let query = request.uri().query().unwrap();
                let address = query.split(['=', '&']).nth(1).unwrap();
                let address = address.replace("%3A", ":").replace("%2F", "/");
                let wanted = format!("\"{address}\"");
                let wrong = count.is_multiple_of(self.wrong_every);
                let held = self.held.borrow();
                let found = held
                    .values()
                    .find(|body| std::str::from_utf8(body).unwrap().contains(&wanted) != wrong);
                match found {
                    Some(body) => (StatusCode::OK, None, body.clone()),
                    None => (StatusCode::NO_CONTENT, None, Bytes::new()),
                }
            }
        }
    }
}

async fn serve(socket: tokio::net::TcpStream, bindings: Rc<Bindings>) {
    let Ok(mut connection) = h2::server::handshake(socket).await else {
        return;
    };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let bindings = bindings.clone();
        tokio::task::spawn_local(async move {
            let (head, mut stream) = request.into_parts();
            let mut all = Vec::new();
            while let Some(Ok(piece)) = stream.data().await {
                let _ = stream.flow_control().release_capacity(piece.len());
                all.extend_from_slice(&piece);
            }
            let request = Request::from_parts(head, ());
            let (status, location, body) = bindings.answer(&request, all.into());
            let mut response = http::Response::builder().status(status);
            if let Some(location) = location {
                response = response.header("location", location);
            }
            let response = response.body(()).unwrap();
            if let Ok(mut stream) = respond.send_response(response, body.is_empty())
                && !body.is_empty()
            {
                let _ = stream.send_data(body, true);
            }
        });
    }
}

/// A BSF on a thread of its own, which ends with the process.
fn small_bsf(wrong_every: u64) -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, async move {
            let bindings = Rc::new(Bindings {
                held: RefCell::default(),
                next: Cell::new(0),
                discoveries: Cell::new(0),
                wrong_every,
            });
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((socket, _)) = listener.accept().await {
                tokio::task::spawn_local(serve(socket, bindings.clone()));
            }
        });
    });
    address
}

pub(crate) fn options(folder: &tempfile::TempDir) -> Options {
    Options {
        rate: Rate::Tps(150.0),
        duration: Duration::from_secs(3),
        warmup: Duration::from_secs(1),
        connections: Some(4),
        sessions: Some(400),
        database: Database::Embedded,
        generators: 2,
        out: folder.path().to_owned(),
        program: None,
        ..Options::default()
    }
}

/// Runs a model; what was reported, and the checks that failed for other reasons than a slow machine.
pub(crate) fn run(model: &str, options: &Options) -> (Report, Vec<String>) {
    let found = lab::callmodel::find(model).unwrap();
    let (report, _) =
        lab::run::run(&found, options, &mut Progress::default()).unwrap_or_else(|error| panic!("{error}"));
    let failed = crate::failed(&report).into_iter();
    let failed = failed
        .map(|check| format!("{}: {}", check.name, check.got))
        .collect();
    (report, failed)
}

#[test]
fn bindings_come_go_and_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        target: Some(small_bsf(u64::MAX)),
        program: Some(PathBuf::from("unused")),
        ..options(&folder)
    };
    let (report, failed) = run("bsf/scenario-13", &options);
    assert!(failed.is_empty(), "{failed:#?}");
    let count = |name: &str| report.operations.iter().find(|o| o.name == name).map(|o| o.count);
    for name in ["bindingCreate", "bindingDelete", "bindingDiscover"] {
        assert!(
            count(name).is_some_and(|count| count > 5),
            "{name}: {:?}",
            count(name)
        );
    }
}

#[test]
fn bindings_of_others_are_wrong_answers() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        target: Some(small_bsf(2)),
        program: Some(PathBuf::from("unused")),
        ..options(&folder)
    };
    let (report, failed) = run("bsf/scenario-13", &options);
    assert!(
        failed.iter().any(|words| words.starts_with("success")),
        "{failed:#?}"
    );
    for operation in &report.operations {
        let wrong = operation.name == "bindingDiscover";
        assert_eq!(operation.errors > 0, wrong, "{operation:?}");
    }
}

#[test]
fn our_bsf_serves_one_site_and_several() {
    let program = program();
    for (model, sites) in [
        ("bsf/scenario-13", 3),
        ("bsf/scenario-1", 2),
        ("bsf/scenario-2", 1),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            program: Some(program.clone()),
            ..options(&folder)
        };
        let (report, failed) = run(model, &options);
        assert!(failed.is_empty(), "{model}: {failed:#?}");
        let aars = report.operations.iter().find(|o| o.name == "rxAarInitial");
        assert!(aars.is_some_and(|o| o.count > 20), "{model}");
        let stores = std::fs::read_dir(folder.path().join("processes")).unwrap();
        let stores = stores
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.join("store.json").exists() && !path.ends_with("nrf-store"))
            .count();
        assert_eq!(stores, sites, "{model}");
        // What the guide has on beside the traffic is on, and judged.
        let features = ["registration", "audit", "score"];
        let judged = |name: &&str| report.checks.iter().any(|check| check.name == **name);
        let expected = if model == "bsf/scenario-13" { 3 } else { 0 };
        assert_eq!(
            features.iter().filter(|name| judged(name)).count(),
            expected,
            "{model}"
        );
        let of_sites = report
            .checks
            .iter()
            .filter(|check| check.name.starts_with("site "));
        let figures: Vec<&str> = of_sites.map(|check| check.got.as_str()).collect();
        assert_eq!(figures.len(), if sites > 1 { sites } else { 0 }, "{model}");
        assert!(
            figures.iter().all(|got| got.contains("commits a second")),
            "{figures:?}"
        );
        assert!(report.functions[0].connections_in >= 4 && report.functions[0].rss_mb_max > 1.0);
    }
}

/// The quick form of the drill: what the BSF serves is bounded by the lookups of Rx at once and by the time that PCFs take, not
/// by how fast the build is.
#[test]
fn what_is_too_much_for_the_bsf_is_shed_by_priority() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bsf-over.yaml");
    // Any request has waited longer than this; what is refused then depends on its priority alone.
    let text = "bsf: {workers: 1, overload: {waiting: {target: 1us, interval: 20ms}}}\n";
    std::fs::write(&file, text).unwrap();
    let options = Options {
        program: Some(program()),
        rate: Rate::Tps(400.0),
        duration: Duration::from_secs(4),
        function_config: Some(file),
        ..options(&folder)
    };
    let found = lab::callmodel::find("bsf/overload-3x").unwrap();
    let (report, series) =
        lab::run::run(&found, &options, &mut Progress::default()).unwrap_or_else(|error| panic!("{error}"));
    // Of requests that the BSF may refuse: over Rx those that begin a session.
    let served = |operation: &str, priority: u8| {
        let name = format!("{operation}, priority {priority}");
        let one = report.operations.iter().find(|one| one.name == name).unwrap();
        (one.count - one.errors) as f64 / one.count as f64
    };
    for operation in ["bindingCreate", "bindingDiscover", "rxAarInitial"] {
        let shares = [2, 8, 16, 24].map(|priority| served(operation, priority));
        assert!(shares[0] > 0.999, "spared: {operation} {shares:?}");
        assert!(
            shares[3] < 0.9 && shares[2] >= shares[3] - 0.05,
            "{operation} {shares:?} {:?}",
            series.notes
        );
    }
    for name in ["what is shed is refused", "memory"] {
        let check = report.checks.iter().find(|check| check.name == name).unwrap();
        assert!(check.pass, "{:#?}", report.checks);
    }
}

#[test]
fn relays_before_the_sites_delay_each_answer() {
    const LATENCY: Duration = Duration::from_millis(50);
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        program: Some(program()),
        site_latency: settings::Period(LATENCY),
        ..options(&folder)
    };
    let (report, failed) = run("bsf/scenario-1", &options);
    assert!(failed.is_empty(), "{failed:#?}");
    // Those of the service-based interface, which PCFs do not delay.
    for name in ["bindingCreate", "bindingDelete"] {
        let operation = report.operations.iter().find(|one| one.name == name).unwrap();
        assert!(operation.count > 5 && operation.errors == 0, "{operation:?}");
        let median = operation.latency_ms.p50.unwrap();
        assert!(median >= LATENCY.as_secs_f64() * 1e3, "{operation:?}");
    }
    let relays = std::fs::read_dir(folder.path().join("processes")).unwrap();
    let names = relays.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let logs = names.filter(|name| name.starts_with("relay-") && name.ends_with(".log"));
    assert_eq!(logs.count(), 4, "a relay for each interface of two sites");
}

/// Runs that start many processes, or read much at their start, take turns: on two cores they would starve one
/// another of the time that their answers have.
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[test]
fn a_kept_store_is_used_again() {
    let program = program();
    let _alone = alone();
    let (folder, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let options = Options {
        program: Some(program),
        store: Some(kept.path().to_owned()),
        // Enough that a few are sure to stand after one run.
        sessions: Some(60_000),
        ..options(&folder)
    };
    let (report, failed) = run("bsf/scenario-2", &options);
    assert!(failed.is_empty(), "{failed:#?}");
    let store = report.store.unwrap();
    assert_eq!((store.preloaded_sessions, store.adopted), (60_000, false));
    let each = store.disk_bytes_per_session.unwrap();
    assert!((50.0..2_000.0).contains(&each), "{each} bytes");

    // Without --sessions: as many as are there.
    let again = Options {
        sessions: None,
        ..options.clone()
    };
    let (report, failed) = run("bsf/scenario-2", &again);
    assert!(failed.is_empty(), "{failed:#?}");
    let store = report.store.unwrap();
    assert!(
        store.adopted && (30_000..60_000).contains(&store.preloaded_sessions),
        "{store:?}"
    );

    let other = Options {
        sessions: Some(70_000),
        ..options
    };
    let found = lab::callmodel::find("bsf/scenario-2").unwrap();
    let refused = lab::run::run(&found, &other, &mut Progress::default()).unwrap_err();
    assert!(refused.to_string().contains("60000 bindings"), "{refused}");
}

#[test]
fn bindings_are_kept_in_databases_as_well() {
    let program = program();
    let _alone = alone();
    let galera = PathBuf::from("/usr/lib/galera/libgalera_smm.so");
    if !PathBuf::from("/usr/sbin/mariadbd").exists() || !galera.exists() {
        return testpeer::skip::missing("MariaDB or Galera (apt-get install mariadb-server galera-4)");
    }
    for (model, database) in [
        ("bsf/scenario-1", Database::Galera),
        ("bsf/scenario-1", Database::Sites),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            program: Some(program.clone()),
            database,
            rate: Rate::Tps(60.0),
            ..options(&folder)
        };
        let found = lab::callmodel::find(model).unwrap();
        let (report, series) = lab::run::run(&found, &options, &mut Progress::default())
            .unwrap_or_else(|error| panic!("{error}"));
        // Five servers and more share this machine with other tests: late is not wrong.
        let wrong = series.failures.iter().filter(|(kind, _)| kind != "timeout");
        assert_eq!(
            wrong.count(),
            0,
            "{database:?}: {:?} {:?}",
            series.failures,
            series.examples
        );
        assert!(
            report.success_ratio > 0.5,
            "{database:?}: {}",
            report.success_ratio
        );
        let servers = series
            .lab
            .iter()
            .filter(|one| one.name.starts_with("database"))
            .count();
        assert_eq!(servers, if database == Database::Galera { 3 } else { 2 });
        assert_eq!(report.store.unwrap().engine, database.name());
        let delay = report
            .checks
            .iter()
            .find(|check| check.name == "replication delay");
        assert_eq!(delay.is_some(), database == Database::Sites, "{delay:?}");
    }
}
