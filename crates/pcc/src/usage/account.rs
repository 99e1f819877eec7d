//! One quota: its limit, its period, what is left.

use serde_json::{Value, json};
use time::OffsetDateTime;

use super::period::Period;
use super::{date, date_text};
use crate::json::{self, Object};

/// An amount of usage; what is `None` is not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Bytes of both directions.
    pub total: Option<u64>,
    /// Bytes from the UE.
    pub uplink: Option<u64>,
    /// Bytes to the UE.
    pub downlink: Option<u64>,
    /// Seconds.
    pub seconds: Option<u64>,
}

/// Names of the four measures in one data type.
type Names = [&'static str; 4];

const LIMIT: Names = ["totalVolume", "uplinkVolume", "downlinkVolume", "duration"];
const USAGE: Names = ["volUsage", "volUsageUplink", "volUsageDownlink", "timeUsage"];
const NEXT_USAGE: Names = [
    "nextVolUsage",
    "nextVolUsageUplink",
    "nextVolUsageDownlink",
    "nextTimeUsage",
];
const THRESHOLD: Names = [
    "volumeThreshold",
    "volumeThresholdUplink",
    "volumeThresholdDownlink",
    "timeThreshold",
];
const NEXT_THRESHOLD: Names = [
    "nextVolThreshold",
    "nextVolThresholdUplink",
    "nextVolThresholdDownlink",
    "nextTimeThreshold",
];

impl Amount {
    fn read(value: &Value, names: Names) -> Self {
        let [total, uplink, downlink, seconds] = names.map(|name| json::uint(value, name));
        Self {
            total,
            uplink,
            downlink,
            seconds,
        }
    }

    fn write(self, out: &mut Object, names: Names) {
        for (name, amount) in names.into_iter().zip(self.measures()) {
            json::put(out, name, amount);
        }
    }

    fn measures(self) -> [Option<u64>; 4] {
        [self.total, self.uplink, self.downlink, self.seconds]
    }

    fn combine(self, other: Self, with: impl Fn(u64, Option<u64>) -> u64) -> Self {
        let one = |own: Option<u64>, other| own.map(|own| with(own, other));
        Self {
            total: one(self.total, other.total),
            uplink: one(self.uplink, other.uplink),
            downlink: one(self.downlink, other.downlink),
            seconds: one(self.seconds, other.seconds),
        }
    }

    /// What is left after some was used. A total that is not reported is the sum of its directions.
    fn minus(self, mut used: Self) -> Self {
        if used.total.is_none() && (used.uplink.is_some() || used.downlink.is_some()) {
            let sum = used
                .uplink
                .unwrap_or(0)
                .saturating_add(used.downlink.unwrap_or(0));
            used.total = Some(sum);
        }
        self.combine(used, |own, used| own.saturating_sub(used.unwrap_or(0)))
    }

    /// The least of both; what neither limits stays `None`.
    fn least(self, other: Self) -> Self {
        let one = |own: Option<u64>, other: Option<u64>| match (own, other) {
            (Some(own), Some(other)) => Some(own.min(other)),
            (own, other) => own.or(other),
        };
        Self {
            total: one(self.total, other.total),
            uplink: one(self.uplink, other.uplink),
            downlink: one(self.downlink, other.downlink),
            seconds: one(self.seconds, other.seconds),
        }
    }

    fn at_most(self, portion: Self) -> Self {
        self.combine(portion, |own, portion| {
            portion.map_or(own, |portion| own.min(portion))
        })
    }

    /// Both together; what neither has measured stays `None`.
    fn plus(self, more: Self) -> Self {
        let one = |own: Option<u64>, more: Option<u64>| match (own, more) {
            (Some(own), Some(more)) => Some(own.saturating_add(more)),
            (own, more) => own.or(more),
        };
        Self {
            total: one(self.total, more.total),
            uplink: one(self.uplink, more.uplink),
            downlink: one(self.downlink, more.downlink),
            seconds: one(self.seconds, more.seconds),
        }
    }

    /// What is left of this limit where `left` is left of the limit `old`: as much is used of both.
    fn in_place_of(self, old: Self, left: Self) -> Self {
        let one = |new: Option<u64>, old: Option<u64>, left: Option<u64>| match (new, old, left) {
            (Some(new), Some(old), Some(left)) if left > old => Some(new.saturating_add(left - old)),
            (Some(new), Some(old), Some(left)) => Some(new.saturating_sub(old - left)),
            (new, _, _) => new,
        };
        Self {
            total: one(self.total, old.total, left.total),
            uplink: one(self.uplink, old.uplink, left.uplink),
            downlink: one(self.downlink, old.downlink, left.downlink),
            seconds: one(self.seconds, old.seconds, left.seconds),
        }
    }

    fn is_empty(self) -> bool {
        self.measures().iter().all(Option::is_none)
    }
}

/// The quota of one limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    id: String,
    /// Monitoring keys (`umId`) that are measured against it.
    keys: Vec<String>,
    session_level: bool,
    limit: Amount,
    left: Amount,
    /// What was reported in the current period; more than the limit where sessions together used more.
    used: Amount,
    period: Option<Period>,
    /// Where periods are counted from: of a month that lacks its day the last one ends a period, and the next period ends on that
    /// day again.
    start: Option<OffsetDateTime>,
    /// When the current period ends.
    reset: Option<OffsetDateTime>,
    /// When the limit ends for good.
    end: Option<OffsetDateTime>,
    /// Whether what is left is that of the subscriber's data, which have not been read yet, but for what was used since.
    reopened: bool,
}

