//! Encrypted connections to a real Cassandra: whom the store trusts, and whom the node lets in.

use std::path::Path;
use std::process::{Command, Stdio};

use store::{Batch, CassandraConfig, Config, Error, Store, TableDef};
use tls::authority::Authority;

use crate::clusters::Cluster;
use crate::session::{Session, id};

/// Runs a program that makes a keystore; `None` where it is missing.
fn make(folder: &Path, program: &str, arguments: &str) -> Option<()> {
    let mut command = Command::new(program);
    command.args(arguments.split(' ')).current_dir(folder);
    let output = command.stdin(Stdio::null()).output().ok()?;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments}: {said}");
    Some(())
}

/// The certificate of a node for this address, as Java reads it.
fn certify(authority: &Authority, folder: &Path, address: &str) -> Option<()> {
    let identity = authority.issue(&[address]).unwrap();
    authority.write(&identity, folder, "server").unwrap();
    let export = "pkcs12 -export -in server.crt -inkey server.key -out server.p12 -passout pass:changeit";
    make(folder, "openssl", export)
}

/// Writes a record and reads it.
async fn serves(config: &Config, number: u64) {
    let store = Store::open(config, &[TableDef::of::<Session>()]).await.unwrap();
    let sessions = store.table::<Session>().unwrap();
    let mut batch = Batch::default();
    batch.insert(&sessions, &Session::new(number, "encrypted"));
    store.commit(batch).await.unwrap();
    let found = sessions.get(&id(number)).await.unwrap();
    assert_eq!(found.unwrap().subscriber, "encrypted");
    drop(sessions);
    store.close().await;
}

/// Why the store does not open.
async fn refusal(config: &Config) -> String {
    match Store::open(config, &[TableDef::of::<Session>()]).await {
        Err(Error::Open(reason)) => reason,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("the store is open"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_are_trusted_by_authority_and_address_and_clients_by_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let (authority, clients) = (
        Authority::new("nodes").unwrap(),
        Authority::new("clients").unwrap(),
    );
    let identity = clients.issue(&["127.0.0.1"]).unwrap();
    clients.write(&identity, folder.path(), "client").unwrap();
    std::fs::write(folder.path().join("clients.crt"), clients.pem()).unwrap();
    if certify(&authority, folder.path(), "127.0.0.1").is_none() {
        return testpeer::skip::missing("openssl");
    }
    let Some(cluster) = Cluster::begin(1, 1, false, Some(folder.path().to_owned())) else {
        return;
    };
    let file = |name: &str| Some(folder.path().join(name));
    let mut config = cluster.config("site-1", 1);
    config.cassandra.certificate_authority = file("authority.crt");
    serves(&config, 1).await;

    // Without encryption the node does not answer.
    let plain = Config {
        cassandra: CassandraConfig {
            certificate_authority: None,
            ..config.cassandra.clone()
        },
        ..config.clone()
    };
    let reason = refusal(&plain).await;
    eprintln!("without encryption: {reason}");

    // An authority that has not signed the certificate of the node.
    let mut other = config.clone();
    other.cassandra.certificate_authority = file("clients.crt");
    let reason = refusal(&other).await;
    eprintln!("of another authority: {reason}");
    assert!(reason.contains("UnknownIssuer"), "{reason}");

    // The same authority, a certificate for another address.
    certify(&authority, folder.path(), "127.0.0.9").unwrap();
    assert!(cluster.run("restart", Some(1)));
    let reason = refusal(&config).await;
    eprintln!("of another address: {reason}");
    assert!(
        reason.contains("not valid for name") && reason.contains("127.0.0.9"),
        "{reason}"
    );

    // A node that asks clients for a certificate.
    certify(&authority, folder.path(), "127.0.0.1").unwrap();
    let import = "-importcert -noprompt -alias ca -file clients.crt -keystore clients.p12 -storetype PKCS12 -storepass changeit";
    make(folder.path(), "keytool", import).unwrap();
    assert!(cluster.run("restart", Some(1)));
    let reason = refusal(&config).await;
    eprintln!("without a certificate: {reason}");
    config.cassandra.client_certificate = file("client.crt");
    config.cassandra.client_key = file("client.key");
    serves(&config, 2).await;
}
