//! The box: what a text is (a subscriber, an address, a session, an instance, a host), which pages of functions know of it, and
//! what they answer. Pages are only read.

use std::net::{IpAddr, SocketAddr};

use futures_util::future::join_all;
use serde_json::{Value, json};

use function::pages::segment;

use crate::client::Connection;
use crate::observation::cut;

/// Characters of what is searched.
const MOST_TEXT: usize = 256;
/// Bytes of a page that is read for it.
const MOST_PAGE: usize = 8 << 20;
/// Rows of one page that are shown.
const MOST_ROWS: usize = 50;
/// Bytes of all rows together.
const MOST_SHOWN: usize = 64 << 10;

/// A page that may know of it.
#[derive(Debug, PartialEq, Eq)]
struct Question {
    function: &'static str,
    about: &'static str,
    path: String,
    /// The same by the command line.
    command: String,
    /// Whether the page lists everything, and only rows with the text are wanted.
    filters: bool,
}

/// What a text is, in words, and who is asked; an error is for the person who typed it.
fn questions(text: &str) -> Result<(&'static str, Vec<Question>), &'static str> {
    const WHAT: &str = "type a SUPI (imsi-001010000000001), a GPSI (msisdn-4917012345), an address of a UE, a host name, an NF instance id or a Session-Id";
    if text.is_empty() || text.chars().count() > MOST_TEXT || text.chars().any(char::is_control) {
        return Err(WHAT);
    }
    let digits =
        |text: &str| (5..=15).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if text.contains(';') {
        return Ok((
            "a Session-Id",
            vec![
                ask(
                    "dsr",
                    "PCRF of the session",
                    "pdra session",
                    "/dsr/pdra/session/",
                    text,
                ),
                ask(
                    "dsr",
                    "OCS of the session",
                    "ocdra session",
                    "/dsr/ocdra/session/",
                    text,
                ),
                ask("dsr", "traced messages", "traces", "/dsr/traces/", text),
            ],
        ));
    }
    if let Some(imsi) = text
        .strip_prefix("imsi-")
        .or(Some(text))
        .filter(|imsi| digits(imsi) && imsi.len() >= 14)
    {
        return Ok(("a SUPI", of_supi(&format!("imsi-{imsi}"), Some(imsi))));
    }
    if ["imsi-", "nai-", "gci-", "gli-"]
        .iter()
        .any(|kind| text.starts_with(kind))
    {
        return Ok(("a SUPI", of_supi(text, None)));
    }
    if let Some(msisdn) = text
        .strip_prefix("msisdn-")
        .or(text.strip_prefix('+'))
        .or(Some(text))
        .filter(|it| digits(it))
    {
        return Ok(("a GPSI", of_gpsi(&format!("msisdn-{msisdn}"), Some(msisdn))));
    }
    if ["msisdn-", "extid-"].iter().any(|kind| text.starts_with(kind)) {
        return Ok(("a GPSI", of_gpsi(text, None)));
    }
    if let Ok(address) = text.trim_end_matches("/128").parse::<IpAddr>() {
        return Ok(("an address", of_address(address)));
    }
    if is_instance(text) {
        return Ok(("an NF instance id", of_instance(&text.to_ascii_lowercase())));
    }
    if text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte))
    {
        return Ok(("a host", of_host(text)));
    }
    Err(WHAT)
}

/// A page with the text as its last segment.
fn ask(function: &'static str, about: &'static str, page: &str, path: &str, argument: &str) -> Question {
    Question {
        function,
        about,
        path: format!("{path}{}", segment(argument)),
        command: format!("signalbox {function} {page} {}", quoted(argument)),
        filters: false,
    }
}

/// A list of which the rows with the text are wanted.
fn filter(function: &'static str, about: &'static str, page: &str, path: &str, text: &str) -> Question {
    Question {
        function,
        about,
        path: path.to_owned(),
        command: format!("signalbox {function} {page} --filter {}", quoted(text)),
        filters: true,
    }
}

fn of_supi(supi: &str, imsi: Option<&str>) -> Vec<Question> {
    let mut all = vec![
        ask(
            "bsf",
            "bindings of PDU sessions",
            "find",
            "/bsf/find/",
            &format!("supi={supi}"),
        ),
        ask("pcf", "policy associations", "find", "/pcf/find/", supi),
        ask("pcf", "quotas", "usage", "/pcf/usage/", supi),
        ask(
            "pcf",
            "why the policy project decided so",
            "explain",
            "/pcf/explain/",
            supi,
        ),
    ];
    if let Some(imsi) = imsi {
        all.extend(of_number("imsi", imsi));
    } else if let Some(nai) = supi.strip_prefix("nai-") {
        all.push(subscriber(&format!("nai:{nai}")));
    }
    all
}

