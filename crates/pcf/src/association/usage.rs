//! Accumulated usage of a session by usage monitoring instance (TS 29.512 §4.2.6.5.3, §5.6.2.23).

use serde_json::{Map, Value};

/// Counted members of `AccuUsageReport`.
const COUNTED: [&str; 4] = ["volUsage", "volUsageUplink", "volUsageDownlink", "timeUsage"];

/// Usage monitoring instances that an association counts at most.
const MOST: usize = 64;

/// Bytes of a name that is counted; over N7 longer ones are refused, over Gx a Monitoring-Key is twice as long here.
const LONGEST: usize = 512;

/// Adds `accuUsageReports` to accounts. What would exceed the number of accounts or a name's length is not counted.
pub fn add(accounts: &mut Map<String, Value>, reports: &Value) {
    for report in reports.as_array().into_iter().flatten() {
        let id = report.get("refUmIds").and_then(Value::as_str);
        let Some(id) = id.filter(|id| id.len() <= LONGEST) else {
            continue;
        };
        if !accounts.contains_key(id) && accounts.len() >= MOST {
            continue;
        }
        let account = accounts.entry(id).or_insert_with(|| Value::Object(Map::new()));
        let Some(account) = account.as_object_mut() else {
            continue;
        };
        for name in COUNTED {
            if let Some(more) = report.get(name).and_then(Value::as_u64) {
                let held = account.get(name).and_then(Value::as_u64).unwrap_or(0);
                account.insert(name.to_owned(), held.saturating_add(more).into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reports_add_up() {
        let mut accounts = Map::new();
        add(
            &mut accounts,
            &json!([{"refUmIds": "a", "volUsage": 7, "timeUsage": 1}, {"refUmIds": "b"}]),
        );
        add(
            &mut accounts,
            &json!([{"refUmIds": "a", "volUsage": u64::MAX}, {"volUsage": 3}]),
        );
        let expected = json!({"a": {"volUsage": u64::MAX, "timeUsage": 1}, "b": {}});
        assert_eq!(Value::Object(accounts.clone()), expected);
        for number in 0..200 {
            add(&mut accounts, &json!([{"refUmIds": number.to_string()}]));
        }
        assert_eq!(accounts.len(), MOST);
    }
}
