//! Security_Countermeasure_Config: which measures are on, for whom, and what they do.

use diameter_proto::{Fault, ResultCode};

use super::commands::Commands;
use super::partners::{Direction, Partners};
use super::{Reading, number};
use crate::csv::Row;
use crate::measure::Measure;

const TABLE: &str = "Security_Countermeasure_Config";
const COLUMNS: [&str; 9] = [
    "CounterMeasure_Type",
    "Admin_Status",
    "Operating_Mode",
    "Continue_If_Vulnerable",
    "Direction",
    "Foreign_WL_Peers_Cfg_Sets",
    "Result_Code",
    "Vendor_ID",
    "Error_Message",
];

/// What becomes of a message that a measure has found to be wrong.
#[derive(Clone, Debug)]
pub(crate) enum Mode {
    /// It goes on.
    Detect,
    /// It is dropped.
    Drop,
    /// Its request is answered by this.
    Answer(Fault),
}

/// A measure that is on.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) line: usize,
    pub(crate) measure: Measure,
    pub(crate) mode: Mode,
    /// Whether the measures behind it see a message that it has found to be wrong.
    pub(crate) goes_on: bool,
    /// None: both.
    direction: Option<Direction>,
    /// Positions of partners, in order; none: all, also peers of no set.
    partners: Option<Vec<u16>>,
}

impl Check {
    pub(crate) fn concerns(&self, direction: Direction, partner: u16, is_request: bool) -> bool {
        // An answer comes the other way than its request.
        let fits = self.direction.is_none_or(|wanted| wanted == direction)
            && (direction == Direction::Ingress || self.measure.screens_egress())
            && (is_request || self.measure.screens_answers());
        let partners = self.partners.as_ref();
        fits && partners.is_none_or(|partners| partners.binary_search(&partner).is_ok())
    }
}

/// The measures that are on, in their order.
#[derive(Debug, Default)]
pub(crate) struct Checks(Vec<Check>);

impl Checks {
    pub(super) fn load(reading: &mut Reading<'_>, partners: &Partners) -> Self {
        let sheet = reading.sheet(TABLE, &COLUMNS, 3);
        let mut checks: Vec<Check> = Vec::new();
        reading.each(&sheet, |row| {
            let Some(check) = check(row, partners)? else {
                return Ok(());
            };
            let overlaps = |other: &&Check| {
                let (one, two) = (&other.partners, &check.partners);
                let (Some(one), Some(two)) = (one, two) else {
                    return true;
                };
                one.iter().any(|partner| two.binary_search(partner).is_ok())
            };
            let same = checks
                .iter()
                .filter(|other| other.measure == check.measure && directions_meet(other, &check));
            if let Some(other) = same.into_iter().find(overlaps) {
                let (measure, line) = (check.measure.as_str(), other.line);
                return Err(format!(
                    "{measure} is on for the same partners and direction in line {line}"
                ));
            }
            checks.push(check);
            Ok(())
        });
        checks.sort_by_key(|check| check.measure);
        Self(checks)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Check> {
        self.0.iter()
    }

    pub(super) fn is_on(&self, measure: Measure) -> bool {
        self.0.iter().any(|check| check.measure == measure)
    }

    /// Whether no message of an application and command gets beyond the measures on these, for all partners.
    pub(super) fn blocks(&self, commands: &Commands, application: u32, command: u32) -> bool {
        self.0.iter().any(|check| {
            let refuses = match check.measure {
                Measure::AppIdWL => !commands.has_application(application),
                Measure::AppCmdCst => !commands.has_command(application, command),
                _ => return false,
            };
            let is_for_all = check.partners.is_none() && check.direction.is_none();
            refuses && is_for_all && !matches!(check.mode, Mode::Detect) && !check.goes_on
        })
    }
}

fn directions_meet(one: &Check, other: &Check) -> bool {
    match (one.direction, other.direction) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    }
}

/// The measure of a row; none: it is off.
fn check(row: &Row, partners: &Partners) -> Result<Option<Check>, String> {
    let name = row.field(0);
    let measure = Measure::from_name(name).ok_or_else(|| format!("unknown measure `{name}`"))?;
    let is_on = match row.field(1) {
        "Enable" => true,
        "Disable" => false,
        other => return Err(format!("Admin_Status `{other}`; use Enable or Disable")),
    };
    let mode = mode(row)?;
    let goes_on = match row.field(3) {
        "" | "Yes" => true,
        "No" => false,
        other => return Err(format!("Continue_If_Vulnerable `{other}`; use Yes or No")),
    };
    let direction = match row.field(4) {
        "" | "Both" => None,
        "Ingress" => Some(Direction::Ingress),
        "Egress" => Some(Direction::Egress),
        other => return Err(format!("Direction `{other}`; use Ingress, Egress or Both")),
    };
    if direction == Some(Direction::Egress) && !measure.screens_egress() {
        return Err(format!(
            "{name} screens what comes in: with Direction Egress the row can never match"
        ));
    }
    let sets = match row.field(5) {
        "" | "*" => None,
        _ => {
            let sets = row.list(5).map(|name| partners.position(name));
            let mut sets = sets.collect::<Result<Vec<_>, _>>()?;
            sets.sort_unstable();
            Some(sets)
        }
    };
    Ok(is_on.then_some(Check {
        line: row.line,
        measure,
        mode,
        goes_on,
        direction,
        partners: sets,
    }))
}

fn mode(row: &Row) -> Result<Mode, String> {
    let says_result = [6, 7, 8].into_iter().any(|column| !row.field(column).is_empty());
    let mode = match row.field(2) {
        "Detection_Only" => Mode::Detect,
        "Detection_And_Correction_By_Drop" => Mode::Drop,
        "Detection_And_Correction_By_Send_Answer" => {
            let code: u32 = number(row, 6, "a Result_Code, such as 5012")?;
            if !(3000..6000).contains(&code) {
                return Err(format!("Result_Code {code} is not an error; use 3000 to 5999"));
            }
            let vendor = match row.field(7) {
                "" => 0,
                _ => number(row, 7, "a Vendor_ID")?,
            };
            let fault = Fault::new(ResultCode(code), row.field(8).to_owned());
            return Ok(Mode::Answer(fault.of_vendor(vendor)));
        }
        other => {
            return Err(format!(
                "Operating_Mode `{other}`; use Detection_Only, Detection_And_Correction_By_Drop or \
                 Detection_And_Correction_By_Send_Answer"
            ));
        }
    };
    if says_result {
        return Err("has a result, which only Detection_And_Correction_By_Send_Answer sends".to_owned());
    }
    Ok(mode)
}