fn of_gpsi(gpsi: &str, msisdn: Option<&str>) -> Vec<Question> {
    let mut all = vec![
        ask(
            "bsf",
            "bindings of PDU sessions",
            "find",
            "/bsf/find/",
            &format!("gpsi={gpsi}"),
        ),
        ask("pcf", "policy associations", "find", "/pcf/find/", gpsi),
    ];
    if let Some(msisdn) = msisdn {
        all.extend(of_number("msisdn", msisdn));
        all.push(ask("enum", "ENUM records", "find", "/enum/find/", msisdn));
    }
    all
}

/// What the Diameter router knows of an IMSI or an MSISDN.
fn of_number(kind: &str, digits: &str) -> [Question; 4] {
    let entity = format!("{kind}:{digits}");
    [
        ask("dsr", "address resolution", "ranges", "/dsr/ranges/", &entity),
        subscriber(&entity),
        bound_pcrf(digits),
        ask("dsr", "traced messages", "traces", "/dsr/traces/", digits),
    ]
}

fn subscriber(entity: &str) -> Question {
    ask(
        "dsr",
        "full address resolution",
        "subscribers",
        "/dsr/subscribers/",
        entity,
    )
}

fn bound_pcrf(key: &str) -> Question {
    ask(
        "dsr",
        "PCRF of its sessions",
        "pdra binding",
        "/dsr/pdra/binding/",
        key,
    )
}

fn of_address(address: IpAddr) -> Vec<Question> {
    let text = address.to_string();
    let binding = match address {
        IpAddr::V4(_) => format!("ipv4Addr={text}"),
        IpAddr::V6(_) => format!("ipv6Prefix={text}/128"),
    };
    vec![
        ask("bsf", "bindings of PDU sessions", "find", "/bsf/find/", &binding),
        ask("pcf", "policy associations", "find", "/pcf/find/", &text),
        bound_pcrf(&text),
        filter(
            "nrf",
            "registered instances",
            "instances",
            "/nrf/instances",
            &text,
        ),
        filter("scp", "service instances", "routes", "/scp/routes", &text),
        filter("dsr", "peers", "peers", "/dsr/peers", &text),
    ]
}

fn of_instance(id: &str) -> Vec<Question> {
    vec![
        ask("nrf", "its profile", "instance", "/nrf/instances/", id),
        filter("scp", "its services", "routes", "/scp/routes", id),
        ask(
            "bsf",
            "bindings of a PCF",
            "find",
            "/bsf/find/",
            &format!("pcfId={id}"),
        ),
    ]
}

fn of_host(host: &str) -> Vec<Question> {
    vec![
        filter("nrf", "registered instances", "instances", "/nrf/instances", host),
        filter("scp", "service instances", "routes", "/scp/routes", host),
        filter("dsr", "peers", "peers", "/dsr/peers", host),
        filter("dsr", "routes", "routes", "/dsr/routes", host),
        filter("stp", "links", "links", "/stp/links", host),
        filter("ipfe", "message processors", "backends", "/ipfe/backends", host),
        ask("dsr", "traced messages", "traces", "/dsr/traces/", host),
    ]
}

/// Whether it is a UUID (RFC 9562 §4).
fn is_instance(text: &str) -> bool {
    let is_dash = |place| [8, 13, 18, 23].contains(&place);
    text.len() == 36
        && text.bytes().enumerate().all(|(place, byte)| {
            is_dash(place) == (byte == b'-') && (byte == b'-' || byte.is_ascii_hexdigit())
        })
}

/// An argument as a shell takes it.
pub(crate) fn quoted(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.,:/@+=%".contains(&byte);
    if text.bytes().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Asks everyone who may know of a text; `functions` are kind, name and address of those that are followed. Without the right to
/// see subscribers only hosts and instances can be searched for.
pub(crate) async fn find(
    text: &str,
    functions: &[(String, String, SocketAddr)],
    may_trace: bool,
) -> Result<Value, &'static str> {
    let text = text.trim();
    let (what, mut questions) = questions(text)?;
    if !may_trace {
        if !["an NF instance id", "a host"].contains(&what) {
            return Err("searching for a subscriber, an address or a session needs the role tracer");
        }
        questions.retain(|question| question.filters || question.function == "nrf");
    }
    let asked = questions.iter().flat_map(|question| {
        let of_kind = functions.iter().filter(|(kind, ..)| kind == question.function);
        of_kind.map(move |(_, name, admin)| answer(question, name, *admin, text))
    });
    let answers = join_all(asked).await;
    Ok(json!({ "version": 1, "text": text, "what": what, "answers": answers }))
}

