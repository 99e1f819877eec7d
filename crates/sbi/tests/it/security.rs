//! TLS and mutual TLS, our client and server against each other.

use std::sync::Arc;

use http::Request;
use sbi::client::{Client, ClientConfig, SendErrorKind, SendOptions};
use sbi::tls::Tls;
use sbi::{Body, Response};
use tls::authority::Authority;
use tls::{ClientTls, HTTP2, Material, TlsFiles};

use crate::support::{local, start_tls};

const NF_ID: &str = "urn:uuid:4947a69a-f61b-4bc1-b9da-47c9c5d14b64";

#[test]
fn mutual_tls_tells_who_is_there() {
    local(async {
        let authority = Authority::new("lab").unwrap();
        let server = authority.issue(&["localhost", "127.0.0.1"]).unwrap();
        let consumer = authority.issue(&["amf.example", NF_ID]).unwrap();
        let server = start_tls(
            authority
                .material(Some(&server), true)
                .server(tls::HTTP2)
                .unwrap(),
            |request| {
                let tls = request.peer.tls.clone().unwrap();
                async move { Response::ok(format!("{} {}", tls.version, tls.names.join(" "))) }
            },
        );
        let origin = format!("https://localhost:{}", server.addr.port())
            .parse()
            .unwrap();
        let get = || Request::get("/").body(Body::empty()).unwrap();

        let tls = authority
            .material(Some(&consumer), false)
            .client(tls::HTTP2)
            .unwrap();
        let client = Client::new(Arc::new(ClientConfig::default()), Some(tls));
        let response = client.send(&origin, get(), SendOptions::default()).await.unwrap();
        assert_eq!(
            response.into_body().into_bytes(),
            format!("TLSv1.3 amf.example {NF_ID}")
        );

        // A client without a certificate, or with one of another authority, gets no connection.
        let nameless = authority.material(None, false).client(tls::HTTP2).unwrap();
        let stranger = Authority::new("stranger").unwrap();
        let forged = stranger.issue(&["amf.example"]).unwrap();
        let trusting = authority
            .material(Some(&forged), false)
            .client(tls::HTTP2)
            .unwrap();
        for tls in [nameless, trusting] {
            let client = Client::new(Arc::new(ClientConfig::default()), Some(tls));
            assert!(client.send(&origin, get(), SendOptions::default()).await.is_err());
        }
        // Nor does a client talk to a server it does not trust, or to another name.
        let tls = stranger.material(None, false).client(tls::HTTP2).unwrap();
        let client = Client::new(Arc::new(ClientConfig::default()), Some(tls));
        let error = client
            .send(&origin, get(), SendOptions::default())
            .await
            .unwrap_err();
        assert!(matches!(error.kind, SendErrorKind::Connect(_)), "{error}");
        assert!(server.stats.snapshot().handshakes_failed >= 1);
    });
}

#[test]
fn https_without_tls_settings_is_an_error_that_says_so() {
    local(async {
        let client = Client::new(Arc::default(), None);
        let get = Request::get("/").body(Body::empty()).unwrap();
        let error = client
            .send(
                &"https://127.0.0.1:1".parse().unwrap(),
                get,
                SendOptions::default(),
            )
            .await
            .unwrap_err();
        assert_eq!(error.kind, SendErrorKind::NoTls);
    });
}

#[test]
fn faults_of_files_name_the_file_and_what_it_should_hold() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new("lab").unwrap();
    let mut files = authority
        .write(&authority.issue(&["localhost"]).unwrap(), directory.path(), "nrf")
        .unwrap();
    let server = |files: &TlsFiles| Material::read(files)?.server(HTTP2);
    server(&files).unwrap();
    Material::read(&files).unwrap().client(HTTP2).unwrap();
    let text = |files: &TlsFiles| server(files).unwrap_err().to_string();
    let key = std::mem::take(&mut files.key);
    assert!(text(&files).contains("one is missing"), "{}", text(&files));
    files.key = files.certificate.clone();
    assert!(text(&files).contains("a private key"), "{}", text(&files));
    files.key = key.with_extension("gone");
    assert!(text(&files).contains("nrf.gone"), "{}", text(&files));
    files.key = key;
    files.authorities = None;
    files.require_client_certificate = Some(true);
    assert!(text(&files).contains("no authorities"), "{}", text(&files));
}

