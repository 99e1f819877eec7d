//! A Diameter peer that executes a script, right or wrong: raw bytes or messages in text form (`diameter_proto::text`).
//! It answers no message by itself.
//!
//! ```ignore
//! let mut mme = Peer::connect(address).await;
//! mme.capabilities("mme.example", S6A).await;          // CER, and a CEA that says success
//! mme.send_text("DWR { Origin-Host = \"mme.example\" Origin-Realm = \"example\" }").await;
//! let dwa = mme.expect(280).await;
//! mme.break_off();                                     // a reset, no DPR
//! ```

use std::net::SocketAddr;
use std::time::Duration;

use bytes::BytesMut;
use diameter_proto::known::{self, command};
use diameter_proto::peer::{ApplicationId, Capabilities};
use diameter_proto::{Dictionary, Message, MessageBuilder, MessageMut, Origin, ResultCode, next_frame, text};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Timeout of an expected message or close: long enough for a busy machine, short enough that the failed expectation is
/// known.
const PATIENCE: Duration = Duration::from_secs(20);
/// The longest message read.
const LONGEST: usize = 1 << 24;

/// The scripted peer.
#[derive(Debug)]
pub struct Peer {
    stream: TcpStream,
    buffer: BytesMut,
    origin: Origin,
}

impl Peer {
    /// Connects; sends nothing.
    ///
    /// # Panics
    /// When the connection cannot be made.
    pub async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address)
            .await
            .expect("the node under test listens");
        Self::over(stream)
    }

    /// Waits for a connection.
    ///
    /// # Panics
    /// When none comes.
    pub async fn accept(listener: &TcpListener) -> Self {
        let accepted = tokio::time::timeout(PATIENCE, listener.accept()).await;
        Self::over(
            accepted
                .expect("no peer connects")
                .expect("a connection can be accepted")
                .0,
        )
    }

    fn over(stream: TcpStream) -> Self {
        stream.set_nodelay(true).expect("a TCP option can be set");
        Self {
            stream,
            buffer: BytesMut::new(),
            origin: Origin::new("testpeer.example", "example"),
        }
    }

    /// The name it goes by in what it sends of its own.
    #[must_use]
    pub const fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Our address.
    ///
    /// # Panics
    /// When the socket has none.
    #[must_use]
    pub fn local(&self) -> SocketAddr {
        self.stream
            .local_addr()
            .expect("a connected socket has an address")
    }

    /// Sends bytes as they are.
    ///
    /// # Panics
    /// When the other side has closed.
    pub async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("the other side reads");
    }

    /// Sends bytes as they are; false when the other side has closed.
    pub async fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok()
    }

    /// Sends a message in text form.
    ///
    /// # Panics
    /// When the text is not a valid message, or the other side has closed.
    pub async fn send_text(&mut self, message: &str) {
        let message = text::parse(message, Dictionary::standard()).expect("the script is a message");
        self.send(message.as_bytes()).await;
    }

    /// The next message, whatever it is; none at the end of the stream.
    ///
    /// # Panics
    /// When no message arrives, or bytes arrive that are not a valid message.
    pub async fn next(&mut self) -> Option<MessageMut> {
        loop {
            if let Some(message) = next_frame(&mut self.buffer, LONGEST).expect("what comes is Diameter") {
                return Some(message);
            }
            let read = tokio::time::timeout(PATIENCE, self.stream.read_buf(&mut self.buffer));
            match read.await.expect("nothing comes") {
                Ok(1..) => {}
                Ok(0) | Err(_) => return None,
            }
        }
    }

    /// The next message, which has to be of this command. A watchdog before it is answered: a node may send one when a peer
    /// was silent, as it is on a busy machine.
    ///
    /// # Panics
    /// When it is not, or none comes.
    pub async fn expect(&mut self, command: u32) -> MessageMut {
        let message = loop {
            let message = self
                .next()
                .await
                .expect("the other side closed instead of sending");
            let is_watchdog = message.is_request() && message.command() == command::DEVICE_WATCHDOG;
            if !is_watchdog || command == command::DEVICE_WATCHDOG {
                break message;
            }
            self.answer(&message, ResultCode::SUCCESS).await;
        };
        let shown = text::print(&message, Dictionary::standard()).to_string();
        assert_eq!(
            message.command(),
            command,
            "expected command {command}, got {shown}"
        );
        message
    }

    /// The next message, which has to be an answer with this result.
    ///
    /// # Panics
    /// When it is not, or none comes.
    pub async fn expect_result(&mut self, command: u32, result: ResultCode) -> MessageMut {
        let answer = self.expect(command).await;
        let shown = text::print(&answer, Dictionary::standard()).to_string();
        assert!(!answer.is_request(), "expected an answer, got {shown}");
        let code = answer.get(known::RESULT_CODE).expect("the answer is whole");
        assert_eq!(code, Some(result.0), "expected {result}, got {shown}");
        answer
    }

    /// The other side closes, and sends nothing before it does.
    ///
    /// # Panics
    /// When it does not, or does.
    pub async fn expect_close(&mut self) {
        if let Some(message) = self.next().await {
            let shown = text::print(&message, Dictionary::standard()).to_string();
            panic!("expected the end of the connection, got {shown}");
        }
    }

    /// The other side sends a DPR with this cause; the DPR is not answered yet.
    ///
    /// # Panics
    /// When it does not, or for another cause.
    pub async fn expect_disconnect(&mut self, cause: i32) -> MessageMut {
        let dpr = self.expect(command::DISCONNECT_PEER).await;
        let got = dpr.require(known::DISCONNECT_CAUSE).expect("a DPR has a cause");
        assert_eq!(got, cause, "the cause of the DPR");
        dpr
    }

    /// Connects and exchanges capabilities as this host of that realm.
    ///
    /// # Panics
    /// When the CEA does not say success.
    pub async fn admitted(
        address: SocketAddr,
        host: &str,
        realm: &str,
        applications: &[ApplicationId],
    ) -> Self {
        let mut peer = Self::connect(address).await;
        realm.clone_into(&mut peer.origin.realm);
        peer.capabilities(host, applications).await;
        peer
    }

    /// Connects as this host of that realm; the CEA has this result, and the connection ends.
    ///
    /// # Panics
    /// When it is another, or the connection goes on.
    pub async fn refused(
        address: SocketAddr,
        host: &str,
        realm: &str,
        applications: &[ApplicationId],
        why: ResultCode,
    ) {
        let refusal = Self::refusal(address, host, realm, applications).await;
        assert_eq!(refusal, why, "the result of the CEA for {host}");
    }

    /// Connects as this host of that realm; answers the result of the CEA, after which the connection ends.
    ///
    /// # Panics
    /// When the connection goes on.
    pub async fn refusal(
        address: SocketAddr,
        host: &str,
        realm: &str,
        applications: &[ApplicationId],
    ) -> ResultCode {
        let mut peer = Self::connect(address).await;
        realm.clone_into(&mut peer.origin.realm);
        peer.send_cer(host, applications).await;
        let answer = peer.expect(command::CAPABILITIES_EXCHANGE).await;
        peer.expect_close().await;
        ResultCode(answer.require(known::RESULT_CODE).expect("a CEA has a result"))
    }

    /// Exchanges capabilities as the one who connected.
    ///
    /// # Panics
    /// When the CEA does not say success.
    pub async fn capabilities(&mut self, host: &str, applications: &[ApplicationId]) -> MessageMut {
        self.send_cer(host, applications).await;
        self.expect_result(command::CAPABILITIES_EXCHANGE, ResultCode::SUCCESS)
            .await
    }

    /// Sends a CER under this name.
    ///
    /// # Panics
    /// When the other side has closed.
    pub async fn send_cer(&mut self, host: &str, applications: &[ApplicationId]) {
        self.origin.host = host.to_owned();
        let mut local =
            Capabilities::new(host, &*self.origin.realm).with_applications(applications.iter().copied());
        local.addresses.push(self.local().ip());
        let mut cer = MessageBuilder::request(command::CAPABILITIES_EXCHANGE, 0);
        *cer.flags_mut() = diameter_proto::CommandFlags::REQUEST;
        cer.identifiers(1, 1);
        local.write(&mut cer);
        self.send(cer.finish().expect("a CER is short").as_bytes()).await;
    }

    /// Waits for the CER of the one who connected to us, and answers with success.
    ///
    /// # Panics
    /// When something else comes.
    pub async fn answer_capabilities(&mut self, host: &str, applications: &[ApplicationId]) -> MessageMut {
        let cer = self.expect(command::CAPABILITIES_EXCHANGE).await;
        self.origin.host = host.to_owned();
        let mut local =
            Capabilities::new(host, &*self.origin.realm).with_applications(applications.iter().copied());
        local.addresses.push(self.local().ip());
        let mut cea = MessageBuilder::answer(&cer);
        cea.put(known::RESULT_CODE, ResultCode::SUCCESS.0);
        local.write(&mut cea);
        self.send(cea.finish().expect("a CEA is short").as_bytes()).await;
        cer
    }

    /// Answers a request with this result.
    ///
    /// # Panics
    /// When the other side has closed.
    pub async fn answer<B: AsRef<[u8]>>(&mut self, request: &Message<B>, result: ResultCode) {
        let mut answer = MessageBuilder::answer(request);
        answer.result(result, &self.origin);
        self.send(answer.finish().expect("an answer is short").as_bytes())
            .await;
    }

    /// Ends the connection with a reset: no DPR, nothing flushed.
    pub fn break_off(self) {
        // Lingering for no time is what makes the kernel send a reset.
        let _ = self.stream.set_zero_linger();
    }
}
