//! TLS from the first byte, TLS agreed on in CER and CEA, and the peers that certificates admit.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use diameter::endpoint::{ClientOnly, Endpoint, SendOptions, To};
use diameter::proto::ResultCode;
use diameter::proto::known::{self, command};
use diameter::{NodeConfig, PeerConfig, Security, TlsConfig};
use tempfile::TempDir;
use testpeer::diameter::Peer;
use tls::{TlsFiles, Watched};

use crate::support::{Hss, S6A, config, listen, run, ulr, until};

const HSS: &str = "hss.example";
const MME: &str = "mme.example";

/// An authority and its certificates, as files.
pub(crate) struct Authority {
    folder: TempDir,
    issuer: tls::authority::Authority,
}

impl Authority {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            issuer: tls::authority::Authority::new("test").unwrap(),
        }
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn tls(&self, host: &str) -> TlsConfig {
        load(&self.files(host)).unwrap()
    }

    /// A certificate for this host; its peers have one of this authority too.
    fn files(&self, host: &str) -> TlsFiles {
        let identity = self.issuer.issue(&[host]).unwrap();
        self.issuer.write(&identity, self.folder.path(), host).unwrap()
    }
}

/// What is in the files now.
fn load(files: &TlsFiles) -> Result<TlsConfig, String> {
    TlsConfig::open(&Watched::default(), "test", files)
}

fn inband(host: &str) -> NodeConfig {
    let mut config = config(host, S6A);
    config.local.inband_tls = true;
    config
}

fn node(config: NodeConfig) -> Endpoint<ClientOnly> {
    Endpoint::new(config, ClientOnly, None, 2)
}

async fn exchange(server: &Endpoint<Hss>, client: &Endpoint<ClientOnly>) {
    client.available(HSS).await;
    for n in 0..50 {
        let answer = client
            .request(To::Routed, ulr(MME, &n.to_string()), SendOptions::default())
            .await;
        assert_eq!(answer.unwrap().require(known::RESULT_CODE).unwrap(), 2001);
    }
    for connection in server
        .node()
        .connections()
        .iter()
        .chain(&client.node().connections())
    {
        assert!(connection.peer().unwrap().tls);
    }
}

/// Has a client connect to the server, secured like this.
fn to_hss(client: &Endpoint<ClientOnly>, address: SocketAddr, security: Security) {
    let server = PeerConfig {
        security,
        ..PeerConfig::connect(HSS, [address])
    };
    client.node().add_peer(server).unwrap();
}

#[test]
fn tls_from_the_first_byte_with_certificates_on_both_sides() {
    run(async {
        let authority = Authority::new();
        let server = Endpoint::new(config(HSS, S6A), Hss::default(), None, 1);
        let address = listen(server.node(), Security::Tls(authority.tls(HSS)));
        let client = node(config(MME, S6A));
        let security = Security::Tls(authority.tls(MME));
        to_hss(&client, address, security);
        exchange(&server, &client).await;
        client.node().stop(Duration::ZERO, 0).await;
        until(|| server.node().connections().is_empty()).await;
    });
}

#[test]
fn tls_agreed_on_in_the_capabilities_exchange() {
    run(async {
        let authority = Authority::new();
        let server = Endpoint::new(inband(HSS), Hss::default(), None, 1);
        let address = listen(server.node(), Security::Inband(authority.tls(HSS)));
        let client = node(inband(MME));
        let security = Security::Inband(authority.tls(MME));
        to_hss(&client, address, security);
        exchange(&server, &client).await;
    });
}

#[test]
fn a_certificate_admits_the_node_that_it_names_and_no_other() {
    run(async {
        let authority = Authority::new();
        for in_band in [false, true] {
            let make = if in_band {
                inband
            } else {
                |host: &str| config(host, S6A)
            };
            let wrap = if in_band { Security::Inband } else { Security::Tls };
            let server = Endpoint::new(make(HSS), Hss::default(), None, 1);
            let address = listen(server.node(), wrap(authority.tls(HSS)));
            let client = node(make(MME));
            let security = wrap(authority.tls("other.example"));
            to_hss(&client, address, security);
            // Long enough for the handshake and a refusal; then no peer is connected.
            tokio::time::sleep(Duration::from_millis(200)).await;
            assert!(
                client
                    .node()
                    .connections()
                    .iter()
                    .all(|connection| !connection.is_open())
            );
            assert!(
                server
                    .node()
                    .connections()
                    .iter()
                    .all(|connection| !connection.is_open())
            );
        }
    });
}

#[test]
fn foreign_authorities_and_plain_text_stay_outside() {
    run(async {
        let (ours, theirs) = (Authority::new(), Authority::new());
        let server = Endpoint::new(config(HSS, S6A), Hss::default(), None, 1);
        let address = listen(server.node(), Security::Tls(ours.tls(HSS)));
        let client = node(config(MME, S6A));
        // Trusts the server, but shows a certificate of an authority the server does not know.
        let files = TlsFiles {
            authorities: ours.files("any").authorities,
            ..theirs.files(MME)
        };
        let security = Security::Tls(load(&files).unwrap());
        to_hss(&client, address, security);
        let mut plain = Peer::connect(address).await;
        plain.send_cer("plain.example", S6A).await;
        // The server's alert is not a Diameter message; the check is that the connection ends.
        until(|| server.node().connections().is_empty()).await;
        assert!(
            client
                .node()
                .connections()
                .iter()
                .all(|connection| !connection.is_open())
        );
    });
}

