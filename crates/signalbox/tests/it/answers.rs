//! What the answers of all functions have, whatever they say: who refuses, when to try again, how busy the function is.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use http::{HeaderMap, Request, StatusCode};
use serde_json::json;

use crate::process::{Process, until};

/// An answer of a service-based interface.
fn get(address: SocketAddr, path: &str) -> (StatusCode, HeaderMap) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        let request = Request::get(format!("http://{address}{path}")).body(()).unwrap();
        let (answer, _) = sender.send_request(request, true).unwrap();
        let answer = answer.await.unwrap();
        (answer.status(), answer.headers().clone())
    })
}

fn put(admin: SocketAddr, path: &str, body: &str) {
    let mut stream = TcpStream::connect(admin).unwrap();
    let length = body.len();
    write!(
        stream,
        "PUT {path} HTTP/1.0\r\nHost: {admin}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(
        answer
            .split(' ')
            .nth(1)
            .is_some_and(|status| status.starts_with('2')),
        "{answer}"
    );
}

#[test]
fn answers_name_the_function_its_load_and_when_to_try_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = "127.0.0.1:0";
    let store = |name: &str| json!({"embedded": {"directory": folder.path().join(name)}});
    let convey = json!({"convey": {"lci": true, "lciInterval": "100ms"}});
    let config = json!({
        "nrf": {"listen": [at], "admin": at, "store": store("nrf"), "overload": convey},
        "scp": {"listen": [at], "admin": at, "directory": folder.path().join("scp"), "nrf": {"roots": []},
            "protection": {"conveyOwnLci": true}},
        "bsf": {"listen": [at], "admin": at, "store": store("bsf"), "overload": convey, "rx": {"listen": [at]}},
        "pcf": {"listen": [at], "admin": at, "store": store("pcf"), "overload": convey, "diameter": {"listen": [at]}},
    });
    let file = folder.path().join("config.yaml");
    std::fs::write(&file, settings::to_yaml(&config)).unwrap();
    let args = [
        "run",
        "nrf",
        "scp",
        "bsf",
        "pcf",
        "--config",
        file.to_str().unwrap(),
    ];
    let process = Process::start(&args, folder.path());
    for function in ["nrf", "scp", "bsf", "pcf"] {
        let address = process.address(&format!("{function} SBI"));
        until(&format!("the load of the {function}"), || {
            get(address, "/nothing/v1/here").1.contains_key("3gpp-sbi-lci")
        });
        let (status, headers) = get(address, "/nothing/v1/here");
        assert!(status.is_client_error(), "{function}: {status}");
        let server = headers.get("server").and_then(|value| value.to_str().ok());
        let begins = format!("{}-", function.to_uppercase());
        assert!(
            server.is_some_and(|server| server.starts_with(&begins)),
            "{function}: {headers:?}"
        );
        let load = headers.get("3gpp-sbi-lci").unwrap().to_str().unwrap();
        assert!(load.contains("Load-Metric"), "{function}: {load}");
    }
    for function in ["bsf", "pcf"] {
        put(
            process.address(&format!("{function} admin")),
            &format!("/{function}/state"),
            "\"COMPLETE\"",
        );
        let (status, headers) = get(process.address(&format!("{function} SBI")), "/nothing/v1/here");
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{function}");
        assert!(
            headers.contains_key("retry-after") && headers.contains_key("server"),
            "{function}: {headers:?}"
        );
    }
}
