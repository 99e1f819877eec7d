//! Encrypted connections to a database whose user must show a certificate.

use std::time::Duration;

use settings::Period;
use store::{Batch, Error, Store, TableDef};
use tls::authority::Authority;

use crate::databases::Servers;
use crate::session::{Session, id};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_that_must_show_a_certificate_is_served_with_one_alone() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("database").unwrap();
    for name in ["server", "client"] {
        let identity = authority.issue(&["127.0.0.1"]).unwrap();
        authority.write(&identity, folder.path(), name).unwrap();
    }
    let Some(servers) = Servers::with_tls(folder.path()) else {
        return;
    };
    servers.administer(1, "ALTER USER 'signalbox'@'127.0.0.1' REQUIRE X509");
    let file = |name: &str| Some(folder.path().join(name));
    let mut config = servers.config("site-1", &[1]);
    config.mariadb.retry_for = Period::from_millis(200);
    let tables = [TableDef::of::<Session>()];
    for authority in [None, file("authority.crt")] {
        config.mariadb.certificate_authority = authority;
        let refused = Store::open(&config, &tables).await.unwrap_err();
        let Error::Open(reason) = &refused else {
            panic!("{refused}")
        };
        assert!(reason.contains("Access denied"), "{reason}");
    }
    config.mariadb.client_certificate = file("client.crt");
    config.mariadb.client_key = file("client.key");
    let store = Store::open(&config, &tables).await.unwrap();
    let sessions = store.table::<Session>().unwrap();
    let mut batch = Batch::default();
    batch.insert(&sessions, &Session::new(1, "encrypted"));
    tokio::time::timeout(Duration::from_secs(60), store.commit(batch))
        .await
        .unwrap()
        .unwrap();
    assert!(sessions.get(&id(1)).await.unwrap().is_some());
    drop(sessions);
    store.close().await;

    // An authority that has not signed the certificate of the server.
    let stranger = Authority::new("stranger").unwrap();
    std::fs::write(folder.path().join("stranger.crt"), stranger.pem()).unwrap();
    config.mariadb.certificate_authority = file("stranger.crt");
    assert!(Store::open(&config, &tables).await.is_err());
}
