//! Requests that harm others, reach what they should not, or never end.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::{Value, json};
use testpeer::http2::frame::{self, setting};
use testpeer::http2::{Hostile, Peer, flood};

use crate::answer::{Ask, Got, client, send};
use crate::attack::{Attack, Bars, attack};
use crate::field::Field;
use crate::stage::Stage::Scp;
use crate::stage::{PRODUCER_PATH, SLOW, Server, wish};

pub(super) const ALL: &[Attack] = &[
    attack(
        "scp.blame",
        "requests that leave a good producer no time",
        Scp,
        |f| Box::pin(blame(f)),
    ),
    attack(
        "scp.targets",
        "targets that are not producers: admin ports, files, ports 0 and 99999",
        Scp,
        |f| Box::pin(targets(f)),
    ),
    attack(
        "scp.scanner",
        "unknown targets where only known ones are allowed",
        Scp,
        |f| Box::pin(scanner(f)),
    )
    .with_settings(|| json!({"forwardToUnknown": false})),
    attack(
        "scp.invented-labels",
        "hundreds of invented consumers and services, which metrics would count one by one",
        Scp,
        |f| Box::pin(invented_labels(f)),
    )
    .with_settings(|| json!({})),
    attack("scp.loops", "requests to the SCP through the SCP", Scp, |f| {
        Box::pin(loops(f))
    }),
    attack("scp.detours", "ways around an access rule", Scp, |f| {
        Box::pin(detours(f))
    })
    .with_settings(
        || json!({"security": {"access": [{"consumers": ["AF"], "services": ["nudm-sdm"], "deny": true}]}}),
    ),
    attack(
        "scp.invented-roots",
        "thousands of invented target apiRoots",
        Scp,
        |f| Box::pin(invented_roots(f)),
    )
    .with_bars(Bars {
        cpu_s: 12.0,
        ..Bars::DEFAULT
    }),
    attack(
        "scp.recovery",
        "a flood of requests, and the minute after it",
        Scp,
        |f| Box::pin(recovery(f)),
    )
    .with_settings(|| json!({"protection": {"targetLoad": "95%"}}))
    // While the flood lasts, requests may be refused; what counts is what the script sees after it.
    .with_bars(Bars {
        honest_errors_percent: 100.0,
        p99_ms: 5_000.0,
        cpu_s: 20.0,
        ..Bars::DEFAULT
    })
    .full_only(),
    attack(
        "scp.untaken-answers",
        "many answers of 1 MB asked for and never taken",
        Scp,
        |f| Box::pin(untaken(f)),
    )
    .with_bars(Bars::BUDGET)
    .alone(),
    attack(
        "scp.crossed-answers",
        "many consumers with tokens of their own, beside a producer that breaks connections",
        Scp,
        |f| Box::pin(crossed(f)),
    )
    .with_bars(Bars {
        cpu_s: 30.0,
        ..Bars::DEFAULT
    }),
    attack(
        "scp.smuggling",
        "requests that a second look reads otherwise",
        Scp,
        |f| Box::pin(smuggling(f)),
    ),
];

/// The root of the honest producer.
fn producer(field: &Field) -> String {
    let world = field.world.borrow();
    world.server.as_ref().map(Server::root).unwrap_or_default()
}

async fn blame(field: Rc<Field>) -> anyhow::Result<()> {
    let (client, origin) = (client("AF-attacker"), field.origin()?);
    let mut timed_out = 0;
    for _ in 0..field.of(15, 3) {
        // Many at once: their times run out one after the other, with no answer to another request between them.
        let mut open = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let ask = wish(Ask::get(format!("/nudm-sdm/v2{SLOW}"))).header("3gpp-sbi-max-rsp-time", "1");
            let (client, origin) = (client.clone(), origin.clone());
            open.spawn_local(async move { send(&client, &origin, &ask).await.status });
        }
        while let Some(status) = open.join_next().await {
            timed_out += u32::from(status.is_ok_and(|status| status == 504));
        }
    }
    field.note(format_args!("{timed_out} answered 504"));
    Ok(())
}

