//! What the nodes of a generator thread send, and the check of what arrives.

use std::sync::Arc;

use callmodel::equipment::Listed;
use callmodel::stp::Kind;
use loadgen::m3ua::{Messages, Next, Reading};
use loadgen::{Fault, Ticket, Weights};
use rand::Rng;
use rand::rngs::SmallRng;
use ss7_proto::m3ua::{Data, ServiceIndicator};
use ss7_proto::sccp::{AddressBuf, Format, GlobalTitleBuf, MessageType, Unitdata};
use ss7_proto::{Digits, PointCode};

use super::call::{self, CIRCUITS, Call, Dialled};
use super::content;
use super::network::{
    CAP, GATEWAY, Network, OWN, OWN_TITLE, Party, ROUTING_NUMBER, Role, SCP, Share, home_digits, imsi_digits,
    msc_digits, ported_digits, title_digits,
};

/// Numbering plans (Q.713 §3.4.2.3.3).
const E164: u8 = 1;
const E212: u8 = 6;
/// Class 1 (in sequence), return on error.
pub(super) const CLASS: u8 = 0x81;
/// Subsystem of an EIR.
const EIR: u8 = 9;
/// Network indicator: national.
pub(super) const NATIONAL: u8 = 2;
/// Where equipment is listed that MAP asks about.
const LISTED: [Listed; 3] = [Listed::Range, Listed::Imei, Listed::Nowhere];
/// Marks equipment that is in no list.
pub(super) const UNLISTED: u64 = u64::MAX;

/// The nodes of a generator thread: MSCs, HLRs, SMSCs, perhaps the gateway of the other network.
#[derive(Debug)]
pub struct Calls {
    pub(super) network: Arc<Network>,
    share: Share,
    pub(super) parties: Vec<Party>,
    /// Positions of MSCs, and of HLRs and SMSCs.
    mscs: Vec<usize>,
    servers: Vec<usize>,
    hlrs: Vec<usize>,
    gateway: Option<usize>,
    control_point: Option<usize>,
    /// Of each MSC that has called, by its position.
    trunks: Vec<Trunk>,
    weights: Weights,
    listed: Weights,
    parts: Parts,
    pub(super) expected: Parts,
}

/// The circuits between an MSC and the exchange of the other network.
#[derive(Clone, Debug, Default)]
struct Trunk {
    next: u16,
    /// Transactions by circuit.
    transactions: Vec<u32>,
}

/// Buffers of a message.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) called: Vec<u8>,
    pub(super) calling: Vec<u8>,
    pub(super) content: Vec<u8>,
    pub(super) user_data: Vec<u8>,
}

impl Parts {
    pub(super) fn clear(&mut self) {
        let Self {
            called,
            calling,
            content,
            user_data,
        } = self;
        for buffer in [called, calling, content, user_data] {
            buffer.clear();
        }
    }

    /// Writes the other parts as a UDT into the last one.
    pub(super) fn write_unitdata(&mut self) {
        let unitdata = Unitdata {
            message_type: MessageType::Udt,
            class_or_cause: CLASS,
            hop_counter: 0,
            called: &self.called,
            calling: &self.calling,
            data: &self.content,
            optional: &[],
        };
        // The parts fit: tests make messages of each kind at the largest size.
        let _ = unitdata.write(&mut self.user_data);
    }
}

/// What is sent: everything of a message that its sender has chosen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub(super) kind: Kind,
    pub(super) from: usize,
    /// Of a title, number or node; of equipment where it is listed and which of the list.
    pub(super) number: u32,
    /// Of an IAM.
    pub(super) circuit: u16,
}

impl Choice {
    fn ticket(self) -> Ticket {
        Ticket {
            operation: self.kind as u16,
            first: self.number,
            second: self.from as u32 | u32::from(self.circuit) << 16,
        }
    }

    fn of(ticket: &Ticket) -> Option<Self> {
        Some(Self {
            kind: *Kind::ALL.get(usize::from(ticket.operation))?,
            from: usize::from(ticket.second as u16),
            number: ticket.first,
            circuit: (ticket.second >> 16) as u16,
        })
    }
}

