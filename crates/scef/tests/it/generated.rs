//! A client of T8 whose data types are generated from the OpenAPI files of TS 29.122 by datamodel-code-generator (PyPI), over httpx.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use testpeer::openapi::OpenApi;

use crate::network::Node;
use crate::support::{local, server, start};

/// The generator, what its code needs, and the client.
const PACKAGES: [&str; 3] = [
    "datamodel-code-generator==0.89.0",
    "pydantic==2.14.4",
    "httpx[http2]==0.28.1",
];
/// The APIs, with the modules that are generated of them.
const APIS: [(&str, &str); 3] = [
    ("TS29122_MonitoringEvent.yaml", "monitoring.py"),
    ("TS29122_NIDD.yaml", "nidd.py"),
    ("TS29122_DeviceTriggering.yaml", "triggering.py"),
];

/// The folder of the data types of all APIs, which are generated once for each target directory: they are some ten thousand lines.
fn models(python: &Path, specs: &Path) -> PathBuf {
    static TURN: Mutex<()> = Mutex::new(());
    let _one_of_this_process = TURN.lock();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("t8-models");
    if folder.is_dir() {
        return folder;
    }
    let own = folder.with_extension(std::process::id().to_string());
    std::fs::create_dir_all(&own).unwrap();
    let generating = APIS.map(|(file, module)| {
        let mut generator = Command::new("python3");
        generator
            .env("PYTHONPATH", python)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/t8_generate.py"))
            .arg(specs.join(file))
            .arg(own.join(module))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        generator.spawn().unwrap()
    });
    for mut one in generating {
        one.wait().unwrap();
    }
    for (file, module) in APIS {
        assert!(own.join(module).is_file(), "nothing was generated of {file}");
    }
    std::fs::rename(&own, &folder).unwrap();
    folder
}

/// The process; killed when dropped.
struct Client(Child);

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_generated_client_reads_every_answer() {
    reads_every_answer("HTTP/2");
}

#[test]
fn a_generated_client_reads_every_answer_over_http_1_1() {
    reads_every_answer("HTTP/1.1");
}

fn reads_every_answer(version: &str) {
    let Some(specs) = OpenApi::find(env!("CARGO_MANIFEST_DIR")) else {
        return;
    };
    let Some(python) = testpeer::python::packages(env!("CARGO_TARGET_TMPDIR"), "t8-client", &PACKAGES) else {
        return testpeer::skip::unavailable("datamodel-code-generator and httpx (PyPI) are not available");
    };
    let models = models(&python, specs.folder());
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut client = Command::new("python3");
        client
            .env("PYTHONPATH", &python)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/t8.py"))
            .arg(&models)
            .arg(format!("http://{}", scef.running.addresses()[0]))
            .arg(server.root())
            .arg(version)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut client = Client(client.spawn().unwrap());
        let mut output = BufReader::new(client.0.stdout.take().unwrap());
        // Python reads some ten thousand lines first.
        let reading = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            (line, output)
        });
        let (line, mut output) = reading.await.unwrap();
        assert_eq!(line, "ready\n");
        let mut hss = Node::hss(scef.diameter()).await;
        let mut sms_sc = Node::sms_sc(scef.diameter()).await;
        let network = async {
            hss.configure().await;
            hss.authorize().await;
            hss.locate_for_trigger(None).await;
            sms_sc.accept().await;
            hss.configure().await;
            std::future::pending::<()>().await;
        };
        let reading = tokio::task::spawn_blocking(move || {
            let mut text = String::new();
            output.read_to_string(&mut text).unwrap();
            text
        });
        // A client that fails needs no network any more.
        let text = tokio::select! {
            text = reading => text.unwrap(),
            () = network => unreachable!(),
        };
        let expected = "MonitoringEventSubscription\nNiddConfiguration\nNiddDownlinkDataTransfer\nDeviceTriggering\ndone\n";
        assert_eq!(text, expected, "its standard error says why");
        scef.stop();
    });
}