async fn targets(field: Rc<Field>) -> anyhow::Result<()> {
    let admin = field.world.borrow().admin;
    for target in [
        format!("http://{admin}"),
        "file:///etc/passwd".to_owned(),
        "ftp://127.0.0.1".to_owned(),
        format!("http://user:word@{admin}"),
        "http://127.0.0.1:0".to_owned(),
        "http://127.0.0.1:99999".to_owned(),
        format!("http://{admin}#x"),
        format!("http://{admin}?x"),
        "http://".to_owned(),
        "//127.0.0.1".to_owned(),
        "http://[::1".to_owned(),
        "http://127.0.0.1:9\t".to_owned(),
        format!("http://{}", "a".repeat(20_000)),
    ] {
        let ask = Ask::get("/metrics").header("3gpp-sbi-target-apiroot", &*target);
        let got = field.ask(&ask).await;
        let shown: String = target.chars().take(60).collect();
        field.check(
            got.status == 0 || got.status >= 400,
            format_args!("{shown}: answered {}", got.text()),
        );
    }
    Ok(())
}

async fn scanner(field: Rc<Field>) -> anyhow::Result<()> {
    let open = Server::start(Arc::new(|_| sbi::Response::default()))?;
    let closed = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let mut answers: Vec<(u16, Value)> = Vec::new();
    for root in [
        open.root(),
        format!("http://{closed}"),
        "http://127.0.0.1:9".to_owned(),
    ] {
        let got = field
            .ask(&Ask::get("/x/v1/y").header("3gpp-sbi-target-apiroot", root))
            .await;
        answers.push((got.status, got.json()["cause"].clone()));
    }
    field.check(open.seen().is_empty(), "an unknown target was reached");
    field.check(
        answers.iter().all(|answer| *answer == answers[0]),
        format_args!("answers differ for open and closed ports: {answers:?}"),
    );
    Ok(())
}

async fn loops(field: Rc<Field>) -> anyhow::Result<()> {
    let own = format!("http://{}", field.target);
    let port = field.target.port();
    for root in [
        own,
        format!("http://localhost:{port}"),
        format!("http://127.1.1.1:{port}"),
        format!("http://scp1.test:{port}"),
    ] {
        for hops in [None, Some("0"), Some("99"), Some("-1"), Some("x")] {
            let mut ask = Ask::get("/nudm-sdm/v2/loop").header("3gpp-sbi-target-apiroot", &*root);
            if let Some(hops) = hops {
                ask = ask.header("3gpp-sbi-max-forward-hops", format!("{hops}; nodetype=scp"));
            }
            for via in ["", "2.0 SCP-scp1.test", "2.0 SCP-other.test"] {
                let ask = match via {
                    "" => ask.clone(),
                    via => ask.clone().header("via", via),
                };
                let got = field.ask(&ask).await;
                field.check(
                    got.status >= 400,
                    format_args!("{root}: a loop was answered {}", got.status),
                );
            }
        }
    }
    Ok(())
}

async fn detours(field: Rc<Field>) -> anyhow::Result<()> {
    let root = producer(&field);
    if let Some(server) = &field.world.borrow().server {
        server.forget();
    }
    let evil = client("AF-attacker");
    for (target, path) in [
        (root.clone(), PRODUCER_PATH.to_owned()),
        (format!("{root}/nudm-sdm"), "/v2/echo".to_owned()),
        (root.clone(), "/%6eudm-sdm/v2/echo".to_owned()),
        (root.clone(), "/x/../nudm-sdm/v2/echo".to_owned()),
        (root.clone(), "/x/%2e%2e/nudm-sdm/v2/echo".to_owned()),
        (root.clone(), "/./nudm-sdm/v2/echo".to_owned()),
        (root.clone(), "//nudm-sdm/v2/echo".to_owned()),
        (root.clone(), "/NUDM-SDM/v2/echo".to_owned()),
    ] {
        let ask = Ask::get(&*path).header("3gpp-sbi-target-apiroot", &*target);
        field.ask_as(&evil, &ask).await;
    }
    let world = field.world.borrow();
    for seen in world.server.iter().flat_map(Server::seen) {
        if seen.header("user-agent").starts_with("AF") {
            field.miss(format_args!("{} reached the producer", seen.path));
        }
    }
    Ok(())
}

