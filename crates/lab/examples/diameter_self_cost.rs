//! What the lab itself costs in Diameter: MMEs against HSSs without a router between them. A run of a router cannot
//! exceed this figure. `diameter_self_cost [REQUESTS_PER_SECOND] [BYTES] [SECONDS] [CONNECTIONS]`

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use lab::callmodel::dsr::DsrModel;
use lab::loadgen::Arrivals;
use lab::loadgen::diameter::{Clients, Peer};
use lab::loadgen::{Generator, Plan, Record};
use lab::sim::diameter::{DiameterServer, DiameterSettings};
use lab::sim::{RoleName, Settings};
use lab::workload::dsr::{self, Mmes, mme};

const TIMEOUT: Duration = Duration::from_secs(5);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<u64> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let get = |at: usize, default: u64| arguments.get(at).copied().unwrap_or(default);
    let (tps, bytes, seconds, connections) = (get(0, 50_000), get(1, 2200), get(2, 5), get(3, 16));
    let model = DsrModel {
        hss: 1,
        message_bytes: bytes as u32,
        ..DsrModel::default()
    };
    let server = DiameterServer::bind(&Settings {
        role: RoleName::Hss,
        diameter: DiameterSettings {
            answer_bytes: model.message_bytes,
            ..DiameterSettings::default()
        },
        ..Settings::default()
    })?;
    let (address, handle) = (server.addresses()[0], server.handle());
    let simulator = std::thread::spawn(move || {
        let ran = server.run();
        (ran, lab::loadgen::thread_cpu())
    });
    let plan = Arc::new(dsr::Plan::new(&model)?);
    let numbers: Vec<u16> = (0..connections.min(999) as u16).collect();
    let peers = numbers.iter().map(|number| Peer {
        address,
        other: None,
        introduction: mme(usize::from(*number)),
    });
    let peers = peers.collect();
    let requests = Mmes::new(plan, numbers, Arc::new(AtomicU64::new(0)));
    let clients = Clients::new(peers, Box::new(requests), TIMEOUT);
    let plan = Plan {
        targets: vec![address],
        authority: address.to_string(),
        connections: 1,
        timeout: TIMEOUT,
        max_in_flight: 100_000,
        arrivals: Arrivals::Poisson,
        seed: 1,
        cpus: Vec::new(),
        tick: lab::loadgen::TICK,
        tls: None,
        sources: Vec::new(),
    };
    let generator = Generator::start(&plan, vec![clients])?;
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
    let (ran, simulator_cpu) = simulator.join().map_err(|_| "the simulator panicked")?;
    ran?;
    let total = record.total();
    let each = |cpu: Duration| cpu.as_secs_f64() * 1e6 / total.succeeded.max(1) as f64;
    eprintln!(
        "{} of {} answered in {:.1} s; p50 {} µs, p99 {} µs; per request: generator {:.2} µs, HSS {:.2} µs",
        total.succeeded,
        total.offered,
        begun.elapsed().as_secs_f64(),
        total.latency.value_at_quantile(0.5),
        total.latency.value_at_quantile(0.99),
        each(cpu),
        each(simulator_cpu)
    );
    record
        .examples
        .iter()
        .take(5)
        .for_each(|example| eprintln!("{example}"));
    Ok(())
}
