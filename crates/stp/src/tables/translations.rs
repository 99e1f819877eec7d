//! Global title translations of settings and files.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use settings::Faults;
use ss7_proto::gtt::{
    self, BuildError, Change, Member, Mode, Modification, Number, Selector, SetId, Table, TableBuilder,
};
use ss7_proto::tcap::ContextPrefix;
use ss7_proto::{Digits, Plan, PointCode};

use super::{NumberServices, Points, Routes};
use crate::config::{
    Config, Entry, Group, GroupMode, NextRouting, TranslatedNumber, Translation, TranslationSet,
};

/// The table, and the names of its parts.
#[derive(Debug, Default)]
pub(crate) struct Translations {
    pub(crate) table: Table,
    pub(crate) sets: Vec<String>,
    pub(crate) entries: Vec<usize>,
    /// Places of groups in the table.
    groups: HashMap<String, u32>,
    /// Groups that have a point code of this node.
    own_groups: HashSet<u32>,
    /// Nodes and subsystems whose state counts.
    members: HashSet<(PointCode, u8)>,
    /// Nodes of groups that share by transaction.
    sharing: HashSet<PointCode>,
}

impl Translations {
    /// Whether a group shares by transaction.
    pub(crate) fn keeps_transactions(&self) -> bool {
        !self.sharing.is_empty()
    }

    /// Whether a node is one of a group that shares by transaction.
    pub(crate) fn keeps_transactions_of(&self, code: PointCode) -> bool {
        self.sharing.contains(&code)
    }

    /// The place of a group in the table.
    pub(crate) fn group(&self, name: &str) -> Option<u32> {
        self.groups.get(name).copied()
    }

    /// The place of a group none of whose nodes is this one: what a service of this node sends there does not come back to it.
    ///
    /// # Errors
    /// What is wrong with the name.
    pub(super) fn other_group(&self, name: &str) -> Result<u32, &'static str> {
        let place = self.group(name).ok_or("names no group of `translation`")?;
        if self.own_groups.contains(&place) {
            return Err("names a group with a point code of this STP");
        }
        Ok(place)
    }

    /// Whether the state of a subsystem at a node counts for a translation.
    pub(crate) fn has_member(&self, code: PointCode, ssn: u8) -> bool {
        self.members.contains(&(code, ssn))
    }

    /// Compiles what settings have; reports what is wrong. Files are not read.
    pub(super) fn compile(
        config: &Translation,
        points: &Points,
        routes: &Routes,
        faults: &mut Faults,
    ) -> Self {
        super::names(
            config.groups.iter().map(|one| one.name.as_str()),
            "translation.groups",
            faults,
        );
        super::names(
            config.sets.iter().map(|one| one.name.as_str()),
            "translation.sets",
            faults,
        );
        let mut wrong = false;
        for (index, group) in config.groups.iter().enumerate() {
            for (number, member) in group.members.iter().enumerate() {
                let key = format!("translation.groups[{index}].members[{number}].pointCode");
                match points.plan.parse(&member.point_code) {
                    Err(error) => {
                        wrong = true;
                        faults.at(key).say(error.to_string(), "a point code of the plan");
                    }
                    Ok(code) if routes.find(code).is_none() && !points.are(code) => {
                        faults
                            .at(key)
                            .say("has no route", "a point code of `routes` or `applicationServers`");
                    }
                    Ok(_) => {}
                }
            }
            if group.members.is_empty() {
                wrong = true;
                faults
                    .at(format!("translation.groups[{index}].members"))
                    .say("is empty", "at least one node");
            }
        }
        let mut building = Building::new(config, points);
        for (index, set) in config.sets.iter().enumerate() {
            wrong |= !check_selector(set, &format!("translation.sets[{index}]"), points.plan, faults);
            let id = building.set(set);
            for (number, entry) in set.entries.iter().enumerate() {
                if let Err(what) = building.add(id, entry) {
                    let key = format!("translation.sets[{index}].entries[{number}]");
                    faults
                        .at(key)
                        .say(what, "a translation such as {digits: \"43660\", group: hlr}");
                }
            }
        }
        match building.build() {
            Ok(built) => built,
            Err(error) => {
                // Wrong groups and selectors have been reported already.
                if !wrong {
                    faults
                        .at("translation.sets")
                        .say(error.to_string(), "numbers that occur once");
                }
                Self::default()
            }
        }
    }

    /// As [`Self::compile`], with files, of settings that have no mistakes.
    pub(super) fn load(config: &Translation, points: &Points) -> Result<Self, String> {
        let mut building = Building::new(config, points);
        for set in &config.sets {
            let id = building.set(set);
            for entry in &set.entries {
                building.add(id, entry)?;
            }
            if let Some(path) = &set.file {
                let read = read_file(path, |_, entry| building.add(id, &entry));
                read.map_err(|mistakes| mistakes.join("; "))?;
            }
        }
        building.build().map_err(|error| {
            let files = config.sets.iter().filter_map(|set| set.file.as_deref());
            let lines: Vec<String> = files.flat_map(|path| lines_of(path, &error)).collect();
            format!("translation.sets: {error}{}", listed(&lines))
        })
    }
}

