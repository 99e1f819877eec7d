//! The egress side: message processors reach a server through the front end, under one address.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::mpsc;

use ipfe::config::{Config, EgressSet};

use crate::support::{PATIENCE, config, each, listener, until};

/// The address that servers see.
const TSA: Ipv4Addr = Ipv4Addr::new(127, 0, 3, 9);

fn egress(servers: Vec<SocketAddr>, processors: &str) -> Config {
    Config {
        target_sets: Vec::new(),
        egress_sets: vec![EgressSet {
            name: "hss1".to_owned(),
            listen: "127.0.0.1:0".parse::<SocketAddr>().unwrap().into(),
            servers,
            from: Some(IpAddr::V4(TSA)),
            processors: vec![processors.parse().unwrap()],
            max_connections: 2,
        }],
        ..config(Vec::new(), 0)
    }
}

/// A server that records the addresses of its clients, and echoes what it receives.
fn server() -> (SocketAddr, mpsc::Receiver<IpAddr>) {
    let listener = listener();
    let address = listener.local_addr().unwrap();
    let (seen, clients) = mpsc::sync_channel(64);
    each(listener, move |mut stream| {
        let _ = seen.send(stream.peer_addr().unwrap().ip());
        let mut buffer = [0; 64];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            if stream.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
    });
    (address, clients)
}

fn connect(front: &ipfe::Running) -> TcpStream {
    let stream = TcpStream::connect(front.addresses()[0]).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn echo(stream: &mut TcpStream) {
    stream.write_all(b"CER").unwrap();
    let mut back = [0; 3];
    stream.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"CER");
}

fn is_closed(mut stream: TcpStream) -> bool {
    stream.read(&mut [0; 8]).unwrap_or_default() == 0
}

#[test]
fn a_server_sees_one_address_for_all_processors_and_bounds_are_kept() {
    let (address, clients) = server();
    let front = ipfe::start(egress(vec![address], "127.0.0.0/8")).unwrap();
    let mut processors = [connect(&front), connect(&front)];
    for processor in &mut processors {
        echo(processor);
        assert_eq!(clients.recv_timeout(PATIENCE).unwrap(), IpAddr::V4(TSA));
    }
    assert!(is_closed(connect(&front)), "a third has no room");
    let row = &front.backends()[0];
    assert_eq!((row.connections, row.state), (2, "available"));
    assert_eq!((row.bytes_in, row.bytes_out), (6, 6));
    drop(processors);
    until("there is room again", || front.backends()[0].connections == 0);
    front.stop().unwrap();
}

#[test]
fn a_server_without_its_first_address_is_reached_at_the_second_and_an_alarm_says_when_at_none() {
    let gone = listener().local_addr().unwrap();
    let (address, clients) = server();
    let front = ipfe::start(egress(vec![gone, address], "127.0.0.0/8")).unwrap();
    echo(&mut connect(&front));
    assert_eq!(clients.recv_timeout(PATIENCE).unwrap(), IpAddr::V4(TSA));
    let states: Vec<&str> = front.backends().iter().map(|row| row.state).collect();
    assert_eq!(states, ["unavailable", "available"]);
    drop(front);

    let front = ipfe::start(egress(vec![gone], "127.0.0.0/8")).unwrap();
    assert!(is_closed(connect(&front)));
    let alarms = front.handle().alarms();
    until("the alarm", || {
        alarms.active().iter().any(|alarm| alarm.number == 10515)
    });
    // Only a connection shows that the server is available again.
    let back = std::net::TcpListener::bind(gone).unwrap();
    each(back, |mut stream| {
        let mut buffer = [0; 3];
        let _ = stream.read_exact(&mut buffer);
        let _ = stream.write_all(&buffer);
    });
    echo(&mut connect(&front));
    until("no alarm", || alarms.active().is_empty());
}

#[test]
fn only_message_processors_are_let_through() {
    let (address, _clients) = server();
    let front = ipfe::start(egress(vec![address], "127.0.77.0/24")).unwrap();
    assert!(is_closed(connect(&front)), "127.0.0.1 is not one of them");
    until("it is counted", || {
        let text = telemetry::metrics::render(&[front.handle().registry().clone()]);
        text.contains("signalbox_ipfe_refused_connections_total{why=\"network\"} 1")
    });
}
