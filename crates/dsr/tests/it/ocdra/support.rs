//! OCSs and a client around an online charging DRA.

use std::path::Path;

use diameter::proto::known::{self, application, command};
use diameter::proto::peer::ApplicationId;
use diameter::proto::{CommandFlags, Message, MessageBuilder, MessageMut, Origin, ResultCode};
use dsr::{Config, Running};
use dsr_ocdra::{Event, Ocdra};
use serde_json::Value;
use testpeer::diameter::Peer;

use crate::pdra::support::{request, subscriber};
use crate::support::{REALM, Waiting, available, config, read};

pub(crate) const CTF: &str = "ctf.example";
pub(crate) const OCSS: [&str; 2] = ["ocs1.example", "ocs2.example"];
pub(crate) const IMSI: &str = "001010000000001";

/// CC-Request-Type.
pub(crate) const INITIAL: i32 = 1;
pub(crate) const UPDATE: i32 = 2;
pub(crate) const TERMINATION: i32 = 3;
pub(crate) const EVENT: i32 = 4;

/// A router with an online charging DRA before these OCSs; `pool` are further settings of the pool, `more` further lines of the
/// application.
pub(crate) fn agent(directory: &Path, pool: &str, more: &str) -> Config {
    let servers = OCSS.map(|host| format!("{{host: {host}}}")).join(", ");
    let yaml = format!(
        "applications:
  - name: charging
    ocdra:
      repository: {{store: {{embedded: {{directory: {}, durability: os}}}}}}
      pools: [{{name: all, servers: [{servers}]{pool}}}]
{more}
routing:
  applicationRouteTables:
    - name: default
      rules: [{{when: {{applications: [4]}}, action: {{application: charging}}}}]
",
        directory.display(),
    );
    read(config(), &yaml)
}

/// Everything around a router.
pub(crate) struct World {
    pub(crate) dsr: Running,
    pub(crate) servers: Vec<Waiting>,
    pub(crate) ocss: Vec<Peer>,
    pub(crate) ctf: Peer,
}

impl World {
    pub(crate) async fn new(directory: &Path) -> Self {
        Self::of(agent(directory, "", "")).await
    }

    pub(crate) async fn of(mut config: Config) -> Self {
        let mut servers = Vec::new();
        for host in OCSS {
            let server = Waiting::new(host).await;
            config.peers.push(server.peer());
            servers.push(server);
        }
        let dsr = dsr::start(config).unwrap();
        let mut ocss = Vec::new();
        for server in &servers {
            ocss.push(server.relay(&dsr).await);
        }
        Self {
            ctf: client(&dsr, CTF).await,
            dsr,
            servers,
            ocss,
        }
    }

    /// Sends a request of the client; the position of the OCS that gets it, and the request.
    pub(crate) async fn reaches(&mut self, request: &MessageMut) -> (usize, MessageMut) {
        self.ctf.send(request.as_bytes()).await;
        let [one, other] = self.ocss.as_mut_slice() else {
            panic!("there are two OCSs");
        };
        tokio::select! {
            request = one.expect(request.command()) => (0, request),
            request = other.expect(request.command()) => (1, request),
        }
    }

    /// An OCS answers a request of the client, which gets that; `failover` is its CC-Session-Failover.
    pub(crate) async fn answers(
        &mut self,
        at: usize,
        request: &MessageMut,
        result: ResultCode,
        failover: Option<i32>,
    ) -> MessageMut {
        let answer = answer(request, OCSS[at], result, failover);
        self.ocss[at].send(answer.as_bytes()).await;
        self.ctf.expect_result(request.command(), result).await
    }

    /// A request of the client that is answered with success; the position of its OCS.
    pub(crate) async fn served(&mut self, request: &MessageMut) -> usize {
        self.served_with(request, None).await
    }

    /// As [`World::served`], with this CC-Session-Failover.
    pub(crate) async fn served_with(&mut self, request: &MessageMut, failover: Option<i32>) -> usize {
        let (at, arrived) = self.reaches(request).await;
        self.answers(at, &arrived, ResultCode::SUCCESS, failover).await;
        at
    }

