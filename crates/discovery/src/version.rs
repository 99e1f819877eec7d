//! API version indications of `preferred-api-versions`.

use model::NfService;
use serde::Deserialize;

/// An API version indication: an operator and a version, such as `>=1.2.0` or `^2`
/// (TS 29.510 §6.2.3.2.3.1, `preferred-api-versions`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub struct VersionIndication {
    operator: Operator,
    version: [u32; 3],
    /// How many of the three fields were given: `=1` means every 1.x.y.
    given: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    /// The same major version.
    Compatible,
}

fn version_of(text: &str) -> ([u32; 3], usize) {
    let plain = text.trim().trim_start_matches('v');
    let plain = plain.split(['-', '+']).next().unwrap_or_default();
    let mut fields = [0; 3];
    let mut given = 0;
    for (field, part) in fields.iter_mut().zip(plain.split('.')) {
        *field = part.trim().parse().unwrap_or(0);
        given += 1;
    }
    (fields, given)
}

impl From<String> for VersionIndication {
    fn from(text: String) -> Self {
        const OPERATORS: [(&str, Operator); 6] = [
            (">=", Operator::GreaterOrEqual),
            ("<=", Operator::LessOrEqual),
            (">", Operator::Greater),
            ("<", Operator::Less),
            ("^", Operator::Compatible),
            ("=", Operator::Equal),
        ];
        let text = text.trim();
        let found = OPERATORS
            .iter()
            .find_map(|(sign, operator)| text.strip_prefix(sign).map(|rest| (*operator, rest)));
        // No operator, or an unknown one, means equal.
        let (operator, rest) = found.unwrap_or_else(|| {
            let rest = text.trim_start_matches(|c: char| !c.is_ascii_digit());
            (Operator::Equal, rest)
        });
        let (version, given) = version_of(rest);
        Self {
            operator,
            version,
            given,
        }
    }
}

impl VersionIndication {
    /// Whether a service offers such a version.
    #[must_use]
    pub fn fits(&self, service: &NfService) -> bool {
        service.versions.iter().any(|known| {
            let (known, _) = version_of(&known.api_full_version);
            match self.operator {
                Operator::Equal => known[..self.given] == self.version[..self.given],
                Operator::Greater => known > self.version,
                Operator::GreaterOrEqual => known >= self.version,
                Operator::Less => known < self.version,
                Operator::LessOrEqual => known <= self.version,
                Operator::Compatible => known[0] == self.version[0],
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_indications() {
        let service: NfService = serde_json::from_value(serde_json::json!({
            "serviceInstanceId": "1", "serviceName": "x", "scheme": "http", "nfServiceStatus": "REGISTERED",
            "versions": [{"apiVersionInUri": "v2", "apiFullVersion": "2.1.3-alpha.1"}]
        }))
        .unwrap();
        for (wish, fits) in [
            ("2.1.3", true),
            ("=2", true),
            ("2.2", false),
            ("^2.9.9", true),
            ("^1.0.0", false),
            (">2.1.2", true),
            (">2.1.3", false),
            (">=2.1.3", true),
            ("<3", true),
            ("<=2.1.2", false),
            ("~2.1", true),
        ] {
            assert_eq!(
                VersionIndication::from(wish.to_owned()).fits(&service),
                fits,
                "{wish}"
            );
        }
    }
}
