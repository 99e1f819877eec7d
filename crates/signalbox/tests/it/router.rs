//! A Diameter router as an operator meets it.

use std::path::Path;

use diameter_proto::ResultCode;
use diameter_proto::known::ROUTE_RECORD;
use diameter_proto::peer::ApplicationId;
use testpeer::diameter::Peer;
use tokio::net::TcpListener;

use crate::process::{Process, ask, harmless, signalbox, text, until};

const S6A: &[ApplicationId] = &[ApplicationId::tgpp(16_777_251)];

#[test]
fn a_running_router_can_be_looked_into_and_changed() {
    let folder = tempfile::tempdir().unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/dsr.yaml");
    let file = harmless(Some(&example), folder.path());
    let process = Process::start(&["run", "dsr", "--config", file.to_str().unwrap()], folder.path());
    let address = process.address("dsr admin");
    let admin = address.to_string();
    let look = |args: &[&str]| {
        let mut all = vec!["dsr"];
        all.extend_from_slice(args);
        all.extend_from_slice(&["--admin", &admin]);
        let output = signalbox(&all);
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    // No process listens at the addresses of the example's HSSs.
    until("both HSSs are known and not there", || {
        let peers = look(&["peers"]);
        peers.contains("hss1.epc") && peers.contains("hss2.epc") && !peers.contains(" available")
    });
    let routes = look(&["routes"]);
    assert!(
        routes.contains("2 entries") && routes.contains("unavailable"),
        "{routes}"
    );
    until("the alarm that a peer is not there", || {
        look(&["alarms"]).contains("22051")
    });
    until("the indicators", || look(&["indicators"]).contains("MpCPUAvg"));
    assert!(look(&["metrics", "dsr_peers"]).contains("state=\"unavailable\"} 2"));

    let before = std::fs::read_to_string(&file).unwrap();
    std::fs::write(
        &file,
        before
            .replace("weight: 2", "weight: 7")
            .replace("connections: 4096", "connections: 5"),
    )
    .unwrap();
    let (status, said) = ask(address, "POST", "/config/reload");
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        (status, &said["applied"]),
        (200, &serde_json::json!(["dsr.routing.routeGroups"]))
    );
    assert_eq!(
        said["refused"],
        serde_json::json!(["dsr.limits.connections (needs a restart)"])
    );
    // A name that leads nowhere changes nothing.
    std::fs::write(&file, before.replace("routeList: hss", "routeList: hsx")).unwrap();
    let (status, said) = ask(address, "POST", "/config/reload");
    assert!(
        status == 422 && said.contains("unknown route list `hsx`"),
        "{said}"
    );
    process.signal("TERM");
    assert!(process.ended().success());
}

/// Two message processors in processes of their own, an IP front end before them, a server that only the second is
/// connected to.
#[test]
fn a_front_end_and_two_message_processors_are_one_router() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let hss = listener.local_addr().unwrap();
    let run = |function: &str, name: &str, yaml: &str| {
        let own = folder.path().join(name);
        std::fs::create_dir(&own).unwrap();
        let file = own.join("config.yaml");
        std::fs::write(&file, yaml).unwrap();
        Process::start(&["run", function, "--config", file.to_str().unwrap()], &own)
    };
    let processor = |name: &str, peers: &str| {
        format!(
            "dsr:\n  admin: \"127.0.0.1:0\"\n  workers: 1\n  drain: 100ms\n  localNodes:\n    \
             - {{name: {name}, host: {name}.example, realm: example, listen: \"127.0.0.1:0\"}}\n  peers:\n{peers}\n"
        )
    };
    let second = run(
        "dsr",
        "mp2",
        &processor(
            "mp2",
            &format!(
                "    - {{host: mp1.example, sibling: true}}\n    \
                 - {{host: hss.example, addresses: [\"{hss}\"], timers: {{reconnectMin: 50ms}}}}"
            ),
        ),
    );
    let first = run(
        "dsr",
        "mp1",
        &processor(
            "mp1",
            &format!(
                "    - {{host: mp2.example, addresses: [\"{}\"], sibling: true}}\n    \
                 - {{host: hss.example, via: mp2.example}}",
                second.address("dsr Diameter")
            ),
        ),
    );
    let backend = |name: &str, process: &Process| {
        format!(
            "{{name: {name}, address: \"{}\", admin: \"{}\"}}",
            process.address("dsr Diameter"),
            process.address("dsr admin")
        )
    };
    let front = run(
        "ipfe",
        "front",
        &format!(
            "ipfe:\n  admin: \"127.0.0.1:0\"\n  check: {{interval: 50ms}}\n  targetSets:\n    \
             - {{name: tsa1, listen: \"127.0.0.1:0\", backends: [{}, {}]}}\n",
            backend("mp1", &first),
            backend("mp2", &second)
        ),
    );
    let tsa = front.address("ipfe TCP");
    let admin = front.address("ipfe admin");
    runtime.block_on(async {
        let mut server = Peer::accept(&listener).await;
        server.answer_capabilities("hss.example", S6A).await;
        let mut clients = Vec::new();
        for number in 0..4 {
            let mut mme = Peer::connect(tsa).await;
            mme.capabilities(&format!("mme{number}.example"), S6A).await;
            clients.push(mme);
        }
        let (_, rows) = ask(admin, "GET", "/ipfe/backends");
        let rows: serde_json::Value = serde_json::from_str(&rows).unwrap();
        assert_eq!((&rows[0]["connections"], &rows[1]["connections"]), (&2.into(), &2.into()), "{rows}");
        let mut paths = Vec::new();
        for (number, mme) in clients.iter_mut().enumerate() {
            let path = loop {
                mme.send_text(&format!(
                    "ULR app=16777251 flags=RP hbh=7 {{ Session-Id = \"mme{number}.example;1\" Auth-Session-State = 1 \
                     Origin-Host = \"mme{number}.example\" Origin-Realm = \"example\" \
                     Destination-Host = \"hss.example\" Destination-Realm = \"example\" User-Name = \"001\" }}"
                ))
                .await;
                tokio::select! {
                    request = server.expect(316) => {
                        server.answer(&request, ResultCode::SUCCESS).await;
                        mme.expect_result(316, ResultCode::SUCCESS).await;
                        let avps = request.avps().flatten();
                        break avps.filter(|avp| avp.is(ROUTE_RECORD)).count();
                    }
                    // The processors may not know one another yet.
                    answer = mme.expect(316) => drop(answer),
                }
                tokio::time::sleep(std::time::Duration::from_millis(25)).await;
            };
            paths.push(path);
        }
        paths.sort_unstable();
        assert_eq!(paths, [1, 1, 2, 2], "half of the clients are a hop away from the server");
        server.break_off();
    });
    for process in [front, first, second] {
        process.signal("TERM");
        assert!(process.ended().success());
    }
}
