//! Enumerations that 3GPP leaves open: `anyOf: [enum, string]` (TS 29.501 §5.2.5): a value that this
//! release does not know is legal on the wire and must survive.

/// Declares an open enumeration: known values as variants, every other string as `Other`.
///
/// The generated type parses from and prints as its wire string, compares cheaply (one byte for known
/// values) and can be used as a key. Parsing never fails; [`is_known`](crate::NfType::is_known)
/// returns whether this release knows the value.
#[macro_export]
macro_rules! open_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $wire:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$vmeta])* #[doc = concat!("`", $wire, "`")] $variant,)+
            /// A value of a later release or of a vendor, kept as it came.
            Other(std::sync::Arc<str>),
        }

        impl $name {
            /// Every value this release knows, in the order of the standard's table.
            pub const KNOWN: &'static [$name] = &[$($name::$variant),+];

            /// The string that stands for this value on the wire.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $($name::$variant => $wire,)+
                    $name::Other(text) => text,
                }
            }

            /// Whether this release knows the value.
            #[must_use]
            pub fn is_known(&self) -> bool {
                !matches!(self, $name::Other(_))
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($wire => $name::$variant,)+
                    other => $name::Other(other.into()),
                }
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self::from(text.as_str())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::open_enum::deserialize_str(deserializer, stringify!($name))
            }
        }
    };
}

/// Visits a string and turns it into `T`; the deserializer behind [`open_enum!`](crate::open_enum).
///
/// # Errors
/// When the value is not a string.
pub fn deserialize_str<'de, D, T>(deserializer: D, what: &'static str) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: for<'a> From<&'a str>,
{
    struct Visitor<T>(&'static str, std::marker::PhantomData<T>);
    impl<T: for<'a> From<&'a str>> serde::de::Visitor<'_> for Visitor<T> {
        type Value = T;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "a string ({})", self.0)
        }
        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
            Ok(T::from(text))
        }
    }
    deserializer.deserialize_str(Visitor(what, std::marker::PhantomData))
}

#[cfg(test)]
mod tests {
    use crate::NfType;

    #[test]
    fn unknown_values_survive_a_round_trip() {
        let text = r#"["UDM","5G_EIR","X_NEW"]"#;
        let types: Vec<NfType> = serde_json::from_str(text).unwrap();
        assert_eq!(types[0], NfType::Udm);
        assert_eq!(types[1], NfType::FiveGEir);
        assert!(!types[2].is_known());
        assert_eq!(serde_json::to_string(&types).unwrap(), text);
        assert!(
            serde_json::from_str::<NfType>("7")
                .unwrap_err()
                .to_string()
                .contains("NfType")
        );
    }
}