/// Where the lines of files are that a mistake of a whole set is about.
fn lines_of(path: &Path, error: &BuildError) -> Vec<String> {
    let wanted = error.ranges();
    let mut found = Vec::new();
    // What else is wrong with the file has been reported.
    let _ = read_file(path, |number, entry| {
        if range(&entry.digits).is_ok_and(|range| wanted.contains(&range)) {
            found.push(format!("{}:{number}", path.display()));
        }
        Ok(())
    });
    found
}

fn listed(lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    format!(" ({})", lines.join(", "))
}

/// Reports mistakes in the files that settings name, each with the line of the file.
pub fn check_files(config: &Config, faults: &mut Faults) {
    let mut other = Faults::default();
    let tables = super::Tables::compile(config, &mut other);
    // A file of a router's changes is refused with the settings, and not opened: it has one owner.
    let lists = config.equipment.as_ref().filter(|lists| lists.changes.is_none());
    if let Some(Err(error)) = lists.map(super::equipment) {
        let right = "a file of equipment: docs/dsr.md";
        faults.at("stp.equipment.file").say(error, right);
    }
    if let Err(error) = NumberServices::load(&config.number_services, &tables.hops, &tables.translations) {
        let right = "a file of numbers: docs/stp.md";
        faults.at("stp.numberServices.file").say(error, right);
    }
    for (index, set) in config.translation.sets.iter().enumerate() {
        let Some(path) = &set.file else { continue };
        let mut building = Building::new(&config.translation, &tables.points);
        let id = building.set(set);
        for entry in &set.entries {
            // What is wrong with settings is reported with them.
            let _ = building.add(id, entry);
        }
        let read = read_file(path, |_, entry| building.add(id, &entry));
        let built = read.and_then(|()| {
            let built = building.build();
            built.map_err(|error| vec![format!("{error}{}", listed(&lines_of(path, &error)))])
        });
        for mistake in built.err().into_iter().flatten() {
            let right = "a file of translations: docs/stp.md";
            faults
                .at(format!("stp.translation.sets[{index}].file"))
                .say(mistake, right);
        }
    }
}

/// A table as it grows.
struct Building {
    plan: Plan,
    builder: TableBuilder,
    groups: HashMap<String, u32>,
    sets: Vec<String>,
    entries: Vec<usize>,
    members: HashSet<(PointCode, u8)>,
    sharing: HashSet<PointCode>,
    own_groups: HashSet<u32>,
}

impl Building {
    fn new(config: &Translation, points: &Points) -> Self {
        let mut builder = TableBuilder::new();
        let mut groups = HashMap::new();
        let mut members = HashSet::new();
        let mut sharing = HashSet::new();
        let mut own_groups = HashSet::new();
        for group in &config.groups {
            let compiled = compiled(group, points);
            members.extend(
                compiled
                    .members
                    .iter()
                    .filter_map(|one| Some((one.point_code, one.ssn?))),
            );
            if compiled.mode == Mode::Transaction {
                sharing.extend(compiled.members.iter().map(|one| one.point_code));
            }
            let has_own = compiled.members.iter().any(|one| points.are(one.point_code));
            let place = builder.group(compiled);
            if has_own {
                own_groups.insert(place);
            }
            groups.insert(group.name.clone(), place);
        }
        Self {
            plan: points.plan,
            builder,
            groups,
            sets: Vec::new(),
            entries: Vec::new(),
            members,
            sharing,
            own_groups,
        }
    }

