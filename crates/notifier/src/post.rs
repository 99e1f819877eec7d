//! One request to a subscriber, and the meaning of its response.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode, Uri};
use sbi::client::{Client, Origin, SendOptions};
use sbi::headers::names;
use sbi::name::{CONTENT_TYPE, LOCATION, RETRY_AFTER};
use sbi::{Fields, Outbound, Response, Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

use crate::Notification;

/// Priority of notifications (TS 29.500 §6.8.4): behind requests somebody waits for.
const PRIORITY: u8 = 16;

/// The answer of a subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// 2xx.
    Delivered,
    /// 4xx: it will refuse the same notification again.
    Refused,
    /// 307 or 308, with where it wants the notification (TS 29.500 §6.10.9).
    Redirect(Uri),
    /// No answer, 429 or 5xx, with `Retry-After`.
    Retry(Option<Duration>),
}

/// Sends a notification to a place, with another body where there is one: what the answer means, and the response where there is one. `permits` says whether a
/// redirection to that origin may be followed.
pub(crate) async fn post(
    client: &Client,
    notification: &Notification,
    (target, body): (&Uri, Option<Bytes>),
    timeout: Duration,
    permits: impl Fn(&Origin) -> bool,
) -> (Answer, Option<Response>) {
    let Ok(origin) = Origin::of_uri(target) else {
        return (Answer::Refused, None);
    };
    let path = target.path_and_query().map_or("/", |path| path.as_str());
    let Ok(path) = Value::try_from(path) else {
        return (Answer::Refused, None);
    };
    let mut request = Outbound::new(Method::POST, path).with(CONTENT_TYPE, json::JSON);
    if !notification.callback.is_empty() {
        request = request.with(names::CALLBACK, Value::from_static(notification.callback));
    }
    let request = request.with_body(body.unwrap_or_else(|| notification.body.clone()));
    let options = SendOptions {
        deadline: timeout,
        priority: PRIORITY,
    };
    match client.send(&origin, request, options).await {
        Ok(response) => {
            let answer = answer_of(response.status(), response.headers(), target, permits);
            (answer, Some(response))
        }
        Err(_) => (Answer::Retry(None), None),
    }
}

fn answer_of(
    status: StatusCode,
    headers: &Fields,
    target: &Uri,
    permits: impl Fn(&Origin) -> bool,
) -> Answer {
    match status.as_u16() {
        200..300 => Answer::Delivered,
        307 | 308 => location(headers, target)
            .filter(|place| Origin::of_uri(place).is_ok_and(|origin| permits(&origin)))
            .map_or(Answer::Retry(None), Answer::Redirect),
        429 | 500.. => Answer::Retry(retry_after(headers, OffsetDateTime::now_utc())),
        400..500 => Answer::Refused,
        _ => Answer::Retry(None),
    }
}

/// The absolute URI of `Location`, which may name a path only (RFC 9110 §10.2.2).
fn location(headers: &Fields, target: &Uri) -> Option<Uri> {
    let location: Uri = headers.get(LOCATION)?.to_str().ok()?.parse().ok()?;
    if location.authority().is_some() {
        return Some(location);
    }
    let mut parts = target.clone().into_parts();
    parts.path_and_query = location.into_parts().path_and_query;
    Uri::from_parts(parts).ok()
}

/// Seconds or a date (RFC 9110 §10.2.3).
fn retry_after(headers: &Fields, now: OffsetDateTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u32>() {
        return Some(Duration::from_secs(seconds.into()));
    }
    let until = OffsetDateTime::parse(text, &Rfc2822).ok()? - now;
    Duration::try_from(until).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, header: Option<(&'static str, &str)>) -> Answer {
        let mut headers = Fields::new();
        if let Some((name, value)) = header {
            headers.set_printed(name, value);
        }
        let target = "http://nef.example:8080/callback?x=1".parse().unwrap();
        let status = StatusCode::from_u16(status).unwrap();
        answer_of(status, &headers, &target, |origin| origin.host() != "10.0.0.9")
    }

    #[test]
    fn statuses_decide_what_follows() {
        let seconds = |seconds| Answer::Retry(Some(Duration::from_secs(seconds)));
        for (status, header, expected) in [
            (204, None, Answer::Delivered),
            (404, None, Answer::Refused),
            (429, Some(("retry-after", "7")), seconds(7)),
            (503, Some(("retry-after", "2")), seconds(2)),
            (503, Some(("retry-after", "-1")), Answer::Retry(None)),
            (503, None, Answer::Retry(None)),
            (101, None, Answer::Retry(None)),
            (
                307,
                Some(("location", "https://other.example/new")),
                Answer::Redirect("https://other.example/new".parse().unwrap()),
            ),
            (
                308,
                Some(("location", "/moved")),
                Answer::Redirect("http://nef.example:8080/moved".parse().unwrap()),
            ),
            (
                308,
                Some(("location", "http://10.0.0.9/moved")),
                Answer::Retry(None),
            ),
            (308, Some(("location", "ftp://nef.example/")), Answer::Retry(None)),
            (308, None, Answer::Retry(None)),
        ] {
            assert_eq!(answer(status, header), expected, "{status} {header:?}");
        }
    }

    #[test]
    fn retry_after_may_be_a_date() {
        let mut headers = Fields::new();
        headers.set_printed(RETRY_AFTER, "Sun, 06 Nov 1994 08:49:37 GMT");
        let date = time::macros::datetime!(1994-11-06 08:49:37 UTC);
        let wait = |seconds| retry_after(&headers, date - time::Duration::seconds(seconds));
        assert_eq!(wait(5), Some(Duration::from_secs(5)));
        assert_eq!(wait(-5), None, "a date that has passed");
    }
}