/// The server name that a new TLS handshake at `localhost` shows.
async fn meets(port: u16, tls: Option<ClientTls>) -> Result<String, String> {
    let client = Client::with_names(Arc::new(ClientConfig::default()), tls, None);
    ask(&client, port).await
}

async fn ask(client: &Client, port: u16) -> Result<String, String> {
    let origin = format!("https://localhost:{port}").parse().unwrap();
    let get = Request::get("/").body(Body::empty()).unwrap();
    let got = client.send(&origin, get, SendOptions::default()).await;
    let body = got.map_err(|error| error.to_string())?.into_body().into_bytes();
    Ok(String::from_utf8(body.to_vec()).unwrap())
}

#[test]
fn files_that_have_changed_are_for_handshakes_from_then_on() {
    local(async {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (old, new) = (Authority::new("old").unwrap(), Authority::new("new").unwrap());
        let named = |authority: &Authority, folder: &tempfile::TempDir| {
            let own = authority.issue(&["localhost"]).unwrap();
            authority.write(&own, folder.path(), "nf").unwrap()
        };
        let files = named(&old, &folder);
        let tls = Tls::open(Some(&files), Some(&files)).unwrap();
        let server = start_tls(tls.server().unwrap(), |request| {
            let names = request.peer.tls.clone().unwrap().names;
            async move { Response::ok(names.join(" ")) }
        });
        let port = server.addr.port();
        let lasting = Client::with_names(Arc::new(ClientConfig::default()), tls.client(), None);
        assert_eq!(ask(&lasting, port).await.unwrap(), "localhost");
        assert!(!tls.reread().unwrap(), "nothing has changed");

        // The files get other contents, of another authority.
        named(&new, &folder);
        assert!(tls.reread().unwrap());
        let of = |authority: &Authority| {
            let own = authority.issue(&["amf.example"]).unwrap();
            Some(
                authority
                    .material(Some(&own), false)
                    .client(tls::HTTP2)
                    .unwrap()
                    .into(),
            )
        };
        assert_eq!(meets(port, of(&new)).await.unwrap(), "amf.example");
        assert!(meets(port, of(&old)).await.is_err(), "the old authority is gone");
        assert_eq!(meets(port, tls.client()).await.unwrap(), "localhost");
        // An open connection continues: one handshake in all.
        assert_eq!(ask(&lasting, port).await.unwrap(), "localhost");
        assert_eq!(lasting.peers()[0].1.connected, 1);

        // A key that is not the certificate's: refused whole, and what was there stays.
        let stray = named(&new, &other);
        let before = std::fs::read(&files.key).unwrap();
        std::fs::copy(&stray.key, &files.key).unwrap();
        let fault = tls.reread().unwrap_err();
        assert!(fault.starts_with("tls: "), "{fault}");
        assert_eq!(meets(port, of(&new)).await.unwrap(), "amf.example");
        std::fs::write(&files.key, before).unwrap();
        assert!(!tls.reread().unwrap(), "all is as it was");
        // Both sides or none: the client's files would do, the server's do not.
        let gone = TlsFiles {
            key: files.key.with_extension("gone"),
            ..files.clone()
        };
        assert!(
            tls.reload(Some(&gone), Some(&stray))
                .unwrap_err()
                .contains("nf.gone")
        );
        assert!(tls.reload(None, Some(&files)).unwrap_err().contains("restart"));
        assert!(!tls.reread().unwrap());
    });
}

#[test]
fn files_are_looked_at_without_being_told() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (Authority::new("old").unwrap(), Authority::new("new").unwrap());
        let write = |authority: &Authority| {
            let own = authority.issue(&["localhost"]).unwrap();
            authority.write(&own, folder.path(), "nf").unwrap()
        };
        let files = TlsFiles {
            check_interval: settings::Period::from_millis(10),
            ..write(&old)
        };
        let tls = Tls::open(Some(&files), None).unwrap();
        let server = start_tls(tls.server().unwrap(), |_| async { Response::ok("here") });
        tokio::task::spawn_local(tls.follow());
        write(&new);
        let trusting = || Some(new.material(None, false).client(tls::HTTP2).unwrap().into());
        for _ in 0..1_000 {
            if meets(server.addr.port(), trusting()).await.is_ok() {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("the files were never read again");
    });
}
