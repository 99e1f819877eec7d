//! The AVP data types of RFC 6733 §4.2 and §4.3 as Rust types: what a value looks like here, how it lies on
//! the wire, and which lengths and contents are right.
//!
//! A [`Tag`] binds code, vendor and flags of one AVP to its type, so that `message.get(ORIGIN_HOST)` is a
//! `&str` and `builder.put(RESULT_CODE, "2001")` does not compile.

use std::fmt;
use std::marker::PhantomData;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, SystemTime};

use bytes::{BufMut, BytesMut};

use super::{AvpFlags, AvpKey, Avps};

/// An AVP type.
pub trait Kind: 'static {
    /// A value, as read from or written to a message.
    type Value<'a>;
    /// The type as the dictionary calls it.
    const TYPE: AvpType;
    /// The least number of data bytes a right value takes.
    const MIN_LEN: usize;
    /// Reads the data of an AVP.
    ///
    /// # Errors
    /// When length or content cannot be of this type.
    fn read(data: &[u8]) -> Result<Self::Value<'_>, ValueError>;
    /// Appends the data to `out`, without padding.
    fn write(value: Self::Value<'_>, out: &mut BytesMut);
}

/// The types of RFC 6733 §4.2 and §4.3, and QoSFilterRule of RFC 7155.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AvpType {
    /// Bytes without further structure.
    OctetString,
    /// Signed, 32 bits.
    Integer32,
    /// Signed, 64 bits.
    Integer64,
    /// Unsigned, 32 bits.
    Unsigned32,
    /// Unsigned, 64 bits.
    Unsigned64,
    /// IEEE 754 single precision.
    Float32,
    /// IEEE 754 double precision.
    Float64,
    /// AVPs.
    Grouped,
    /// An address with its family.
    Address,
    /// Seconds since 1900 (NTP).
    Time,
    /// Text in UTF-8.
    Utf8String,
    /// The name of a node or realm.
    DiameterIdentity,
    /// `aaa://host:port;transport=…;protocol=…`.
    DiameterUri,
    /// One of a list of numbers with names.
    Enumerated,
    /// A packet filter of RFC 6733 §4.3.1.
    IpFilterRule,
    /// A filter with a quality of service, RFC 7155 §4.1.1.
    QosFilterRule,
}

impl AvpType {
    /// Every type with the standard's name.
    pub const ALL: [(Self, &'static str); 16] = [
        (Self::OctetString, "OctetString"),
        (Self::Integer32, "Integer32"),
        (Self::Integer64, "Integer64"),
        (Self::Unsigned32, "Unsigned32"),
        (Self::Unsigned64, "Unsigned64"),
        (Self::Float32, "Float32"),
        (Self::Float64, "Float64"),
        (Self::Grouped, "Grouped"),
        (Self::Address, "Address"),
        (Self::Time, "Time"),
        (Self::Utf8String, "UTF8String"),
        (Self::DiameterIdentity, "DiameterIdentity"),
        (Self::DiameterUri, "DiameterURI"),
        (Self::Enumerated, "Enumerated"),
        (Self::IpFilterRule, "IPFilterRule"),
        (Self::QosFilterRule, "QoSFilterRule"),
    ];

    /// The standard's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        // ALL lists the variants in the order of their declaration; a test holds it to that.
        Self::ALL[self as usize].1
    }

    /// The type of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(kind, _)| *kind)
    }

    /// The least number of data bytes a right value takes.
    #[must_use]
    pub const fn min_len(self) -> usize {
        match self {
            Self::Integer32 | Self::Unsigned32 | Self::Float32 | Self::Time | Self::Enumerated => 4,
            Self::Integer64 | Self::Unsigned64 | Self::Float64 => 8,
            Self::Address => 6,
            Self::DiameterIdentity | Self::DiameterUri => 1,
            _ => 0,
        }
    }
}

