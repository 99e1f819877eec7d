//! The tables of TimeDistChk: how long a subscriber takes from one country to another.

use ahash::{AHashMap, AHashSet};

use super::{Reading, country, number};
use crate::csv::Row;
use crate::world::{self, CONTINENTS, Place};

/// Times between countries.
#[derive(Debug, Default)]
pub(crate) struct Distances {
    /// Minutes, by mobile country codes, the lower one first.
    minutes: AHashMap<(u16, u16), u32>,
    /// Where a capital is, other than in the data of the program.
    places: AHashMap<u16, Place>,
    /// Pairs that are not checked.
    excepted: AHashSet<(u16, u16)>,
    /// Minutes, by continents, in their order.
    continents: AHashMap<(usize, usize), u32>,
}

const fn ordered(one: u16, other: u16) -> (u16, u16) {
    if one < other { (one, other) } else { (other, one) }
}

impl Distances {
    pub(super) fn load(reading: &mut Reading<'_>) -> Self {
        let mut all = Self::default();
        let sheet = reading.sheet("TimeDistChk_Country_Config", &["MCC", "Latitude", "Longitude"], 3);
        reading.each(&sheet, |row| all.add_place(row));
        let columns = ["MCC", "Exception_List_For_Country"];
        let sheet = reading.sheet("TimeDistChk_Exception_List", &columns, 2);
        reading.each(&sheet, |row| all.add_exception(row));
        let columns = ["Node_ID_1", "Node_ID_2", "Minimum_Transition_Time"];
        let sheet = reading.sheet("TimeDistChk_Config", &columns, 3);
        reading.each(&sheet, |row| all.add_minutes(row));
        let columns = ["Continent_1", "Continent_2", "Minimum_Transition_Time"];
        let sheet = reading.sheet("TimeDistChk_Continent_Config", &columns, 3);
        reading.each(&sheet, |row| all.add_continents(row));
        all
    }

    fn add_place(&mut self, row: &Row) -> Result<(), String> {
        let code = country(row.field(0))?;
        let place = Place {
            north: number(row, 1, "a latitude in degrees")?,
            east: number(row, 2, "a longitude in degrees")?,
        };
        if !(place.north.abs() <= 90.0 && place.east.abs() <= 180.0) {
            return Err(
                "is not on the Earth: latitudes go from -90 to 90, longitudes from -180 to 180".to_owned(),
            );
        }
        match self.places.insert(code, place) {
            Some(_) => Err(format!("the MCC {code} is there already")),
            None => Ok(()),
        }
    }

    fn add_exception(&mut self, row: &Row) -> Result<(), String> {
        let one = country(row.field(0))?;
        for text in row.list(1) {
            let other = country(text)?;
            if are_near(one, other) {
                return Err(format!(
                    "{one} and {other} are neighbours, which are not checked: it can never match"
                ));
            }
            // Each of two countries may name the other one.
            self.excepted.insert(ordered(one, other));
        }
        Ok(())
    }

    fn add_minutes(&mut self, row: &Row) -> Result<(), String> {
        let (one, other) = (country(row.field(0))?, country(row.field(1))?);
        let minutes = number(row, 2, "a number of minutes")?;
        if are_near(one, other) || self.excepted.contains(&ordered(one, other)) {
            return Err(format!(
                "{one} and {other} are neighbours or excepted, which are not checked: it can never match"
            ));
        }
        match self.minutes.insert(ordered(one, other), minutes) {
            Some(_) => Err(format!("the pair of {one} and {other} is there already")),
            None => Ok(()),
        }
    }

    fn add_continents(&mut self, row: &Row) -> Result<(), String> {
        let position = |column: usize| {
            let name = row.field(column);
            let position = CONTINENTS.iter().position(|known| *known == name);
            position.ok_or_else(|| format!("continent `{name}`; use one of {}", CONTINENTS.join(", ")))
        };
        let (one, other) = (position(0)?, position(1)?);
        if one == other {
            return Err("names one continent twice: it can never match".to_owned());
        }
        let minutes = number(row, 2, "a number of minutes")?;
        match self.continents.insert((one.min(other), one.max(other)), minutes) {
            Some(_) => Err("the pair of continents is there already".to_owned()),
            None => Ok(()),
        }
    }

    /// The least number of minutes from one country to another, for a traveller of this speed; none: the pair is not checked.
    pub(crate) fn minutes(&self, one: u16, other: u16, kilometres_per_hour: u32) -> Option<u32> {
        if are_near(one, other) || self.excepted.contains(&ordered(one, other)) {
            return None;
        }
        if let Some(minutes) = self.minutes.get(&ordered(one, other)) {
            return Some(*minutes);
        }
        let continent = |code: u16| {
            let country = world::country_of(code)?;
            CONTINENTS.iter().position(|known| *known == country.continent)
        };
        if let (Some(one), Some(other)) = (continent(one), continent(other))
            && let Some(minutes) = self.continents.get(&(one.min(other), one.max(other)))
        {
            return Some(*minutes);
        }
        let kilometres = self.place(one)?.kilometres_to(self.place(other)?);
        Some((kilometres * 60.0 / f64::from(kilometres_per_hour.max(1))) as u32)
    }

    /// Whether it is known where a country is.
    pub(crate) fn has_place(&self, code: u16) -> bool {
        self.place(code).is_some()
    }

    fn place(&self, code: u16) -> Option<Place> {
        let own = self.places.get(&code).copied();
        own.or_else(|| Some(world::country_of(code)?.place))
    }
}

/// Whether two mobile country codes are of one country or of neighbours: phones near a border change networks at once.
fn are_near(one: u16, other: u16) -> bool {
    if one == other {
        return true;
    }
    let (Some(one), Some(other)) = (world::country_of(one), world::country_of(other)) else {
        return false;
    };
    one.code == other.code || one.borders(other)
}