async fn invented_roots(field: Rc<Field>) -> anyhow::Result<()> {
    let (client, origin) = (client("AF-attacker"), field.origin()?);
    let mut open = tokio::task::JoinSet::new();
    for number in 0..field.of(30_000u32, 1_500) {
        // Addresses of the loopback network where nothing listens.
        let root = format!(
            "http://127.{}.{}.{}:9",
            2 + (number >> 16),
            number >> 8 & 255,
            number & 255
        );
        let ask = Ask::get("/x/v1/y").header("3gpp-sbi-target-apiroot", root);
        let (client, origin) = (client.clone(), origin.clone());
        open.spawn_local(async move { send(&client, &origin, &ask).await.status });
        while open.len() >= 100 {
            let status = open.join_next().await.and_then(Result::ok).unwrap_or_default();
            field.check(status != 200, "an invented producer answered");
        }
    }
    while open.join_next().await.is_some() {}
    Ok(())
}

async fn recovery(field: Rc<Field>) -> anyhow::Result<()> {
    let root = producer(&field);
    let mut fields = frame::request_fields("GET", PRODUCER_PATH);
    fields.push(("3gpp-sbi-target-apiroot", &root));
    let end = tokio::time::Instant::now() + Duration::from_secs(5);
    while tokio::time::Instant::now() < end {
        let Ok(mut peer) = Peer::client(field.target).await else {
            continue;
        };
        let _ = peer.send(&frame::window(0, 1 << 30)).await;
        let buffer = flood::each_stream(1, 4_000, |stream| frame::headers(stream, &fields, true));
        peer.pour(&buffer, buffer.len() as u64, Duration::from_millis(500))
            .await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let client = client("UDM-after");
    let mut refused = 0;
    for _ in 0..100 {
        refused += u32::from(field.ask_as(&client, &wish(Ask::get(PRODUCER_PATH))).await.status != 200);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    field.check(
        refused == 0,
        format_args!("{refused} of 100 requests refused after the flood"),
    );
    Ok(())
}

async fn untaken(field: Rc<Field>) -> anyhow::Result<()> {
    // Not the honest producer: what is refused there is not the honest client's.
    let body = bytes::Bytes::from(vec![b'x'; 1_000_000]);
    let large = Server::start(Arc::new(move |_| sbi::Response::ok(body.clone())))?;
    let root = large.root();
    let mut fields = frame::request_fields("GET", "/nudm-sdm/v2/large");
    fields.push(("3gpp-sbi-target-apiroot", &root));
    let mut peers = Vec::new();
    for _ in 0..field.of(20, 8) {
        let mut peer = Peer::client_with(field.target, &[(setting::INITIAL_WINDOW_SIZE, 0)]).await?;
        let buffer = flood::each_stream(1, 100, |stream| frame::headers(stream, &fields, true));
        peer.pour(&buffer, buffer.len() as u64, Duration::from_secs(3))
            .await;
        peers.push(peer);
    }
    tokio::time::sleep(field.of(Duration::from_secs(8), Duration::from_secs(5))).await;
    Ok(())
}

async fn crossed(field: Rc<Field>) -> anyhow::Result<()> {
    let root = producer(&field);
    let breaking = Hostile::start(|mut peer| async move {
        let _ = peer
            .wait_for("a request", |f| f.kind == frame::kind::HEADERS)
            .await;
    })
    .await?;
    let clients: Vec<_> = (0..8).map(|n| client(&format!("SMF-{n}"))).collect();
    let origin = field.origin()?;
    let mut open = tokio::task::JoinSet::new();
    let (mut answered, mut crossed) = (0, 0);
    let judge = |got: Option<Result<(String, Got), _>>, answered: &mut u32, crossed: &mut u32| {
        let got: Option<(String, Got)> = got.and_then(Result::<_, tokio::task::JoinError>::ok);
        if let Some((token, got)) = got
            && got.status == 200
        {
            *answered += 1;
            *crossed += u32::from(got.json()["token"] != *token);
        }
    };
    for number in 0..field.of(15_000usize, 600) {
        let token = format!("Bearer token-{number}");
        let client = clients[number % clients.len()].clone();
        let target = if number % 10 == 0 {
            breaking.root()
        } else {
            root.clone()
        };
        let ask = Ask::get(format!("/nudm-sdm/v2/{number}"))
            .header("authorization", &*token)
            .header("3gpp-sbi-target-apiroot", target);
        let origin = origin.clone();
        open.spawn_local(async move { (token, send(&client, &origin, &ask).await) });
        while open.len() >= 60 {
            judge(open.join_next().await, &mut answered, &mut crossed);
        }
    }
    while let Some(got) = open.join_next().await {
        judge(Some(got), &mut answered, &mut crossed);
    }
    field.note(format_args!("{answered} answers"));
    field.check(answered > 0, "none was answered");
    field.check(
        crossed == 0,
        format_args!("{crossed} answers went to another consumer"),
    );
    Ok(())
}

/// What it is, the method, and fields beside the usual ones.
type Smuggled = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

async fn smuggling(field: Rc<Field>) -> anyhow::Result<()> {
    let root = producer(&field);
    if let Some(server) = &field.world.borrow().server {
        server.forget();
    }
    let path = "/nudm-sdm/v2/smuggled";
    let base = |method| {
        let mut fields = frame::request_fields(method, path);
        fields.push(("3gpp-sbi-target-apiroot", &*root));
        fields
    };
    let cases: &[Smuggled] = &[
        ("transfer-encoding", "POST", &[("transfer-encoding", "chunked")]),
        ("connection", "GET", &[("connection", "keep-alive")]),
        ("a wrong content-length", "POST", &[("content-length", "9")]),
        (
            "two content-lengths",
            "POST",
            &[("content-length", "1"), ("content-length", "2")],
        ),
        ("a line break", "GET", &[("x-a", "b\r\nhost: evil")]),
        ("NUL", "GET", &[("x-a", "b\0c")]),
        ("another Host", "GET", &[("host", "evil.example")]),
        (
            "two Hosts",
            "GET",
            &[("host", "test.example"), ("host", "evil.example")],
        ),
        ("TRACE", "TRACE", &[]),
        ("CONNECT", "CONNECT", &[]),
        ("a second path", "GET", &[(":path", "/x")]),
    ];
    for (what, method, more) in cases {
        let mut fields = base(*method);
        fields.extend(*more);
        let mut peer = Peer::client(field.target).await?;
        let mut bytes = frame::headers(1, &fields, *method != "POST");
        if *method == "POST" {
            bytes.extend(frame::data(1, b"x", true));
        }
        peer.pour(&bytes, bytes.len() as u64, Duration::from_millis(500))
            .await;
        peer.settle(Duration::from_millis(field.of(300, 150))).await;
        let world = field.world.borrow();
        let Some(server) = &world.server else { continue };
        // Its own header for the host is the SCP's to write.
        let through = server
            .seen()
            .into_iter()
            .filter(|seen| seen.path == path)
            .any(|seen| {
                let hosts = seen.headers.get_all("host").iter().count();
                let foreign = seen.header("host").contains("evil");
                hosts > 1 || foreign || !more.iter().any(|(name, _)| *name == "host")
            });
        field.check(!through, format_args!("{what}: forwarded"));
        server.forget();
    }
    let got = field
        .ask(&Ask::new(Method::GET, "/nudm-sdm/v2/x").header("3gpp-sbi-target-apiroot", root))
        .await;
    field.check(got.status == StatusCode::OK.as_u16(), got.text());
    Ok(())
}

async fn invented_labels(field: Rc<Field>) -> anyhow::Result<()> {
    let admin = field.world.borrow().admin;
    let before = crate::attacks::admin::get(admin, "/metrics").await?.len();
    for number in 0..field.of(8_000, 300) {
        let evil = client(&format!("INVENTED{number}"));
        let ask = Ask::get(format!("/ninvented-service{number}/v1/x"))
            .header("3gpp-sbi-target-apiroot", "http://127.0.0.1:9");
        field.ask_as(&evil, &ask).await;
    }
    let after = crate::attacks::admin::get(admin, "/metrics").await?.len();
    field.note(format_args!(
        "metrics of {} KiB, {} before",
        after / 1_024,
        before / 1_024
    ));
    field.check(
        after < before + 200_000,
        format_args!("strangers have made the metrics grow from {before} to {after} bytes"),
    );
    Ok(())
}
