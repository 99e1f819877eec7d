//! Processor time of a message processor for each message, with and without what it does besides relaying: `message_cost
//! [ROUNDS] [REQUESTS]`. A router for each case, all in this process, loaded in turns with the same requests; what counts is
//! the time of the worker's thread (`/proc/self/task/*/schedstat`).

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use diameter::proto::known::{self, application, command};
use diameter::proto::{AvpFlags, AvpKey, Message, MessageBuilder, Origin, ResultCode};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn std::error::Error>;

/// Requests in flight; they are written at once.
const WINDOW: usize = 128;
const MESSAGE_BYTES: usize = 2200;
const RANGES: u64 = 1_000_000;
const RULES: usize = 100;
const HEADER: usize = 20;
const IMSI: &str = "001010000000000";

/// A name, and the sections of the configuration that make it.
fn cases(ranges: &str) -> Vec<(&'static str, String)> {
    let resolve = format!(
        "applications:\n- name: resolve\n  rbar:\n    lookups: [{{applications: [16777251], identities: [imsi]}}]\n    \
         destinations: [{{name: north, realm: north.example}}, {{name: south, realm: south.example}}]\n    file: {ranges}\n"
    );
    let mut idle = "mediation:\n  rules:\n".to_owned();
    for number in 0..RULES {
        // Writing to a String cannot fail.
        let _ = write!(
            idle,
            "  - name: rule{number}\n    when: {{applications: [16777251], avps: [{{avp: User-Name, startsWith: \
             ['9{number:04}']}}]}}\n    changes: [{{remove: '10415:1405'}}]\n"
        );
    }
    let fits = "  - name: fits\n    when: {applications: [16777251], avps: [{avp: User-Name, startsWith: ['00101']}]}\n    \
                changes: [{replace: {avp: Destination-Realm, value: other.example}}]\n";
    vec![
        ("relay", String::new()),
        ("address resolution, 1,000,000 ranges", resolve.clone()),
        ("mediation, 100 rules of which none fits", idle.clone()),
        (
            "mediation, 101 rules of which one changes an AVP",
            format!("{idle}{fits}"),
        ),
        ("both", format!("{resolve}{idle}{fits}")),
    ]
}

fn routing(sections: &str) -> String {
    let resolve = match sections.contains("rbar:") {
        true => {
            "  applicationRouteTables: [{name: default, rules: [{when: {applications: [16777251]}, action: {application: resolve}}]}]\n"
        }
        false => "",
    };
    format!(
        "routing:\n{resolve}  peerRouteTables: [{{name: default, rules: [{{action: {{routeList: hss}}}}]}}]\n  \
         routeLists: [{{name: hss, groups: [hss]}}]\n  routeGroups: [{{name: hss, peers: [{{host: hss.example}}]}}]\n"
    )
}

/// The next whole message of a stream.
fn receive(stream: &mut TcpStream, out: &mut Vec<u8>) -> std::io::Result<()> {
    out.resize(HEADER, 0);
    stream.read_exact(out)?;
    let length = u32::from_be_bytes([0, out[1], out[2], out[3]]) as usize;
    out.resize(length.max(HEADER), 0);
    stream.read_exact(&mut out[HEADER..])
}

fn capabilities(builder: &mut MessageBuilder, host: &str) {
    builder
        .put(known::ORIGIN_HOST, host)
        .put(known::ORIGIN_REALM, "example")
        .put(known::HOST_IP_ADDRESS, std::net::Ipv4Addr::LOCALHOST.into())
        .put(known::VENDOR_ID, known::VENDOR_3GPP)
        .put(known::PRODUCT_NAME, "message_cost")
        .group(known::VENDOR_SPECIFIC_APPLICATION_ID, |group| {
            group
                .put(known::VENDOR_ID, known::VENDOR_3GPP)
                .put(known::AUTH_APPLICATION_ID, application::S6A);
        });
}