impl Calls {
    /// The traffic of a thread.
    #[must_use]
    pub fn new(network: &Arc<Network>, share: Share) -> Self {
        let parties = network.parties_of(share);
        let positions = |of: &dyn Fn(Role) -> bool| {
            let all = parties.iter().enumerate();
            let mine = all.filter(|(_, party)| of(party.role));
            mine.map(|(at, _)| at).collect::<Vec<usize>>()
        };
        let model = &network.model;
        let hlrs = positions(&|role| role == Role::Hlr);
        let gateway = positions(&|role| role == Role::Gateway).first().copied();
        let control_point = positions(&|role| role == Role::Scp).first().copied();
        let weights = Weights::new(model.mix.shares().map(|share| share.fraction()));
        let lists = model.equipment.as_ref();
        let listed = LISTED.map(|listed| lists.map_or(0.0, |lists| lists.share(listed).fraction()));
        Self {
            network: network.clone(),
            share,
            mscs: positions(&|role| role == Role::Msc),
            servers: positions(&|role| matches!(role, Role::Hlr | Role::Smsc)),
            hlrs,
            gateway,
            control_point,
            trunks: vec![Trunk::default(); parties.len()],
            weights,
            listed: Weights::new(listed),
            parties,
            parts: Parts::default(),
            expected: Parts::default(),
        }
    }

    /// The nodes, in the order of their positions.
    #[must_use]
    pub fn parties(&self) -> &[Party] {
        &self.parties
    }

    pub(super) fn party(&self, at: usize) -> Party {
        self.parties.get(at).copied().unwrap_or(GATEWAY)
    }

    /// A number, of a count of them, that one of these nodes serves, where numbers are dealt to `all` in turn.
    fn number_of(&self, nodes: &[usize], all: u16, count: u32, random: &mut SmallRng) -> u32 {
        let all = u32::from(all.max(1));
        let node = pick(nodes, random).map_or(0, |at| u32::from(self.party(at).number));
        let rounds = count / all;
        random.random_range(0..rounds.max(1)) * all + node % all
    }

    fn choose(&self, random: &mut SmallRng) -> Choice {
        let model = &self.network.model;
        let kind = Kind::ALL[self.weights.draw(random).min(Kind::ALL.len() - 1)];
        let msc = pick(&self.mscs, random).unwrap_or(0);
        let (from, number) = match kind {
            Kind::Translation | Kind::Screened => {
                let number = self.number_of(&self.servers, model.nodes(), model.translations, random);
                (msc, number)
            }
            Kind::MtpRouting => (pick(&self.servers, random).unwrap_or(0), msc as u32),
            Kind::HomeNumber | Kind::Imsi => {
                let number = self.number_of(&self.hlrs, model.hlrs, model.numbers, random);
                (msc, number)
            }
            Kind::PortedCall | Kind::PortedMessage | Kind::Query | Kind::Prepaid | Kind::Call => {
                (msc, random.random_range(0..model.numbers.max(1)))
            }
            Kind::Equipment => (msc, self.equipment(random)),
        };
        Choice {
            kind,
            from,
            number,
            circuit: 0,
        }
    }

    /// The next circuit of an MSC, in turn: an IAM and its REL name no transaction.
    fn seize(&mut self, msc: usize, transaction: u32) -> u16 {
        let Some(trunk) = self.trunks.get_mut(msc) else {
            return 0;
        };
        trunk.next = (trunk.next + 1) % CIRCUITS;
        trunk.transactions.resize(usize::from(CIRCUITS), 0);
        if let Some(entry) = trunk.transactions.get_mut(usize::from(trunk.next)) {
            *entry = transaction;
        }
        trunk.next
    }

    /// The transaction of an IAM or REL that has arrived.
    fn transaction_of_call(&self, data: &Data<'_>) -> Option<u32> {
        let (circuit, is_forward) = call::circuit(data.user_data)?;
        let msc = if is_forward { data.opc } else { data.dpc };
        let at = self.parties.iter().position(|one| one.point_code() == msc)?;
        let trunk = self.trunks.get(at)?;
        trunk.transactions.get(usize::from(circuit)).copied()
    }

    /// The IAM of a choice.
    pub(super) fn call(&self, choice: Choice) -> Call {
        Call {
            circuit: choice.circuit,
            number: choice.number,
            // Without header, routing context and label of M3UA.
            size: usize::from(self.network.model.message_bytes).saturating_sub(32),
        }
    }

    /// Equipment, as a number: which of a list, and which list.
    fn equipment(&self, random: &mut SmallRng) -> u32 {
        let list = self.listed.draw(random).min(LISTED.len() - 1);
        let lists = self.network.model.equipment.as_ref();
        let count = lists
            .map_or(1, |lists| lists.count(LISTED[list]))
            .clamp(1, 1 << 28);
        random.random_range(0..count as u32) * LISTED.len() as u32 + list as u32
    }

    /// The IMEI that a number stands for, and its status: [`UNLISTED`] of one in no list.
    pub(super) fn imei(&self, number: u32) -> (String, u64) {
        let list = LISTED[number as usize % LISTED.len()];
        let entry = self.network.model.equipment.as_ref();
        let entry = entry.map(|lists| lists.entry(list, u64::from(number / LISTED.len() as u32)));
        let (imei, status) = entry.map_or((0, None), |entry| (entry.imei, entry.status));
        (
            format!("{imei:014}"),
            status.map_or(UNLISTED, |status| status as u64),
        )
    }

