//! Writing messages: [`MessageBuilder`] puts a header before the AVPs that an [`AvpWriter`] appends.

use bytes::{BufMut, BytesMut};
use thiserror::Error;

use crate::avp::{AvpKey, AvpWriter};
use crate::dictionary::Dictionary;
use crate::fault::{Fault, ResultCode};
use crate::header::{CommandFlags, HEADER_LEN, Header, MAX_LENGTH, VERSION};
use crate::known::application::COMMON;
use crate::known::{self, key};
use crate::message::{Message, MessageMut};

/// Why something could not be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum BuildError {
    /// A message or an AVP got longer than a 24-bit length can say.
    #[error("a message or AVP got longer than {MAX_LENGTH} bytes, the most a length field can say")]
    TooLong,
}

/// Identity of this node in the messages that it sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// Origin-Host.
    pub host: String,
    /// Origin-Realm.
    pub realm: String,
}

impl Origin {
    /// An origin of these names.
    #[must_use]
    pub fn new(host: impl Into<String>, realm: impl Into<String>) -> Self {
        Self {
            host: host.into(),
            realm: realm.into(),
        }
    }
}

/// Builds a message. AVPs are appended through [`AvpWriter`], to which it dereferences.
#[derive(Debug)]
pub struct MessageBuilder {
    header: Header,
    avps: AvpWriter,
}

impl std::ops::Deref for MessageBuilder {
    type Target = AvpWriter;

    fn deref(&self) -> &AvpWriter {
        &self.avps
    }
}

impl std::ops::DerefMut for MessageBuilder {
    fn deref_mut(&mut self) -> &mut AvpWriter {
        &mut self.avps
    }
}

impl MessageBuilder {
    /// A message with this header, whose version and length need not be right yet.
    #[must_use]
    pub fn new(header: Header) -> Self {
        Self::with_capacity(header, 512)
    }

    /// As [`MessageBuilder::new`], with capacity for a count of bytes.
    #[must_use]
    pub fn with_capacity(header: Header, bytes: usize) -> Self {
        let mut avps = AvpWriter::with_capacity(bytes.max(HEADER_LEN));
        avps.out.put_bytes(0, HEADER_LEN);
        Self { header, avps }
    }

    /// A request that may be proxied. Its identifiers are zero: the driver sets the Hop-by-Hop Identifier of each
    /// request that it sends, and the End-to-End Identifier where it is zero.
    #[must_use]
    pub fn request(command: u32, application: u32) -> Self {
        Self::new(Header {
            version: VERSION,
            length: 0,
            flags: CommandFlags::REQUEST.with(CommandFlags::PROXIABLE),
            command,
            application,
            hop_by_hop: 0,
            end_to_end: 0,
        })
    }

    /// An answer to `request`: same command, application and identifiers, same P flag (RFC 6733 §6.2), and
    /// its Session-Id first, if it has one.
    #[must_use]
    pub fn answer(request: &Message<impl AsRef<[u8]>>) -> Self {
        let mut header = request.header();
        header.flags = CommandFlags(header.flags.0 & CommandFlags::PROXIABLE.0);
        let mut builder = Self::new(header);
        // A broken request still gets an answer: a walk that fails counts as a request without Session-Id.
        if let Ok(Some(session)) = request.avps().find(known::SESSION_ID) {
            builder.copy(&session);
        }
        builder
    }

    /// The complete answer to a request that is refused for `fault`: result code with the E flag where §7.1.3
    /// wants it, Error-Message, Failed-AVP, and the request's Proxy-Info (§6.2).
    #[must_use]
    pub fn error_answer(request: &Message<impl AsRef<[u8]>>, origin: &Origin, fault: &Fault) -> MessageMut {
        let mut builder = Self::answer(request);
        builder.put_fault(origin, fault);
        if !builder.header.flags.contains(CommandFlags::ERROR) && request.application() != COMMON {
            builder.copy_required(request);
        }
        builder.copy_proxies(request);
        builder.finish_within_bounds()
    }