    fn set(&mut self, set: &TranslationSet) -> SetId {
        self.sets.push(set.name.clone());
        self.entries.push(0);
        let selector = Selector {
            indicator: set.indicator,
            translation_type: set.translation_type,
            numbering_plan: set.numbering_plan,
            nature: set.nature,
            ssn: set.subsystem,
            // One of another plan has been reported.
            opc: set.opc.as_ref().and_then(|opc| self.plan.parse(opc).ok()),
            calling: None,
            operation: set.operation,
            context: set.application_context.as_deref().and_then(ContextPrefix::parse),
            number: set.number.number(),
        };
        let mut callers = set.calling.iter().map(|calling| Selector {
            calling: Digits::parse(calling),
            ..selector
        });
        let id = self.builder.set(callers.next().unwrap_or(selector));
        callers.for_each(|other| self.builder.selector(id, other));
        id
    }

    fn add(&mut self, set: SetId, entry: &Entry) -> Result<(), String> {
        // An address that is routed by subsystem names one (Q.713 §3.4.1), and a received one may name none.
        if entry.routing == NextRouting::Subsystem && entry.subsystem.is_none_or(|ssn| ssn == 0) {
            return Err("routes by subsystem and has no `subsystem` from 1 to 255".to_owned());
        }
        let group = self.groups.get(&entry.group);
        let group = *group.ok_or_else(|| format!("names no group: `{}`", entry.group))?;
        let (first, last) = range(&entry.digits)?;
        let modification = Modification {
            route_on_ssn: entry.routing == NextRouting::Subsystem,
            ssn: entry.subsystem.map_or(Change::Keep, Change::Set),
            translation_type: entry.translation_type,
            numbering_plan: entry.numbering_plan,
            nature: entry.nature,
            indicator: entry.indicator,
            remove_prefix: entry.remove,
            prefix: digits(&entry.prefix)?,
            remove_suffix: entry.remove_last,
            suffix: digits(&entry.suffix)?,
            ..Modification::default()
        };
        let translation = gtt::Translation { group, modification };
        self.builder.range(set, first, last, translation);
        if let Some(count) = self.entries.get_mut(usize::from(set.0)) {
            *count += 1;
        }
        Ok(())
    }

    fn build(self) -> Result<Translations, BuildError> {
        Ok(Translations {
            table: self.builder.build()?,
            sets: self.sets,
            entries: self.entries,
            groups: self.groups,
            own_groups: self.own_groups,
            members: self.members,
            sharing: self.sharing,
        })
    }
}

impl TranslatedNumber {
    const fn number(self) -> Option<Number> {
        match self {
            Self::Called => None,
            Self::Calling => Some(Number::Calling),
            Self::Imsi => Some(Number::Imsi),
            Self::Msisdn => Some(Number::Msisdn),
            Self::SmRpDa => Some(Number::SmRpDa),
            Self::SmRpOa => Some(Number::SmRpOa),
            Self::TpDa => Some(Number::TpDa),
        }
    }
}

/// Prefixes of calling parties that a set names at most: each is compared by itself.
const MOST_CALLERS: usize = 32;

/// Whether a selector is right; reports what is not, which [`Building::set`] leaves out.
fn check_selector(set: &TranslationSet, path: &str, plan: Plan, faults: &mut Faults) -> bool {
    let mut right = true;
    let mut fault = |key: &str, what: String, expected: &str| {
        right = false;
        faults.at(format!("{path}.{key}")).say(what, expected);
    };
    if let Some(Err(error)) = set.opc.as_ref().map(|opc| plan.parse(opc)) {
        fault("opc", error.to_string(), "a point code of the plan");
    }
    for (number, calling) in set.calling.iter().enumerate() {
        if let Err(what) = digits(calling) {
            let expected = "what a number begins with, such as 43660";
            fault(&format!("calling[{number}]"), what, expected);
        }
    }
    if set.calling.len() > MOST_CALLERS {
        let what = format!("has {} prefixes", set.calling.len());
        let expected = format!("at most {MOST_CALLERS}; a set with `number: calling` has any count");
        fault("calling", what, &expected);
    }
    let context = set.application_context.as_deref();
    if context.is_some_and(|context| ContextPrefix::parse(context).is_none()) {
        let expected = "an object identifier of at most 16 octets or its beginning, such as 0.4.0.0.1.0.1";
        let what = "is not an object identifier".to_owned();
        fault("applicationContext", what, expected);
    }
    right
}

fn digits(text: &str) -> Result<Digits, String> {
    Digits::parse(text)
        .ok_or_else(|| format!("`{text}` is not a number of at most 40 digits (0 to 9, a to f)"))
}