/// Why bytes are not a value of a type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueError {
    /// The length cannot be right.
    Length {
        /// What the type takes.
        expected: usize,
        /// What is there.
        got: usize,
    },
    /// The length may be right, the content is not.
    Content(&'static str),
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { expected, got } => {
                write!(f, "{got} bytes of data where the type takes {expected}")
            }
            Self::Content(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for ValueError {}

/// One AVP with its type: code, vendor, and whether the M flag is set when we send it.
pub struct Tag<K> {
    /// Code and vendor.
    pub key: AvpKey,
    /// Whether the M flag is set when sent.
    pub mandatory: bool,
    kind: PhantomData<fn() -> K>,
}

impl<K> Tag<K> {
    /// A tag; used in constants.
    #[must_use]
    pub const fn new(vendor: u32, code: u32, mandatory: bool) -> Self {
        Self {
            key: AvpKey { vendor, code },
            mandatory,
            kind: PhantomData,
        }
    }

    /// Flags of the AVP when sent.
    #[must_use]
    pub const fn flags(self) -> AvpFlags {
        let mandatory = if self.mandatory { AvpFlags::MANDATORY.0 } else { 0 };
        let vendor = if self.key.vendor != 0 {
            AvpFlags::VENDOR.0
        } else {
            0
        };
        AvpFlags(mandatory | vendor)
    }
}

impl<K> Clone for Tag<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Tag<K> {}

impl<K> fmt::Debug for Tag<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tag({})", self.key)
    }
}

fn exactly<const N: usize>(data: &[u8]) -> Result<[u8; N], ValueError> {
    data.try_into().map_err(|_| ValueError::Length {
        expected: N,
        got: data.len(),
    })
}

macro_rules! number_kinds {
    ($($(#[$doc:meta])* $kind:ident($rust:ty) = $avp_type:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $kind;

        impl Kind for $kind {
            type Value<'a> = $rust;
            const TYPE: AvpType = AvpType::$avp_type;
            const MIN_LEN: usize = size_of::<$rust>();

            #[inline]
            fn read(data: &[u8]) -> Result<$rust, ValueError> {
                exactly(data).map(<$rust>::from_be_bytes)
            }

            #[inline]
            fn write(value: $rust, out: &mut BytesMut) {
                out.extend_from_slice(&value.to_be_bytes());
            }
        }
    )*};
}

number_kinds! {
    /// Signed, 32 bits.
    Integer32(i32) = Integer32;
    /// Signed, 64 bits.
    Integer64(i64) = Integer64;
    /// Unsigned, 32 bits.
    Unsigned32(u32) = Unsigned32;
    /// Unsigned, 64 bits.
    Unsigned64(u64) = Unsigned64;
    /// IEEE 754 single precision.
    Float32(f32) = Float32;
    /// IEEE 754 double precision.
    Float64(f64) = Float64;
    /// A number that has a name.
    Enumerated(i32) = Enumerated;
}

/// Bytes without further structure.
#[derive(Clone, Copy, Debug)]
pub struct OctetString;

impl Kind for OctetString {
    type Value<'a> = &'a [u8];
    const TYPE: AvpType = AvpType::OctetString;
    const MIN_LEN: usize = 0;

    #[inline]
    fn read(data: &[u8]) -> Result<&[u8], ValueError> {
        Ok(data)
    }

    #[inline]
    fn write(value: &[u8], out: &mut BytesMut) {
        out.extend_from_slice(value);
    }
}

macro_rules! text_kinds {
    ($($(#[$doc:meta])* $kind:ident, $check:path;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $kind;

        impl Kind for $kind {
            type Value<'a> = &'a str;
            const TYPE: AvpType = AvpType::$kind;
            const MIN_LEN: usize = AvpType::$kind.min_len();

            #[inline]
            fn read(data: &[u8]) -> Result<&str, ValueError> {
                $check(data)
            }

            #[inline]
            fn write(value: &str, out: &mut BytesMut) {
                out.extend_from_slice(value.as_bytes());
            }
        }
    )*};
}

text_kinds! {
    /// Text in UTF-8.
    Utf8String, utf8;
    /// The name of a node or realm: printable ASCII without spaces.
    DiameterIdentity, identity;
    /// `aaa://host:port;transport=…;protocol=…`.
    DiameterUri, uri;
    /// A packet filter.
    IpFilterRule, ascii;
    /// A filter with a quality of service.
    QosFilterRule, ascii;
}

fn utf8(data: &[u8]) -> Result<&str, ValueError> {
    std::str::from_utf8(data).map_err(|_| ValueError::Content("not UTF-8"))
}

fn ascii(data: &[u8]) -> Result<&str, ValueError> {
    let text = utf8(data)?;
    if text.is_ascii() {
        Ok(text)
    } else {
        Err(ValueError::Content("not ASCII"))
    }
}

/// RFC 6733 §4.3.1 asks for an FQDN or realm. Operators also use underscores and addresses, so the check requires only
/// what protects the node: at least one octet, and only visible ASCII.
fn identity(data: &[u8]) -> Result<&str, ValueError> {
    if data.is_empty() {
        return Err(ValueError::Length { expected: 1, got: 0 });
    }
    if data.iter().all(u8::is_ascii_graphic) {
        utf8(data)
    } else {
        Err(ValueError::Content(
            "a DiameterIdentity is visible ASCII without spaces",
        ))
    }
}

fn uri(data: &[u8]) -> Result<&str, ValueError> {
    let text = identity(data)?;
    if text.starts_with("aaa://") || text.starts_with("aaas://") {
        Ok(text)
    } else {
        Err(ValueError::Content("a DiameterURI begins with aaa:// or aaas://"))
    }
}

/// An address with its family (RFC 6733 §4.3.1, IANA address family numbers).
#[derive(Clone, Copy, Debug)]
pub struct Address;

/// A value of type Address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressValue<'a> {
    /// Family 1 or 2.
    Ip(IpAddr),
    /// Any other family, for example 8, E.164.
    Other(u16, &'a [u8]),
}

impl AddressValue<'_> {
    /// The address, when it is one of the Internet's.
    #[must_use]
    pub const fn ip(&self) -> Option<IpAddr> {
        match self {
            Self::Ip(ip) => Some(*ip),
            Self::Other(..) => None,
        }
    }
}

impl<T: Into<IpAddr>> From<T> for AddressValue<'_> {
    fn from(ip: T) -> Self {
        Self::Ip(ip.into())
    }
}

