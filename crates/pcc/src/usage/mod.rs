//! Usage monitoring: quotas of a subscriber (TS 29.519 `UsageMonDataLimit`, `UsageMonData`), what SMF or PCEF report of
//! them, and the thresholds that they get (TS 29.512 §4.2.6.5.3.1, TS 29.212 §4.5.16).
//!
//! An [`Account`] has what is left in the current period. [`Accounts::report`] subtracts usage, [`Accounts::attach`]
//! adds thresholds to a decision, [`forget_reported`] makes sure that an account that has been reported on gets its
//! next threshold even where it is the same number.

mod account;
mod period;

use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

pub use account::{Account, Amount};

use account::monitoring;

use crate::decision::{add_trigger, revalidate};
use crate::json::{self, Object};

/// The accounts of one session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Accounts {
    accounts: Vec<Account>,
}

impl Accounts {
    /// The accounts that apply to a session: those that `refUmDataLimitIds` of its DNN names and those whose scope has
    /// its slice and DNN. `data` is `SmPolicyData`, `slice` the key of `smPolicySnssaiData` (`1-abcdef`); `None`: the session
    /// has no slice (Gx), and those of any slice with its DNN apply.
    ///
    /// What `umData` says is left counts; without it a limit begins whole.
    #[must_use]
    pub fn of_subscriber(data: &Value, slice: Option<&str>, dnn: &str, now: OffsetDateTime) -> Self {
        let slices = json::entries(data, "smPolicySnssaiData").filter(|(key, _)| is_slice(key, slice));
        let mut dnns = slices.filter_map(|(_, data)| of_dnn(data.get("smPolicyDnnData")?, dnn));
        let named = dnns.find_map(|data| data.get("refUmDataLimitIds"));
        let mut accounts = Self::default();
        for (id, limit) in json::entries(data, "umDataLimits") {
            let reference = named.and_then(|named| named.get(id));
            if reference.is_none() && !in_scope(limit, slice, dnn) {
                continue;
            }
            let left = data.get("umData").and_then(|all| all.get(id));
            let keys = reference.map_or(&[][..], |reference| json::items(reference, "monkey"));
            let keys = keys.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            if let Some(account) = Account::open(id, keys, limit, left, now) {
                accounts.accounts.push(account);
            }
        }
        accounts
    }

    /// Reads accounts as [`Accounts::to_json`] writes them; anything else is left out.
    #[must_use]
    pub fn from_json(value: &Value) -> Self {
        let entries = value.as_object().into_iter().flatten();
        Self {
            accounts: entries
                .filter_map(|(id, value)| Account::from_json(id, value))
                .collect(),
        }
    }

