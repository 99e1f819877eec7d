//! Point codes: the addresses of MTP, and how operators write them.

use std::fmt;
use std::str::FromStr;

/// A point code without its plan: the number that M3UA carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct PointCode(pub u32);

/// A plan of point codes: how many bits, and how operators divide them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Plan {
    /// 14 bits, written 3-8-3: zone, area or network, signalling point (Q.708).
    Itu,
    /// 24 bits, written 8-8-8: network, cluster, member (T1.111.8).
    Ansi,
    /// 24 bits, written as those of ANSI: China's national plan, whose messages have the form of ITU.
    China,
    /// 16 bits, written 7-4-5 from the least significant bits: unit, sub-area, main area (JT-Q704).
    Japan,
}

impl Plan {
    /// Bits of a point code.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::Itu => 14,
            Self::Ansi | Self::China => 24,
            Self::Japan => 16,
        }
    }

    /// Bits of a signalling link selection: 4 (Q.704 §2.2), 8 (T1.111.4), 4 (JT-Q704).
    #[must_use]
    pub const fn sls_bits(self) -> u32 {
        match self {
            Self::Itu | Self::Japan => 4,
            Self::Ansi | Self::China => 8,
        }
    }

    /// The greatest point code.
    #[must_use]
    pub const fn max(self) -> PointCode {
        PointCode((1 << self.bits()) - 1)
    }

    /// Whether a point code fits the plan.
    #[must_use]
    pub const fn contains(self, code: PointCode) -> bool {
        code.0 <= self.max().0
    }

    /// Widths of the parts of the text form, first to last.
    const fn parts(self) -> [u32; 3] {
        match self {
            Self::Itu => [3, 8, 3],
            Self::Ansi | Self::China => [8, 8, 8],
            Self::Japan => [7, 4, 5],
        }
    }

    /// Reads a point code in its parts (`3-50-1`, also with dots) or as a number (`12697`).
    ///
    /// # Errors
    /// When it is neither, or a part exceeds its bits.
    pub fn parse(self, text: &str) -> Result<PointCode, PointCodeError> {
        let wrong = || PointCodeError {
            plan: self,
            text: text.to_owned(),
        };
        let separator = if text.contains('-') { '-' } else { '.' };
        if !text.contains(separator) {
            let code = PointCode(number(text).ok_or_else(wrong)?);
            return if self.contains(code) {
                Ok(code)
            } else {
                Err(wrong())
            };
        }
        let mut parts = text.split(separator);
        let mut code = 0;
        for bits in self.parts() {
            let part = parts.next().and_then(number).ok_or_else(wrong)?;
            if part >> bits != 0 {
                return Err(wrong());
            }
            code = code << bits | part;
        }
        match parts.next() {
            None => Ok(PointCode(code)),
            Some(_) => Err(wrong()),
        }
    }

    /// The text form of a point code, in parts; as a number when it exceeds the plan.
    #[must_use]
    pub const fn show(self, code: PointCode) -> ShownPointCode {
        ShownPointCode(self, code)
    }
}

/// Digits alone: `u32::from_str` would also take a sign.
fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|octet| octet.is_ascii_digit());
    if digits { u32::from_str(text).ok() } else { None }
}

/// A point code in the text form of its plan.
#[derive(Clone, Copy, Debug)]
pub struct ShownPointCode(Plan, PointCode);

impl fmt::Display for ShownPointCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(plan, PointCode(code)) = *self;
        if !plan.contains(PointCode(code)) {
            return write!(f, "{code}");
        }
        let [_, second, third] = plan.parts();
        let (high, rest) = (code >> (second + third), code & ((1 << (second + third)) - 1));
        write!(f, "{high}-{}-{}", rest >> third, rest & ((1 << third) - 1))
    }
}

/// A text that names no point code of a plan.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{text}` is not a point code of {} bits, such as {}", plan.bits(), example(*plan))]
pub struct PointCodeError {
    /// The plan.
    pub plan: Plan,
    /// As written.
    pub text: String,
}

const fn example(plan: Plan) -> &'static str {
    match plan {
        Plan::Itu => "3-50-1 (at most 7-255-7) or 6545",
        Plan::Ansi | Plan::China => "5-20-1 (at most 255-255-255) or 332801",
        Plan::Japan => "10-3-2 (at most 127-15-31) or 5218",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_forms_of_each_plan() {
        for (plan, text, code) in [
            (Plan::Itu, "3-50-1", 6545),
            (Plan::Itu, "7-255-7", 16_383),
            (Plan::Ansi, "5-20-1", 332_801),
            (Plan::Ansi, "255-255-255", 0xff_ffff),
            (Plan::China, "5-20-1", 332_801),
            (Plan::Japan, "10-3-2", 5218),
            (Plan::Japan, "127-15-31", 0xffff),
        ] {
            assert_eq!(plan.parse(text), Ok(PointCode(code)));
            assert_eq!(plan.parse(&text.replace('-', ".")), Ok(PointCode(code)));
            assert_eq!(plan.parse(&code.to_string()), Ok(PointCode(code)));
            assert_eq!(plan.show(PointCode(code)).to_string(), text);
        }
        assert_eq!(Plan::Itu.show(PointCode(16_384)).to_string(), "16384");
    }

    #[test]
    fn wrong_texts_are_refused() {
        for text in [
            "", "-", "8-0-0", "0-256-0", "0-0-8", "1-2", "1-2-3-4", "16384", "+1", "1-+2-3", "a", "1--3",
        ] {
            assert!(Plan::Itu.parse(text).is_err(), "{text}");
        }
        assert!(Plan::Ansi.parse("256-0-0").is_err());
        assert!(Plan::Japan.parse("0-16-0").is_err());
        assert!(Plan::Itu.parse("99999999999").is_err());
    }
}
