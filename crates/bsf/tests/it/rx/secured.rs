//! Rx over TLS, whose files change.

use super::*;

/// TLS by what is in the files now.
fn by_files(files: &tls::TlsFiles) -> Security {
    let config = diameter::TlsConfig::open(&tls::Watched::default(), "test", files);
    Security::Tls(config.unwrap())
}

#[test]
fn over_tls() {
    local(async {
        let files = tempfile::tempdir().unwrap();
        let authority = tls::authority::Authority::new("lab").unwrap();
        let write = |name: &str, text: &str| {
            let path = files.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let trust = write("ca.pem", authority.pem());
        let identity = |host: &str| {
            let issued = authority.issue(&[host]).unwrap();
            let certificate = write(&format!("{host}.pem"), &issued.certificate);
            (certificate, write(&format!("{host}.key"), &issued.key))
        };
        let own = identity(BSF);
        let bsf = start(|config| {
            config.rx.tls = Some(tls::TlsFiles {
                certificate: own.0,
                key: own.1,
                authorities: Some(trust.clone()),
                require_client_certificate: Some(true),
                ..Default::default()
            });
        });
        let address = bsf.running.as_ref().unwrap().diameter_addresses()[0];
        let (certificate, key) = identity(AF);
        let secured = tls::TlsFiles {
            certificate,
            key,
            authorities: Some(trust),
            ..Default::default()
        };
        let (af, _) = peer(AF);
        af.node()
            .add_peer(PeerConfig {
                security: by_files(&secured),
                ..PeerConfig::connect(BSF, [address])
            })
            .unwrap();
        af.available(BSF).await;
        assert_eq!(result(&ask(&af, BSF, aar("af;1;1", [10, 0, 0, 9])).await), 3002);
        // A connection in the clear is refused: it ends.
        let mut clear = tokio::net::TcpStream::connect(address).await.unwrap();
        let cer = begun(command::CAPABILITIES_EXCHANGE, "x", "clear.example")
            .finish()
            .unwrap();
        clear.write_all(cer.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(20), clear.read_to_end(&mut rest)).await;
        assert!(ended.is_ok(), "still open");
        // Another authority, in the same files: new connections meet it, open ones stay.
        let running = bsf.running.as_ref().unwrap();
        assert!(!running.reread().unwrap());
        let other = tls::authority::Authority::new("another").unwrap();
        write("ca.pem", other.pem());
        let issued = other.issue(&[BSF]).unwrap();
        write(&format!("{BSF}.pem"), &issued.certificate);
        assert!(running.reread().is_err(), "the key is not the certificate's");
        write(&format!("{BSF}.key"), &issued.key);
        assert!(running.reread().unwrap());
        let issued = other.issue(&["later.example"]).unwrap();
        let secured = tls::TlsFiles {
            certificate: write("later.pem", &issued.certificate),
            key: write("later.key", &issued.key),
            ..secured
        };
        let (later, _) = peer("later.example");
        later
            .node()
            .add_peer(PeerConfig {
                security: by_files(&secured),
                ..PeerConfig::connect(BSF, [address])
            })
            .unwrap();
        later.available(BSF).await;
        assert_eq!(result(&ask(&af, BSF, aar("af;1;2", [10, 0, 0, 9])).await), 3002);
    });
}
