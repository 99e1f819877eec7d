//! The cost of the interface alone: an origin that answers 4.8 KB (`/` with any body) or 20 KB (`/large`),
//! and a relay before it that does nothing but relay. Drive either with h2load:
//!
//! ```sh
//! cargo run --release -p sbi --example relay -- 127.0.0.1:7001 127.0.0.1:7002 &
//! h2load -n 200000 -c 8 -m 32 -d body.json http://127.0.0.1:7002/   # the relay; 7001 is the origin
//! ```
//!
//! Both run on threads of their own, `origin-0` and `relay-0`, so `/proc/PID/task/*/stat` tells their CPU time.

use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use sbi::client::{Client, ClientConfig, Origin, SendOptions};
use sbi::problem::{Cause, Problem};
use sbi::{Body, Request, Response, Service, server};
use worker::{Pinning, Shutdown};

struct Fixed {
    small: Bytes,
    large: Bytes,
}

impl Service for Fixed {
    fn call(self: Rc<Self>, request: Request) -> impl Future<Output = Response> + 'static {
        let body = if request.uri().path() == "/large" {
            &self.large
        } else {
            &self.small
        };
        std::future::ready(Response::new(Body::from(body.clone())))
    }
}

struct Relay {
    client: Client,
    origin: Origin,
}

impl Service for Relay {
    async fn call(self: Rc<Self>, request: Request) -> Response {
        let onward = http::Request::from_parts(request.head, request.body);
        match self
            .client
            .send(&self.origin, onward, SendOptions::default())
            .await
        {
            Ok(response) => response,
            Err(error) => Problem::new(Cause::TargetNfNotReachable)
                .detail(error.to_string())
                .into_response(),
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut addresses = std::env::args().skip(1).map(|text| text.parse::<SocketAddr>());
    let (Some(origin), Some(relay)) = (addresses.next(), addresses.next()) else {
        return Err("expected two addresses: of the origin and of the relay".into());
    };
    let (origin, relay) = (origin?, relay?);
    let shutdown = Shutdown::new();
    let serving = worker::spawn(
        1,
        "origin",
        &Pinning::Cores(vec![1]),
        &shutdown,
        move |context| async move {
            let service = Fixed {
                small: Bytes::from(vec![b'a'; 4_800]),
                large: Bytes::from(vec![b'a'; 20_000]),
            };
            let listener = server::bind(origin)?;
            server::serve(
                listener,
                Rc::new(service),
                Arc::default(),
                None,
                Arc::default(),
                context.shutdown,
            )
            .await
        },
    )?;
    let relaying = worker::spawn(
        1,
        "relay",
        &Pinning::Cores(vec![0]),
        &shutdown,
        move |context| async move {
            let client = Client::new(Arc::new(ClientConfig::default()), None);
            let origin = format!("http://{origin}")
                .parse()
                .map_err(std::io::Error::other)?;
            let service = Relay { client, origin };
            let listener = server::bind(relay)?;
            server::serve(
                listener,
                Rc::new(service),
                Arc::default(),
                None,
                Arc::default(),
                context.shutdown,
            )
            .await
        },
    )?;
    serving.join()?;
    relaying.join()?;
    Ok(())
}
