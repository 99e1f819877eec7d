//! A day of honest roaming: subscribers of ours that travel among the countries of the Earth, guests of the home network, MMEs and HSSs
//! that restart, messages that overtake each other. No message may be found.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::*;

/// Seconds.
const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// Subscribers of ours abroad, and foreign ones here.
const TRAVELLERS: usize = 300;
const GUESTS: usize = 100;
/// MMEs of a network.
const MMES: u64 = 3;
/// Of an airliner, in km/h, and the minutes on the ground.
const AIRLINER: f64 = 900.0;
const GROUND: u64 = 45 * MINUTE;
/// Networks of a country.
const NETWORKS: usize = 2;

/// A xorshift generator: the day is the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound.max(1)
    }

    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least)
    }
}

/// A country with mobile networks, from the data of the application.
struct Country {
    mcc: &'static str,
    code: &'static str,
    place: (f64, f64),
    neighbours: &'static str,
    networks: Vec<&'static str>,
}

impl Country {
    fn all() -> Vec<Self> {
        let rows = |text: &'static str| {
            text.lines()
                .skip(1)
                .map(|line| line.split(',').collect::<Vec<_>>())
        };
        let places: Vec<_> = rows(include_str!("../../data/countries.csv")).collect();
        let countries = rows(include_str!("../../data/networks.csv")).filter_map(|row| {
            let [mcc, code, digits, networks] = row[..] else {
                return None;
            };
            let place = places.iter().find(|place| place[0] == code)?;
            let networks: Vec<_> = networks.split(';').filter(|mnc| mnc.len() == 2).collect();
            let is_plain = digits == "2" && networks.len() >= NETWORKS && mcc != "262";
            is_plain.then(|| Self {
                mcc,
                code,
                place: (place[2].parse().unwrap(), place[3].parse().unwrap()),
                neighbours: place[5],
                networks: networks.into_iter().take(NETWORKS).collect(),
            })
        });
        countries.collect()
    }

    fn realm(&self, network: usize) -> String {
        let (mcc, mnc) = (self.mcc, self.networks[network]);
        format!("epc.mnc0{mnc}.mcc{mcc}.3gppnetwork.org")
    }

    fn plmn(&self, network: usize) -> [u8; 3] {
        let digit = |text: &str, at: usize| text.as_bytes()[at] - b'0';
        let (mcc, mnc) = (self.mcc, self.networks[network]);
        [
            digit(mcc, 1) << 4 | digit(mcc, 0),
            0xf0 | digit(mcc, 2),
            digit(mnc, 1) << 4 | digit(mnc, 0),
        ]
    }

    /// Seconds of a journey, from gate to gate.
    fn journey(&self, other: &Self) -> u64 {
        if self.code == other.code || self.neighbours.split(';').any(|code| code == other.code) {
            return 5 * MINUTE;
        }
        let ((north, east), (to_north, to_east)) = (self.place, other.place);
        let along = ((to_north - north).to_radians() / 2.0).sin();
        let across = ((to_east - east).to_radians() / 2.0).sin();
        let share = along * along + north.to_radians().cos() * to_north.to_radians().cos() * across * across;
        let kilometres = 2.0 * 6371.0 * share.sqrt().min(1.0).asin();
        GROUND + (kilometres / AIRLINER * 3600.0) as u64
    }
}

/// Where a traveller is.
#[derive(Clone, Copy)]
struct Place {
    country: usize,
    network: usize,
    mme: u64,
}

/// Who does something next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    /// A traveller arrives in a country.
    Arrives(usize, usize),
    /// A traveller does something where it is.
    Acts(usize),
    Guest(usize),
    HomeHssRestarts,
    MmesRestart,
    ForeignHssRestarts,
    Reload,
    ClockSteps,
}