    /// The accounts as stored with a session: by limit identifier, each with the members of `UsageMonDataLimit` and
    /// `UsageMonData` that count.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let entries = self.accounts.iter();
        Value::Object(
            entries
                .map(|account| (account.id().to_owned(), account.to_json()))
                .collect(),
        )
    }

    /// `umData` for the UDR: what is left of each limit.
    #[must_use]
    pub fn to_um_data(&self) -> Value {
        let entries = self.accounts.iter().filter(|account| !account.is_reopened());
        Value::Object(
            entries
                .map(|account| (account.id().to_owned(), account.to_um_data()))
                .collect(),
        )
    }

    /// Every account.
    #[must_use]
    pub fn all(&self) -> &[Account] {
        &self.accounts
    }

    /// Begins the next period of each account whose period is over.
    pub fn advance(&mut self, now: OffsetDateTime) {
        for account in &mut self.accounts {
            account.advance(now);
        }
    }

    /// Puts accounts that were stored in the place of those of the same limits, so that what was used stays used. The limits
    /// stay those of the subscriber's data now.
    pub fn resume(&mut self, stored: &Self, now: OffsetDateTime) {
        for account in &mut self.accounts {
            if let Some(held) = stored.get(account.id()) {
                account.resume(held, now);
            }
        }
    }

    /// Opens every account again: what was used is forgotten, what is left is what the subscriber's data say when an event has
    /// them next. What sessions report until then counts.
    pub fn reopen(&mut self) {
        for account in &mut self.accounts {
            account.reopen();
        }
    }

    /// The account of a limit.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Account> {
        self.accounts.iter().find(|account| account.id() == id)
    }

    /// Adds an account, or replaces that of the same limit; whether that changes anything.
    pub fn put(&mut self, account: Account) -> bool {
        match self.accounts.iter_mut().find(|held| held.id() == account.id()) {
            Some(held) if *held == account => return false,
            Some(held) => *held = account,
            None => self.accounts.push(account),
        }
        true
    }

    /// Those of these limits.
    #[must_use]
    pub fn only(&self, ids: &[&str]) -> Self {
        let named = self.accounts.iter().filter(|account| ids.contains(&account.id()));
        Self {
            accounts: named.cloned().collect(),
        }
    }

    /// What policies read: by limit identifier `remaining`, `used` (each with members of `UsageThreshold`), `exhausted` and
    /// `resetTime`.
    pub fn states(&self) -> impl Iterator<Item = (&str, Value)> {
        self.accounts
            .iter()
            .map(|account| (account.id(), account.state()))
    }

    /// Subtracts what a report (`SmPolicyUpdateContextData`, `SmPolicyDeleteData`) says was used, and gives the
    /// identifiers of the accounts that it is about.
    pub fn report(&mut self, report: &Value, now: OffsetDateTime) -> Vec<String> {
        let mut reported = Vec::new();
        for usage in json::items(report, "accuUsageReports") {
            let Some(key) = json::text(usage, "refUmIds") else {
                continue;
            };
            let is_session = self.is_session_key(key);
            let measured = |account: &&mut Account| account.is_measured_by(key, is_session);
            for account in self.accounts.iter_mut().filter(measured) {
                account.report(usage, now);
                if !reported.iter().any(|id| id == account.id()) {
                    reported.push(account.id().to_owned());
                }
            }
        }
        self.advance(now);
        reported
    }

    /// Adds thresholds to a complete decision: `umDecs` of the keys that it refers to, and trigger `US_RE`. References to keys
    /// without a threshold are removed: SMF and PCEF stop measuring.
    ///
    /// A session is measured by one key (`refUmData` of a session rule is one, TS 29.512 §5.6.2.7), which therefore stands for all
    /// accounts of session level: its threshold is that of the one with the least left. Accounts that are used up have none.
    ///
    /// Where an account is used up until its next period, the session is decided again then (`revalidationTime`, trigger
    /// `RE_TIMEOUT`). `portion` bounds one threshold, so that usage is reported in portions of a quota; `None`: the whole rest.
    pub fn attach(&self, decision: &mut Value, portion: Option<Amount>) {
        let of_session = self.accounts.iter().filter(|account| account.is_session_level());
        let shared = of_session.clone().flat_map(Account::keys).next();
        if of_session.clone().any(|account| !account.is_exhausted())
            && let Some(key) = shared
        {
            refer_session(decision, key);
        }
        let has_rules = json::entries(decision, "sessRules").next().is_some();
        let mut thresholds = Object::new();
        for key in self.accounts.iter().flat_map(Account::keys) {
            // A PCEF measures a session for which it has no rule as well (TS 29.212 §4.5.16).
            let is_default = shared == Some(key) && !has_rules;
            if thresholds.contains_key(key) || !(is_default || is_referred(decision, key)) {
                continue;
            }
            let is_session = self.is_session_key(key);
            let measured = self.accounts.iter();
            let measured = measured.filter(|account| account.is_measured_by(key, is_session));
            let live: Vec<&Account> = measured.filter(|account| !account.is_exhausted()).collect();
            if !live.is_empty() {
                thresholds.insert(key.to_owned(), monitoring(key, &live, portion));
            }
        }
        let object = json::object(decision);
        if let Some(Value::Object(held)) = object.get_mut("umDecs") {
            let used_up = self.accounts.iter().filter(|account| account.is_exhausted());
            for key in used_up.flat_map(Account::keys) {
                held.remove(key);
            }
        }
        if !thresholds.is_empty() {
            let all = object.entry("umDecs").or_insert_with(|| json!({}));
            json::object(all).append(&mut thresholds);
            add_trigger(object, "US_RE");
        }
        if let Some(first) = self.accounts.iter().filter_map(Account::returns).min() {
            revalidate(decision, first);
        }
        remove_dangling(decision);
    }

    /// Whether a key measures a whole session.
    fn is_session_key(&self, key: &str) -> bool {
        let mut of_session = self.accounts.iter().filter(|account| account.is_session_level());
        of_session.any(|account| account.has_key(key))
    }
}