/// The first and the last number of a prefix or range: `43660`, `436610-436649`.
fn range(text: &str) -> Result<(Digits, Digits), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Ok((digits(first)?, digits(last)?))
}

fn compiled(group: &Group, points: &Points) -> gtt::Group {
    let members = group.members.iter().filter_map(|member| {
        Some(Member {
            point_code: points.plan.parse(&member.point_code).ok()?,
            ssn: member.subsystem,
            weight: member.weight,
        })
    });
    gtt::Group {
        mode: match group.mode {
            GroupMode::Solitary => Mode::Solitary,
            GroupMode::Dominant => Mode::Dominant,
            GroupMode::Loadshare => Mode::LoadShared,
            GroupMode::Transaction => Mode::Transaction,
        },
        members: members.collect(),
    }
}

/// Mistakes of a file that are reported together.
const MOST_MISTAKES: usize = 10;

/// Reads a file of translations: the first line names the columns, further lines have one translation each, which `add` gets with its
/// line. Empty lines and lines that begin with `#` are skipped.
///
/// # Errors
/// The first mistakes, each with file and line.
fn read_file(
    path: &Path,
    mut add: impl FnMut(usize, Entry) -> Result<(), String>,
) -> Result<(), Vec<String>> {
    let unreadable = |error| vec![format!("{}: {error}", path.display())];
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    // Spreadsheets write a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let at = |number: usize, what: String| format!("{}:{number}: {what}", path.display());
    let mut columns: Option<Vec<&str>> = None;
    let mut mistakes = Vec::new();
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let values: Vec<&str> = line.split(',').map(str::trim).collect();
        let Some(names) = &columns else {
            check_columns(&values).map_err(|what| vec![at(number, what)])?;
            columns = Some(values);
            continue;
        };
        if let Err(what) = translation(names, values).and_then(|entry| add(number, entry)) {
            mistakes.push(at(number, what));
            if mistakes.len() == MOST_MISTAKES {
                break;
            }
        }
    }
    if mistakes.is_empty() {
        Ok(())
    } else {
        Err(mistakes)
    }
}

/// The translation of a line.
fn translation(names: &[&str], values: Vec<&str>) -> Result<Entry, String> {
    if values.len() != names.len() {
        let (found, wanted) = (values.len(), names.len());
        return Err(format!("has {found} columns; the first line names {wanted}"));
    }
    let mut entry = Entry::default();
    for (name, value) in names.iter().zip(values) {
        set_column(&mut entry, name, value)?;
    }
    Ok(entry)
}

/// Checks the first line: known columns, each once, and those without which a translation means something else.
fn check_columns(names: &[&str]) -> Result<(), String> {
    for (number, name) in names.iter().enumerate() {
        set_column(&mut Entry::default(), name, "")?;
        if names.iter().take(number).any(|other| other == name) {
            return Err(format!("column `{name}` occurs twice"));
        }
    }
    for name in ["digits", "group"] {
        if !names.contains(&name) {
            return Err(format!(
                "has no column `{name}`; the first line names the columns"
            ));
        }
    }
    Ok(())
}

fn set_column(entry: &mut Entry, name: &str, value: &str) -> Result<(), String> {
    let number = || match value {
        "" => Ok(None),
        value => value
            .parse()
            .map(Some)
            .map_err(|_| format!("{name}: `{value}` is not a number from 0 to 255")),
    };
    match name {
        "digits" => value.clone_into(&mut entry.digits),
        "group" => value.clone_into(&mut entry.group),
        "prefix" => value.clone_into(&mut entry.prefix),
        "suffix" => value.clone_into(&mut entry.suffix),
        "subsystem" => entry.subsystem = number()?,
        "translationType" => entry.translation_type = number()?,
        "numberingPlan" => entry.numbering_plan = number()?,
        "nature" => entry.nature = number()?,
        "indicator" => entry.indicator = number()?,
        "remove" => entry.remove = number()?.unwrap_or(0),
        "removeLast" => entry.remove_last = number()?.unwrap_or(0),
        "routing" => {
            entry.routing = match value {
                "" | "title" => NextRouting::Title,
                "subsystem" => NextRouting::Subsystem,
                _ => return Err(format!("routing: `{value}` is neither `title` nor `subsystem`")),
            }
        }
        _ => {
            return Err(format!(
                "column `{name}` is unknown; see `translation.sets[].entries`"
            ));
        }
    }
    Ok(())
}