struct World {
    countries: Vec<Country>,
    bench: Bench,
    settings: dsr_dsa::config::Dsa,
    start: Instant,
    time: u64,
    dice: Dice,
    turns: BinaryHeap<Reverse<(u64, Turn)>>,
    places: Vec<Option<Place>>,
    /// Whether it is on a journey, and whether it has registered since the beginning.
    travelling: Vec<bool>,
    has_registered: Vec<bool>,
    exchanges: u64,
    journeys: u64,
    races: u64,
    _directory: tempfile::TempDir,
}

/// Tables with the networks of the countries, all measures, and whatever they do.
pub(crate) fn world_tables(mode: &str) -> tempfile::TempDir {
    let directory = tables(&MEASURES.map(|measure| format!("{measure},{mode}")));
    let countries = Country::all();
    write_networks(directory.path(), &countries);
    directory
}

fn write_networks(directory: &Path, countries: &[Country]) {
    let mut realms = format!("Network_Type,Realm,Cfg_Set_Name\nHome_Network,{HOME},\n");
    let mut networks = "Network_Type,MCC_MNC\nHome_Network,26201\n".to_owned();
    for country in countries {
        for network in 0..NETWORKS {
            realms += &format!("Foreign_Network,{},west\n", country.realm(network));
            networks += &format!("Foreign_Network,{}{}\n", country.mcc, country.networks[network]);
        }
    }
    write(directory, "Realm_List", &realms);
    write(directory, "MCC_MNC_List", &networks);
    // Resets of HSSs are honest (TS 29.272 §7.2.15).
    let commands = "Application_ID,Command_Codes\n16777251,316;317;318;319;320;321;322;323\n";
    write(directory, "AppCmdCst_Config", commands);
    write(
        directory,
        "MsgRateMon_Config",
        "Application_ID,Command_Code,Messages_Per_Second,Peer\n16777251,318,200,*\n",
    );
}

impl World {
    fn new(mode: &str, learning: u64) -> Self {
        let directory = world_tables(mode);
        let settings = dsr_dsa::config::Dsa {
            learning: settings::Period::from_secs(learning),
            ..settings(directory.path())
        };
        let bench = Bench::with(&settings);
        Self {
            countries: Country::all(),
            start: bench.now,
            bench,
            settings,
            time: 0,
            dice: Dice(0x9e37_79b9_7f4a_7c15),
            turns: BinaryHeap::new(),
            places: vec![None; TRAVELLERS],
            travelling: vec![false; TRAVELLERS],
            has_registered: vec![false; TRAVELLERS],
            exchanges: 0,
            journeys: 0,
            races: 0,
            _directory: directory,
        }
    }

    fn after(&mut self, seconds: u64, turn: Turn) {
        self.turns.push(Reverse((self.time + seconds, turn)));
    }

    /// A request that goes on, and its answer.
    fn exchange(&mut self, peer: &str, sent: &Sent, (host, code): (&str, u32)) {
        let answer = sent.answer(host, code);
        let fate = self.bench.exchange(peer, &sent.message(), &answer);
        let at = self.time;
        assert_eq!(
            fate,
            Fate::WentOn,
            "command {} of {} about {} at {at} s: {:?}",
            sent.command,
            sent.host,
            sent.imsi,
            self.bench.application.findings()
        );
        self.exchanges += 1;
    }

    fn imsi(traveller: usize) -> String {
        format!("26201{:010}", 1_000 + traveller)
    }

    /// A request of the MME of a place about a traveller.
    fn of(&self, traveller: usize, place: Place, command: u32) -> Sent {
        let country = &self.countries[place.country];
        let realm = country.realm(place.network);
        let has_network = [AIR, ULR].contains(&command);
        Sent {
            host: format!("mme{}.{realm}", place.mme),
            realm,
            imsi: Self::imsi(traveller),
            visited: has_network.then(|| country.plmn(place.network)),
            ..Sent::new(command)
        }
    }

    fn home_hss(&mut self) -> String {
        format!("hss{}.{HOME}", 1 + self.dice.below(2))
    }

    fn asks(&mut self, traveller: usize, place: Place, command: u32) {
        let (sent, hss) = (self.of(traveller, place, command), self.home_hss());
        self.exchange(FOREIGN_PEER, &sent, (&hss, 2001));
    }