impl Kind for Address {
    type Value<'a> = AddressValue<'a>;
    const TYPE: AvpType = AvpType::Address;
    const MIN_LEN: usize = AvpType::Address.min_len();

    fn read(data: &[u8]) -> Result<AddressValue<'_>, ValueError> {
        let Some((family, rest)) = data.split_first_chunk::<2>() else {
            return Err(ValueError::Length {
                expected: Self::MIN_LEN,
                got: data.len(),
            });
        };
        match u16::from_be_bytes(*family) {
            1 => exactly::<4>(rest)
                .map(|octets| AddressValue::Ip(Ipv4Addr::from(octets).into()))
                .map_err(|_| ValueError::Length {
                    expected: 6,
                    got: data.len(),
                }),
            2 => exactly::<16>(rest)
                .map(|octets| AddressValue::Ip(Ipv6Addr::from(octets).into()))
                .map_err(|_| ValueError::Length {
                    expected: 18,
                    got: data.len(),
                }),
            0 | u16::MAX => Err(ValueError::Content("address families 0 and 65535 are reserved")),
            other => Ok(AddressValue::Other(other, rest)),
        }
    }

    fn write(value: AddressValue<'_>, out: &mut BytesMut) {
        match value {
            AddressValue::Ip(IpAddr::V4(ip)) => {
                out.put_u16(1);
                out.extend_from_slice(&ip.octets());
            }
            AddressValue::Ip(IpAddr::V6(ip)) => {
                out.put_u16(2);
                out.extend_from_slice(&ip.octets());
            }
            AddressValue::Other(family, bytes) => {
                out.put_u16(family);
                out.extend_from_slice(bytes);
            }
        }
    }
}

/// Seconds since 1900, as NTP counts them.
#[derive(Clone, Copy, Debug)]
pub struct Time;

/// Seconds from the beginning of 1900 to that of 1970.
const NTP_TO_UNIX: u64 = 2_208_988_800;

/// A value of type Time: the wire's 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TimeValue(pub u32);

impl TimeValue {
    /// The time these 32 bits stand for. Values with the top bit clear are those after 7 February 2036
    /// (RFC 6733 §4.3.1, SNTP's rule).
    #[must_use]
    pub fn to_system_time(self) -> SystemTime {
        let era = if self.0 & 0x8000_0000 == 0 { 1 << 32 } else { 0 };
        let seconds = u64::from(self.0) + era;
        // The first values with the top bit set are times before 1970.
        match seconds.checked_sub(NTP_TO_UNIX) {
            Some(after) => SystemTime::UNIX_EPOCH + Duration::from_secs(after),
            None => SystemTime::UNIX_EPOCH - Duration::from_secs(NTP_TO_UNIX - seconds),
        }
    }

    /// The 32 bits of a time in seconds since 1970, negative before; `None` outside of the range that 32 bits hold by
    /// the rule of [`TimeValue::to_system_time`]: 20 January 1968 to 26 February 2104.
    #[must_use]
    pub fn from_unix_seconds(seconds: i64) -> Option<Self> {
        let ntp = seconds.checked_add_unsigned(NTP_TO_UNIX)?;
        let held = (1_i64 << 31)..(1_i64 << 31) + (1 << 32);
        held.contains(&ntp).then_some(Self(ntp as u32))
    }

