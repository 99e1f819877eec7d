//! What the lab itself costs: a generator against the simplest peer. A run of a function cannot exceed this figure.
//! `self_cost [TPS] [BODY_BYTES] [SECONDS] [CONNECTIONS]`

use std::time::{Duration, Instant};

use lab::loadgen::Arrivals;
use lab::loadgen::{Answer, Draft, Fault, Generator, Interest, Plan, Record, Ticket, Workload};
use lab::sim::{ProducerSettings, RoleName, Server, Settings};
use rand::rngs::SmallRng;

struct Gets;

impl Workload for Gets {
    fn operations(&self) -> Vec<String> {
        vec!["get".to_owned()]
    }
    fn headers(&self) -> Vec<(&'static str, String)> {
        vec![("user-agent", "AMF-lab".to_owned())]
    }
    fn next(&mut self, _random: &mut SmallRng, draft: &mut Draft) -> Ticket {
        draft.path.extend_from_slice(
            b"/nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type=AMF&supi=imsi-001010000000001",
        );
        Ticket::default()
    }
    fn interest(&mut self, _ticket: &Ticket, _status: u16, _length: Option<u64>) -> Interest {
        Interest::Skip
    }
    fn judge(&mut self, _ticket: &Ticket, answer: &Answer<'_>) -> Result<(), Fault> {
        if answer.status == 200 {
            Ok(())
        } else {
            Err(Fault::Status)
        }
    }
}

fn main() -> std::io::Result<()> {
    let arguments: Vec<u64> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let get = |at: usize, default: u64| arguments.get(at).copied().unwrap_or(default);
    let (tps, bytes, seconds, connections) = (get(0, 50_000), get(1, 20_000), get(2, 5), get(3, 32));
    let settings = Settings {
        role: RoleName::Producer,
        producer: ProducerSettings {
            status: 200,
            body_bytes: bytes as u32,
            ..ProducerSettings::default()
        },
        ..Settings::default()
    };
    let server = Server::bind(&settings)?;
    let peer = server.addresses()[0];
    let handle = server.handle();
    let simulator = std::thread::spawn(move || {
        let ran = server.run();
        (ran, lab::loadgen::thread_cpu())
    });
    let plan = Plan {
        targets: vec![peer],
        authority: peer.to_string(),
        connections: connections as u32,
        timeout: Duration::from_secs(5),
        max_in_flight: 100_000,
        arrivals: Arrivals::Poisson,
        seed: 1,
        cpus: Vec::new(),
        tick: lab::loadgen::TICK,
        tls: None,
        sources: Vec::new(),
    };
    let generator = Generator::start(&plan, vec![Box::new(Gets) as Box<dyn Workload>])?;
    std::thread::sleep(Duration::from_millis(300));
    generator.set(tps as f64, 1);
    let begun = Instant::now();
    let mut record = Record::default();
    let mut cpu = Duration::ZERO;
    while begun.elapsed() < Duration::from_secs(seconds) {
        for snapshot in generator.snapshots(Duration::from_millis(100)) {
            record.merge(&snapshot.record);
            cpu = snapshot.cpu;
        }
    }
    generator.set(0.0, 2);
    for snapshot in generator.stop()? {
        record.merge(&snapshot.record);
        cpu = snapshot.cpu;
    }
    handle.stop();
    let (ran, simulator_cpu) = simulator
        .join()
        .map_err(|_| std::io::Error::other("the simulator panicked"))?;
    ran?;
    let total = record.total();
    let each = |cpu: Duration| cpu.as_secs_f64() * 1e6 / total.succeeded.max(1) as f64;
    eprintln!(
        "{} of {} answered in {:.1} s; p50 {} µs, p99 {} µs; per request: generator {:.2} µs, simulator {:.2} µs",
        total.succeeded,
        total.offered,
        begun.elapsed().as_secs_f64(),
        total.latency.value_at_quantile(0.5),
        total.latency.value_at_quantile(0.99),
        each(cpu),
        each(simulator_cpu)
    );
    Ok(())
}