    /// The home HSS cancels a traveller at the MME where it was.
    fn cancels(&mut self, traveller: usize, place: Place) {
        let mme = self.of(traveller, place, CLR);
        let sent = Sent {
            host: self.home_hss(),
            realm: HOME.to_owned(),
            to_host: Some(mme.host.clone()),
            to_realm: mme.realm.clone(),
            ..mme.clone()
        };
        self.exchange(OWN_PEER, &sent, (&mme.host, 2001));
    }

    /// A traveller registers at a place, and is cancelled where it was.
    fn registers(&mut self, traveller: usize, place: Place, is_new_network: bool) {
        if is_new_network {
            self.asks(traveller, place, AIR);
        }
        self.asks(traveller, place, ULR);
        self.has_registered[traveller] = true;
        let before = self.places[traveller].replace(place);
        let moved = before.filter(|before| {
            let host = |place: Place| self.of(traveller, place, ULR).host;
            host(*before) != host(place)
        });
        if let Some(before) = moved {
            self.cancels(traveller, before);
        }
    }

    fn place_in(&mut self, country: usize) -> Place {
        Place {
            country,
            network: self.dice.below(NETWORKS as u64) as usize,
            mme: self.dice.below(MMES),
        }
    }

    fn arrives(&mut self, traveller: usize, country: usize) {
        self.travelling[traveller] = false;
        let place = self.place_in(country);
        if self.dice.below(10) == 0 {
            // The first network does not let it roam (DIAMETER_ERROR_ROAMING_NOT_ALLOWED), so it takes the other one.
            let first = Place {
                network: 1 - place.network,
                ..place
            };
            self.asks(traveller, first, AIR);
            let refused = self.of(traveller, first, ULR);
            let hss = self.home_hss();
            self.exchange(FOREIGN_PEER, &refused, (&hss, 5004));
        }
        self.registers(traveller, place, true);
        let next = self.dice.between(10 * MINUTE, 2 * HOUR);
        self.after(next, Turn::Acts(traveller));
    }

    fn acts(&mut self, traveller: usize) {
        let Some(place) = self.places[traveller] else {
            return;
        };
        let other_mme = Place {
            mme: (place.mme + 1) % MMES,
            ..place
        };
        match self.dice.below(100) {
            0..35 => self.asks(traveller, place, AIR),
            35..50 => self.asks(traveller, place, NOR),
            // The context goes from MME to MME: no new authentication.
            50..65 => self.registers(traveller, other_mme, false),
            65..75 => {
                let other = Place {
                    network: 1 - place.network,
                    ..place
                };
                self.registers(traveller, other, true);
            }
            75..80 => self.purges(traveller, place),
            // Where the router does not know the earlier place, the MME there is one of many.
            80..88 if self.has_registered[traveller] => self.races(traveller, place, other_mme),
            _ => return self.travels(traveller, place),
        }
        let next = self.dice.between(5 * MINUTE, 90 * MINUTE);
        self.after(next, Turn::Acts(traveller));
    }

    /// Its device is off for long enough that the MME purges it; then it registers again.
    fn purges(&mut self, traveller: usize, place: Place) {
        self.asks(traveller, place, PUR);
        let again = self.place_in(place.country);
        self.places[traveller] = None;
        self.registers(traveller, again, true);
    }

    /// Two MMEs register it at once: the answers of the HSS, and what the MMEs send, overtake each other.
    fn races(&mut self, traveller: usize, place: Place, other: Place) {
        self.races += 1;
        let third = Place {
            mme: (place.mme + 2) % MMES,
            ..place
        };
        // The HSS registers at `third`, then at `other`. The answers come the other way round.
        for one in [other, third] {
            self.asks(traveller, one, ULR);
        }
        self.asks(traveller, place, NOR);
        self.cancels(traveller, place);
        self.asks(traveller, other, NOR);
        self.cancels(traveller, third);
        self.asks(traveller, third, PUR);
        self.places[traveller] = Some(other);
    }

