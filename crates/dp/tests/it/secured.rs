//! TLS with subscriber database servers and with routers, and access tokens for the servers.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use dp::Config;
use dp::config::Sds;
use dp_proto::{Answer, Frame, Kind, Outcome};
use http::Method;
use rustls::{ClientConnection, StreamOwned};
use settings::{Faults, Listen, Validate as _};
use testpeer::sbi::{request, send};
use tls::authority::Authority;
use tls::{Material, TlsFiles};

use crate::support::{PATIENCE, Router, bundled, config, imported, metric, until};

/// A text with one number.
const TEXT: &str = "#signalbox-numbers,1\nimsi,001010000000001,hss1\n#end,1\n";

/// Settings of a server that begins with the records of a text.
pub(crate) fn with_data(folder: &Path, text: &str) -> sds::Config {
    let local = "127.0.0.1:0".parse().unwrap();
    let mut server = sds::Config {
        listen: Listen(vec![local]),
        admin: local,
        workers: 1,
        directory: folder.join("sds"),
        ..sds::Config::default()
    };
    server.store.embedded.directory = folder.join("journal");
    std::fs::create_dir(&server.directory).unwrap();
    // Beside a busy compiler requests wait for as long as they do under overload.
    server.overload.enabled = false;
    std::fs::write(server.directory.join("load.csv"), text).unwrap();
    server
}

/// Settings of a processor that follows a server.
pub(crate) fn following(server: &sds::Running, scheme: &str, folder: &Path) -> Config {
    Config {
        sds: Some(Sds {
            addresses: vec![format!("{scheme}://{}", server.addresses()[0])],
            ..Sds::default()
        }),
        directory: Some(folder.join("dp")),
        ..config()
    }
}

#[test]
fn a_server_with_mutual_tls_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("operator").unwrap();
    let files = |name: &str| {
        let identity = authority.issue(&[name, "127.0.0.1"]).unwrap();
        authority.write(&identity, folder.path(), name).unwrap()
    };
    let server = sds::start(sds::Config {
        tls: Some(files("sds.example")),
        ..with_data(folder.path(), TEXT)
    })
    .unwrap();
    let following = following(&server, "https", folder.path());
    let mut faults = Faults::default();
    following.validate(&mut faults);
    let faults = format!("{faults:?}");
    assert!(faults.contains("clientTls"), "{faults}");
    let processor = dp::start(Config {
        client_tls: Some(files("dp.example")),
        ..following
    })
    .unwrap();
    until("the data", || metric(&processor, "signalbox_dp_numbers") == 1.0);
    let mut router = Router::new(processor.addresses()[0]);
    assert_eq!(router.imsi("001010000000001"), "exact hss1");
    processor.stop().unwrap();
    server.stop().unwrap();
}

/// Whether a router with these files gets an answer.
fn is_answered(at: SocketAddr, files: &TlsFiles) -> bool {
    let client = Material::read(files).unwrap().client(&[]).unwrap();
    let session = ClientConnection::new(client, at.ip().into()).unwrap();
    let socket = TcpStream::connect(at).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut stream = StreamOwned::new(session, socket);
    let (mut input, mut chunk) = (Vec::new(), [0; 1_024]);
    if stream
        .write_all(&bundled(&[(Kind::Imsi, "", "001010000000001")]))
        .is_err()
    {
        return false;
    }
    loop {
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => return false,
            Ok(read) => input.extend_from_slice(&chunk[..read]),
        }
        if let Some((frame, _)) = Frame::<Answer<'_>>::split(&input).unwrap() {
            let mut answers = Vec::new();
            frame
                .each(|one| answers.push((one.outcome, one.destination.to_vec())))
                .unwrap();
            assert_eq!(answers, [(Outcome::Exact, b"hss1".to_vec())]);
            return true;
        }
    }
}

