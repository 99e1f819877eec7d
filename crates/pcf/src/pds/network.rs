//! Policy data by DNN: a DNN with operator identifier has those of its network.

use std::rc::Rc;

use pcc::usage::of_dnn;
use serde_json::Value;

use crate::association::Association;

/// The members of policy data that are maps by DNN, below `smPolicySnssaiData` (TS 29.519 §5.4.2.5).
const BY_DNN: &str = "smPolicyDnnData";

/// Policy data in which the data of an association's DNN lie under the name that its consumer has for it as well: `internet` and
/// `internet.mnc001.mcc001.gprs` are one network (TS 23.003 §9.1), and projects look them up by `$request.dnn`.
pub(super) fn named(data: Rc<Value>, association: &Association) -> Rc<Value> {
    let Some(dnn) = association.text_of("dnn") else {
        return data;
    };
    let lacks = |slice: &Value| {
        let by_dnn = slice.get(BY_DNN);
        by_dnn.is_some_and(|by_dnn| by_dnn.get(dnn).is_none() && of_dnn(by_dnn, dnn).is_some())
    };
    let slices = data.get("smPolicySnssaiData").and_then(Value::as_object);
    let Some(mut slices) = slices.filter(|slices| slices.values().any(lacks)).cloned() else {
        return data;
    };
    for by_dnn in slices.values_mut().filter_map(|slice| slice.get_mut(BY_DNN)) {
        let entry = of_dnn(by_dnn, dnn).cloned();
        if let (Value::Object(entries), Some(entry)) = (by_dnn, entry) {
            entries.insert(dnn.to_owned(), entry);
        }
    }
    let mut data = Rc::unwrap_or_clone(data);
    if let Value::Object(members) = &mut data {
        members.insert("smPolicySnssaiData".to_owned(), Value::Object(slices));
    }
    Rc::new(data)
}