    fn travels(&mut self, traveller: usize, place: Place) {
        let to = self.dice.below(self.countries.len() as u64) as usize;
        let time = self.countries[place.country].journey(&self.countries[to]);
        self.journeys += 1;
        self.travelling[traveller] = true;
        self.after(time, Turn::Arrives(traveller, to));
    }

    /// A foreign subscriber registers here, and its HSS changes its data.
    fn guest(&mut self, guest: usize) {
        let country = guest % self.countries.len();
        let (realm, of) = {
            let country = &self.countries[country];
            (
                country.realm(0),
                format!("{}{}", country.mcc, country.networks[0]),
            )
        };
        let hss = format!("hss.{realm}");
        let ours = |command: u32| Sent {
            to_realm: realm.clone(),
            imsi: format!("{of}{guest:010}"),
            ..Sent::of_ours(command)
        };
        for command in [AIR, ULR] {
            self.exchange(OWN_PEER, &ours(command), (&hss, 2001));
        }
        let command = [IDR, DSR, IDR, CLR][self.dice.below(4) as usize];
        let change = Sent {
            host: hss.clone(),
            realm: realm.clone(),
            imsi: format!("{of}{guest:010}"),
            to_host: Some(format!("mme1.{HOME}")),
            ..Sent::of_hss(command)
        };
        self.exchange(FOREIGN_PEER, &change, (&format!("mme1.{HOME}"), 2001));
        let next = self.dice.between(HOUR, 4 * HOUR);
        self.after(next, Turn::Guest(guest));
    }

    /// An HSS resets its subscribers at an MME (TS 29.272 §5.2.4.1.2).
    fn reset(&mut self, (from, realm): (&str, &str), to: (&str, &str), peer: &str) {
        let sent = Sent {
            host: from.to_owned(),
            realm: realm.to_owned(),
            to_host: Some(to.0.to_owned()),
            to_realm: to.1.to_owned(),
            imsi: String::new(),
            visited: None,
            ..Sent::new(RSR)
        };
        self.exchange(peer, &sent, (to.0, 2001));
    }

    fn home_hss_restarts(&mut self) {
        for country in 0..self.countries.len() {
            let realm = self.countries[country].realm(0);
            let mme = format!("mme0.{realm}");
            self.reset((&format!("hss1.{HOME}"), HOME), (&mme, &realm), OWN_PEER);
        }
    }

    fn foreign_hss_restarts(&mut self) {
        for guest in 0..GUESTS.min(self.countries.len()) {
            let realm = self.countries[guest].realm(0);
            let (hss, mme) = (format!("hss.{realm}"), format!("mme1.{HOME}"));
            self.reset((&hss, &realm), (&mme, HOME), FOREIGN_PEER);
        }
    }

    /// MMEs lose their contexts: devices attach again where they are.
    fn mmes_restart(&mut self) {
        for traveller in 0..TRAVELLERS {
            let place = self.places[traveller].filter(|place| place.mme == 0);
            if let Some(place) = place.filter(|_| !self.travelling[traveller]) {
                self.registers(traveller, place, true);
            }
        }
    }

    /// The tables and the application are loaded again.
    fn reload(&mut self) {
        let settings = self.settings.clone();
        self.bench.reload(&settings, |_| {});
    }

    fn begin(&mut self) {
        for traveller in 0..TRAVELLERS {
            let (at, country) = (
                self.dice.below(2 * HOUR),
                self.dice.below(self.countries.len() as u64),
            );
            self.after(at, Turn::Arrives(traveller, country as usize));
        }
        for guest in 0..GUESTS {
            let at = self.dice.below(2 * HOUR);
            self.after(at, Turn::Guest(guest));
        }
        for (hours, turn) in [
            (6, Turn::HomeHssRestarts),
            (9, Turn::ForeignHssRestarts),
            (11, Turn::MmesRestart),
            (13, Turn::Reload),
            (15, Turn::ClockSteps),
            (19, Turn::MmesRestart),
        ] {
            self.after(hours * HOUR, turn);
        }
    }

