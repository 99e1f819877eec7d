//! The crate `tcap` as a judge: messages of each side are read alike, and where an octet of them has changed, what both accept.

use proptest::option::of;
use proptest::prelude::*;
use ss7_proto::ber::Elements;
use ss7_proto::tcap::{ComponentType, OperationCode, Transaction};
use tcap::{
    AbortReason, ApplicationContextName, Component, DialogueContent, DialoguePdu, DialoguePortion, ErrorCode,
    TcapMessage,
};

use crate::pycrate::{Written, abort, answer, hex};

/// What both sides know of a component: type, invocation, operation, error, contents of the parameter.
type Part = (u8, Option<i32>, Option<String>, Option<i64>, Option<String>);

/// What both sides know of a message.
#[derive(PartialEq, Debug)]
struct Known {
    message_type: String,
    originating: Option<String>,
    destination: Option<String>,
    cause: Option<i64>,
    has_dialogue: bool,
    context: Option<String>,
    parts: Vec<Part>,
}

fn read_here(octets: &[u8]) -> Option<Known> {
    let read = Transaction::parse(octets).ok()?;
    let parts = read.components.map(|component| {
        let component = component.ok()?;
        let (kind, has_parameter) = match component.component_type {
            ComponentType::Invoke => (1, true),
            ComponentType::ReturnResult => (2, true),
            ComponentType::ReturnError => (3, true),
            // The problem stands in its place.
            ComponentType::Reject => (4, false),
            ComponentType::ReturnResultNotLast => (7, true),
        };
        let operation = component.operation.map(|operation| match operation {
            OperationCode::Local(code) => code.to_string(),
            OperationCode::Global(arcs) => dotted(arcs),
            other => panic!("{other:?} of ITU"),
        });
        let parameter = component.parameter.filter(|_| has_parameter);
        let parameter = parameter.map(|parameter| hex(parameter.value));
        Some((
            kind,
            component.invoke_id,
            operation,
            component.error.map(i64::from),
            parameter,
        ))
    });
    Some(Known {
        message_type: format!("{:?}", read.message_type),
        originating: read.originating.map(|id| hex(id.octets())),
        destination: read.destination.map(|id| hex(id.octets())),
        cause: read.abort_cause.map(i64::from),
        has_dialogue: read.has_dialogue,
        context: read.context.map(|context| context.to_string()),
        parts: parts.collect::<Option<_>>()?,
    })
}

fn dotted(arcs: &[u8]) -> String {
    ss7_proto::tcap::ApplicationContext::new(arcs).to_string()
}

fn joined(arcs: &ApplicationContextName) -> String {
    let arcs: &[u32] = arcs.as_ref();
    arcs.iter().map(u32::to_string).collect::<Vec<_>>().join(".")
}

fn context(portion: &DialoguePortion) -> Option<String> {
    let DialogueContent::Pdu(pdu) = portion.parse().unwrap() else {
        return None;
    };
    match pdu {
        DialoguePdu::Aarq {
            application_context_name,
            ..
        }
        | DialoguePdu::Aare {
            application_context_name,
            ..
        }
        | DialoguePdu::Audt {
            application_context_name,
            ..
        } => Some(joined(&application_context_name)),
        DialoguePdu::Abrt { .. } => None,
    }
}

fn part(component: &Component) -> Part {
    let operation = |code: &tcap::OperationCode| match code {
        tcap::OperationCode::Local(code) => code.to_string(),
        tcap::OperationCode::Global(arcs) => joined(arcs),
    };
    let contents = |octets: &[u8]| hex(Elements::new(octets).next().unwrap().unwrap().value);
    let (operation, error, parameter) = match component {
        Component::Invoke(invoke) => (
            Some(operation(&invoke.operation_code)),
            None,
            invoke.parameter.as_ref(),
        ),
        Component::ReturnResultLast(result) | Component::ReturnResultNotLast(result) => {
            let result = result.result.as_ref();
            (
                result.map(|result| operation(&result.operation_code)),
                None,
                result.and_then(|result| result.parameter.as_ref()),
            )
        }
        Component::ReturnError(error) => {
            let code = match error.error_code {
                ErrorCode::Local(code) => Some(code),
                ErrorCode::Global(_) => None,
            };
            (None, code, error.parameter.as_ref())
        }
        Component::Reject(_) => (None, None, None),
    };
    (
        component.component_type().tag(),
        component.invoke_id().map(i32::from),
        operation,
        error,
        parameter.map(|parameter| contents(parameter.as_bytes())),
    )
}

fn read_by_judge(octets: &[u8]) -> Option<Known> {
    let read = tcap::decode(octets).ok()?;
    let cause = match &read {
        TcapMessage::Abort(abort) => abort.p_abort_cause(),
        _ => None,
    };
    Some(Known {
        message_type: read.message_type().to_string(),
        originating: read.otid().map(|id| hex(id)),
        destination: read.dtid().map(|id| hex(id)),
        cause: cause.map(tcap::PAbortCause::value),
        has_dialogue: read.dialogue_portion().is_some(),
        context: read.dialogue_portion().and_then(context),
        parts: read.components().iter().map(part).collect(),
    })
}

fn identifier() -> impl Strategy<Value = tcap::TransactionId> {
    proptest::collection::vec(any::<u8>(), 1..=4).prop_map(Into::into)
}

/// An object identifier below 0, 1 or 2.
fn arcs() -> impl Strategy<Value = ApplicationContextName> {
    let rest = proptest::collection::vec(any::<u32>(), 0..6);
    (0..3_u32, 0..40_u32, rest).prop_map(|(first, second, rest)| {
        let all = [vec![first, second], rest].concat();
        ApplicationContextName::new_unchecked(all.into())
    })
}

