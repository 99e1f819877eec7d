//! What is known of subscribers: changes first, then the text, then the file of numbers.

mod changes;
mod listed;
mod ranges;
mod targets;

use std::fmt;
use std::sync::Arc;

use numbers::{Damaged, Load, Map};

use crate::address::{Address, wildcard};
use crate::config::{self, Service};

pub(crate) use changes::Change;
pub(crate) use targets::{ByName, Targets};

use changes::Changes;
use listed::Listed;

/// What is known.
#[derive(Debug)]
pub(crate) struct Data {
    by_name: Arc<ByName>,
    changes: Option<Arc<Changes>>,
    listed: Listed,
    base: Option<Base>,
    /// Whether database processors are asked in place of the file of numbers.
    is_elsewhere: bool,
}

/// A file of numbers, with the destinations of its sets.
#[derive(Debug)]
struct Base {
    map: Map,
    targets: Vec<Targets>,
}

/// Where an address was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Change,
    File,
    Numbers,
    Processor,
    /// With the count of its digits.
    Range(usize),
    Wildcard,
}

/// Why it is not known whether an address is known.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// The entry of a number is damaged.
    Damaged(Damaged),
    /// A database processor gives no answer that could be used.
    NoAnswer(&'static str),
    /// A database processor has too many queries.
    Congested,
    /// A database processor has to be asked.
    Pending,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged(damaged) => damaged.fmt(f),
            Self::NoAnswer(why) => f.write_str(why),
            Self::Congested => f.write_str("the database processor is congested"),
            Self::Pending => f.write_str("a database processor has to be asked"),
        }
    }
}

impl By {
    /// Whether the address itself is known.
    pub(crate) const fn is_exact(self) -> bool {
        !matches!(self, Self::Range(_) | Self::Wildcard)
    }

    pub(crate) fn name(self) -> String {
        match self {
            Self::Change => "changes".to_owned(),
            Self::File => "file".to_owned(),
            Self::Numbers => "numbers".to_owned(),
            Self::Processor => "a database processor".to_owned(),
            Self::Range(digits) => format!("a range of {digits} digits"),
            Self::Wildcard => "the realm".to_owned(),
        }
    }
}

/// The position of a destination, and where it was found.
pub(crate) type Found = Option<(u16, By)>;

fn by_name(config: &config::Fabr) -> ByName {
    let names = config.destinations.iter().map(|one| one.name.as_str().into());
    names.zip(0..).collect()
}

impl Data {
    /// Reads the files of a configuration.
    ///
    /// # Errors
    /// When one cannot be used, with the line where there is one.
    pub(crate) fn load(config: &config::Fabr) -> Result<Self, String> {
        let by_name = by_name(config);
        let (base, listed) = Self::files(config, &by_name)?;
        let changes = config.changes.as_ref();
        let changes = changes.map(|path| Changes::open(path)).transpose()?;
        for text in changes.iter().flat_map(|changes| changes.sets()) {
            let set = numbers::DestinationSet::parse(&text).map_err(|error| error.to_string())?;
            Targets::new(&set, &by_name).map_err(|wrong| match &config.changes {
                Some(path) => format!("{}: {wrong}", path.display()),
                None => wrong,
            })?;
        }
        Ok(Self {
            by_name: Arc::new(by_name),
            changes,
            listed,
            base,
            is_elsewhere: !config.processors.is_empty(),
        })
    }

    /// Reads the files of a configuration, and keeps nothing of them.
    ///
    /// # Errors
    /// When one cannot be used, with the line where there is one.
    pub(crate) fn check(config: &config::Fabr) -> Result<(), String> {
        let by_name = by_name(config);
        Self::files(config, &by_name)?;
        let Some(path) = &config.changes else {
            return Ok(());
        };
        Changes::check(path, |set| Targets::new(set, &by_name).map(drop))
            .map_err(|wrong| format!("{}: {wrong}", path.display()))
    }

    fn files(config: &config::Fabr, by_name: &ByName) -> Result<(Option<Base>, Listed), String> {
        let base = config.numbers.as_ref().map(|path| {
            dsr_app::appended::refuse_other(path).map_err(|wrong| format!("{}: {wrong}", path.display()))?;
            let map = Map::open(path, None, Load::Mapped).map_err(|error| error.to_string())?;
            for warning in map.warnings() {
                tracing::warn!(file = %path.display(), %warning, "file of numbers is damaged");
            }
            let targets = map.sets().iter().map(|set| Targets::new(set, by_name)).collect();
            let targets: Result<_, String> = targets;
            let targets = targets.map_err(|wrong| format!("{}: {wrong}", path.display()))?;
            Ok::<_, String>(Base { map, targets })
        });
        let base = base.transpose()?;
        let listed = config.file.as_ref().map(|path| {
            let read = Listed::open(path, config.max_entries, by_name);
            read.map_err(|wrong| format!("{}: {wrong}", path.display()))
        });
        let listed = listed.transpose()?.unwrap_or_default();
        Ok((base, listed))
    }