    /// Lets the world go on until this time of the day.
    fn until(&mut self, end: u64) {
        while let Some(Reverse((at, _))) = self.turns.peek()
            && *at < end
            && let Some(Reverse((at, turn))) = self.turns.pop()
        {
            self.time = at;
            // Workers read the clock at times of their own.
            let early = Duration::from_millis(self.dice.below(2_000));
            self.bench.now = self.start + Duration::from_secs(2 + at) - early;
            match turn {
                Turn::Arrives(traveller, country) => self.arrives(traveller, country),
                Turn::Acts(traveller) => self.acts(traveller),
                Turn::Guest(guest) => self.guest(guest),
                Turn::HomeHssRestarts => self.home_hss_restarts(),
                Turn::ForeignHssRestarts => self.foreign_hss_restarts(),
                Turn::MmesRestart => self.mmes_restart(),
                Turn::Reload => self.reload(),
                // The machine was suspended for ten minutes.
                Turn::ClockSteps => self.start += Duration::from_secs(10 * MINUTE),
            }
        }
    }
}

#[test]
fn a_day_of_honest_roaming_has_no_finding() {
    let mut world = World::new(DROP, 0);
    world.begin();
    world.until(DAY);
    assert_eq!(world.bench.application.findings(), []);
    let World {
        exchanges,
        journeys,
        races,
        ..
    } = world;
    assert!(exchanges > 10_000, "{exchanges} exchanges");
    assert!(
        journeys > 300 && races > 300,
        "{journeys} journeys, {races} races"
    );
}

#[test]
fn a_deployment_learns_a_day_and_then_blocks_attacks_and_nothing_else() {
    // It begins among subscribers that have registered before it: their first messages are of any kind.
    let mut world = World::new(DETECT, DAY);
    for traveller in 0..TRAVELLERS / 2 {
        let country = world.dice.below(world.countries.len() as u64) as usize;
        world.places[traveller] = Some(world.place_in(country));
        let next = world.dice.below(HOUR);
        world.after(next, Turn::Acts(traveller));
    }
    for traveller in TRAVELLERS / 2..TRAVELLERS {
        let country = world.dice.below(world.countries.len() as u64) as usize;
        let at = world.dice.below(2 * HOUR);
        world.after(at, Turn::Arrives(traveller, country));
    }
    for guest in 0..GUESTS {
        world.after(HOUR, Turn::Guest(guest));
    }
    world.until(DAY);
    assert_eq!(
        world.bench.application.findings(),
        [],
        "what learns finds nothing in honest traffic"
    );
    // The measures are switched from detection to blocking, and the time of learning is over.
    let directory = world.settings.tables.clone().unwrap();
    let rows = MEASURES.map(|measure| format!("{measure},{DROP}"));
    write(&directory, "Security_Countermeasure_Config", &measures(&rows));
    world.reload();
    world.until(2 * DAY);
    assert_eq!(
        world.bench.application.findings(),
        [],
        "no honest message is refused"
    );
    // An attacker in another country, far from each of them.
    let mut attacked = 0;
    for traveller in 0..TRAVELLERS {
        let place = world.places[traveller].filter(|_| !world.travelling[traveller]);
        let Some(place) = place else { continue };
        let far = (0..world.countries.len())
            .find(|other| world.countries[place.country].journey(&world.countries[*other]) > 8 * HOUR);
        let elsewhere = world.place_in(far.unwrap());
        // It registers once more, so that its place and time are known.
        world.bench.pass(Duration::from_secs(1));
        world.registers(traveller, place, true);
        for command in [ULR, PUR, NOR] {
            let attack = world.of(traveller, elsewhere, command);
            let fate = world.bench.request(FOREIGN_PEER, &attack.message());
            assert_eq!(fate, Fate::Dropped, "command {command} about {}", attack.imsi);
            attacked += 1;
        }
    }
    assert!(attacked > 300, "{attacked}");
}