/// The network identifier of a DNN, without the operator's (TS 23.003 §9.1).
#[must_use]
pub fn network(dnn: &str) -> &str {
    let lower = dnn.to_ascii_lowercase();
    match lower.rfind(".mnc") {
        Some(at) if lower.ends_with(".gprs") => &dnn[..at],
        _ => dnn,
    }
}

/// The entry of a map by DNN: that of the DNN itself, or of the same network under another form of its name.
#[must_use]
pub fn of_dnn<'v>(map: &'v Value, dnn: &str) -> Option<&'v Value> {
    let is_same = |known: &str| network(known).eq_ignore_ascii_case(network(dnn));
    let members = map.as_object()?;
    members.get(dnn).or_else(|| {
        let mut entries = members.iter();
        entries.find(|(known, _)| is_same(known)).map(|(_, entry)| entry)
    })
}

/// Whether the key of a slice (TS 29.571 §5.4.4.2) is that of a session; of a session without a slice each is.
fn is_slice(key: &str, slice: Option<&str>) -> bool {
    slice.is_none_or(|slice| slice.eq_ignore_ascii_case(key))
}

/// Removes the thresholds of accounts that a report is about from what an SMF or PCEF has: they are used up there
/// (TS 29.512 §4.2.6.5.3.1), so that the next decision provides them again or removes them.
pub fn forget_reported(has: &mut Value, report: &Value) {
    for usage in json::items(report, "accuUsageReports") {
        let entry = json::text(usage, "refUmIds").and_then(|key| has.get_mut("umDecs")?.get_mut(key));
        if let Some(Value::Object(entry)) = entry {
            entry.retain(|member, _| member == "umId");
        }
    }
}

fn in_scope(limit: &Value, slice: Option<&str>, dnn: &str) -> bool {
    let mut scopes = json::entries(limit, "scopes").filter(|(key, _)| is_slice(key, slice));
    scopes.any(|(_, scope)| {
        let mut dnns = json::texts(scope, "dnn").peekable();
        dnns.peek().is_none() || dnns.any(|scoped| network(scoped).eq_ignore_ascii_case(network(dnn)))
    })
}

/// Whether a rule of the decision refers to an account.
fn is_referred(decision: &Value, key: &str) -> bool {
    let session =
        json::entries(decision, "sessRules").any(|(_, rule)| json::text(rule, "refUmData") == Some(key));
    session
        || json::entries(decision, "pccRules")
            .chain(json::entries(decision, "adcRules"))
            .any(|(_, rule)| json::texts(rule, "refUmData").any(|id| id == key))
}

fn refer_session(decision: &mut Value, key: &str) {
    if let Some(Value::Object(rules)) = decision.get_mut("sessRules") {
        for rule in rules.values_mut().filter_map(Value::as_object_mut) {
            rule.entry("refUmData").or_insert_with(|| key.into());
        }
    }
}

/// Removes references to usage monitoring data that the decision does not have.
fn remove_dangling(decision: &mut Value) {
    let known: Vec<String> = json::entries(decision, "umDecs")
        .map(|(id, _)| id.to_owned())
        .collect();
    let is_known = |id: &Value| {
        id.as_str()
            .is_some_and(|id| known.iter().any(|known| known == id))
    };
    if let Some(Value::Object(rules)) = decision.get_mut("sessRules") {
        for rule in rules.values_mut().filter_map(Value::as_object_mut) {
            if rule.get("refUmData").is_some_and(|id| !is_known(id)) {
                rule.remove("refUmData");
            }
        }
    }
    for section in ["pccRules", "adcRules"] {
        let Some(Value::Object(rules)) = decision.get_mut(section) else {
            continue;
        };
        for rule in rules.values_mut().filter_map(Value::as_object_mut) {
            let Some(Value::Array(references)) = rule.get_mut("refUmData") else {
                continue;
            };
            references.retain(is_known);
            if references.is_empty() {
                rule.remove("refUmData");
            }
        }
    }
}

fn date(value: &Value, member: &str) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(json::text(value, member)?, &Rfc3339).ok()
}

fn date_text(date: OffsetDateTime) -> Option<String> {
    date.format(&Rfc3339).ok()
}