fn pad(builder: &mut MessageBuilder) {
    let key = AvpKey {
        vendor: 99_999,
        code: 1,
    };
    let so_far = builder.as_bytes().len() + 12;
    builder.put_raw(
        key,
        AvpFlags::default(),
        &vec![0x55; MESSAGE_BYTES.saturating_sub(so_far)],
    );
}

/// A server that answers every request with as many bytes.
fn serve(listener: &TcpListener) -> Result<(), Failure> {
    let (stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    let mut reader = std::io::BufReader::with_capacity(1 << 20, stream.try_clone()?);
    let (mut stream, origin) = (stream, Origin::new("hss.example", "example"));
    let (mut message, mut out) = (vec![0; HEADER], Vec::new());
    loop {
        message.resize(HEADER, 0);
        reader.read_exact(&mut message)?;
        let length = u32::from_be_bytes([0, message[1], message[2], message[3]]) as usize;
        message.resize(length.max(HEADER), 0);
        reader.read_exact(&mut message[HEADER..])?;
        let request = Message::parse(&message[..])?;
        let mut answer = MessageBuilder::answer(&request);
        if request.command() == command::CAPABILITIES_EXCHANGE {
            answer.put(known::RESULT_CODE, ResultCode::SUCCESS.0);
            capabilities(&mut answer, "hss.example");
        } else {
            answer.result(ResultCode::SUCCESS, &origin);
            if request.application() != 0 {
                pad(&mut answer);
            }
        }
        out.extend_from_slice(answer.finish()?.as_bytes());
        // What came at once is answered at once.
        if reader.buffer().len() < HEADER {
            stream.write_all(&out)?;
            out.clear();
        }
    }
}

/// Threads of this process that are workers of a router.
fn workers() -> BTreeSet<u32> {
    let tasks = std::fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let is_worker = |id: &u32| {
        let name = std::fs::read_to_string(format!("/proc/self/task/{id}/comm")).unwrap_or_default();
        name.trim() == "dsr-0"
    };
    tasks
        .filter_map(|task| task.file_name().to_str()?.parse().ok())
        .filter(is_worker)
        .collect()
}

/// Processor time of a thread in seconds.
fn used(thread: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).unwrap_or_default();
    text.split(' ')
        .next()
        .and_then(|first| first.parse::<f64>().ok())
        .unwrap_or_default()
        / 1e9
}

struct Case {
    name: &'static str,
    _router: dsr::Running,
    client: TcpStream,
    worker: u32,
    seconds: f64,
    messages: f64,
}