impl Account {
    /// The account of a `UsageMonDataLimit`, with what a `UsageMonData` says is left of it. `None`: it does not apply now,
    /// or nothing is limited.
    pub(super) fn open(
        id: &str,
        keys: Vec<String>,
        limit: &Value,
        left: Option<&Value>,
        now: OffsetDateTime,
    ) -> Option<Self> {
        let first = date(limit, "startDate");
        let end = date(limit, "endDate");
        if first.is_some_and(|first| now < first) || end.is_some_and(|end| now >= end) {
            return None;
        }
        let whole = Amount::read(limit.get("usageLimit")?, LIMIT);
        if whole.is_empty() {
            return None;
        }
        let period = limit
            .get("resetPeriod")
            .and_then(|period| Period::read(json::text(period, "period")?));
        let reset = left.and_then(|left| date(left, "resetTime"));
        // A given time at which no period from the first day ends is where periods are counted from.
        let start = match (period, first, reset) {
            (Some(period), Some(first), Some(reset)) if !period.ends_at(first, reset) => reset,
            (_, first, reset) => first.or(reset).unwrap_or(now),
        };
        let reset = reset.or_else(|| period?.next_reset(start, now));
        let left = left.and_then(|left| left.get("allowedUsage"));
        let mut account = Self {
            id: id.to_owned(),
            keys: if keys.is_empty() {
                vec![id.to_owned()]
            } else {
                keys
            },
            session_level: json::text(limit, "umLevel") != Some("SERVICE_LEVEL"),
            limit: whole,
            left: left.map_or(whole, |left| Amount::read(left, LIMIT)),
            used: Amount::default(),
            period,
            start: Some(start),
            reset,
            end,
            reopened: false,
        };
        account.advance(now);
        Some(account)
    }

    /// The limit's identifier.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What is left in this period.
    #[must_use]
    pub fn left(&self) -> Amount {
        self.left
    }

    /// What was reported in this period, also what exceeds the limit.
    #[must_use]
    pub fn used(&self) -> Amount {
        self.used
    }

