//! What selectors see of a message behind its called address, read when one asks.

use std::cell::OnceCell;
use std::fmt;

use crate::digits::Digits;
use crate::map::{Fields, SmRpAddress};
use crate::sccp::{Address, Format, Unitdata};
use crate::tcap::{ApplicationContext, ComponentType, OperationCode, Transaction};

/// A number of a message that translations may be about in place of its called title.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Number {
    /// The title of the calling party.
    Calling,
    /// The IMSI of a MAP operation.
    Imsi,
    /// The MSISDN of a MAP operation.
    Msisdn,
    /// Where a short message goes to: an IMSI, or the number of a service centre (TS 29.002 §7.6.8.1).
    SmRpDa,
    /// Where a short message comes from: an MSISDN, or the number of a service centre (TS 29.002 §7.6.8.2).
    SmRpOa,
    /// The destination within a short message on its way to a service centre (TP-DA, TS 23.040 §9.2.3.8).
    TpDa,
}

impl Number {
    const ALL: [Self; 6] = [
        Self::Calling,
        Self::Imsi,
        Self::Msisdn,
        Self::SmRpDa,
        Self::SmRpOa,
        Self::TpDa,
    ];
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Calling => "calling party",
            Self::Imsi => "IMSI",
            Self::Msisdn => "MSISDN",
            Self::SmRpDa => "SM-RP-DA",
            Self::SmRpOa => "SM-RP-OA",
            Self::TpDa => "TP-DA",
        })
    }
}

/// A message without connection, as selectors see it.
#[derive(Clone, Debug)]
pub struct Content<'a> {
    unitdata: &'a Unitdata<'a>,
    format: Format,
    dialogue: OnceCell<Dialogue<'a>>,
}

/// Parts of a message of TCAP.
#[derive(Clone, Copy, Debug, Default)]
struct Dialogue<'a> {
    context: Option<ApplicationContext<'a>>,
    operation: Option<i32>,
    fields: Fields<'a>,
}

impl<'a> Content<'a> {
    /// Of a message; nothing is read.
    #[inline]
    #[must_use]
    pub const fn new(unitdata: &'a Unitdata<'a>, format: Format) -> Self {
        Self {
            unitdata,
            format,
            dialogue: OnceCell::new(),
        }
    }

    /// The operation that the first component invokes; of ANSI its national or private code.
    #[must_use]
    pub fn operation(&self) -> Option<i32> {
        self.dialogue().operation
    }

    /// The application context: of the first message of a dialogue in either direction.
    #[must_use]
    pub fn context(&self) -> Option<ApplicationContext<'a>> {
        self.dialogue().context
    }

    /// A number as it stands in the message, without a closing ST.
    #[must_use]
    pub fn number(&self, number: Number) -> Option<Digits> {
        let fields = || self.dialogue().fields;
        let digits = match number {
            Number::Calling => Address::parse(self.unitdata.calling, self.format)
                .ok()?
                .title?
                .digits(),
            Number::Imsi => fields().imsi?.digits(),
            Number::Msisdn => fields().msisdn?.number.digits(),
            Number::SmRpDa => short_message_party(fields().sm_rp_da?),
            Number::SmRpOa => short_message_party(fields().sm_rp_oa?),
            Number::TpDa => fields().tp_da(),
        };
        digits.map(|digits| digits.without_st())
    }

    fn dialogue(&self) -> &Dialogue<'a> {
        self.dialogue
            .get_or_init(|| Dialogue::read(self.unitdata).unwrap_or_default())
    }
}

/// What is there, as a list.
impl fmt::Display for Content<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        let mut put = |name: &dyn fmt::Display, value: Option<&dyn fmt::Display>| {
            let Some(value) = value else { return Ok(()) };
            write!(f, "{separator}{name} {value}")?;
            separator = ", ";
            Ok(())
        };
        for number in Number::ALL {
            let digits = self.number(number);
            put(&number, digits.as_ref().map(|digits| digits as _))?;
        }
        let (operation, context) = (self.operation(), self.context());
        put(&"operation", operation.as_ref().map(|code| code as _))?;
        put(
            &"application context",
            context.as_ref().map(|context| context as _),
        )?;
        if separator.is_empty() {
            f.write_str("nothing")
        } else {
            Ok(())
        }
    }
}

impl<'a> Dialogue<'a> {
    fn read(unitdata: &Unitdata<'a>) -> Option<Self> {
        // What a service message brings back is not invoked (Q.714 §4), and a segment has no whole message.
        if unitdata.message_type.is_service() || !unitdata.is_whole() {
            return None;
        }
        let transaction = Transaction::parse(unitdata.data).ok()?;
        let mut dialogue = Self {
            context: transaction.context,
            ..Self::default()
        };
        let mut components = transaction.components;
        let Some(Ok(first)) = components.next() else {
            return Some(dialogue);
        };
        if first.component_type == ComponentType::Invoke {
            match first.operation {
                Some(OperationCode::Local(code)) => {
                    dialogue.operation = Some(code);
                    // The codes of other application contexts mean other operations.
                    let is_map = transaction.context.is_none_or(is_of_map);
                    if let Some(argument) = first.parameter.filter(|_| is_map) {
                        dialogue.fields = Fields::read(code, argument);
                    }
                }
                Some(OperationCode::National(code) | OperationCode::Private(code)) => {
                    dialogue.operation = Some(code);
                }
                Some(OperationCode::Global(_)) | None => {}
            }
        }
        Some(dialogue)
    }
}

/// Whether an application context is one of MAP: CAP has those with numbers 50 to 52 (TS 29.078).
fn is_of_map(context: ApplicationContext<'_>) -> bool {
    context.map().is_some_and(|(number, _)| number < 50)
}

fn short_message_party(party: SmRpAddress<'_>) -> Option<Digits> {
    match party {
        SmRpAddress::Imsi(imsi) => imsi.digits(),
        SmRpAddress::Msisdn(number) | SmRpAddress::ServiceCentre(number) => number.number.digits(),
        SmRpAddress::Lmsi(_) | SmRpAddress::None => None,
    }
}