    /// Where a message has to arrive, and where else it may.
    fn receivers(&self, choice: Choice) -> (usize, Option<usize>) {
        let at = |party: Party| {
            let found = match party.role {
                Role::Gateway => self.gateway,
                Role::Scp => self.control_point,
                // They were dealt to the threads in turn.
                _ => self
                    .servers
                    .get(usize::from(party.number / self.share.threads.max(1)))
                    .copied(),
            };
            found.unwrap_or(usize::MAX)
        };
        match choice.kind {
            Kind::Translation => {
                let [old, new] = [0, 1].map(|moved| at(self.network.server_of(choice.number, moved)));
                match self.network.shift.phase() {
                    0 => (old, None),
                    1 => (old, Some(new)),
                    _ => (new, None),
                }
            }
            Kind::MtpRouting => (choice.number as usize, None),
            Kind::HomeNumber | Kind::Imsi => (at(self.network.hlr_of(choice.number)), None),
            Kind::PortedMessage => (at(GATEWAY), None),
            Kind::Prepaid => (at(SCP), None),
            Kind::Call if call::dialled(choice.number) != Dialled::Unallocated => (at(GATEWAY), None),
            Kind::Screened | Kind::PortedCall | Kind::Equipment | Kind::Query | Kind::Call => {
                (choice.from, None)
            }
        }
    }

    /// Writes the SCCP message or the IAM of a choice into buffers.
    pub(super) fn write(&self, choice: Choice, transaction: u32, parts: &mut Parts) {
        parts.clear();
        if choice.kind == Kind::Call {
            return self.call(choice).write(&mut parts.user_data);
        }
        let Parts {
            called,
            calling,
            content,
            ..
        } = &mut *parts;
        let from = self.party(choice.from);
        let digits = self.digits(choice);
        let party = self.called(choice, &digits);
        // An address with a title of indicator 4 can be written always.
        let _ = party.write(Format::Itu, called);
        let caller = match from.role {
            Role::Msc => title(8, E164, &msc_digits(from, choice.kind == Kind::Screened)),
            _ => subsystem(from.subsystem(), from.point_code()),
        };
        let _ = caller.write(Format::Itu, calling);
        self.write_content((choice, transaction), &digits, 0, content);
        let size = usize::from(self.network.model.message_bytes);
        // Header, routing context and label of M3UA, header and pointers of UDT, lengths; the filler with its own tags.
        let used = 32 + 5 + 3 + called.len() + calling.len() + content.len();
        let filler = size.saturating_sub(used + 12);
        if filler > 0 && choice.kind != Kind::Equipment {
            content.clear();
            self.write_content((choice, transaction), &digits, filler, content);
        }
        parts.write_unitdata();
    }

    fn write_content(
        &self,
        (choice, transaction): (Choice, u32),
        digits: &str,
        filler: usize,
        out: &mut Vec<u8>,
    ) {
        if matches!(choice.kind, Kind::Query | Kind::Prepaid) {
            let calling = home_digits(choice.number);
            let is_prepaid = choice.kind == Kind::Prepaid;
            return call::initial_dp(transaction, [digits, &calling], is_prepaid, filler, out);
        }
        let operation = operation(choice.kind, self.network.server_of(choice.number, 0).role);
        content::begin(transaction, operation, digits, filler, out);
    }

    pub(super) fn digits(&self, choice: Choice) -> String {
        match choice.kind {
            Kind::Translation | Kind::Screened => title_digits(choice.number),
            Kind::MtpRouting => title_digits(0),
            Kind::HomeNumber => home_digits(choice.number),
            Kind::PortedCall | Kind::PortedMessage => ported_digits(choice.number),
            Kind::Imsi => imsi_digits(choice.number),
            Kind::Equipment => self.imei(choice.number).0,
            Kind::Query | Kind::Prepaid | Kind::Call => call::dialled_digits(choice.number),
        }
    }

    /// The called party that the sender names.
    fn called(&self, choice: Choice, digits: &str) -> AddressBuf {
        match choice.kind {
            Kind::Translation | Kind::Screened => {
                let server = self.network.server_of(choice.number, 0);
                title(server.subsystem(), E164, digits)
            }
            Kind::MtpRouting => subsystem(8, self.party(choice.number as usize).point_code()),
            Kind::HomeNumber | Kind::PortedCall | Kind::PortedMessage => title(6, E164, digits),
            Kind::Imsi => title(6, E212, digits),
            Kind::Equipment => subsystem(EIR, OWN),
            Kind::Prepaid => title(CAP, E164, OWN_TITLE),
            // An IAM has no party of SCCP.
            Kind::Query | Kind::Call => subsystem(CAP, OWN),
        }
    }

