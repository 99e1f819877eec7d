//! osmo-stp (Debian: `osmo-stp`) as an STP of IPA.

use std::fmt::Write;
use std::net::SocketAddr;
use std::process::Command;

use crate::run::{Place, RigError, free_address};
use workload::stp::Unit;

pub(super) const PROGRAM: &str = "osmo-stp";

/// The command line of osmo-stp with an application server for each unit, and where it will listen.
pub(super) fn command(place: &Place, units: &[Unit]) -> Result<(Command, SocketAddr), RigError> {
    let address = free_address()?;
    // Its terminal has a fixed port: the address is as unique as the port of the gateway.
    let [high, low] = address.port().to_be_bytes();
    let mut text = format!(
        "log stderr\n logging level set-all error\nline vty\n no login\n bind 127.77.{high}.{low}\ncs7 instance 0\n"
    );
    // Writing to a String cannot fail.
    for unit in units {
        let _ = write!(
            text,
            " as {} ipa\n  routing-key 0 {}\n  point-code override dpc {}\n",
            unit.name(),
            point_code(*unit),
            point_code(unit.destination())
        );
    }
    text.push_str(" route-table system\n");
    for unit in units {
        let _ = writeln!(
            text,
            "  update route {} 7.255.7 linkset {}",
            point_code(*unit),
            unit.name()
        );
    }
    let _ = write!(
        text,
        " listen ipa {}\n  local-ip {}\n  accept-asp-connections dynamic-permitted\n",
        address.port(),
        address.ip()
    );
    let file = place.folder.join("osmo-stp.cfg");
    std::fs::write(&file, text).map_err(RigError::io(format!("writing {}", file.display())))?;
    let mut command = Command::new(PROGRAM);
    command.arg("-c").arg(&file);
    Ok((command, address))
}

/// A point code as osmo-stp reads it: 3, 8 and 3 bits.
fn point_code(unit: Unit) -> String {
    let code = unit.point_code().0;
    format!("{}.{}.{}", code >> 11, code >> 3 & 0xff, code & 7)
}
