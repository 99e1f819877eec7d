//! The transfer policies that fit a request.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::model::Moment;
use super::{Area, Day, Degradation, Model, Window};
use crate::usage::network;

/// Days of a desired time window in which occurrences are looked for: a request of years takes no more time than that.
const DAYS: usize = 32;
/// Seconds of an offer, at least.
const SHORTEST: i64 = 60;

/// What a provider asks for (`BdtReqData`, TS 29.554 §5.6.2.3).
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// When the desired time window begins, in seconds since 1970.
    pub from: i64,
    /// When it ends.
    pub to: i64,
    /// Bytes of all UEs in uplink direction.
    uplink: u64,
    /// Bytes of all UEs in downlink direction.
    downlink: u64,
    /// Bytes of all UEs in both directions.
    total: u64,
    area: Area,
    dnn: Option<String>,
}

/// An occurrence of a window, as far as it lies in the desired one.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer<'m> {
    /// The window.
    pub window: &'m Window,
    /// When this occurrence of the window begins, in seconds since 1970; with the window's name it identifies the occurrence.
    pub begins: i64,
    /// When the offer begins.
    pub from: i64,
    /// When it ends.
    pub to: i64,
}

impl Wanted {
    /// What a `BdtReqData` asks for; `None`: it has no time window.
    #[must_use]
    pub fn read(request: &Value) -> Option<Self> {
        let (from, to) = interval(request.get("desTimeInt")?)?;
        let number = |value: Option<&Value>| value.and_then(Value::as_u64).unwrap_or(0);
        let ues = number(request.get("numOfUes"));
        let volume = request.get("volPerUe");
        let of_all = |member: &str| number(volume.and_then(|volume| volume.get(member))).saturating_mul(ues);
        let (uplink, downlink) = (of_all("uplinkVolume"), of_all("downlinkVolume"));
        Some(Self {
            from,
            to,
            uplink,
            downlink,
            total: of_all("totalVolume").max(uplink.saturating_add(downlink)),
            area: request.get("nwAreaInfo").map(Area::read).unwrap_or_default(),
            dnn: request.get("dnn").and_then(Value::as_str).map(str::to_owned),
        })
    }

    /// Bytes of all UEs in both directions.
    #[must_use]
    pub fn volume(&self) -> u64 {
        self.total
    }
}

/// Beginning and end of a `TimeWindow` (TS 29.122 §5.2.1.2.13), in seconds since 1970.
fn interval(window: &Value) -> Option<(i64, i64)> {
    let moment = |name: &str| {
        let text = window.get(name)?.as_str()?.to_owned();
        Some(Moment::try_from(text).ok()?.0)
    };
    Some((moment("startTime")?, moment("stopTime")?))
}

impl Model {
    /// The occurrences of windows that a request can be offered from `now` on, those first that the operator prefers, of one window in
    /// their order. Of a degraded network none is offered.
    pub fn offers<'m>(&'m self, wanted: &'m Wanted, now: i64) -> impl Iterator<Item = Offer<'m>> {
        let (from, to) = (wanted.from.max(now), wanted.to);
        self.windows
            .iter()
            .filter(move |window| fits(window, wanted))
            .flat_map(move |window| occurrences(window, from, to))
            .filter(move |offer| offer.to - offer.from >= SHORTEST && offer.has_rate(wanted))
            .filter(move |offer| {
                let during = (offer.from, offer.to);
                !self.degraded.iter().any(|one| one.affects(during, &wanted.area))
            })
    }

    /// The degradation that affects a transfer policy of a request, from `now` on.
    #[must_use]
    pub fn degradation_of(&self, policy: &Value, wanted: &Wanted, now: i64) -> Option<&Degradation> {
        let during = interval(policy.get("recTimeInt")?)?;
        let affects = |one: &&Degradation| one.to.0 > now && one.affects(during, &wanted.area);
        self.degraded.iter().find(affects)
    }
}

impl Degradation {
    fn affects(&self, (from, to): (i64, i64), area: &Area) -> bool {
        self.from.0 < to && self.to.0 > from && self.area.touches(area)
    }

    /// Its time as `TimeWindow`.
    #[must_use]
    pub fn time_window(&self) -> Value {
        time_window(self.from.0, self.to.0)
    }
}

fn time_window(from: i64, to: i64) -> Value {
    json!({"startTime": String::from(Moment(from)), "stopTime": String::from(Moment(to))})
}

impl Offer<'_> {
    /// It as `TransferPolicy` with this identity.
    #[must_use]
    pub fn policy(&self, id: i64) -> Value {
        let mut policy = json!({
            "transPolicyId": id,
            "recTimeInt": time_window(self.from, self.to),
            "ratingGroup": self.window.rating_group,
        });
        for (member, rate) in [
            ("maxBitRateUl", self.window.max_bit_rate_ul),
            ("maxBitRateDl", self.window.max_bit_rate_dl),
        ] {
            if let Some(rate) = rate {
                policy[member] = String::from(rate).into();
            }
        }
        policy
    }

    /// Whether the volume of a request can be transferred in it at its bit rates.
    fn has_rate(&self, wanted: &Wanted) -> bool {
        let seconds = u64::try_from(self.to - self.from).unwrap_or(0);
        let bytes = |rate: u64| rate.saturating_mul(seconds) / 8;
        let (up, down) = (self.window.max_bit_rate_ul, self.window.max_bit_rate_dl);
        let holds = |volume: u64, rate: Option<u64>| rate.is_none_or(|rate| volume <= bytes(rate));
        let both = up.zip(down).map(|(up, down)| up.0.saturating_add(down.0));
        holds(wanted.uplink, up.map(|rate| rate.0))
            && holds(wanted.downlink, down.map(|rate| rate.0))
            && holds(wanted.total, both)
    }
}

fn fits(window: &Window, wanted: &Wanted) -> bool {
    let dnns = &window.dnns;
    let is_dnn = |dnn: &str| dnns.iter().any(|known| known.eq_ignore_ascii_case(network(dnn)));
    window.area.contains(&wanted.area) && (dnns.is_empty() || wanted.dnn.as_deref().is_some_and(is_dnn))
}

/// The occurrences of a window, as far as they lie in an interval.
fn occurrences(window: &Window, from: i64, to: i64) -> impl Iterator<Item = Offer<'_>> {
    let zone = window.time_zone().unwrap_or(TimeZone::UTC);
    let first = Timestamp::from_second(from).ok().and_then(|moment| {
        // One that has begun on the day before may last.
        zone.to_datetime(moment).date().yesterday().ok()
    });
    let days = std::iter::successors(first, |day| day.tomorrow().ok()).take(DAYS + 1);
    days.filter_map(move |day| {
        let begins_on = Day::numbered(day.weekday().to_monday_zero_offset());
        if !window.days.is_empty() && !window.days.contains(&begins_on) {
            return None;
        }
        let last = match window.to > window.from {
            true => day,
            false => day.tomorrow().ok()?,
        };
        let begins = moment(&zone, day, window.from.0)?;
        let ends = moment(&zone, last, window.to.0)?;
        Some(Offer {
            window,
            begins,
            from: begins.max(from),
            to: ends.min(to),
        })
    })
}

/// When a minute of a day begins in a zone; one that the day does not have begins when clocks are put forward.
fn moment(zone: &TimeZone, day: Date, minute: u16) -> Option<i64> {
    let (hour, minute) = (i8::try_from(minute / 60).ok()?, i8::try_from(minute % 60).ok()?);
    let moment = zone
        .to_ambiguous_timestamp(day.at(hour, minute, 0, 0))
        .compatible();
    Some(moment.ok()?.as_second())
}