    /// The 32 bits of `time`; times before 1970 count as 1970, those after 2104 as the last time that there is: it would
    /// begin again at 1968.
    #[must_use]
    pub fn from_system_time(time: SystemTime) -> Self {
        const LAST: TimeValue = TimeValue(0x7fff_ffff);
        let since = time.duration_since(SystemTime::UNIX_EPOCH);
        let unix = since.map_or(0, |since| since.as_secs());
        let unix = i64::try_from(unix).unwrap_or(i64::MAX);
        Self::from_unix_seconds(unix).unwrap_or(LAST)
    }
}

impl Kind for Time {
    type Value<'a> = TimeValue;
    const TYPE: AvpType = AvpType::Time;
    const MIN_LEN: usize = 4;

    fn read(data: &[u8]) -> Result<TimeValue, ValueError> {
        exactly(data).map(|bytes| TimeValue(u32::from_be_bytes(bytes)))
    }

    fn write(value: TimeValue, out: &mut BytesMut) {
        out.put_u32(value.0);
    }
}

/// AVPs inside an AVP. Read as a walk; written from an encoded sequence, more comfortably with
/// [`crate::AvpWriter::group`].
#[derive(Clone, Copy, Debug)]
pub struct Grouped;

impl Kind for Grouped {
    type Value<'a> = Avps<'a>;
    const TYPE: AvpType = AvpType::Grouped;
    const MIN_LEN: usize = 0;

    fn read(data: &[u8]) -> Result<Avps<'_>, ValueError> {
        Ok(Avps::new(data))
    }

    fn write(value: Avps<'_>, out: &mut BytesMut) {
        out.extend_from_slice(value.remaining());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_in_the_order_of_the_variants() {
        for (position, (kind, name)) in AvpType::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, position);
            assert_eq!(kind.name(), *name);
            assert_eq!(AvpType::from_name(name), Some(*kind));
        }
    }

    #[test]
    fn addresses_carry_their_family() {
        for ip in ["192.0.2.1", "2001:db8::1"] {
            let ip: IpAddr = ip.parse().unwrap();
            let mut out = BytesMut::new();
            Address::write(ip.into(), &mut out);
            assert_eq!(Address::read(&out).unwrap().ip(), Some(ip));
        }
        assert!(Address::read(&[0, 1, 1, 2, 3]).is_err());
        assert!(Address::read(&[0]).is_err());
        assert_eq!(
            Address::read(&[0, 8, b'4']).unwrap(),
            AddressValue::Other(8, b"4")
        );
    }

    #[test]
    fn time_goes_on_after_2036() {
        let after = SystemTime::UNIX_EPOCH + Duration::from_secs(2_200_000_000);
        assert_eq!(TimeValue::from_system_time(after).to_system_time(), after);
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        assert_eq!(TimeValue::from_system_time(now).to_system_time(), now);
    }

    #[test]
    fn times_before_1970_are_right_and_those_outside_of_32_bits_refused() {
        let first = TimeValue(0x8000_0000);
        let before = SystemTime::UNIX_EPOCH - Duration::from_secs(61_505_152);
        assert_eq!(first.to_system_time(), before);
        assert_eq!(TimeValue::from_unix_seconds(-61_505_152), Some(first));
        assert_eq!(TimeValue::from_unix_seconds(-61_505_153), None);
        let last = TimeValue(0x7fff_ffff);
        let seconds = last.to_system_time().duration_since(SystemTime::UNIX_EPOCH);
        let seconds = seconds.unwrap().as_secs().cast_signed();
        assert_eq!(TimeValue::from_unix_seconds(seconds), Some(last));
        assert_eq!(TimeValue::from_unix_seconds(seconds + 1), None);
        let later = last.to_system_time() + Duration::from_secs(1);
        assert_eq!(TimeValue::from_system_time(later), last, "not 1968");
        assert_eq!(TimeValue::from_unix_seconds(i64::MAX), None);
    }

    #[test]
    fn identities_are_visible_ascii() {
        assert!(DiameterIdentity::read(b"mme_1.example").is_ok());
        assert!(DiameterIdentity::read(b"").is_err());
        assert!(DiameterIdentity::read(b"a b").is_err());
        assert!(DiameterIdentity::read(&[0xff]).is_err());
    }
}