    /// Whether one of its measures is used up.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.left.measures().contains(&Some(0))
    }

    pub(super) fn is_session_level(&self) -> bool {
        self.session_level
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(String::as_str)
    }

    pub(super) fn has_key(&self, key: &str) -> bool {
        self.keys().any(|known| known == key)
    }

    /// Whether a key measures it; `of_session`: the key is one of session level, which measures all accounts of that level.
    pub(super) fn is_measured_by(&self, key: &str, of_session: bool) -> bool {
        of_session && self.session_level || self.has_key(key)
    }

    /// Takes the place of an account of the same limit that was stored: what was used stays used, whatever the limit is now.
    pub(super) fn resume(&mut self, stored: &Self, now: OffsetDateTime) {
        if stored.reopened {
            self.subtract(stored.used);
            return self.advance(now);
        }
        self.left = self.limit.in_place_of(stored.limit, stored.left);
        self.used = stored.used;
        if self.period == stored.period {
            self.reset = stored.reset;
            let counts = |start: &OffsetDateTime| {
                let ends = self.period.zip(stored.reset);
                ends.is_some_and(|(period, reset)| period.ends_at(*start, reset))
            };
            // A start that does not lead to the end of the period that has begun begins with the next one.
            let starts = [self.start, stored.start, stored.reset];
            self.start = starts.into_iter().flatten().find(counts).or(stored.reset);
        }
        self.advance(now);
    }

    /// Nothing is used any more; what is left is read from the subscriber's data when they are there.
    pub(super) fn reopen(&mut self) {
        self.left = self.limit;
        self.used = Amount::default();
        self.reopened = true;
    }

    /// Whether what is left is not known until the subscriber's data are read.
    pub(super) fn is_reopened(&self) -> bool {
        self.reopened
    }

    pub(super) fn advance(&mut self, now: OffsetDateTime) {
        let Some(reset) = self.reset.filter(|reset| *reset <= now) else {
            return;
        };
        self.left = self.limit;
        self.used = Amount::default();
        let start = self.start.unwrap_or(reset);
        self.reset = self.period.and_then(|period| period.next_reset(start, now));
    }

    /// Usage before the monitoring time belongs to the period that ends there, that after it to the next
    /// (TS 29.512 §4.2.6.5.3.1).
    pub(super) fn report(&mut self, usage: &Value, now: OffsetDateTime) {
        let (used, next) = (Amount::read(usage, USAGE), Amount::read(usage, NEXT_USAGE));
        if next.is_empty() && self.reset.is_some_and(|reset| reset <= now) {
            // Measured across the end of the period without a split: it counts for the one that is over.
            self.advance(now);
            return;
        }
        self.subtract(used);
        if !next.is_empty() {
            self.advance(now);
            self.subtract(next);
        }
    }

    fn subtract(&mut self, used: Amount) {
        self.left = self.left.minus(used);
        self.used = self.used.plus(used);
    }

    /// When an account that is used up is whole again.
    pub(super) fn returns(&self) -> Option<OffsetDateTime> {
        self.next_period().filter(|_| self.is_exhausted())
    }

    /// What policies read of it.
    pub(super) fn state(&self) -> Value {
        let (mut left, mut used) = (Object::new(), Object::new());
        self.left.write(&mut left, LIMIT);
        self.used.write(&mut used, LIMIT);
        let mut out = json!({"remaining": left, "used": used, "exhausted": self.is_exhausted()});
        json::put(
            json::object(&mut out),
            "resetTime",
            self.reset.and_then(date_text),
        );
        out
    }

    /// When the period ends, unless the limit ends before.
    fn next_period(&self) -> Option<OffsetDateTime> {
        let ends = |reset: &OffsetDateTime| self.end.is_some_and(|end| *reset >= end);
        self.reset.filter(|reset| !ends(reset))
    }

    pub(super) fn to_um_data(&self) -> Value {
        let mut left = Object::new();
        self.left.write(&mut left, LIMIT);
        let level = if self.session_level {
            "SESSION_LEVEL"
        } else {
            "SERVICE_LEVEL"
        };
        let mut out = json!({"limitId": self.id, "umLevel": level, "allowedUsage": left});
        json::put(
            json::object(&mut out),
            "resetTime",
            self.reset.and_then(date_text),
        );
        out
    }

    pub(super) fn to_json(&self) -> Value {
        let (mut limit, mut used) = (Object::new(), Object::new());
        self.limit.write(&mut limit, LIMIT);
        self.used.write(&mut used, LIMIT);
        let mut out = self.to_um_data();
        let object = json::object(&mut out);
        object.insert("usageLimit".to_owned(), Value::Object(limit));
        object.insert("used".to_owned(), Value::Object(used));
        object.insert("keys".to_owned(), json::list(self.keys.iter().cloned()));
        let period = self.period.map(|period| json!({"period": period.name()}));
        json::put(object, "resetPeriod", period);
        json::put(object, "startDate", self.start.and_then(date_text));
        json::put(object, "endDate", self.end.and_then(date_text));
        json::put(object, "reopened", self.reopened.then_some(true));
        json::put(object, "exhausted", self.is_exhausted().then_some(true));
        out
    }

    pub(super) fn from_json(id: &str, value: &Value) -> Option<Self> {
        let period = value.get("resetPeriod");
        Some(Self {
            id: id.to_owned(),
            keys: json::texts(value, "keys").map(str::to_owned).collect(),
            session_level: json::text(value, "umLevel") != Some("SERVICE_LEVEL"),
            limit: Amount::read(value.get("usageLimit")?, LIMIT),
            left: Amount::read(value.get("allowedUsage")?, LIMIT),
            used: Amount::read(value.get("used").unwrap_or(&Value::Null), LIMIT),
            period: period.and_then(|period| Period::read(json::text(period, "period")?)),
            start: date(value, "startDate"),
            reset: date(value, "resetTime"),
            end: date(value, "endDate"),
            reopened: value.get("reopened") == Some(&Value::Bool(true)),
        })
    }
}

/// `UsageMonitoringData` of a key that these accounts are measured by: the threshold is that of the account with the least left.
/// Where the first of their periods ends, the threshold of the time after it goes with it.
pub(super) fn monitoring(key: &str, accounts: &[&Account], portion: Option<Amount>) -> Value {
    let portion = portion.unwrap_or_default();
    let least = |amount: &dyn Fn(&Account) -> Amount| {
        let amounts = accounts.iter().map(|account| amount(account));
        amounts.fold(Amount::default(), Amount::least)
    };
    let mut out = Object::new();
    out.insert("umId".to_owned(), key.into());
    least(&|account| account.left)
        .at_most(portion)
        .write(&mut out, THRESHOLD);
    let first = accounts.iter().filter_map(|account| account.next_period()).min();
    if let Some((first, text)) = first.and_then(|first| Some((first, date_text(first)?))) {
        out.insert("monitoringTime".to_owned(), text.into());
        let next = least(&|account| match account.next_period() == Some(first) {
            true => account.limit,
            false => account.left,
        });
        next.at_most(portion).write(&mut out, NEXT_THRESHOLD);
    }
    Value::Object(out)
}
