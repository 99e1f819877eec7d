//! Settings as people write them: `30s`, `64KiB`, `10%`, a secret by file or environment.

mod address;
mod period;
mod quantity;
mod secret;

pub use address::{HostPort, Listen};
pub use period::Period;
pub use quantity::{ByteSize, Percent};
pub use secret::{Secret, SecretError};

/// Why a text is not a value of a human type; the message continues "`text` …".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatError(pub(crate) &'static str);

impl std::fmt::Display for FormatError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for FormatError {}

/// Number and unit of a text such as `1.5 MiB`; `None` when it does not begin with a number.
fn number_and_unit(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (!number.is_empty()).then_some((number, unit.trim_start()))
}

/// Serde and schema of a type that is written as a text by `Display` and read by `FromStr`.
macro_rules! written_as_text {
    ($type:ident, $format:literal, $json_types:tt, $visit_number:ident) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[derive(serde::Deserialize)]
                #[serde(untagged)]
                enum Written {
                    Text(String),
                    Number(f64),
                }
                match Written::deserialize(deserializer)? {
                    Written::Text(text) => text
                        .parse()
                        .map_err(|error| serde::de::Error::custom(format_args!("\"{text}\" {error}"))),
                    Written::Number(number) => Self::$visit_number(number).map_err(serde::de::Error::custom),
                }
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": $json_types, "format": $format })
            }
        }
    };
}
pub(crate) use written_as_text;
