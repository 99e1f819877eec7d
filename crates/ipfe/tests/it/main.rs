//! The front end over real sockets: connections are distributed, kept out of congested processors, and relayed without
//! loss.

mod addresses;
mod egress;
mod floods;
mod pair;
mod reload;
mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;

use ipfe::config::{Backend, Config};
use settings::Period;

use support::{Echo, PATIENCE, config, connect, counts, each, listener, until};

#[test]
fn connections_are_spread_and_kept_out_of_a_congested_processor() {
    let (one, two) = (Echo::start(), Echo::start());
    let front = ipfe::start(config(vec![one.backend("mp1"), two.backend("mp2")], 0)).unwrap();
    let mut held: Vec<TcpStream> = (0..10).map(|_| connect(&front)).collect();
    assert_eq!(counts(&front), [5, 5]);
    one.status.store(503, Ordering::Relaxed);
    until("stasis is seen", || front.backends()[0].state == "stasis");
    held.extend((0..4).map(|_| connect(&front)));
    assert_eq!(counts(&front), [5, 9], "it keeps what it has");
    until("the alarm is raised", || {
        front
            .handle()
            .alarms()
            .active()
            .iter()
            .any(|alarm| alarm.number == 5005)
    });
    // Established connections continue.
    held[0].write_all(b"still").unwrap();
    let mut back = [0; 5];
    held[0].read_exact(&mut back).unwrap();
    one.status.store(200, Ordering::Relaxed);
    until("it recovers", || front.backends()[0].state == "available");
    held.extend((0..4).map(|_| connect(&front)));
    assert_eq!(counts(&front), [9, 9]);
    until("the alarm is cleared", || {
        front.handle().alarms().active().is_empty()
    });
    held.clear();
    until("ended connections are forgotten", || counts(&front) == [0, 0]);
    front.stop().unwrap();
}

#[test]
fn bytes_arrive_whole_in_both_directions_and_ends_are_passed_on() {
    let echo = Echo::start();
    let front = ipfe::start(config(vec![echo.backend("mp1")], 0)).unwrap();
    let stream = TcpStream::connect(front.addresses()[0]).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let sent: Vec<u8> = (0..8_000_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let mut writer = stream.try_clone().unwrap();
    let (to_send, mut got) = (sent.clone(), Vec::new());
    let thread = std::thread::spawn(move || {
        writer.write_all(&to_send).unwrap();
        writer.shutdown(std::net::Shutdown::Write).unwrap();
    });
    (&stream).read_to_end(&mut got).unwrap();
    thread.join().unwrap();
    assert!(
        got == sent,
        "{} of {} bytes came back as sent",
        got.len(),
        sent.len()
    );
    until("both directions are counted", || {
        let rows = front.backends();
        rows[0].bytes_in == 8_000_000 && rows[0].bytes_out == 8_000_000 && rows[0].connections == 0
    });
}

#[test]
fn a_dead_processor_costs_no_connection_and_bounds_are_kept() {
    let echo = Echo::start();
    let gone = listener().local_addr().unwrap();
    let dead = Backend {
        name: "dead".to_owned(),
        address: gone,
        ..Backend::default()
    };
    let front = ipfe::start(config(vec![dead, echo.backend("mp2")], 3)).unwrap();
    let held: Vec<TcpStream> = (0..3).map(|_| connect(&front)).collect();
    until("it is seen", || front.backends()[0].state == "unavailable");
    // No room for a fourth: it is closed without a byte.
    let mut fourth = TcpStream::connect(front.addresses()[0]).unwrap();
    fourth.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(fourth.read(&mut [0; 8]).unwrap_or_default(), 0);
    drop(held);
    until("there is room again", || counts(&front) == [0, 0]);
    echo.status.store(503, Ordering::Relaxed);
    until("no processor takes connections", || {
        front.backends()[1].state == "stasis"
    });
    let mut refused = TcpStream::connect(front.addresses()[0]).unwrap();
    refused.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(refused.read(&mut [0; 8]).unwrap_or_default(), 0);
    let text = telemetry::metrics::render(&[front.handle().registry().clone()]);
    assert!(
        text.contains("signalbox_ipfe_refused_connections_total{why=\"full\"} 1"),
        "{text}"
    );
    assert!(
        text.contains("signalbox_ipfe_refused_connections_total{why=\"unavailable\"} 1"),
        "{text}"
    );
}

#[test]
fn a_burst_of_connections_keeps_the_bound() {
    const BURST: usize = 200;
    let echo = Echo::start();
    let front = ipfe::start(config(vec![echo.backend("mp1")], 3)).unwrap();
    let burst: Vec<TcpStream> = (0..BURST)
        .map(|_| TcpStream::connect(front.addresses()[0]).unwrap())
        .collect();
    let count = |name: &str| {
        let text = telemetry::metrics::render(&[front.handle().registry().clone()]);
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.map_or(0, |value| value.trim().parse::<usize>().unwrap())
    };
    let counts = || {
        let refused = count("signalbox_ipfe_refused_connections_total{why=\"full\"}");
        (count("signalbox_ipfe_connections_total"), refused)
    };
    until("every connection is accepted or refused", || {
        let (accepted, refused) = counts();
        accepted + refused == BURST
    });
    assert_eq!(counts(), (3, BURST - 3));
    drop(burst);
}

#[test]
fn a_silent_client_of_a_processor_that_closed_gives_its_place_back() {
    let closes = listener();
    let backend = Backend {
        name: "mp1".to_owned(),
        address: closes.local_addr().unwrap(),
        ..Backend::default()
    };
    each(closes, |mut stream| {
        let mut hello = [0; 5];
        let _ = stream.read_exact(&mut hello);
        let _ = stream.write_all(&hello);
        // The processor closes; the client, whose network is lost, does not answer.
    });
    let one = Config {
        linger: Period::from_millis(50),
        ..config(vec![backend], 1)
    };
    let front = ipfe::start(one).unwrap();
    let silent = connect(&front);
    until("its place is free", || counts(&front) == [0]);
    let next = connect(&front);
    drop((silent, next));
}

#[test]
fn invalid_settings_are_reported() {
    let text = "
targetSets:
  - {name: a, listen: \"127.0.0.1:4000\", backends: [{name: x, address: \"127.0.0.1:4000\"}, {name: x}]}
  - {name: a, listen: [], backends: []}
egressSets:
  - {name: e, listen: \"127.0.0.1:4001\", from: \"::1\", servers: [\"127.0.0.1:4001\", \"127.0.0.1:4002\"]}
  - {name: f, listen: \"127.0.0.1:0\"}
pair: {mate: \"127.0.0.1:9061\"}
check: {interval: 0s}
";
    let report = settings::from_str::<Config>(text, "test")
        .unwrap_err()
        .to_string();
    for part in [
        "itself listens",
        "another message processor",
        "another target set",
        "is where the front end itself listens",
        "cannot be reached from `from`",
        "at least one address of the server",
        "a port for each set",
        "is empty",
        "is 0",
    ] {
        assert!(report.contains(part), "{part}: {report}");
    }
}
