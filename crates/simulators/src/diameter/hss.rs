//! A home subscriber server at its S6a end (TS 29.272 §5.2, §7.2): ULA, AIA and PUA; at its Cx end (TS 29.229 §6.1): LIA.

use diameter_proto::known::{self, command};
use diameter_proto::{Avp, HEADER_LEN, MessageRef, ResultCode};
use rand::Rng;
use rand::rngs::SmallRng;

use super::{DiameterSettings, Node, Outcome, Role};
use callmodel::resolution::imsi_of;
use callmodel::subscribers::SubscriberRanges;
use loadgen::diameter::{Introduction, Template, TemplateError, fill};

/// DIAMETER_ERROR_USER_UNKNOWN (TS 29.272 §7.4.3).
pub const USER_UNKNOWN: u32 = 5001;
/// Sizes of answers around their average.
const SPREAD: [f64; 4] = [0.7, 0.9, 1.1, 1.3];

const ULA: &str = include_str!("messages/ula.txt");
const AIA: &str = include_str!("messages/aia.txt");
const PUA: &str = include_str!("messages/pua.txt");
const LIA: &str = include_str!("messages/lia.txt");
/// Location-Info (TS 29.229 §6.1.5).
const LOCATION_INFO: u32 = 302;

/// Home subscriber servers.
#[derive(Debug)]
pub struct Hss {
    subscribers: Option<SubscriberRanges>,
    first: u64,
    nodes: Vec<Answers>,
}

/// What follows the Session-Id in the answers of one node.
#[derive(Debug)]
struct Answers {
    update_location: Vec<Vec<u8>>,
    authentication: Vec<u8>,
    purge: Vec<u8>,
    location: Vec<u8>,
}

impl Hss {
    /// Servers of these names.
    ///
    /// # Errors
    /// When a name cannot stand in a message.
    pub fn new(settings: &DiameterSettings, nodes: &[Introduction]) -> Result<Self, TemplateError> {
        let nodes = nodes.iter().map(|node| Answers::new(settings, node));
        Ok(Self {
            subscribers: settings.subscribers,
            first: u64::from(settings.first),
            nodes: nodes.collect::<Result<_, _>>()?,
        })
    }
}

impl Answers {
    fn new(settings: &DiameterSettings, node: &Introduction) -> Result<Self, TemplateError> {
        let name = |text: &str| {
            text.replace("HOST", &node.origin.host)
                .replace("REALM", &node.origin.realm)
        };
        let after_header = |template: &Template| template.as_bytes()[HEADER_LEN..].to_vec();
        let update_location = SPREAD.map(|factor| {
            let bytes = f64::from(settings.answer_bytes) * factor;
            let session = crate::network::SESSION_BYTES;
            let template = fill(&name(ULA), access_point, (bytes as usize).saturating_sub(session))?;
            Ok(after_header(&template))
        });
        Ok(Self {
            update_location: update_location
                .into_iter()
                .collect::<Result<_, TemplateError>>()?,
            authentication: after_header(&Template::parse(&name(AIA))?),
            purge: after_header(&Template::parse(&name(PUA))?),
            location: after_header(&Template::parse(&name(LIA))?),
        })
    }
}

/// One more APN of a subscription.
fn access_point(number: usize) -> String {
    include_str!("messages/apn.txt").replace("NUMBER", &(number + 1).to_string())
}

impl Role for Hss {
    fn answer(
        &mut self,
        node: Node<'_>,
        request: MessageRef<'_>,
        random: &mut SmallRng,
        out: &mut Vec<u8>,
    ) -> Outcome {
        let mut imsi = None;
        let mut session: Option<Avp<'_>> = None;
        let mut proxies: smallvec::SmallVec<[Avp<'_>; 2]> = smallvec::SmallVec::new();
        for avp in request.walk() {
            let Ok(avp) = avp else {
                node.introduction
                    .put_result(request, ResultCode::INVALID_AVP_LENGTH, out);
                return Outcome::bad();
            };
            if avp.is(known::SESSION_ID) {
                session = Some(avp);
            } else if avp.is(known::USER_NAME) {
                imsi = std::str::from_utf8(avp.data)
                    .ok()
                    .and_then(|text| text.parse::<u64>().ok());
            } else if avp.is(known::PUBLIC_IDENTITY) {
                imsi = std::str::from_utf8(avp.data).ok().and_then(imsi_of);
            } else if avp.is(known::PROXY_INFO) {
                proxies.push(avp);
            }
        }
        let (Some(session), Some(imsi)) = (session, imsi) else {
            node.introduction
                .put_result(request, ResultCode::MISSING_AVP, out);
            return Outcome::bad();
        };
        if let Some(ranges) = &self.subscribers
            && ranges.node_of(imsi) != Some(self.first + node.number as u64)
        {
            node.introduction
                .put_experimental_result(request, USER_UNKNOWN, out);
            return Outcome::default();
        }
        let answers = &self.nodes[node.number];
        let rest = match request.command() {
            command::UPDATE_LOCATION => {
                &answers.update_location[random.random_range(0..answers.update_location.len())]
            }
            command::AUTHENTICATION_INFORMATION => &answers.authentication,
            command::PURGE_UE => &answers.purge,
            LOCATION_INFO => &answers.location,
            _ => {
                node.introduction
                    .put_result(request, ResultCode::COMMAND_UNSUPPORTED, out);
                return Outcome::bad();
            }
        };
        let start = out.len();
        let mut header = request.header();
        header.flags.0 &= diameter_proto::CommandFlags::PROXIABLE.0;
        out.extend_from_slice(&header.encode());
        put_padded(&session, out);
        out.extend_from_slice(rest);
        for proxy in &proxies {
            put_padded(proxy, out);
        }
        let length = ((out.len() - start) as u32).to_be_bytes();
        out[start + 1..start + 4].copy_from_slice(&length[1..]);
        Outcome::default()
    }
}

fn put_padded(avp: &Avp<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(avp.raw);
    out.extend_from_slice(&[0; 3][..diameter_proto::avp::padding(avp.raw.len())]);
}