#[test]
fn a_peer_configured_for_tls_is_refused_without() {
    run(async {
        let authority = Authority::new();
        let server = Endpoint::new(config(HSS, S6A), Hss::default(), None, 1);
        let address = listen(server.node(), Security::None);
        let security = Security::Tls(authority.tls(HSS));
        server
            .node()
            .add_peer(PeerConfig {
                security,
                ..PeerConfig::await_from(MME)
            })
            .unwrap();
        let mut mme = Peer::connect(address).await;
        mme.send_cer(MME, S6A).await;
        mme.expect_result(command::CAPABILITIES_EXCHANGE, ResultCode::NO_COMMON_SECURITY)
            .await;
    });
}

#[test]
fn faults_of_files_name_the_file() {
    let authority = Authority::new();
    let files = authority.files(HSS);
    let fault = |files: &TlsFiles| load(files).unwrap_err();
    let absent = TlsFiles {
        key: authority.file("nowhere.key"),
        ..files.clone()
    };
    assert!(fault(&absent).contains("nowhere.key"));
    let swapped = TlsFiles {
        certificate: files.key.clone(),
        ..files.clone()
    };
    assert!(fault(&swapped).contains("PEM with certificates"));
    let mixed = TlsFiles {
        key: authority.files(MME).key,
        ..files.clone()
    };
    assert!(
        fault(&mixed).contains("do not belong together"),
        "{}",
        fault(&mixed)
    );
    let trusting = TlsFiles {
        authorities: None,
        ..files
    };
    assert!(fault(&trusting).contains("authorities"));
}

/// Whether a client with these keys gets as far as an answer to what it says.
async fn is_answered(address: SocketAddr, tls: TlsConfig) -> io::Result<()> {
    let attempt = move || {
        let name = HSS.try_into().map_err(io::Error::other)?;
        let mut session = rustls::ClientConnection::new(tls.client(), name).map_err(io::Error::other)?;
        let mut tcp = std::net::TcpStream::connect(address)?;
        let mut stream = rustls::Stream::new(&mut session, &mut tcp);
        let cer = diameter::proto::text::parse(
            "CER { Origin-Host = \"mme.example\" Origin-Realm = \"example\" Host-IP-Address = 127.0.0.1 \
             Vendor-Id = 1 Product-Name = \"x\" Auth-Application-Id = 16777251 }",
            diameter::proto::Dictionary::standard(),
        );
        stream.write_all(cer.unwrap().as_bytes())?;
        stream.read_exact(&mut [0; 20])
    };
    tokio::task::spawn_blocking(attempt).await.unwrap()
}

#[test]
fn files_that_change_count_for_the_next_handshake() {
    run(async {
        let (old, new) = (Authority::new(), Authority::new());
        let files = old.files(HSS);
        let ca = files.authorities.clone().unwrap();
        let watched = Watched::default();
        let mut now = Instant::now();
        let mut check = || {
            now += files.check_interval.duration();
            watched.poll(now);
        };
        let tls = TlsConfig::open(&watched, "hss", &files).unwrap();
        let server = Endpoint::new(config(HSS, S6A), Hss::default(), None, 1);
        let address = listen(server.node(), Security::Tls(tls));
        let client = node(config("first.example", S6A));
        let security = Security::Tls(old.tls("first.example"));
        to_hss(&client, address, security);
        exchange(&server, &client).await;
        is_answered(address, old.tls(MME)).await.unwrap();
        assert!(
            !watched.reread().unwrap(),
            "nothing has changed, whenever the files were written"
        );

        let replaced = new.files(HSS);
        std::fs::copy(&replaced.certificate, &files.certificate).unwrap();
        // The key is still the old one.
        assert!(watched.reread().unwrap_err().contains("do not belong together"));
        check();
        is_answered(address, old.tls(MME)).await.unwrap();
        std::fs::copy(&replaced.key, &files.key).unwrap();
        std::fs::copy(replaced.authorities.as_ref().unwrap(), &ca).unwrap();
        check();
        is_answered(address, new.tls(MME)).await.unwrap();
        // The client trusts the new authority, and sends a certificate of the old one: the server refuses it.
        let mixed = TlsFiles {
            authorities: replaced.authorities.clone(),
            ..old.files(MME)
        };
        assert!(is_answered(address, load(&mixed).unwrap()).await.is_err());
        // The client trusts the old authority and refuses the server.
        assert!(is_answered(address, old.tls(MME)).await.is_err());

        std::fs::write(&files.key, "no key").unwrap();
        check();
        is_answered(address, new.tls(MME)).await.unwrap();
        std::fs::remove_file(&ca).unwrap();
        check();
        is_answered(address, new.tls(MME)).await.unwrap();
        // The first connection has stayed open all the time.
        server.service().seen.borrow_mut().clear();
        exchange(&server, &client).await;
        assert_eq!(client.node().peers()[0].totals.connections, 1);
    });
}
