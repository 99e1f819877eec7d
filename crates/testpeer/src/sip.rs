//! User agents of SIP over UDP, as far as registrations and calls through a proxy need them.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// How long a message may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// An end of SIP over UDP.
#[derive(Debug)]
pub struct Sip {
    socket: UdpSocket,
    /// Its address.
    pub address: SocketAddr,
    /// Its name in its URI, `sip:NAME@ims.example`.
    name: String,
}

impl Sip {
    /// One of this name, at a free port of loopback.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn bind(name: &str) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        socket
            .set_read_timeout(Some(PATIENCE))
            .expect("sockets have timeouts");
        let address = socket.local_addr().expect("it is bound");
        let name = name.to_owned();
        Self {
            socket,
            address,
            name,
        }
    }

    /// Sends a message.
    ///
    /// # Panics
    /// When it cannot be sent.
    pub fn send(&self, to: SocketAddr, message: &str) {
        self.socket
            .send_to(message.as_bytes(), to)
            .expect("it can be sent");
    }

    /// The next message of a dialogue whose first line begins so; provisional answers, repetitions and other messages pass.
    ///
    /// # Panics
    /// When none comes, with what has come.
    #[must_use]
    pub fn receive(&self, begins: &str, id: &str) -> String {
        let mut buffer = vec![0; 65_536];
        let mut others = Vec::new();
        loop {
            let Ok((length, _)) = self.socket.recv_from(&mut buffer) else {
                panic!("no {begins} came, but {others:#?}");
            };
            let message = String::from_utf8_lossy(&buffer[..length]).into_owned();
            if message.starts_with(begins) && lines(&message, "Call-ID").any(|line| line.ends_with(id)) {
                return message;
            }
            others.push(message);
        }
    }

    /// Registers through a proxy at a registrar.
    ///
    /// # Panics
    /// When a message does not come.
    pub fn register(&self, registrar: &Self, proxy: SocketAddr, id: &str) {
        let more = ["Expires: 600".to_owned()];
        self.send(proxy, &self.request("REGISTER", registrar, id, 1, &more, ""));
        let register = registrar.receive("REGISTER", id);
        let granted = [
            format!("Contact: <sip:{}@{}>;expires=600", self.name, self.address),
            format!("Service-Route: <sip:{};lr>", registrar.address),
            format!("P-Associated-URI: <sip:{}@ims.example>", self.name),
        ];
        registrar.send(proxy, &answer(&register, &granted, ""));
        let _ = self.receive("SIP/2.0 200", id);
    }

    /// A call through a proxy that is set up, with what it needs granted: the route set of the caller.
    ///
    /// # Panics
    /// When a message does not come.
    pub fn call(&self, callee: &Self, proxy: SocketAddr, id: &str) -> Vec<String> {
        let offer = self.request("INVITE", callee, id, 1, &[], &self.description());
        self.send(proxy, &offer);
        let invite = callee.receive("INVITE", id);
        let contact = format!("Contact: <sip:callee@{}>", callee.address);
        callee.send(proxy, &answer(&invite, &[contact], &callee.description()));
        let accepted = self.receive("SIP/2.0 200", id);
        let route: Vec<String> = lines(&accepted, "Record-Route")
            .map(|line| line.replace("Record-Route", "Route"))
            .collect();
        self.acknowledge(callee, proxy, id, &route);
        route
    }

    /// The caller confirms a call, also one that it has confirmed: Kamailio 5.6 knows the dialog some time after it has sent the
    /// answer, and an ACK before that does not count.
    ///
    /// # Panics
    /// When a message does not come.
    pub fn acknowledge(&self, callee: &Self, proxy: SocketAddr, id: &str, route: &[String]) {
        self.send(proxy, &self.request("ACK", callee, id, 1, route, ""));
        let _ = callee.receive("ACK", id);
    }

    /// The caller ends a call.
    ///
    /// # Panics
    /// When a message does not come.
    pub fn hang_up(&self, callee: &Self, proxy: SocketAddr, id: &str, route: &[String]) {
        self.send(proxy, &self.request("BYE", callee, id, 2, route, ""));
        callee.send(proxy, &answer(&callee.receive("BYE", id), &[], ""));
        let _ = self.receive("SIP/2.0 200", id);
    }

    /// A request. One within a call goes to the contact of the callee.
    fn request(
        &self,
        method: &str,
        callee: &Self,
        id: &str,
        number: u32,
        more: &[String],
        body: &str,
    ) -> String {
        let own = format!("<sip:{}@ims.example>", self.name);
        let (to, uri) = match method {
            "REGISTER" => (own.as_str(), "sip:ims.example".to_owned()),
            "INVITE" => ("<sip:callee@ims.example>", "sip:callee@ims.example".to_owned()),
            _ => (
                "<sip:callee@ims.example>;tag=callee",
                format!("sip:callee@{}", callee.address),
            ),
        };
        let head = [
            format!("{method} {uri} SIP/2.0"),
            format!(
                "Via: SIP/2.0/UDP {};branch=z9hG4bK{id}{method}{number}",
                self.address
            ),
            "Max-Forwards: 70".to_owned(),
            format!("From: {own};tag=ue"),
            format!("To: {to}"),
            format!("Call-ID: {id}"),
            format!("CSeq: {number} {method}"),
            format!("Contact: <sip:{}@{}>", self.name, self.address),
        ];
        message(head.into_iter().chain(more.iter().cloned()).collect(), body)
    }

    fn description(&self) -> String {
        let port = self.address.port();
        format!(
            "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio {port} RTP/AVP 0\r\nb=AS:41\r\n\
             a=rtpmap:0 PCMU/8000\r\n"
        )
    }
}

/// The answer 200 to a request.
#[must_use]
pub fn answer(request: &str, more: &[String], body: &str) -> String {
    let mut head = vec!["SIP/2.0 200 OK".to_owned()];
    for name in ["Via", "Record-Route", "From", "To", "Call-ID", "CSeq"] {
        head.extend(lines(request, name).map(|line| match name {
            "To" if !line.contains("tag=") => format!("{line};tag=callee"),
            _ => line.to_owned(),
        }));
    }
    head.extend_from_slice(more);
    message(head, body)
}

fn lines<'m>(message: &'m str, name: &'m str) -> impl Iterator<Item = &'m str> {
    let head = message.split("\r\n\r\n").next().unwrap_or_default();
    head.split("\r\n").filter(move |line| {
        let given = line.split(':').next().unwrap_or_default();
        given.eq_ignore_ascii_case(name)
    })
}

fn message(mut head: Vec<String>, body: &str) -> String {
    if !body.is_empty() {
        head.push("Content-Type: application/sdp".to_owned());
    }
    head.push(format!("Content-Length: {}", body.len()));
    format!("{}\r\n\r\n{body}", head.join("\r\n"))
}