    /// Whether the files have the address itself, or may have it.
    fn is_in_files(&self, address: &Address) -> bool {
        let in_numbers = |base: &Base| match address {
            Address::Number(key) => !matches!(base.map.find(*key), Ok(None)),
            Address::Name(..) => false,
        };
        self.is_elsewhere
            || self.listed.exact(address).is_some()
            || self.base.as_ref().is_some_and(in_numbers)
    }

    /// Positions of destinations by their names.
    pub(crate) const fn by_name(&self) -> &Arc<ByName> {
        &self.by_name
    }

    /// Finds the destination of an address for a service: the address itself, then the realm of a name or the range of a
    /// number. `ask` has the answer of a database processor, where there are any.
    ///
    /// # Errors
    /// When the entry of a number is damaged, or a processor does not answer: what it was is not known, so no range stands in.
    pub(crate) fn find(
        &self,
        address: &Address,
        service: Option<Service>,
        ask: impl FnOnce(&Address) -> Result<Found, Failure>,
    ) -> Result<Found, Failure> {
        if let Some(changed) = self.changes.as_ref().and_then(|changes| changes.find(address)) {
            // A subscriber that was taken away may still be in a range, but is in no file.
            let set = changed.and_then(|set| Targets::new(&set, &self.by_name).ok());
            return Ok(match set.and_then(|targets| targets.of(service)) {
                Some(to) => Some((to, By::Change)),
                None => self.around(address, service),
            });
        }
        if let Some(targets) = self.listed.exact(address) {
            let found = targets.of(service).map(|to| (to, By::File));
            return Ok(found.or_else(|| self.around(address, service)));
        }
        if let (Some(base), Address::Number(key)) = (&self.base, address)
            && let Some(id) = base.map.find(*key).map_err(Failure::Damaged)?
        {
            let targets = base.targets.get(id.index());
            let found = targets.and_then(|targets| targets.of(service));
            return Ok(found
                .map(|to| (to, By::Numbers))
                .or_else(|| self.around(address, service)));
        }
        if self.is_elsewhere
            && let Some(found) = ask(address)?
        {
            // Of what stands for many addresses, the router's own goes first.
            let own = (found.1 == By::Wildcard)
                .then(|| self.around(address, service))
                .flatten();
            return Ok(own.or(Some(found)));
        }
        Ok(self.around(address, service))
    }

    /// What stands for many addresses.
    fn around(&self, address: &Address, service: Option<Service>) -> Found {
        match address {
            Address::Number(key) => {
                let (targets, digits) = self.listed.range(*key)?;
                Some((targets.of(service)?, By::Range(digits)))
            }
            Address::Name(entity, name) => {
                let all = wildcard(*entity, name)?;
                let changed = self
                    .changes
                    .as_ref()
                    .and_then(|changes| changes.find(&Address::Name(*entity, all.clone().into_boxed_str())));
                let to = match changed {
                    Some(changed) => Targets::new(&*changed?, &self.by_name).ok()?.of(service),
                    None => self.listed.named(*entity, &all)?.of(service),
                };
                Some((to?, By::Wildcard))
            }
        }
    }

    /// Changes a subscriber.
    ///
    /// # Errors
    /// What is wrong; nothing is changed then.
    pub(crate) fn change(&self, subject: &str, to: &str, most: usize) -> Result<(), String> {
        let Some(changes) = &self.changes else {
            return Err("no subscriber can be changed: fabr.changes names no file".to_owned());
        };
        let change = Change::new(subject, to)?;
        if let Some(set) = &change.to {
            Targets::new(set, &self.by_name)?;
        }
        let is_in_files = self.is_in_files(&change.address);
        changes.make(change, most, is_in_files)
    }

    /// Name, entries and bytes of each table.
    pub(crate) fn tables(&self) -> Vec<(&'static str, usize, usize)> {
        let mut tables = self.listed.tables().to_vec();
        tables.extend(self.base.as_ref().map(|base| {
            let (numbers, bytes) = base.map.size();
            ("numbers", numbers as usize, bytes as usize)
        }));
        let changes = self.changes.as_ref().map(|changes| changes.len());
        tables.extend(changes.map(|count| ("changes", count, count * 64)));
        tables
    }
}
