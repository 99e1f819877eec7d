//! Clients that say nothing, or too little, keep no others out.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;

use ipfe::Config;
use ipfe::config::{Backend, Handshakes, TargetSet};
use settings::Period;

use crate::support::{Echo, PATIENCE, config, connect, counts, each, listener, until};

fn refused(front: &ipfe::Running, why: &str) -> u64 {
    let text = telemetry::metrics::render(&[front.handle().registry().clone()]);
    let name = format!("signalbox_ipfe_refused_connections_total{{why=\"{why}\"}} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&*name));
    line.map_or(0, |value| value.trim().parse().unwrap())
}

/// Whether the front end has closed this connection.
fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let read = stream.read(&mut [0; 8]);
    stream.set_nonblocking(false).unwrap();
    match read {
        Ok(0) => true,
        Ok(_) => panic!("bytes came"),
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    }
}

#[test]
fn silent_connections_keep_no_newcomer_out() {
    let echo = Echo::start();
    let front = ipfe::start(config(vec![echo.backend("mp1")], 0)).unwrap();
    let served = connect(&front);
    let address = front.addresses()[0];
    let mut silent: Vec<TcpStream> = (0..205).map(|_| TcpStream::connect(address).unwrap()).collect();
    // Of the same address as the flood, and all at once.
    let newcomers: Vec<TcpStream> = (0..26).map(|_| connect(&front)).collect();
    until("the oldest silent ones made room", || {
        refused(&front, "dropped") >= 173
    });
    // A silent connection reaches no processor.
    assert_eq!(counts(&front), [1 + newcomers.len()]);
    assert!(
        silent
            .iter_mut()
            .filter_map(|one| is_closed(one).then_some(()))
            .count()
            >= 173
    );
    drop((served, newcomers, silent));
    until("all is given back", || counts(&front) == [0]);
    let after: Vec<TcpStream> = (0..40).map(|_| connect(&front)).collect();
    assert_eq!(counts(&front), [after.len()]);
}

#[test]
fn a_silent_client_is_closed_and_one_that_was_answered_may_be_silent() {
    let echo = Echo::start();
    let bounded = Config {
        handshakes: Handshakes {
            silence: Period::from_millis(50),
            ..Handshakes::default()
        },
        ..config(vec![echo.backend("mp1")], 0)
    };
    let front = ipfe::start(bounded).unwrap();
    let mut served = connect(&front);
    let mut silent = TcpStream::connect(front.addresses()[0]).unwrap();
    silent.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(silent.read(&mut [0; 8]).unwrap_or_default(), 0);
    until("it is counted", || refused(&front, "silent") == 1);
    served.write_all(b"later").unwrap();
    served.read_exact(&mut [0; 5]).unwrap();
}

#[test]
fn clients_that_a_processor_does_not_answer_are_bounded_by_address() {
    let (said, heard) = mpsc::channel();
    let mute = listener();
    let backend = Backend {
        name: "mp1".to_owned(),
        address: mute.local_addr().unwrap(),
        ..Backend::default()
    };
    each(mute, move |mut stream| {
        // Checks of the front end say nothing.
        let mut byte = [0; 1];
        while let Ok(1) = stream.read(&mut byte) {
            let _ = said.send(());
        }
    });
    let bounded = Config {
        handshakes: Handshakes {
            per_address: 3,
            ..Handshakes::default()
        },
        ..config(vec![backend], 0)
    };
    let front = ipfe::start(bounded).unwrap();
    let address = front.addresses()[0];
    let slow = || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"\x01").unwrap();
        stream
    };
    let held: Vec<TcpStream> = (0..3).map(|_| slow()).collect();
    for _ in &held {
        heard.recv_timeout(PATIENCE).unwrap();
    }
    let mut fourth = slow();
    fourth.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(fourth.read(&mut [0; 8]).unwrap_or_default(), 0);
    assert_eq!(refused(&front, "handshakes"), 1);
    drop(held);
    until("they are given back", || counts(&front) == [0]);
    let _again = slow();
    heard.recv_timeout(PATIENCE).unwrap();
}

#[test]
fn connections_of_one_address_are_bounded_where_the_set_says_so() {
    let echo = Echo::start();
    let base = config(vec![echo.backend("mp1")], 0);
    let bounded = Config {
        target_sets: vec![TargetSet {
            max_connections_per_address: 2,
            ..base.target_sets[0].clone()
        }],
        ..base
    };
    let front = ipfe::start(bounded).unwrap();
    let held = [connect(&front), connect(&front)];
    let mut third = TcpStream::connect(front.addresses()[0]).unwrap();
    third.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(third.read(&mut [0; 8]).unwrap_or_default(), 0);
    assert_eq!(refused(&front, "address"), 1);
    drop(held);
    until("they are given back", || counts(&front) == [0]);
    connect(&front);
}

#[test]
fn a_processor_learns_the_address_of_the_client() {
    let (said, heard) = mpsc::channel();
    let processor = listener();
    let backend = Backend {
        name: "mp1".to_owned(),
        address: processor.local_addr().unwrap(),
        proxy_protocol: true,
        ..Backend::default()
    };
    each(processor, move |mut stream| {
        let mut all = [0; 33];
        if stream.read_exact(&mut all).is_ok() {
            let _ = stream.write_all(&all[28..]);
            let _ = said.send(all);
        }
    });
    let front = ipfe::start(config(vec![backend], 0)).unwrap();
    let client = connect(&front);
    let all = heard.recv_timeout(PATIENCE).unwrap();
    assert_eq!(all[..16], *b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c");
    assert_eq!(all[16..24], [127, 0, 0, 1, 127, 0, 0, 1]);
    assert_eq!(all[24..26], client.local_addr().unwrap().port().to_be_bytes());
    assert_eq!(all[26..28], client.peer_addr().unwrap().port().to_be_bytes());
    assert_eq!(&all[28..], b"hello");
}
