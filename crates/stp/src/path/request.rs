//! Requests of TCAP that this node answers: one Invoke in a Begin, and its answer (Q.774 §3.2, §3.3).

use ss7_proto::tcap::{
    self, Answer, ApplicationContext, Component, ComponentType, MessageType, Outcome, Problem, Reason,
    Transaction, TransactionId,
};

/// What a message is.
pub(super) enum Request<'a> {
    /// Nothing that is answered: an End, an Abort, no TCAP.
    None,
    /// No request that can be served: the Reject or Abort for it.
    Refused(Vec<u8>),
    /// An Invoke.
    Invoke(Invoke<'a>),
}

/// The only component of a Begin.
pub(super) struct Invoke<'a> {
    pub(super) component: Component<'a>,
    /// The application context, where there is a dialogue.
    pub(super) context: Option<ApplicationContext<'a>>,
    destination: TransactionId,
    id: i8,
}

impl Invoke<'_> {
    /// The End that answers.
    pub(super) fn answer(&self, outcome: Outcome<'_>) -> Vec<u8> {
        end(self.destination, self.context, Some(self.id), outcome)
    }
}

/// Reads a message; `accepts` says why an application context is refused. Without a dialogue there is none.
pub(super) fn read<'a>(
    data: &'a [u8],
    accepts: impl FnOnce(ApplicationContext<'a>) -> Result<(), Reason<'a>>,
) -> Request<'a> {
    let Ok(message) = Transaction::parse(data) else {
        return Request::None;
    };
    let (false, Some(to)) = (message.ansi, message.originating) else {
        // Neither End nor Abort nor Unidirectional has who could be answered.
        return Request::None;
    };
    let accepted = match (message.message_type, message.context) {
        (MessageType::Continue, _) => Err(Reason::UnknownTransaction),
        (MessageType::Begin, Some(context)) => accepts(context),
        (MessageType::Begin, None) if message.has_dialogue => Err(Reason::BadDialogue),
        (MessageType::Begin, None) => Ok(()),
        (MessageType::Unidirectional | MessageType::End | MessageType::Abort, _) => return Request::None,
    };
    match accepted {
        Ok(()) => invoke(&message, to),
        Err(reason) => Request::Refused(abort(to, reason)),
    }
}

fn invoke<'a>(begin: &Transaction<'a>, destination: TransactionId) -> Request<'a> {
    let reject = |problem| {
        let outcome = Outcome::Reject(problem);
        Request::Refused(end(destination, begin.context, None, outcome))
    };
    let mut components = begin.components;
    let component = match (components.next(), components.next()) {
        (Some(Err(_)), _) => return reject(Problem::BadlyStructuredComponent),
        (Some(Ok(one)), None) if one.component_type == ComponentType::Invoke => one,
        // One request is what a dialogue with a service of this node is for.
        _ => {
            let has_dialogue = begin.has_dialogue;
            return Request::Refused(abort(destination, Reason::User { has_dialogue }));
        }
    };
    let Some(id) = component.invoke_id.and_then(|id| i8::try_from(id).ok()) else {
        return reject(Problem::MistypedComponent);
    };
    Request::Invoke(Invoke {
        component,
        context: begin.context,
        destination,
        id,
    })
}

fn end(
    destination: TransactionId,
    context: Option<ApplicationContext<'_>>,
    invoke_id: Option<i8>,
    outcome: Outcome<'_>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(96);
    Answer {
        destination,
        context,
        invoke_id,
        outcome,
    }
    .write(&mut out);
    out
}

fn abort(destination: TransactionId, reason: Reason<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    tcap::abort(destination, reason, &mut out);
    out
}
