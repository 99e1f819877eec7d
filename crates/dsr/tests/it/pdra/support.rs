//! PCRFs, gateways and AFs around a Policy DRA.

use std::path::Path;

use diameter::proto::known::{self, application, command};
use diameter::proto::peer::ApplicationId;
use diameter::proto::{CommandFlags, MessageBuilder, MessageMut, ResultCode};
use dsr::{Config, Running};
use dsr_pdra::{Event, Pdra};
use testpeer::diameter::Peer;

use crate::support::{REALM, Waiting, available, config, read};

pub(crate) const PGW: &str = "pgw.example";
pub(crate) const AF: &str = "af.example";
pub(crate) const PCRFS: [&str; 2] = ["pcrf1.example", "pcrf2.example"];
pub(crate) const IMSI: &str = "001010000000001";

/// A router with a Policy DRA before these PCRFs; `more` are further lines of its settings.
pub(crate) fn agent(directory: &Path, pcrfs: &[&str], more: &str) -> Config {
    let pcrfs = pcrfs.iter().map(|host| format!("{{host: {host}}}"));
    let pcrfs: Vec<String> = pcrfs.collect();
    let yaml = format!(
        "applications:
  - name: policy
    pdra:
      repository: {{store: {{embedded: {{directory: {}, durability: os}}}}}}
      pools: [{{name: all, pcrfs: [{}]}}]
{more}
routing:
  applicationRouteTables:
    - name: default
      rules:
        - {{when: {{applications: [16777238, 16777236, 16777266, 16777267, 16777303]}}, action: {{application: policy}}}}
",
        directory.display(),
        pcrfs.join(", ")
    );
    read(config(), &yaml)
}

/// Everything around a router.
pub(crate) struct World {
    pub(crate) dsr: Running,
    pub(crate) servers: Vec<Waiting>,
    pub(crate) pcrfs: Vec<Peer>,
    pub(crate) pgw: Peer,
    pub(crate) af: Peer,
}

impl World {
    pub(crate) async fn new(directory: &Path, more: &str) -> Self {
        Self::of(agent(directory, &PCRFS, more), &PCRFS).await
    }

    pub(crate) async fn of(mut config: Config, hosts: &[&str]) -> Self {
        let mut servers = Vec::new();
        for host in hosts {
            let server = Waiting::new(host).await;
            config.peers.push(server.peer());
            servers.push(server);
        }
        let dsr = dsr::start(config).unwrap();
        let mut pcrfs = Vec::new();
        for server in &servers {
            pcrfs.push(server.relay(&dsr).await);
        }
        Self {
            pgw: client(&dsr, PGW).await,
            af: client(&dsr, AF).await,
            dsr,
            servers,
            pcrfs,
        }
    }

    /// Another router before the same PCRFs, with a gateway and an AF of its own.
    pub(crate) async fn beside(&self, mut config: Config) -> Self {
        config.peers.extend(self.servers.iter().map(Waiting::peer));
        let dsr = dsr::start(config).unwrap();
        let mut pcrfs = Vec::new();
        for server in &self.servers {
            pcrfs.push(server.relay(&dsr).await);
        }
        Self {
            pgw: client(&dsr, PGW).await,
            af: client(&dsr, AF).await,
            dsr,
            servers: Vec::new(),
            pcrfs,
        }
    }

    /// Sends a request of the gateway and returns the position of the PCRF that gets it, and the request.
    pub(crate) async fn reaches(&mut self, request: &MessageMut) -> (usize, MessageMut) {
        self.pgw.send(request.as_bytes()).await;
        self.arrival(request.command()).await
    }

    /// The position of the PCRF that gets the next request, and the request.
    pub(crate) async fn arrival(&mut self, command: u32) -> (usize, MessageMut) {
        let [one, other] = self.pcrfs.as_mut_slice() else {
            panic!("there are two PCRFs");
        };
        tokio::select! {
            request = one.expect(command) => (0, request),
            request = other.expect(command) => (1, request),
        }
    }

    /// Begins a session; the position of its PCRF.
    pub(crate) async fn session(&mut self, request: &MessageMut) -> usize {
        let (at, arrived) = self.reaches(request).await;
        self.answers(at, &arrived, ResultCode::SUCCESS).await;
        at
    }

    /// A PCRF answers a request of the gateway, which gets that.
    pub(crate) async fn answers(&mut self, at: usize, request: &MessageMut, result: ResultCode) {
        self.pcrfs[at].answer(request, result).await;
        self.pgw.expect_result(request.command(), result).await;
    }

