//! An active/standby pair: one address, and one front end at a time that listens there.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};

use ipfe::config::{Config, Pair};
use settings::Period;

use crate::support::{Echo, config, connect, listener, until};

/// Serves the pages of a front end as its admin endpoint does, until this is dropped.
struct Admin(tokio::runtime::Runtime);

impl Admin {
    fn serve(listener: TcpListener, front: &ipfe::Running) -> Self {
        listener.set_nonblocking(true).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let routes = front.handle().routes();
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, routes).await.unwrap();
        });
        Self(runtime)
    }

    fn end(self) {
        self.0.shutdown_background();
    }
}

/// An address of this machine's own for the test.
fn tsa() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(1);
    let third = NEXT.fetch_add(1, Ordering::Relaxed) as u8;
    let process = std::process::id() as u8 | 1;
    let ip = Ipv4Addr::new(127, 9, third, process);
    TcpListener::bind((ip, 0)).unwrap().local_addr().unwrap()
}

fn member(tsa: SocketAddr, echo: &Echo, mate: SocketAddr, preferred: bool) -> Config {
    let mut config = config(vec![echo.backend("mp1")], 0);
    config.target_sets[0].listen = tsa.into();
    config.pair = Some(Pair {
        mate,
        preferred,
        takeover: Vec::new(),
        release: Vec::new(),
        command_timeout: Period::from_secs(5),
    });
    config
}

fn takeovers(front: &ipfe::Running) -> u64 {
    let text = telemetry::metrics::render(&[front.handle().registry().clone()]);
    let line = text
        .lines()
        .find(|line| line.starts_with("signalbox_ipfe_takeovers_total"));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok())
        .unwrap()
}

#[test]
fn the_standby_takes_over_the_address_when_the_active_front_end_dies() {
    let (echo, tsa) = (Echo::start(), tsa());
    let admins = [listener(), listener()];
    let [first_at, second_at] = admins.each_ref().map(|admin| admin.local_addr().unwrap());
    let [first_admin, second_admin] = admins;
    let first = ipfe::start(member(tsa, &echo, second_at, true)).unwrap();
    let second = ipfe::start(member(tsa, &echo, first_at, false)).unwrap();
    let first_page = Admin::serve(first_admin, &first);
    let second_page = Admin::serve(second_admin, &second);
    until("the preferred one alone is active", || {
        first.is_active() && !second.is_active()
    });
    until("it listens", || TcpStream::connect(tsa).is_ok());
    let held = connect(&first);
    let is_silent = |front: &ipfe::Running| {
        front
            .handle()
            .alarms()
            .active()
            .iter()
            .any(|alarm| alarm.number == 10514)
    };
    until("both know one another", || {
        !is_silent(&first) && !is_silent(&second)
    });

    let before = takeovers(&second);
    // The active front end dies: its admin endpoint does not answer any more, its sockets are closed.
    first_page.end();
    first.stop().unwrap();
    until("the standby is active", || second.is_active());
    until("it listens at the same address", || {
        TcpStream::connect(tsa).is_ok()
    });
    let again = connect(&second);
    until("the alarm about the mate", || is_silent(&second));
    assert_eq!(takeovers(&second), before + 1);

    // A front end that restarts leaves the connections at its mate, although it is the preferred one.
    let returned_admin = TcpListener::bind(first_at).unwrap();
    let returned = ipfe::start(member(tsa, &echo, second_at, true)).unwrap();
    let returned_page = Admin::serve(returned_admin, &returned);
    until("the alarm ends", || !is_silent(&second));
    assert!(second.is_active() && !returned.is_active());
    drop((held, again, returned_page, second_page));
}

#[test]
fn the_programs_of_a_pair_move_the_address_and_connections_end_with_it() {
    let (echo, tsa) = (Echo::start(), tsa());
    let folder = std::env::temp_dir().join(format!("signalbox-pair-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (taken, released) = (folder.join("taken"), folder.join("released"));
    let touch = |path: &std::path::Path| vec!["touch".to_owned(), path.display().to_string()];
    let mate_admin = listener();
    let mate_at = mate_admin.local_addr().unwrap();
    drop(mate_admin);
    let mut settings = member(tsa, &echo, mate_at, false);
    let pair = settings.pair.as_mut().unwrap();
    (pair.takeover, pair.release) = (touch(&taken), touch(&released));
    let front = ipfe::start(settings).unwrap();
    until("alone it is active", || front.is_active());
    assert!(taken.exists(), "the address is moved before the role changes");
    until("it listens", || TcpStream::connect(tsa).is_ok());
    let mut held = connect(&front);

    // The mate was active as well, behind a network partition that has ended: it is the preferred one.
    let mate = ipfe::start(Config {
        pair: None,
        ..config(vec![echo.backend("mp1")], 0)
    })
    .unwrap();
    let page = Admin::serve(TcpListener::bind(mate_at).unwrap(), &mate);
    until("it gives way", || !front.is_active());
    until("the address is released", || released.exists());
    let end = std::io::Read::read(&mut held, &mut [0; 8]).unwrap_or_default();
    assert_eq!(end, 0, "its clients are to connect to the mate");
    until("it accepts none", || TcpStream::connect(tsa).is_err());
    drop(page);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn an_address_that_cannot_be_bound_raises_an_alarm_until_it_can() {
    let (echo, tsa) = (Echo::start(), tsa());
    // Another program has the address, without SO_REUSEPORT.
    let other = TcpListener::bind(tsa).unwrap();
    let silent = listener().local_addr().unwrap();
    let front = ipfe::start(member(tsa, &echo, silent, true)).unwrap();
    let is_raised = || {
        front
            .handle()
            .alarms()
            .active()
            .iter()
            .any(|alarm| alarm.number == 10516)
    };
    until("the alarm", is_raised);
    drop(other);
    until("the alarm ends", || !is_raised());
    drop(connect(&front));
}