    /// Copies the request's Proxy-Info, in its order: agents on the way keep their state there (RFC 6733 §6.2).
    pub fn copy_proxies(&mut self, request: &Message<impl AsRef<[u8]>>) {
        let avps = request.avps().map_while(Result::ok);
        for avp in avps.filter(|avp| avp.is(known::PROXY_INFO)) {
            self.copy(&avp);
        }
    }

    /// Copies what an answer of the command has to repeat of its request, whatever its result (RFC 6733 §9.7.2, RFC 8506 §3.2, TS 29.212
    /// §5.6.3, TS 29.272 §7.2 and others): strict peers discard an answer without it, and one with AVPs that its grammar lacks.
    fn copy_required(&mut self, request: &Message<impl AsRef<[u8]>>) {
        let find = |key: AvpKey| {
            let mut avps = request.avps().map_while(Result::ok);
            avps.find(|avp| avp.key() == key)
        };
        let command = Dictionary::standard().command(request.command(), request.application());
        // AFs with the AA command of RFC 7155 (§3.2) require its Auth-Request-Type, which that of Rx lacks.
        let is_allowed = |key: &AvpKey| match command {
            Some(command) => {
                let mut rules = command.answer.rules.iter();
                rules.any(|rule| rule.key == *key)
                    || command.code == known::command::AA && *key == key::AUTH_REQUEST_TYPE
            }
            None => true,
        };
        let repeated = [
            key::AUTH_SESSION_STATE,
            key::VENDOR_SPECIFIC_APPLICATION_ID,
            key::AUTH_APPLICATION_ID,
            key::AUTH_REQUEST_TYPE,
            key::CC_REQUEST_TYPE,
            key::CC_REQUEST_NUMBER,
            key::ACCOUNTING_RECORD_TYPE,
            key::ACCOUNTING_RECORD_NUMBER,
        ];
        for avp in repeated.into_iter().filter(is_allowed).filter_map(find) {
            self.copy(&avp);
        }
    }

    /// As [`MessageBuilder::error_answer`], to a request of which only the header could be read.
    #[must_use]
    pub fn error_answer_to_header(request: &Header, origin: &Origin, fault: &Fault) -> MessageMut {
        let mut header = *request;
        header.flags = CommandFlags(header.flags.0 & CommandFlags::PROXIABLE.0);
        let mut builder = Self::new(header);
        builder.put_fault(origin, fault);
        builder.finish_within_bounds()
    }

    fn put_fault(&mut self, origin: &Origin, fault: &Fault) {
        if fault.code.is_protocol_error() && fault.vendor == 0 {
            self.header.flags = self.header.flags.with(CommandFlags::ERROR);
        }
        match fault.vendor {
            0 => {
                self.put(known::RESULT_CODE, fault.code.0);
            }
            vendor => {
                self.group(known::EXPERIMENTAL_RESULT, |group| {
                    group
                        .put(known::VENDOR_ID, vendor)
                        .put(known::EXPERIMENTAL_RESULT_CODE, fault.code.0);
                });
            }
        }
        self.put(known::ORIGIN_HOST, &origin.host)
            .put(known::ORIGIN_REALM, &origin.realm);
        if !fault.reason.is_empty() {
            self.put(known::ERROR_MESSAGE, &fault.reason);
        }
        if let Some(failed) = &fault.failed_avp {
            self.group(known::FAILED_AVP, |group| {
                group.append_encoded(failed);
            });
        }
    }

    /// Result-Code, Origin-Host and Origin-Realm: what nearly every answer has.
    pub fn result(&mut self, code: ResultCode, origin: &Origin) -> &mut Self {
        self.put(known::RESULT_CODE, code.0)
            .put(known::ORIGIN_HOST, &origin.host)
            .put(known::ORIGIN_REALM, &origin.realm);
        self
    }

    /// The flags of the header, to be changed.
    pub fn flags_mut(&mut self) -> &mut CommandFlags {
        &mut self.header.flags
    }

    /// Sets both identifiers.
    pub fn identifiers(&mut self, hop_by_hop: u32, end_to_end: u32) -> &mut Self {
        self.header.hop_by_hop = hop_by_hop;
        self.header.end_to_end = end_to_end;
        self
    }