    /// Sends a request of the gateway, and a second one that waits for it; the position of the PCRF that gets the first, and
    /// the first.
    pub(crate) async fn second_waits(
        &mut self,
        first: &MessageMut,
        second: &MessageMut,
    ) -> (usize, MessageMut) {
        let reached = self.reaches(first).await;
        self.pgw.send(second.as_bytes()).await;
        crate::support::until(|| self.count(Event::Waited) == 1).await;
        reached
    }

    /// A PCRF answers the first request of the gateway, and then the second, which it gets after that: the second.
    pub(crate) async fn serves_both(&mut self, at: usize, first: &MessageMut) -> MessageMut {
        self.answers(at, first, ResultCode::SUCCESS).await;
        let second = self.pcrfs[at].expect(first.command()).await;
        self.answers(at, &second, ResultCode::SUCCESS).await;
        second
    }

    /// The position of the PCRF that gets a request of the AF, which it answers.
    pub(crate) async fn of_af(&mut self, request: &MessageMut) -> usize {
        self.af.send(request.as_bytes()).await;
        let (at, arrived) = self.arrival(request.command()).await;
        self.pcrfs[at].answer(&arrived, ResultCode::SUCCESS).await;
        self.af
            .expect_result(request.command(), ResultCode::SUCCESS)
            .await;
        at
    }

    /// Sends a request of the AF, which the router refuses because it finds no session.
    pub(crate) async fn is_unknown(&mut self, request: &MessageMut) {
        self.af.send(request.as_bytes()).await;
        let answer = self.af.expect(request.command()).await;
        let routing = diameter::proto::Routing::scan(&answer, b"").unwrap();
        assert_eq!(routing.experimental_result(), Some((10_415, 5065)));
    }

    pub(crate) fn count(&self, event: Event) -> u64 {
        self.dsr.count_of::<Pdra>(event)
    }

    /// Waits until the repository has ended this many sessions.
    pub(crate) async fn holds(&self, sessions: usize) {
        let held = || {
            self.dsr
                .applications()
                .iter()
                .any(|row| row.table == "sessions" && row.entries == sessions)
        };
        crate::support::until(held).await;
    }
}

/// Gxx (TS 29.212).
pub(crate) const GXX: u32 = 16_777_266;

/// A client of all applications that bind subscribers or find them.
pub(crate) async fn client(dsr: &Running, host: &str) -> Peer {
    let applications = [
        application::GX,
        application::RX,
        application::SD,
        GXX,
        application::S9,
    ];
    let applications = applications.map(ApplicationId::tgpp);
    let mut peer = Peer::connect(dsr.addresses()[0]).await;
    peer.capabilities(host, &applications).await;
    available(dsr, host).await;
    peer
}

/// A request of this peer in a session.
pub(crate) fn request(
    command: u32,
    application: u32,
    host: &str,
    session: &str,
    fill: impl FnOnce(&mut MessageBuilder),
) -> MessageMut {
    let mut builder = MessageBuilder::request(command, application);
    builder
        .put(known::SESSION_ID, session)
        .put(known::AUTH_APPLICATION_ID, application)
        .put(known::ORIGIN_HOST, host)
        .put(known::ORIGIN_REALM, REALM)
        .put(known::DESTINATION_REALM, REALM);
    fill(&mut builder);
    let mut message = builder.finish().unwrap();
    message.set_flags(message.flags().with(CommandFlags::PROXIABLE));
    message
}

/// A CC-Request of Gx of this type.
pub(crate) fn ccr(session: &str, kind: i32, fill: impl FnOnce(&mut MessageBuilder)) -> MessageMut {
    request(command::CREDIT_CONTROL, application::GX, PGW, session, |b| {
        b.put(known::CC_REQUEST_TYPE, kind)
            .put(known::CC_REQUEST_NUMBER, 0_u32);
        fill(b);
    })
}

/// A CC-Request that begins a session of this subscriber.
pub(crate) fn initial(session: &str, imsi: &str) -> MessageMut {
    ccr(session, 1, |b| subscriber(b, 1, imsi))
}

/// A Subscription-Id.
pub(crate) fn subscriber(builder: &mut MessageBuilder, kind: i32, data: &str) {
    builder.group(known::SUBSCRIPTION_ID, |group| {
        group
            .put(known::SUBSCRIPTION_ID_TYPE, kind)
            .put(known::SUBSCRIPTION_ID_DATA, data);
    });
}

/// An AA-Request.
pub(crate) fn aar(session: &str, fill: impl FnOnce(&mut MessageBuilder)) -> MessageMut {
    request(command::AA, application::RX, AF, session, fill)
}