    /// Sends a request of the client, which the router answers with this.
    pub(crate) async fn is_refused(&mut self, request: &MessageMut, result: ResultCode) -> MessageMut {
        self.ctf.send(request.as_bytes()).await;
        self.ctf.expect_result(request.command(), result).await
    }

    /// Sends a request of an OCS in a session, for this host, to the client, which answers it.
    pub(crate) async fn reports(
        &mut self,
        at: usize,
        command: u32,
        session: &str,
        host: &str,
        result: ResultCode,
    ) {
        let report = report(at, command, session, host);
        self.ocss[at].send(report.as_bytes()).await;
        let arrived = self.ctf.expect(command).await;
        assert_eq!(arrived.require(known::DESTINATION_HOST).unwrap(), CTF);
        self.ctf.answer(&arrived, result).await;
        self.ocss[at].expect_result(command, result).await;
    }

    pub(crate) fn count(&self, event: Event) -> u64 {
        self.dsr.count_of::<Ocdra>(event)
    }

    /// What the router knows of a session.
    pub(crate) fn session(&self, id: &str) -> Option<Value> {
        self.dsr.ocdra_sessions(id).pop()
    }

    /// Waits until the router knows a session no longer.
    pub(crate) async fn ends(&self, id: &str) {
        crate::support::until(|| self.session(id).is_none()).await;
    }

    /// Entries of a table of the application.
    pub(crate) fn entries(&self, table: &str) -> usize {
        let rows = self.dsr.applications();
        rows.iter().find(|row| row.table == table).unwrap().entries
    }
}

/// A client of Gy.
pub(crate) async fn client(dsr: &Running, host: &str) -> Peer {
    let mut peer = Peer::connect(dsr.addresses()[0]).await;
    peer.capabilities(host, &[ApplicationId::auth(application::CREDIT_CONTROL)])
        .await;
    available(dsr, host).await;
    peer
}

/// A request of an OCS in a session, for this host.
pub(crate) fn report(at: usize, command: u32, session: &str, host: &str) -> MessageMut {
    request(command, application::CREDIT_CONTROL, OCSS[at], session, |b| {
        b.put(known::DESTINATION_HOST, host);
    })
}

/// A CC-Request of this type and number.
pub(crate) fn ccr(
    session: &str,
    kind: i32,
    number: u32,
    fill: impl FnOnce(&mut MessageBuilder),
) -> MessageMut {
    request(
        command::CREDIT_CONTROL,
        application::CREDIT_CONTROL,
        CTF,
        session,
        |b| {
            b.put(known::CC_REQUEST_TYPE, kind)
                .put(known::CC_REQUEST_NUMBER, number);
            fill(b);
        },
    )
}

/// A CC-Request that begins a session of this subscriber.
pub(crate) fn initial(session: &str, imsi: &str) -> MessageMut {
    ccr(session, INITIAL, 0, |b| subscriber(b, 1, imsi))
}

/// A CC-Request of a session, for this host.
pub(crate) fn later(session: &str, kind: i32, number: u32, host: &str) -> MessageMut {
    ccr(session, kind, number, |b| {
        b.put(known::DESTINATION_HOST, host);
    })
}

/// It with the T flag.
pub(crate) fn again(mut request: MessageMut) -> MessageMut {
    request.set_flags(request.flags().with(CommandFlags::RETRANSMITTED));
    request
}

/// Whether a request has the T flag.
pub(crate) fn is_again<B: AsRef<[u8]>>(request: &Message<B>) -> bool {
    request.flags().contains(CommandFlags::RETRANSMITTED)
}

/// The answer of a host, with this CC-Session-Failover.
pub(crate) fn answer<B: AsRef<[u8]>>(
    request: &Message<B>,
    host: &str,
    result: ResultCode,
    failover: Option<i32>,
) -> MessageMut {
    let mut answer = MessageBuilder::answer(request);
    answer.result(result, &Origin::new(host, REALM));
    if let Some(failover) = failover {
        answer.put(known::CC_SESSION_FAILOVER, failover);
    }
    answer.finish().unwrap()
}