fn dialogue() -> impl Strategy<Value = DialoguePortion> {
    (0..4_u8, arcs()).prop_map(|(kind, arcs)| match kind {
        0 => DialoguePortion::aarq(&arcs),
        1 => DialoguePortion::aare_accept(&arcs),
        2 => DialoguePortion::no_common_dialogue_portion(&arcs),
        _ => DialoguePortion::abrt(tcap::AbortSource::DialogueServiceUser),
    })
}

fn component() -> impl Strategy<Value = Component> {
    let code = (any::<i32>(), of(arcs())).prop_map(|(local, global)| match global {
        Some(arcs) => tcap::OperationCode::Global(arcs),
        None => tcap::OperationCode::Local(local.into()),
    });
    let contents = proptest::collection::vec(any::<u8>(), 0..300);
    let fields = (0..5_u8, any::<i8>(), of(any::<i8>()), code, of(contents));
    fields.prop_map(|(kind, invoke_id, linked_id, operation_code, contents)| {
        let parameter = contents.map(|contents| {
            let mut out = Vec::new();
            ss7_proto::tcap::element(0x04, &mut out, |out| out.extend(contents));
            out.into()
        });
        let result = |parameter: Option<_>| tcap::ReturnResult {
            invoke_id,
            result: parameter.map(|parameter| tcap::ReturnResultValue {
                operation_code: operation_code.clone(),
                parameter: Some(parameter),
            }),
        };
        match kind {
            0 => Component::Invoke(tcap::Invoke {
                invoke_id,
                linked_id,
                operation_code,
                parameter,
            }),
            1 => Component::ReturnResultLast(result(parameter)),
            2 => Component::ReturnResultNotLast(result(parameter)),
            3 => Component::ReturnError(tcap::ReturnError {
                invoke_id,
                error_code: match operation_code {
                    tcap::OperationCode::Local(code) => ErrorCode::Local(code),
                    tcap::OperationCode::Global(arcs) => ErrorCode::Global(arcs),
                },
                parameter,
            }),
            _ => Component::Reject(tcap::Reject::general(
                linked_id,
                tcap::GeneralProblem::MISTYPED_COMPONENT,
            )),
        }
    })
}

fn message() -> impl Strategy<Value = TcapMessage> {
    let components = proptest::collection::vec(component(), 1..4);
    let fields = (
        0..7_u8,
        identifier(),
        identifier(),
        of(dialogue()),
        of(components),
    );
    fields.prop_map(|(kind, otid, dtid, dialogue_portion, components)| match kind {
        0 => TcapMessage::Unidirectional(tcap::Unidirectional {
            dialogue_portion: None,
            components: components
                .unwrap_or_else(|| vec![Component::Reject(tcap::Reject::general(None, 0.into()))]),
        }),
        1 | 2 => TcapMessage::Begin(tcap::Begin {
            otid,
            dialogue_portion,
            components,
        }),
        3 => TcapMessage::End(tcap::End {
            dtid,
            dialogue_portion,
            components,
        }),
        4 | 5 => TcapMessage::Continue(tcap::Continue {
            otid,
            dtid,
            dialogue_portion,
            components,
        }),
        _ => TcapMessage::Abort(tcap::Abort {
            dtid,
            reason: dialogue_portion.map(AbortReason::UAbort),
        }),
    })
}

/// What the answers written here say, in the words of `pycrate.rs`, against what the judge reads.
fn matches_judge((_, octets, fields): &Written) {
    let read = read_by_judge(octets).unwrap_or_else(|| panic!("{:?}", tcap::decode(octets)));
    assert_eq!(read.message_type.to_lowercase(), fields["type"]);
    assert_eq!(read.destination.as_ref(), fields.get("dtid"));
    assert_eq!(read.context.as_ref(), fields.get("context"));
    assert_eq!(
        read.cause.map(|cause| cause.to_string()).as_ref(),
        fields.get("cause")
    );
    assert_eq!(read.has_dialogue, fields.contains_key("dialogue"));
    if let Some((_, invoke_id, operation, error, _)) = read.parts.first() {
        assert_eq!(invoke_id.map(|id| id.to_string()).as_ref(), fields.get("id"));
        assert_eq!(operation.as_ref(), fields.get("op"));
        assert_eq!(error.map(|code| code.to_string()).as_ref(), fields.get("error"));
    }
    assert_eq!(read_here(octets), Some(read));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_the_judge_writes_reads_the_same(message in message()) {
        let octets = tcap::encode(&message).unwrap();
        let judged = read_by_judge(&octets);
        prop_assert!(judged.is_some());
        prop_assert_eq!(read_here(&octets), judged, "{}", hex(&octets));
    }

    #[test]
    fn the_judge_reads_what_is_written_here(written in prop_oneof![answer().boxed(), abort().boxed()]) {
        matches_judge(&written);
    }

    #[test]
    fn what_both_accept_they_read_alike(
        message in message(),
        at in any::<prop::sample::Index>(),
        octet in any::<u8>(),
    ) {
        let mut octets = tcap::encode(&message).unwrap();
        let at = at.index(octets.len());
        octets[at] = octet;
        if let Some(judged) = read_by_judge(&octets) {
            let mut read = read_here(&octets);
            // Which syntax the dialogue portion says to have makes no difference here.
            if let (Some(read), None) = (&mut read, &judged.context) {
                read.context = None;
            }
            prop_assert_eq!(read, Some(judged), "{}", hex(&octets));
        }
    }
}