    /// The message.
    ///
    /// # Errors
    /// When a length did not fit into 24 bits.
    pub fn finish(mut self) -> Result<MessageMut, BuildError> {
        let length = self.avps.out.len();
        if self.avps.too_long || length > MAX_LENGTH {
            return Err(BuildError::TooLong);
        }
        self.header.length = length as u32;
        self.header.version = VERSION;
        // `new` put HEADER_LEN bytes there.
        self.avps.out[..HEADER_LEN].copy_from_slice(&self.header.encode());
        Ok(Message::trusted(self.avps.out))
    }

    /// For messages whose parts come from one received message, which itself fits into 24 bits. Should they
    /// not fit together all the same, the AVPs are left out: a bare answer is better than none.
    fn finish_within_bounds(self) -> MessageMut {
        let header = self.header;
        self.finish().unwrap_or_else(|BuildError::TooLong| {
            let bare = Header {
                length: HEADER_LEN as u32,
                version: VERSION,
                ..header
            };
            Message::trusted(BytesMut::from(&bare.encode()[..]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::avp::encode_one;
    use crate::kind::AddressValue;

    fn request() -> Message {
        let mut builder = MessageBuilder::request(316, 16_777_251);
        builder.identifiers(7, 9);
        builder
            .put(known::SESSION_ID, "mme;1")
            .put(known::ORIGIN_HOST, "mme.example");
        builder.group(known::PROXY_INFO, |group| {
            group
                .put(known::PROXY_HOST, "agent")
                .put(known::PROXY_STATE, b"xyz");
        });
        builder.finish().unwrap().freeze()
    }

    #[test]
    fn what_is_built_can_be_read() {
        let message = request();
        let again = Message::parse(message.as_bytes()).unwrap();
        assert_eq!(again.get(known::SESSION_ID).unwrap(), Some("mme;1"));
        let proxy = again.require(known::PROXY_INFO).unwrap();
        assert_eq!(proxy.get(known::PROXY_STATE).unwrap(), Some(&b"xyz"[..]));
        assert!(again.get(known::RESULT_CODE).unwrap().is_none());
        assert_eq!(again.header().hop_by_hop, 7);
        let missing = again.require(known::HOST_IP_ADDRESS).unwrap_err();
        assert_eq!(missing.code, ResultCode::MISSING_AVP);
        assert_eq!(
            missing.failed_avp.unwrap().len(),
            16,
            "header and six zeros, padded"
        );
    }

    #[test]
    fn an_error_answer_has_all_that_the_rfc_asks_for() {
        let fault = Fault::missing(known::DESTINATION_REALM);
        let answer = MessageBuilder::error_answer(&request(), &Origin::new("us", "realm"), &fault);
        assert_eq!(answer.flags(), CommandFlags::PROXIABLE);
        assert_eq!(
            (answer.hop_by_hop(), answer.end_to_end(), answer.command()),
            (7, 9, 316)
        );
        assert_eq!(answer.require(known::RESULT_CODE).unwrap(), 5005);
        assert_eq!(answer.require(known::SESSION_ID).unwrap(), "mme;1");
        let failed = answer.require(known::FAILED_AVP).unwrap();
        assert!(failed.find(known::DESTINATION_REALM).unwrap().is_some());
        assert!(
            answer
                .require(known::PROXY_INFO)
                .unwrap()
                .find(known::PROXY_HOST)
                .unwrap()
                .is_some()
        );

        // What the grammar of its command requires comes back, except where the E flag takes its place (RFC 6733 §7.2).
        let mut ccr = MessageBuilder::request(272, 16_777_238);
        ccr.put(known::AUTH_APPLICATION_ID, 16_777_238)
            .put(known::CC_REQUEST_TYPE, 3)
            .put(known::CC_REQUEST_NUMBER, 9);
        let ccr = ccr.finish().unwrap().freeze();
        for (code, is_of_command) in [
            (ResultCode::UNKNOWN_SESSION_ID, true),
            (ResultCode::TOO_BUSY, false),
        ] {
            let fault = Fault::new(code, "");
            let answer = MessageBuilder::error_answer(&ccr, &Origin::new("us", "realm"), &fault);
            let number = answer.get(known::CC_REQUEST_NUMBER).unwrap();
            assert_eq!(number, is_of_command.then_some(9));
            assert_eq!(answer.avps().count(), if is_of_command { 6 } else { 3 });
        }

        let protocol = Fault::new(ResultCode::TOO_BUSY, "later");
        let answer = MessageBuilder::error_answer(&request(), &Origin::new("us", "realm"), &protocol);
        assert!(answer.flags().contains(CommandFlags::ERROR));
    }

    #[test]
    fn an_error_answer_has_what_the_grammar_of_its_command_has() {
        use crate::check::{Strictness, check};
        use known::{application, command};
        let of = |command: u32, application: u32| {
            let mut request = MessageBuilder::request(command, application);
            request
                .put(known::SESSION_ID, "a;1")
                .put(known::AUTH_APPLICATION_ID, application)
                .put(known::AUTH_REQUEST_TYPE, 1)
                .put(known::AUTH_SESSION_STATE, 1);
            let request = request.finish().unwrap().freeze();
            let fault = Fault::new(ResultCode::UNKNOWN_SESSION_ID, "");
            let answer = MessageBuilder::error_answer(&request, &Origin::new("us", "realm"), &fault);
            check(&answer, Dictionary::standard(), Strictness::Pedantic).unwrap();
            answer.get(known::AUTH_APPLICATION_ID).unwrap().is_some()
        };
        for (command, application, has_application) in [
            (command::AA, application::RX, true),
            (command::CREDIT_CONTROL, application::GX, true),
            (command::CREDIT_CONTROL, application::SD, true),
            (command::SPENDING_LIMIT, application::SY, true),
            (command::TDF_SESSION, application::SD, true),
            (command::SESSION_TERMINATION, application::RX, false),
            (command::SESSION_TERMINATION, application::SY, false),
            (command::RE_AUTH, application::RX, false),
            (command::RE_AUTH, application::GX, false),
            (command::ABORT_SESSION, application::RX, false),
            (command::SPENDING_STATUS_NOTIFICATION, application::SY, false),
            // What the dictionary does not have is answered with all that its answer may need.
            (9_999_999, application::RX, true),
        ] {
            assert_eq!(
                of(command, application),
                has_application,
                "{command} {application}"
            );
        }
    }

    #[test]
    fn a_message_beyond_24_bits_is_refused() {
        let mut builder = MessageBuilder::request(316, 0);
        builder.put(known::PROXY_STATE, &vec![0; MAX_LENGTH - 20]);
        assert_eq!(builder.finish().unwrap_err(), BuildError::TooLong);
    }

    #[test]
    fn a_relay_patches_in_place() {
        let mut message = Message::parse(BytesMut::from(request().as_bytes())).unwrap();
        message.set_hop_by_hop(0xffff_0000);
        message.set_flags(message.flags().with(CommandFlags::RETRANSMITTED));
        let record = encode_one(known::ROUTE_RECORD, "mme.example");
        assert!(message.announce_appended(record.len()));
        assert!(!message.announce_appended(MAX_LENGTH));
        let sent = [message.as_bytes(), &record].concat();
        let received = Message::parse(&sent[..]).unwrap();
        assert_eq!(received.get(known::ROUTE_RECORD).unwrap(), Some("mme.example"));
        assert_eq!(received.flags().to_string(), "RPT");
        assert_eq!(received.hop_by_hop(), 0xffff_0000);
    }

    #[test]
    fn addresses_take_ip_addresses() {
        let mut writer = AvpWriter::default();
        let ip: std::net::IpAddr = "2001:db8::9".parse().unwrap();
        writer.put(known::HOST_IP_ADDRESS, ip.into());
        let read = crate::Avps::new(writer.as_bytes())
            .require(known::HOST_IP_ADDRESS)
            .unwrap();
        assert_eq!(read, AddressValue::Ip(ip));
    }
}
