//! Host and `:authority` name the same server, or the request is not served.

use sbi::client::{ClientConfig, SendOptions};
use sbi::server::ServerConfig;
use sbi::{Body, Request, Response};
use testpeer::http2::{Peer, frame};

use crate::support::{client, local, start};

async fn hello(_: Request) -> Response {
    Response::ok("hello")
}

#[test]
fn a_host_that_is_not_the_authority_is_answered_400() {
    local(async {
        let server = start(ServerConfig::default(), hello);
        let mut peer = Peer::client(server.addr).await.unwrap();
        let cases: [(&[&str], u16); 4] = [
            (&["test.example"], 200),
            (&["other.example"], 400),
            (&["test.example", "test.example"], 400),
            (&["TEST.example:80"], 200),
        ];
        for (i, (hosts, status)) in cases.into_iter().enumerate() {
            let stream = 2 * i as u32 + 1;
            let mut fields = frame::request_fields("GET", "/");
            fields.extend(hosts.iter().map(|host| ("host", *host)));
            peer.send(&frame::headers(stream, &fields, true)).await.unwrap();
            assert_eq!(peer.answer(stream).await.unwrap().0, status, "{hosts:?}");
        }
        assert_eq!(server.stats.snapshot().requests_ambiguous, 2);
    });
}

#[test]
fn a_host_is_not_sent_on() {
    local(async {
        let origin = start(ServerConfig::default(), |request| async move {
            let hosts = request.headers().get_all(sbi::name::HOST).count();
            Response::ok(hosts.to_string())
        });
        let client = client(ClientConfig::default());
        let request = http::Request::builder()
            .uri("http://scp.example/")
            .header("host", "scp.example")
            .body(Body::empty())
            .unwrap();
        let answer = client
            .send(&origin.origin(), request, SendOptions::default())
            .await
            .unwrap();
        assert_eq!(
            (answer.status().as_u16(), answer.body().to_bytes()),
            (200, "0".into())
        );
    });
}
