//! The check of what arrives.

use ss7_proto::m3ua::{Data, ServiceIndicator};
use ss7_proto::sccp::{Format, Message, MessageType};

use super::call::{self, Dialled};
use super::content::{self, Answer};
use super::network::{GATEWAY, OWN, Party, ROUTING_NUMBER, ported_digits};
use super::traffic::{CLASS, Calls, Choice, NATIONAL, Parts, UNLISTED};
use callmodel::stp::Kind;

/// The reason of a message that screening returns (Q.713 §3.12: unqualified).
const UNQUALIFIED: u8 = 7;

impl Calls {
    /// Judges a message that was to be relayed.
    pub(super) fn judge_relayed(
        &mut self,
        choice: Choice,
        transaction: u32,
        data: &Data<'_>,
    ) -> Result<(), String> {
        let node = data.dpc;
        let Some(receiver) = self.parties.iter().find(|one| one.point_code() == node).copied() else {
            return Err(format!("the destination is {}", node.0));
        };
        let mut expected = std::mem::take(&mut self.expected);
        self.write(choice, transaction, &mut expected);
        let verdict = self.compare(choice, receiver, data, &mut expected);
        self.expected = expected;
        verdict
    }

    fn compare(
        &self,
        choice: Choice,
        receiver: Party,
        data: &Data<'_>,
        expected: &mut Parts,
    ) -> Result<(), String> {
        let is_origin = match choice.kind {
            Kind::MtpRouting => data.opc == self.party(choice.from).point_code(),
            _ => self.network.translates_at(data.opc),
        };
        if !is_origin || (data.ni, data.si) != (NATIONAL, ServiceIndicator::SCCP) {
            let Data { opc, ni, si, .. } = data;
            return Err(format!(
                "origin {}, network {ni}, service {} arrived",
                opc.0, si.0
            ));
        }
        if choice.kind == Kind::MtpRouting {
            let same = data.user_data == expected.user_data;
            return same
                .then_some(())
                .ok_or_else(|| "the octets have changed".to_owned());
        }
        let Ok(Message::Unitdata(unitdata)) = Message::parse(data.user_data) else {
            return Err("no UDT arrived".to_owned());
        };
        let digits = self.digits(choice);
        expected.called.clear();
        let _ = self
            .arriving(choice, receiver, &digits)
            .write(Format::Itu, &mut expected.called);
        let arrived = (unitdata.message_type, unitdata.class_or_cause);
        if arrived != (MessageType::Udt, CLASS) {
            return Err(format!("{arrived:?} arrived"));
        }
        let pairs = [
            ("called party", unitdata.called, &expected.called),
            ("calling party", unitdata.calling, &expected.calling),
            ("data", unitdata.data, &expected.content),
        ];
        match pairs.into_iter().find(|(_, arrived, sent)| arrived != sent) {
            Some((what, arrived, sent)) => Err(format!("{what} {arrived:02x?} instead of {sent:02x?}")),
            None => Ok(()),
        }
    }

    /// Judges an IAM that has passed, or the REL that has come back: it has the point code of the exchange that the IAM was for.
    pub(super) fn judge_call(&self, choice: Choice, data: &Data<'_>) -> Result<(), String> {
        let (msc, exchange) = (self.party(choice.from).point_code(), GATEWAY.point_code());
        let label = match call::dialled(choice.number) {
            Dialled::Unallocated => (exchange, msc),
            Dialled::Home | Dialled::Ported => (msc, exchange),
        };
        let mut expected = Vec::new();
        self.call(choice).write_arriving(&mut expected);
        if (data.opc, data.dpc) == label && data.ni == NATIONAL && data.user_data == expected {
            return Ok(());
        }
        let Data { opc, dpc, .. } = data;
        Err(format!(
            "from {} to {} {:02x?} instead of {expected:02x?}",
            opc.0, dpc.0, data.user_data
        ))
    }

    /// Judges what the STP has made of a message itself.
    pub(super) fn judge_answer(&self, choice: Choice, data: &Data<'_>) -> Result<(), String> {
        let Ok(Message::Unitdata(unitdata)) = Message::parse(data.user_data) else {
            return Err("no UDT arrived".to_owned());
        };
        let cause = unitdata.return_cause().map(|cause| cause.0);
        let answer = content::answer(unitdata.data);
        let right = match (choice.kind, &answer) {
            (Kind::Screened, _) => cause == Some(UNQUALIFIED),
            (Kind::PortedCall, Answer::Result(content::SEND_ROUTING_INFO, result)) => {
                let number = format!("{ROUTING_NUMBER}{}", ported_digits(choice.number));
                content::roaming_number(result) == Some(content::isdn(&number))
            }
            (Kind::Equipment, Answer::Result(content::CHECK_IMEI, result)) => {
                let status = content::equipment_status(result).and_then(|one| u64::try_from(one).ok());
                status == Some(self.imei(choice.number).1)
            }
            (Kind::Query, answer) => call::is_answer(choice.number, answer),
            (Kind::Equipment, Answer::Error(content::UNKNOWN_EQUIPMENT)) => {
                self.imei(choice.number).1 == UNLISTED
            }
            _ => false,
        };
        if right && data.opc == OWN && cause.is_some() == (choice.kind == Kind::Screened) {
            Ok(())
        } else {
            Err(format!("answered {answer:02x?}, return cause {cause:?}"))
        }
    }
}
