//! Pages of an admin endpoint.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A page as the admin endpoint answers it over a socket: status and body. It needs a `LocalSet`.
///
/// # Panics
/// When no answer comes.
pub async fn page(routes: axum::Router, path: &str) -> (u16, String) {
    request(routes, "GET", path).await
}

/// As [`page`], with another method.
///
/// # Panics
/// When no answer comes.
pub async fn request(routes: axum::Router, method: &str, path: &str) -> (u16, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::task::spawn_local(async move { axum::serve(listener, routes).await });
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("{method} {path} HTTP/1.0\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    serving.abort();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}