impl Case {
    fn start(name: &'static str, sections: &str) -> Result<Self, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let text = format!(
            "workers: 1\nlocalNodes: [{{host: dsr.example, realm: example, listen: \"127.0.0.1:0\"}}]\n\
             peers: [{{host: hss.example, addresses: [\"{}\"]}}]\noverload: {{assumedLoad: 0%}}\n{}{sections}",
            listener.local_addr()?,
            routing(sections)
        );
        std::thread::spawn(move || serve(&listener).map_err(|error| error.to_string()));
        let config: dsr::Config = settings::from_str(&text, name).map_err(|report| report.to_string())?;
        let before = workers();
        let router = dsr::start(config)?;
        // A thread takes its name when it first runs.
        let mut found = None;
        for _ in 0..1000 {
            found = workers().difference(&before).next().copied();
            if found.is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let worker = found.ok_or("no worker")?;
        let address: SocketAddr = *router.addresses().first().ok_or("no address")?;
        let mut client = TcpStream::connect(address)?;
        client.set_nodelay(true)?;
        let mut cer = MessageBuilder::request(command::CAPABILITIES_EXCHANGE, 0);
        capabilities(&mut cer, "mme.example");
        let mut cer = cer.finish()?.as_bytes().to_vec();
        // A CER has no P flag.
        cer[4] = 0x80;
        client.write_all(&cer)?;
        receive(&mut client, &mut Vec::new())?;
        let mut case = Self {
            name,
            _router: router,
            client,
            worker,
            seconds: 0.0,
            messages: 0.0,
        };
        // Until the server is connected, the router answers itself.
        for attempt in 0.. {
            if case.run(1)? == 0 {
                break;
            }
            if attempt == 1000 {
                return Err("the server is not reached".into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        (case.seconds, case.messages) = (0.0, 0.0);
        Ok(case)
    }

    /// Sends requests, a window at a time; how many were not answered by the server.
    fn run(&mut self, requests: usize) -> Result<usize, Failure> {
        let mut builder = MessageBuilder::request(command::UPDATE_LOCATION, application::S6A);
        builder
            .put(known::SESSION_ID, "mme.example;1;1")
            .put(known::AUTH_SESSION_STATE, 1)
            .put(known::ORIGIN_HOST, "mme.example")
            .put(known::ORIGIN_REALM, "example")
            .put(known::DESTINATION_REALM, "example")
            .put(known::USER_NAME, IMSI);
        pad(&mut builder);
        let template = builder.finish()?.as_bytes().to_vec();
        let imsi = template
            .windows(IMSI.len())
            .position(|part| part == IMSI.as_bytes());
        let imsi = imsi.ok_or("no IMSI in the request")?;
        let (mut out, mut answer, mut wrong, mut random) = (Vec::new(), Vec::new(), 0, 1_u64);
        let mut reader = std::io::BufReader::with_capacity(1 << 20, self.client.try_clone()?);
        let before = used(self.worker);
        for _ in 0..requests.div_ceil(WINDOW) {
            out.clear();
            let count = WINDOW.min(requests);
            for number in 0..count {
                let at = out.len();
                out.extend_from_slice(&template);
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let digits = format!("{:010}", (random >> 33) % (RANGES * 1000));
                out[at + imsi + 5..at + imsi + 15].copy_from_slice(digits.as_bytes());
                out[at + 12..at + 16].copy_from_slice(&(number as u32).to_be_bytes());
            }
            self.client.write_all(&out)?;
            for _ in 0..count {
                answer.resize(HEADER, 0);
                reader.read_exact(&mut answer)?;
                let length = u32::from_be_bytes([0, answer[1], answer[2], answer[3]]) as usize;
                answer.resize(length.max(HEADER), 0);
                reader.read_exact(&mut answer[HEADER..])?;
                // Answers of the router itself are short.
                wrong += usize::from(length < MESSAGE_BYTES / 2);
            }
            self.messages += 2.0 * count as f64;
        }
        self.seconds += used(self.worker) - before;
        Ok(wrong)
    }
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let rounds: usize = arguments.next().map_or(Ok(8), |text| text.parse())?;
    let requests: usize = arguments.next().map_or(Ok(50_000), |text| text.parse())?;
    let file = std::env::temp_dir().join(format!("message-cost-{}.csv", std::process::id()));
    let mut text = String::new();
    for number in 0..RANGES {
        let (first, last) = (number * 1000, number * 1000 + 999);
        let to = if number % 2 == 0 { "north" } else { "south" };
        writeln!(text, "imsi,00101{first:010},00101{last:010},{to}")?;
    }
    std::fs::write(&file, text)?;
    let made = cases(&file.display().to_string());
    let made: Result<Vec<Case>, Failure> = made
        .into_iter()
        .map(|(name, sections)| Case::start(name, &sections))
        .collect();
    let mut cases = made?;
    std::fs::remove_file(&file)?;
    for round in 0..=rounds {
        for case in &mut cases {
            let wrong = case.run(requests)?;
            if wrong > 0 {
                return Err(format!("{}: {wrong} answers are not the server's", case.name).into());
            }
            if round == 0 {
                (case.seconds, case.messages) = (0.0, 0.0);
            }
        }
    }
    let each = |case: &Case| case.seconds * 1e6 / case.messages;
    let first = cases.first().map_or(0.0, each);
    writeln!(
        std::io::stdout(),
        "| case | µs/message | more than relay |\n|---|--:|--:|"
    )?;
    for case in &cases {
        writeln!(
            std::io::stdout(),
            "| {} | {:.2} | {:+.2} |",
            case.name,
            each(case),
            each(case) - first
        )?;
    }
    Ok(())
}