/// What one page of one function answers.
async fn answer(question: &Question, name: &str, admin: SocketAddr, text: &str) -> Value {
    let mut said = json!({
        "function": name,
        "about": question.about,
        "page": format!("http://{admin}{}", question.path),
        "command": format!("{} --admin {admin}", question.command),
    });
    let page = async {
        Connection::open(admin)
            .await?
            .get(&question.path, MOST_PAGE)
            .await
    };
    let page = match page.await {
        Ok(page) => page,
        Err(why) => {
            said["error"] = why.to_string().into();
            return said;
        }
    };
    let body = String::from_utf8_lossy(&page.body);
    match (page.status, serde_json::from_str::<Value>(&body)) {
        (200, Ok(value)) => show(&mut said, question, value, text),
        (200, Err(_)) => said["text"] = cut(&body, 4_000).into(),
        (404, _) => said["rows"] = json!([]),
        (status, _) => said["error"] = format!("answered {status}: {}", cut(body.trim(), 500)).into(),
    }
    said
}

/// Puts what a page has into the answer, within bounds.
fn show(said: &mut Value, question: &Question, value: Value, text: &str) {
    let rows = match value {
        Value::Array(rows) => rows,
        Value::Null => Vec::new(),
        other => vec![other],
    };
    let wanted = text.to_lowercase();
    let fits = |row: &Value| !question.filters || row.to_string().to_lowercase().contains(&wanted);
    let rows: Vec<Value> = rows.into_iter().filter(fits).collect();
    let more = rows.len().saturating_sub(MOST_ROWS);
    let mut size = 0;
    let shown: Vec<Value> = rows
        .into_iter()
        .take(MOST_ROWS)
        .map(|row| {
            let words = row.to_string();
            size += words.len();
            if size > MOST_SHOWN {
                return json!("left out: the answer is large; open the page itself");
            }
            row
        })
        .collect();
    said["rows"] = shown.into();
    said["more"] = more.into();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(text: &str) -> &'static str {
        questions(text).map_or("nothing", |(what, _)| what)
    }

    #[test]
    fn a_text_is_what_it_looks_like() {
        for (text, expected) in [
            ("imsi-001010000000001", "a SUPI"),
            ("001010000000001", "a SUPI"),
            ("nai-a@example", "a SUPI"),
            ("msisdn-4917012345", "a GPSI"),
            ("+4917012345", "a GPSI"),
            ("4917012345", "a GPSI"),
            ("10.0.0.1", "an address"),
            ("2001:db8::1", "an address"),
            ("2001:db8::1/128", "an address"),
            ("5B0000D0-0000-4000-8000-000000000001", "an NF instance id"),
            ("mme1.epc.example;1;2;3", "a Session-Id"),
            ("hss1.epc.example", "a host"),
            ("", "nothing"),
            ("<script>", "nothing"),
            ("a\nb", "nothing"),
        ] {
            assert_eq!(what(text), expected, "{text}");
        }
        assert_eq!(what(&"a".repeat(257)), "nothing");
    }

    #[test]
    fn each_application_and_the_enum_server_are_asked() {
        let asked = |text: &str| -> Vec<String> {
            let all = questions(text).unwrap().1.into_iter();
            all.map(|question| question.path).collect()
        };
        for (text, path) in [
            ("imsi-001010000000001", "/dsr/subscribers/imsi%3A001010000000001"),
            ("imsi-001010000000001", "/dsr/pdra/binding/001010000000001"),
            ("nai-a@example", "/dsr/subscribers/nai%3Aa%40example"),
            ("+4917012345", "/dsr/subscribers/msisdn%3A4917012345"),
            ("+4917012345", "/dsr/pdra/binding/4917012345"),
            ("+4917012345", "/enum/find/4917012345"),
            ("10.0.0.1", "/dsr/pdra/binding/10.0.0.1"),
            (
                "mme1.epc.example;1;2;3",
                "/dsr/pdra/session/mme1.epc.example%3B1%3B2%3B3",
            ),
            (
                "mme1.epc.example;1;2;3",
                "/dsr/ocdra/session/mme1.epc.example%3B1%3B2%3B3",
            ),
        ] {
            assert!(
                asked(text).contains(&path.to_owned()),
                "{text}: {:?}",
                asked(text)
            );
        }
    }

    #[test]
    fn nothing_of_a_text_leaves_its_segment_or_its_word() {
        for text in ["mme;1/../../config/reload?x=#y", "a;'$(reboot)'", "a;\u{202e}b"] {
            for question in questions(text).unwrap().1 {
                let (page, argument) = question.path.rsplit_once('/').unwrap();
                let pages = ["/dsr/pdra/session", "/dsr/ocdra/session", "/dsr/traces"];
                assert!(pages.contains(&page), "{page}");
                assert!(
                    argument
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte))
                );
            }
        }
        assert_eq!(quoted("a'b"), "'a'\\''b'");
    }
}
