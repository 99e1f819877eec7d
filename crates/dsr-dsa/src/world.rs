//! Countries, their capitals and borders, and mobile country codes: `data/`, whose README.md names sources and licences.

use std::collections::HashMap;
use std::sync::OnceLock;

/// How many digits network codes of a country have. Of a country that the tables do not know: either.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NetworkDigits {
    pub(crate) two: bool,
    pub(crate) three: bool,
}

/// A country.
#[derive(Debug)]
pub(crate) struct Country {
    /// As in ISO 3166-1, in lower case.
    pub(crate) code: &'static str,
    pub(crate) name: &'static str,
    /// Of its capital, in degrees.
    pub(crate) place: Place,
    pub(crate) continent: &'static str,
    neighbours: Vec<&'static str>,
}

/// A point on the Earth, in degrees north and east.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Place {
    pub(crate) north: f64,
    pub(crate) east: f64,
}

impl Place {
    /// Kilometres along the great circle (haversine formula, mean radius of the Earth).
    pub(crate) fn kilometres_to(self, other: Self) -> f64 {
        let (north, other_north) = (self.north.to_radians(), other.north.to_radians());
        let across = ((other.east - self.east).to_radians() / 2.0).sin();
        let along = ((other_north - north) / 2.0).sin();
        let share = along * along + north.cos() * other_north.cos() * across * across;
        2.0 * 6371.0 * share.sqrt().min(1.0).asin()
    }
}

impl Country {
    pub(crate) fn borders(&self, other: &Self) -> bool {
        self.neighbours.contains(&other.code)
    }
}

#[derive(Debug)]
struct Code {
    country: Option<usize>,
    digits: NetworkDigits,
}

#[derive(Debug)]
struct World {
    countries: Vec<Country>,
    /// By mobile country code.
    codes: Vec<Option<Code>>,
}

impl World {
    fn code(&self, code: u16) -> Option<&Code> {
        self.codes.get(usize::from(code))?.as_ref()
    }
}

/// Mobile country codes have three digits (TS 23.003 §2.2).
const CODES: usize = 1000;

fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let countries: Vec<_> = rows(include_str!("../data/countries.csv"))
            .filter_map(country)
            .collect();
        let positions: HashMap<_, _> = countries
            .iter()
            .enumerate()
            .map(|(at, one)| (one.code, at))
            .collect();
        let codes = rows(include_str!("../data/networks.csv")).filter_map(|row| {
            let mut fields = row.split(',');
            let (code, country, digits) = (fields.next()?, fields.next()?, fields.next()?);
            let digits = NetworkDigits {
                two: digits.contains('2'),
                three: digits.contains('3'),
            };
            let country = positions.get(country).copied();
            Some((code.parse::<usize>().ok()?, Code { country, digits }))
        });
        let mut all: Vec<Option<Code>> = std::iter::repeat_with(|| None).take(CODES).collect();
        for (code, known) in codes {
            if let Some(place) = all.get_mut(code) {
                *place = Some(known);
            }
        }
        World {
            countries,
            codes: all,
        }
    })
}

fn rows(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().skip(1)
}

fn country(row: &'static str) -> Option<Country> {
    let mut fields = row.split(',');
    let mut next = || fields.next();
    let (code, name) = (next()?, next()?);
    let place = Place {
        north: next()?.parse().ok()?,
        east: next()?.parse().ok()?,
    };
    let (continent, neighbours) = (next()?, next()?);
    let neighbours = neighbours.split(';').filter(|code| !code.is_empty()).collect();
    Some(Country {
        code,
        name,
        place,
        continent,
        neighbours,
    })
}

/// Whether a mobile country code is assigned.
pub(crate) fn is_assigned(code: u16) -> bool {
    world().code(code).is_some()
}

/// How many digits the network codes below a mobile country code have.
pub(crate) fn network_digits(code: u16) -> NetworkDigits {
    let either = NetworkDigits {
        two: true,
        three: true,
    };
    world().code(code).map_or(either, |known| known.digits)
}

/// The country of a mobile country code.
pub(crate) fn country_of(code: u16) -> Option<&'static Country> {
    let world = world();
    world.countries.get(world.code(code)?.country?)
}

/// The continents.
pub(crate) const CONTINENTS: [&str; 6] = [
    "africa",
    "asia",
    "europe",
    "latin-america",
    "north-america",
    "oceania",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_whole() {
        let world = world();
        let codes = || world.codes.iter().flatten();
        assert_eq!((world.countries.len(), codes().count()), (244, 241));
        let placed = codes().filter(|code| code.country.is_some());
        assert_eq!(placed.count(), 240, "Kosovo has no coordinates in the sources");
        let borders: usize = world
            .countries
            .iter()
            .map(|country| country.neighbours.len())
            .sum();
        assert_eq!(borders % 2, 0, "a border has two sides");
        for country in &world.countries {
            assert!(CONTINENTS.contains(&country.continent), "{}", country.name);
            assert!(country.place.north.abs() <= 90.0 && country.place.east.abs() <= 180.0);
            for neighbour in &country.neighbours {
                let other = world.countries.iter().find(|other| other.code == *neighbour);
                assert!(
                    other.unwrap().borders(country),
                    "{} and {neighbour}",
                    country.code
                );
            }
        }
    }

    #[test]
    fn network_codes_have_two_digits_three_or_both() {
        let of = |two, three| {
            let is = move |code: u16| {
                world()
                    .code(code)
                    .is_some_and(|code| code.digits == NetworkDigits { two, three })
            };
            (0..1000).filter(|code| is(*code)).collect::<Vec<u16>>()
        };
        assert_eq!(of(true, false).len(), 218);
        assert_eq!(
            of(false, true),
            [
                302, 310, 311, 312, 313, 314, 315, 316, 338, 342, 344, 346, 348, 365, 732
            ]
        );
        assert_eq!(of(true, true), [208, 334, 358, 360, 364, 405, 708, 722]);
        assert!(of(false, false).is_empty());
    }

    #[test]
    fn distances_are_those_of_the_great_circle() {
        let place = |code: u16| country_of(code).unwrap().place;
        for (one, other, kilometres) in [
            (262, 208, 878.0),
            (262, 310, 6716.0),
            (505, 234, 16_980.0),
            (344, 342, 490.0),
        ] {
            let found = place(one).kilometres_to(place(other));
            let off = (found - kilometres).abs() / kilometres;
            assert!(off < 0.02, "{one} {other}: {found}");
        }
        assert!(place(262).kilometres_to(place(262)) < 0.001);
        let (north, south) = (
            Place {
                north: 90.0,
                east: 0.0,
            },
            Place {
                north: -90.0,
                east: 77.0,
            },
        );
        assert!((north.kilometres_to(south) - 20_015.0).abs() < 1.0);
    }
}
