//! The destination of a short message within its TPDU (TS 23.040 §9.2).

use crate::digits::Digits;

/// The most semi-octets of an address (TS 23.040 §9.1.2.5).
const MOST_SEMI_OCTETS: u8 = 20;

/// Digits of TP-DA of a TPDU on its way to a service centre: SMS-SUBMIT (TS 23.040 §9.2.2.2) and SMS-COMMAND (§9.2.2.4). `None` for
/// others, and for names (type of number 5).
pub(super) fn destination(tpdu: &[u8]) -> Option<Digits> {
    let (first, rest) = tpdu.split_first()?;
    // TP-MTI, then what stands before TP-DA: TP-MR; of a command also TP-PID, TP-CT and TP-MN.
    let before = match first & 3 {
        1 => 1,
        2 => 4,
        _ => return None,
    };
    let [length, kind, number @ ..] = rest.get(before..)? else {
        return None;
    };
    if *length > MOST_SEMI_OCTETS || kind >> 4 & 7 == 5 {
        return None;
    }
    Digits::unpack(number, usize::from(*length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(tpdu: &[u8]) -> Option<String> {
        destination(tpdu).map(|digits| digits.to_string())
    }

    #[test]
    fn submit_and_command_have_a_destination() {
        // To +43 660 12345, PID 0, coding 0, "hi".
        let submit = [
            0x01, 7, 10, 0x91, 0x34, 0x66, 0x10, 0x32, 0x54, 0, 0, 2, 0xe8, 0x34,
        ];
        assert_eq!(shown(&submit).as_deref(), Some("4366012345"));
        // With validity period and header (bits of the first octet), an odd number of digits, type unknown.
        assert_eq!(
            shown(&[0x51, 7, 3, 0x81, 0x21, 0xf3, 0, 0, 0, 0]).as_deref(),
            Some("123")
        );
        let command = [0x02, 7, 0, 1, 9, 4, 0x91, 0x34, 0x66, 0];
        assert_eq!(shown(&command).as_deref(), Some("4366"));
    }

    #[test]
    fn others_have_none() {
        let deliver = [0x00, 4, 0x91, 0x34, 0x66, 0, 0];
        let reserved = [0x03, 7, 4, 0x91, 0x34, 0x66];
        let name = [0x01, 7, 4, 0xd0, 0x34, 0x66];
        let long = [0x01, 7, 21, 0x91, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let short = [0x01, 7, 5, 0x91, 0x34, 0x66];
        for tpdu in [
            &[][..],
            &[1],
            &[1, 7, 4],
            &deliver,
            &reserved,
            &name,
            &long,
            &short,
        ] {
            assert_eq!(shown(tpdu), None, "{tpdu:02x?}");
        }
        assert_eq!(shown(&[1, 7, 0, 0x91]).as_deref(), Some(""));
    }
}
