//! TLS and mutual TLS, our client and server against each other.

use std::sync::Arc;

use http::Request;
use sbi::client::{Client, ClientConfig, SendErrorKind, SendOptions};
use sbi::tls::lab::Authority;
use sbi::{Body, Response};

use crate::support::{local, start_tls};

const NF_ID: &str = "urn:uuid:4947a69a-f61b-4bc1-b9da-47c9c5d14b64";

#[test]
fn mutual_tls_tells_who_is_there() {
    local(async {
        let authority = Authority::new("lab").unwrap();
        let server = authority.issue(&["localhost", "127.0.0.1"]).unwrap();
        let consumer = authority.issue(&["amf.example", NF_ID]).unwrap();
        let server = start_tls(
            authority.material(Some(&server), true).server().unwrap(),
            |request| {
                let tls = request.peer.tls.clone().unwrap();
                async move { Response::new(Body::from(format!("{} {}", tls.version, tls.names.join(" ")))) }
            },
        );
        let origin = format!("https://localhost:{}", server.addr.port())
            .parse()
            .unwrap();
        let get = || Request::get("/").body(Body::empty()).unwrap();

        let tls = authority.material(Some(&consumer), false).client().unwrap();
        let client = Client::new(Arc::new(ClientConfig::default()), Some(tls));
        let response = client.send(&origin, get(), SendOptions::default()).await.unwrap();
        assert_eq!(
            response.into_body().into_bytes(),
            format!("TLSv1.3 amf.example {NF_ID}")
        );

        // Without a certificate, or with one of a stranger, nobody comes in.
        let nameless = authority.material(None, false).client().unwrap();
        let stranger = Authority::new("stranger").unwrap();
        let forged = stranger.issue(&["amf.example"]).unwrap();
        let trusting = authority.material(Some(&forged), false).client().unwrap();
        for tls in [nameless, trusting] {
            let client = Client::new(Arc::new(ClientConfig::default()), Some(tls));
            assert!(client.send(&origin, get(), SendOptions::default()).await.is_err());
        }
        // Nor does a client talk to a server it does not trust, or to another name.
        let tls = stranger.material(None, false).client().unwrap();
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
    sbi::tls::server(&files).unwrap();
    sbi::tls::client(&files).unwrap();
    let text = |files: &sbi::tls::TlsFiles| sbi::tls::server(files).unwrap_err().to_string();
    let key = std::mem::take(&mut files.key);
    assert!(text(&files).contains("one is missing"), "{}", text(&files));
    files.key = files.certificate.clone();
    assert!(text(&files).contains("a private key"), "{}", text(&files));
    files.key = key.with_extension("gone");
    assert!(text(&files).contains("nrf.gone"), "{}", text(&files));
    files.key = key;
    files.authorities = None;
    files.require_client_certificate = true;
    assert!(text(&files).contains("no authorities"), "{}", text(&files));
}
