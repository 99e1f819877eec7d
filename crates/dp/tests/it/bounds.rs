//! Strangers, many routers, more queries than are permitted.

use std::io::Write as _;
use std::time::Duration;

use dp_proto::{Kind, Outcome};
use settings::Period;

use crate::support::{Router, bundled, config, metric, until, with_files};

#[test]
fn bytes_of_a_stranger_end_their_own_connection() {
    let folder = tempfile::tempdir().unwrap();
    let processor = dp::start(with_files(folder.path())).unwrap();
    let at = processor.addresses()[0];
    let mut honest = Router::new(at);
    let sound = bundled(&[(Kind::Imsi, "", "001010000000001")]);
    let with = |place: usize, octet: u8| {
        let mut bytes = sound.clone();
        bytes[place] = octet;
        bytes
    };
    let strange = [
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0xff; 64],
        vec![0; 64],
        // Version, kind of frame, count of entries, kind of query, length of the service, length of the value.
        with(4, 2),
        with(5, 2),
        with(7, 2),
        with(12, 9),
        with(13, 200),
        with(14, 14),
        with(14, 0),
    ];
    for bytes in &strange {
        let mut router = Router::new(at);
        router.stream.write_all(bytes).unwrap();
        assert_eq!(router.next(), None, "{bytes:?}");
        assert_eq!(honest.imsi("001010000000001"), "exact hss1");
    }
    until("all are counted", || {
        metric(&processor, "signalbox_dp_connections_total{outcome=\"broken\"}") == strange.len() as f64
    });
    // Octet by octet is a frame as well.
    let mut slow = Router::new(at);
    for octet in &sound {
        slow.stream.write_all(&[*octet]).unwrap();
    }
    assert_eq!(slow.next().unwrap()[0].1, Outcome::Exact);
}

#[test]
fn three_hundred_routers_are_answered_and_one_beyond_the_bound_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = with_files(folder.path());
    config.workers = 1;
    config.connections = 300;
    let processor = dp::start(config).unwrap();
    let at = processor.addresses()[0];
    let mut routers: Vec<Router> = (0..300).map(|_| Router::new(at)).collect();
    for router in &mut routers {
        router.send(&[(Kind::Imsi, "", "001010000000001"); 200]);
    }
    for router in &mut routers {
        let answers = router.next().unwrap();
        assert!(answers.len() == 200 && answers.iter().all(|(_, outcome, _)| *outcome == Outcome::Exact));
    }
    let mut beyond = Router::new(at);
    assert_eq!(beyond.next(), None);
    // One that ends makes room.
    drop(routers.pop());
    until("a connection is admitted again", || {
        let mut router = Router::new(at);
        let _ = router
            .stream
            .write_all(&bundled(&[(Kind::Imsi, "", "001010000000001")]));
        router.next().is_some()
    });
    assert_eq!(routers[0].imsi("001010000000001"), "exact hss1");
}

#[test]
fn queries_beyond_the_rate_are_answered_as_congested() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = with_files(folder.path());
    config.queries_per_second = 10;
    let processor = dp::start(config).unwrap();
    let mut router = Router::new(processor.addresses()[0]);
    router.send(&[(Kind::Imsi, "", "001010000000001"); 100]);
    let answers = router.next().unwrap();
    let of = |wanted: Outcome| {
        answers
            .iter()
            .filter(|(_, outcome, _)| *outcome == wanted)
            .count()
    };
    assert_eq!((of(Outcome::Exact), of(Outcome::Congested)), (1, 99));
    until("the alarm", || {
        let active = processor.handle().alarms().active();
        active.iter().any(|alarm| alarm.number == 19_826)
    });
    until("it is cleared", || {
        processor.handle().alarms().active().is_empty()
    });
}

#[test]
fn without_data_queries_are_answered_as_unavailable() {
    let processor = dp::start(config()).unwrap();
    let mut router = Router::new(processor.addresses()[0]);
    assert_eq!(router.imsi("001010000000001"), Outcome::Unavailable.as_str());
}

#[test]
fn a_connection_without_a_whole_frame_ends() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = with_files(folder.path());
    config.idle = Period::from_millis(200);
    let processor = dp::start(config).unwrap();
    let mut router = Router::new(processor.addresses()[0]);
    router.stream.write_all(&[0, 0]).unwrap();
    assert_eq!(router.next(), None);
    until("it is counted", || {
        metric(&processor, "signalbox_dp_connections_total{outcome=\"idle\"}") == 1.0
    });
}

#[test]
fn a_router_that_does_not_read_is_closed_and_others_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = with_files(folder.path());
    (config.workers, config.idle) = (1, Period::from_secs(2));
    let processor = dp::start(config).unwrap();
    let at = processor.addresses()[0];
    let mut deaf = Router::new(at);
    let timeout = Some(Duration::from_millis(300));
    deaf.stream.set_write_timeout(timeout).unwrap();
    // Until the buffers of both sides are full, or it is closed.
    let frame = bundled(&[(Kind::Imsi, "", "001010000000001"); 250]);
    while deaf.stream.write_all(&frame).is_ok() {}
    assert_eq!(Router::new(at).imsi("001010000000001"), "exact hss1");
    until("it is closed", || {
        metric(&processor, "signalbox_dp_connections_total{outcome=\"idle\"}") == 1.0
    });
}

#[test]
fn only_clients_of_the_settings_may_connect() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = with_files(folder.path());
    config.clients = vec!["192.0.2.0/24".parse().unwrap()];
    let processor = dp::start(config).unwrap();
    assert_eq!(Router::new(processor.addresses()[0]).next(), None);
}
