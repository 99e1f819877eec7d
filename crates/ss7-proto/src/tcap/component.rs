//! Components (Q.773 §3.2, T1.114.3 §5).

use crate::ber::{BerFault, Element, Elements, Tag};

/// What a component is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ComponentType {
    /// A request.
    Invoke,
    /// The whole result, or its last part.
    ReturnResult,
    /// A part of a result.
    ReturnResultNotLast,
    /// An error of the operation.
    ReturnError,
    /// An error of the protocol.
    Reject,
}

/// An operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OperationCode<'a> {
    /// A number of the application context: MAP's and CAP's.
    Local(i32),
    /// An object identifier.
    Global(&'a [u8]),
    /// ANSI: a national number, family and specifier.
    National(i32),
    /// ANSI: a private number, as IS-41 uses.
    Private(i32),
}

/// A component.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Component<'a> {
    /// What it is.
    pub component_type: ComponentType,
    /// The invocation. ANSI: the first octet of the component identifiers.
    pub invoke_id: Option<i32>,
    /// The operation, of an Invoke and a result.
    pub operation: Option<OperationCode<'a>>,
    /// The error, of a ReturnError; `None` for a global code.
    pub error: Option<i32>,
    /// The parameter; that of a ReturnError too.
    pub parameter: Option<Element<'a>>,
}

/// The components of a message. Readers need the first ones; each is proven when it is read.
#[derive(Clone, Copy, Debug)]
pub struct Components<'a> {
    elements: Elements<'a>,
    ansi: bool,
}

impl<'a> Components<'a> {
    pub(super) const fn new(octets: &'a [u8], ansi: bool) -> Self {
        Self {
            elements: Elements::new(octets),
            ansi,
        }
    }

    /// As the components themselves, with `None` for each of an unknown kind.
    pub fn with_unknown(mut self) -> impl Iterator<Item = Result<Option<Component<'a>>, BerFault>> {
        std::iter::from_fn(move || self.advance())
    }

    fn advance(&mut self) -> Option<Result<Option<Component<'a>>, BerFault>> {
        let element = match self.elements.next()? {
            Ok(element) => element,
            Err(fault) => return Some(Err(fault)),
        };
        let kind = match (self.ansi, element.tag.0) {
            (false, 0xa1) | (true, 0xe9 | 0xed) => ComponentType::Invoke,
            (false, 0xa2) | (true, 0xea) => ComponentType::ReturnResult,
            (false, 0xa7) | (true, 0xee) => ComponentType::ReturnResultNotLast,
            (false, 0xa3) | (true, 0xeb) => ComponentType::ReturnError,
            (false, 0xa4) | (true, 0xec) => ComponentType::Reject,
            _ => return Some(Ok(None)),
        };
        let component = if self.ansi {
            ansi(kind, element)
        } else {
            itu(kind, element)
        };
        Some(component.map(Some))
    }
}

impl<'a> Iterator for Components<'a> {
    type Item = Result<Component<'a>, BerFault>;

    /// Components of an unknown kind are skipped.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(component) = self.advance()?.transpose() {
                return Some(component);
            }
        }
    }
}

fn itu(component_type: ComponentType, element: Element<'_>) -> Result<Component<'_>, BerFault> {
    let mut elements = element.elements();
    let mut component = Component {
        component_type,
        invoke_id: elements.take_if(Tag::INTEGER)?.and_then(|id| id.integer()),
        operation: None,
        error: None,
        parameter: None,
    };
    match component_type {
        ComponentType::Invoke => {
            // Linked identifier.
            elements.take_if(Tag(0x80))?;
            component.operation = operation(&mut elements)?;
            component.parameter = elements.next().transpose()?;
        }
        ComponentType::ReturnResult | ComponentType::ReturnResultNotLast => {
            if let Some(result) = elements.take_if(Tag::SEQUENCE)? {
                let mut elements = result.elements();
                component.operation = operation(&mut elements)?;
                component.parameter = elements.next().transpose()?;
            }
        }
        ComponentType::ReturnError => {
            match elements.take_if(Tag::INTEGER)? {
                Some(code) => component.error = code.integer(),
                // A global code, which no operation here has.
                None => {
                    elements.take_if(Tag::OBJECT_IDENTIFIER)?;
                }
            }
            component.parameter = elements.next().transpose()?;
        }
        ComponentType::Reject => component.parameter = elements.next().transpose()?,
    }
    Ok(component)
}

fn operation<'a>(elements: &mut Elements<'a>) -> Result<Option<OperationCode<'a>>, BerFault> {
    if let Some(local) = elements.take_if(Tag::INTEGER)? {
        return Ok(local.integer().map(OperationCode::Local));
    }
    let global = elements.take_if(Tag::OBJECT_IDENTIFIER)?;
    Ok(global.map(|global| OperationCode::Global(global.value)))
}

fn ansi(component_type: ComponentType, element: Element<'_>) -> Result<Component<'_>, BerFault> {
    let mut component = Component {
        component_type,
        invoke_id: None,
        operation: None,
        error: None,
        parameter: None,
    };
    for element in element.elements() {
        let element = element?;
        match element.tag.0 {
            0xcf => component.invoke_id = element.value.first().map(|id| i32::from(*id)),
            // The first bit asks for a reply, and belongs to no family.
            0xd0 => {
                component.operation = ansi_code(element).map(|code| OperationCode::National(code & 0x7fff));
            }
            0xd1 => component.operation = ansi_code(element).map(OperationCode::Private),
            0xd3 | 0xd4 => component.error = element.integer(),
            // Problem, parameter set, parameter sequence.
            _ => component.parameter = Some(element),
        }
    }
    Ok(component)
}

/// An operation is one or two octets, family and specifier, rather than a number with a sign.
fn ansi_code(element: Element<'_>) -> Option<i32> {
    match *element.value {
        [one] => Some(one.into()),
        [family, specifier] => Some(u16::from_be_bytes([family, specifier]).into()),
        _ => None,
    }
}
