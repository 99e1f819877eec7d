//! `signalbox numbers`: what is printed, and exit codes.

use sbi::oauth::SigningKey;
use serde_json::json;
use tls::TlsFiles;
use tls::authority::Authority;

use crate::process::{signalbox, text};

#[test]
fn numbers_are_imported_found_explained_and_exported() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (lines, file) = (path("lines.csv"), path("numbers.num"));
    std::fs::write(
        &lines,
        "msisdn,491511,hss2\nimsi,001010000000001,hss1,pcrf=pcrf7.example\nimsi,001010000000002,hss2\n",
    )
    .unwrap();

    let refused = signalbox(&["numbers", "import", &lines, "--output", &file]);
    assert_eq!(refused.status.code(), Some(1));
    let said = text(&refused.stderr);
    assert!(
        said.contains("lines.csv: line 2: imsi,001010000000001 follows msisdn,491511"),
        "{said}"
    );
    assert!(!folder.path().join("numbers.num").exists());

    let imported = signalbox(&["numbers", "import", &lines, "--output", &file, "--sort"]);
    assert!(imported.status.success(), "{}", text(&imported.stderr));
    assert!(
        text(&imported.stdout).contains("3 numbers, 2 destination sets"),
        "{}",
        text(&imported.stdout)
    );

    let found = signalbox(&["numbers", "find", &file, "imsi", "001010000000001"]);
    assert!(found.status.success());
    assert_eq!(
        text(&found.stdout),
        "imsi,001010000000001,hss1,pcrf=pcrf7.example\n"
    );
    let unknown = signalbox(&["numbers", "find", &file, "imsi", "1010000000001"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(text(&unknown.stderr).contains("imsi,1010000000001: unknown"));
    let wrong = signalbox(&["numbers", "find", &file, "imsi", "0010100000000012"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("16 digits; expected 1 to 15"));

    let explained = signalbox(&["numbers", "explain", &file, "imsi", "001010000000001"]);
    let page = text(&explained.stdout);
    assert!(
        page.contains("imsi of 15 digits") && page.contains("base, byte 128"),
        "{page}"
    );
    let explained = signalbox(&["numbers", "explain", &file]);
    assert!(explained.status.success());
    assert!(
        text(&explained.stdout).contains("base     3 numbers"),
        "{}",
        text(&explained.stdout)
    );

    let exported = signalbox(&["numbers", "export", &file, "--kind", "imsi"]);
    let lines = "#signalbox-numbers,1\nimsi,001010000000001,hss1,pcrf=pcrf7.example\nimsi,001010000000002,hss2\n#end,2\n";
    assert_eq!(text(&exported.stdout), lines);

    let mut bytes = std::fs::read(&file).unwrap();
    bytes[129] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let damaged = signalbox(&["numbers", "find", &file, "imsi", "001010000000001"]);
    assert_eq!(damaged.status.code(), Some(1));
    let said = text(&damaged.stderr);
    assert!(
        said.contains("block at byte 128") && said.contains("damaged"),
        "{said}"
    );
    assert_eq!(signalbox(&["numbers", "explain", &file]).status.code(), Some(1));
    assert!(
        signalbox(&["numbers", "find", &file, "msisdn", "491511"])
            .status
            .success()
    );
}

#[test]
fn a_file_that_is_none_of_numbers_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("else").display().to_string();
    std::fs::write(&file, "imsi,001010000000001,hss1\n".repeat(20)).unwrap();
    let output = signalbox(&["numbers", "explain", &file]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("else: not a file of numbers"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn records_go_into_a_server_with_token_and_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let authority = Authority::new("operator").unwrap();
    let files = |name: &str| {
        let identity = authority.issue(&[name, "127.0.0.1"]).unwrap();
        authority.write(&identity, folder.path(), name).unwrap()
    };
    let key = SigningKey::generate("k1").unwrap().0;
    std::fs::write(path("keys.json"), json!({"keys": [key.jwk()]}).to_string()).unwrap();
    let local = "127.0.0.1:0".parse().unwrap();
    let mut config = sds::Config {
        listen: settings::Listen(vec![local]),
        admin: local,
        workers: 1,
        directory: folder.path().join("sds"),
        tls: Some(TlsFiles {
            require_client_certificate: Some(true),
            ..files("sds")
        }),
        ..sds::Config::default()
    };
    config.store.embedded.directory = folder.path().join("journal");
    config.overload.enabled = false;
    config.tokens.required = true;
    config.tokens.key_sets = vec![folder.path().join("keys.json")];
    let server = sds::start(config).unwrap();
    let url = format!("https://{}", server.addresses()[0]);
    let claims = json!({"iss": "operator", "sub": "crm", "aud": "SDS", "scope": "sds-provisioning",
        "exp": 4_000_000_000_u64});
    std::fs::write(path("token"), format!("{}\n", key.sign(&claims).unwrap())).unwrap();
    std::fs::write(path("lines.csv"), "name,a@b,hss1\nimsi,001010000000001,hss1\n").unwrap();
    let crm = files("crm");
    let [certificate, key] = [&crm.certificate, &crm.key].map(|file| file.display().to_string());
    let (lines, ca, token) = (
        path("lines.csv"),
        crm.authorities.unwrap().display().to_string(),
        path("token"),
    );
    let import = |more: &[&str]| {
        signalbox(
            &[
                &[
                    "numbers",
                    "import",
                    &lines,
                    "--sds",
                    &url,
                    "--sds-authorities",
                    &ca,
                ][..],
                more,
            ]
            .concat(),
        )
    };
    let shown = ["--sds-certificate", &certificate, "--sds-key", &key];
    let untrusted = signalbox(&["numbers", "import", &lines, "--sds", &url]);
    assert_eq!(untrusted.status.code(), Some(2));
    let said = text(&untrusted.stderr);
    assert!(said.contains("https needs --sds-authorities"), "{said}");
    let without_certificate = import(&["--token-file", &token]);
    assert_eq!(without_certificate.status.code(), Some(1));
    let without_token = import(&shown);
    let said = text(&without_token.stderr);
    assert!(
        said.contains("0 of 2 records were written") && said.contains("status 401"),
        "{said}"
    );
    let done = import(&[&shown[..], &["--token-file", &token]].concat());
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(
        text(&done.stdout).starts_with("2 records written up to transaction 1 "),
        "{}",
        text(&done.stdout)
    );
    server.stop().unwrap();
}

#[test]
fn a_token_that_is_renewed_beside_an_import_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (lines, token) = (path("lines.csv"), path("token"));
    let all: String = (0..2_500)
        .map(|number| format!("imsi,00101{number:010},hss1\n"))
        .collect();
    std::fs::write(&lines, all).unwrap();
    std::fs::write(&token, "token0\n").unwrap();
    let (started, server) = std::sync::mpsc::sync_channel(1);
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let renewed = token.clone();
    let serving = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let next = std::cell::Cell::new(0);
            let server = testpeer::sbi::Server::start(move |_| {
                next.set(next.get() + 1);
                std::fs::write(&renewed, format!("token{}\n", next.get())).unwrap();
                sbi::json::response(http::StatusCode::OK, &json!({"offset": next.get()}))
            });
            started.send(server.root()).unwrap();
            let _ = stopped.await;
            let seen = server.seen();
            let sent = seen.iter().map(|one| one.header("authorization").to_owned());
            sent.collect::<Vec<_>>()
        })
    });
    let url = server.recv().unwrap();
    let done = signalbox(&["numbers", "import", &lines, "--sds", &url, "--token-file", &token]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    stop.send(()).unwrap();
    let sent = serving.join().unwrap();
    assert_eq!(sent, ["Bearer token0", "Bearer token1", "Bearer token2"]);
}