    /// The called party as it has to arrive.
    pub(super) fn arriving(&self, choice: Choice, node: Party, digits: &str) -> AddressBuf {
        let called = self.called(choice, digits);
        match choice.kind {
            Kind::Translation => AddressBuf {
                ssn: Some(node.subsystem()),
                route_on_title: false,
                ..called
            },
            Kind::PortedMessage => title(6, E164, &format!("{ROUTING_NUMBER}{digits}")),
            _ => called,
        }
    }
}

impl Messages for Calls {
    fn operations(&self) -> Vec<String> {
        Kind::ALL.map(|kind| kind.name().to_owned()).to_vec()
    }

    fn next(&mut self, random: &mut SmallRng, transaction: u32, out: &mut Vec<u8>) -> Next {
        let mut choice = self.choose(random);
        if choice.kind == Kind::Call {
            choice.circuit = self.seize(choice.from, transaction);
        }
        let (to, second) = self.receivers(choice);
        let sls = random.random_range(0..16);
        let mut parts = std::mem::take(&mut self.parts);
        self.write(choice, transaction, &mut parts);
        let from = self.party(choice.from);
        let dpc = match choice.kind {
            Kind::MtpRouting => self.party(to).point_code(),
            Kind::Call => GATEWAY.point_code(),
            _ => OWN,
        };
        let si = match choice.kind {
            Kind::Call => ServiceIndicator::ISUP,
            _ => ServiceIndicator::SCCP,
        };
        Data {
            network_appearance: None,
            routing_context: Some(from.routing_context()),
            opc: from.point_code(),
            dpc,
            si,
            ni: NATIONAL,
            mp: 0,
            sls,
            user_data: &parts.user_data,
            correlation_id: None,
        }
        .write(out);
        self.parts = parts;
        Next {
            ticket: choice.ticket(),
            from: choice.from,
            to,
            second,
            sls,
        }
    }

    fn read(&self, data: &Data<'_>) -> Option<Reading> {
        if data.si == ServiceIndicator::ISUP {
            return Some(Reading {
                transaction: self.transaction_of_call(data)?,
                returned: None,
            });
        }
        content::reading(data)
    }

    fn judge(&mut self, ticket: &Ticket, transaction: u32, data: &Data<'_>) -> Result<(), Fault> {
        let Some(choice) = Choice::of(ticket) else {
            return Err(Fault::Status);
        };
        let verdict = match choice.kind {
            Kind::Translation
            | Kind::MtpRouting
            | Kind::HomeNumber
            | Kind::PortedMessage
            | Kind::Imsi
            | Kind::Prepaid => self.judge_relayed(choice, transaction, data),
            Kind::Screened | Kind::PortedCall | Kind::Equipment | Kind::Query => {
                self.judge_answer(choice, data)
            }
            Kind::Call => self.judge_call(choice, data),
        };
        verdict.map_err(Fault::Body)
    }
}

/// The operation of a kind of message; `server` is what its title leads to.
const fn operation(kind: Kind, server: Role) -> u8 {
    match (kind, server) {
        (Kind::Translation | Kind::Screened, Role::Smsc) => content::MO_FORWARD_SM,
        (Kind::MtpRouting, _) => content::INSERT_SUBSCRIBER_DATA,
        (Kind::PortedCall, _) => content::SEND_ROUTING_INFO,
        (Kind::Imsi, _) => content::UPDATE_LOCATION,
        (Kind::Equipment, _) => content::CHECK_IMEI,
        _ => content::SEND_ROUTING_INFO_FOR_SM,
    }
}

/// An address that is routed by global title, in international form.
fn title(ssn: u8, plan: u8, digits: &str) -> AddressBuf {
    AddressBuf {
        ssn: Some(ssn),
        route_on_title: true,
        title: Some(GlobalTitleBuf {
            indicator: 4,
            translation_type: 0,
            numbering_plan: plan,
            nature: 4,
            digits: Digits::parse(digits).unwrap_or_default(),
        }),
        ..AddressBuf::default()
    }
}

/// An address that is routed by point code and subsystem.
pub(super) fn subsystem(ssn: u8, point_code: PointCode) -> AddressBuf {
    AddressBuf {
        point_code: Some(point_code),
        ssn: Some(ssn),
        ..AddressBuf::default()
    }
}

fn pick(positions: &[usize], random: &mut SmallRng) -> Option<usize> {
    let at = random.random_range(0..positions.len().max(1));
    positions.get(at).copied()
}

#[cfg(test)]
mod tests;