#[test]
fn routers_with_a_certificate_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let [operator, other] = ["operator", "other"].map(|name| Authority::new(name).unwrap());
    let files = |authority: &Authority, name: &str| {
        let folder = folder.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        let identity = authority.issue(&[name, "127.0.0.1"]).unwrap();
        authority.write(&identity, &folder, "node").unwrap()
    };
    imported(folder.path(), "imsi,001010000000001,hss1\n");
    let processor = dp::start(Config {
        numbers: Some(folder.path().join("s.num")),
        tls: Some(TlsFiles {
            require_client_certificate: Some(true),
            ..files(&operator, "dp.example")
        }),
        ..config()
    })
    .unwrap();
    let at = processor.addresses()[0];
    let router = files(&operator, "dsr.example");
    assert!(is_answered(at, &router));
    let refused = |count: f64| {
        until("it is counted", || {
            metric(
                &processor,
                "signalbox_dp_connections_total{outcome=\"handshake\"}",
            ) == count
        });
    };
    let without = TlsFiles {
        certificate: Default::default(),
        key: Default::default(),
        ..router.clone()
    };
    assert!(!is_answered(at, &without));
    refused(1.0);
    let stranger = TlsFiles {
        authorities: router.authorities.clone(),
        ..files(&other, "stranger.example")
    };
    assert!(!is_answered(at, &stranger));
    refused(2.0);
    // In the clear.
    let mut plain = Router::new(at);
    plain.send(&[(Kind::Imsi, "", "001010000000001")]);
    // What comes back is an alert of TLS, or nothing.
    let _ = plain.stream.read_to_end(&mut Vec::new());
    refused(3.0);
    assert!(is_answered(at, &router));
    processor.stop().unwrap();
}

#[test]
fn a_server_that_requires_tokens_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let local: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let mut registry = nrf::Config {
        listen: Listen(vec![local]),
        admin: local,
        workers: 1,
        ..nrf::Config::default()
    };
    registry.store.embedded.directory = folder.path().join("nrf");
    let registry = nrf::start(registry).unwrap();
    let root = format!("http://{}", registry.addresses()[0]);
    let mut server = with_data(folder.path(), TEXT);
    server.nrfs = vec![root.clone()];
    server.tokens.required = true;
    server.tokens.key_set_uris = vec![format!("{root}/oauth2/jwks")];
    let server = sds::start(server).unwrap();
    let without = dp::start(following(&server, "http", folder.path())).unwrap();
    until("a refusal", || {
        metric(&without, "signalbox_dp_polls_total{outcome=\"failed\"}") > 0.0
    });
    assert_eq!(metric(&without, "signalbox_dp_numbers"), 0.0);
    without.stop().unwrap();
    let processor = dp::start(Config {
        nrfs: vec![root.clone()],
        ..following(&server, "http", folder.path())
    })
    .unwrap();
    until("the data", || metric(&processor, "signalbox_dp_numbers") == 1.0);
    let mut router = Router::new(processor.addresses()[0]);
    assert_eq!(router.imsi("001010000000001"), "exact hss1");
    processor.stop().unwrap();
    for (nf_type, scope, status) in [
        ("AF", "sds-provisioning", 200),
        ("SMF", "sds-provisioning", 400),
        ("DP", "sds-provisioning", 400),
        ("DP", "sds-journal", 200),
        ("SDS", "sds-journal", 200),
        ("AF", "sds-journal", 400),
    ] {
        assert_eq!(granted(&root, nf_type, scope), status, "{nf_type} {scope}");
    }
    server.stop().unwrap();
    registry.stop().unwrap();
}

/// The status of the answer of an NRF to a function of a type that asks for a token of subscriber database servers.
fn granted(root: &str, nf_type: &str, scope: &str) -> u16 {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let id = format!("{:08x}-0000-4000-8000-000000000000", rand::random::<u32>());
    let profile = format!(
        r#"{{"nfInstanceId": "{id}", "nfType": "{nf_type}", "nfStatus": "REGISTERED", "ipv4Addresses": ["127.0.0.1"]}}"#
    );
    let form = format!(
        "grant_type=client_credentials&nfInstanceId={id}&nfType={nf_type}&targetNfType=SDS&scope={scope}"
    );
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let client = testpeer::sbi::client(nf_type);
        let origin = root.parse().unwrap();
        let path = format!("/nnrf-nfm/v1/nf-instances/{id}");
        let put = request(Method::PUT, &path, "application/json", profile);
        assert_eq!(send(&client, &origin, put).await.unwrap().status, 201);
        let form = request(
            Method::POST,
            "/oauth2/token",
            "application/x-www-form-urlencoded",
            form,
        );
        send(&client, &origin, form).await.unwrap().status.as_u16()
    })
}
