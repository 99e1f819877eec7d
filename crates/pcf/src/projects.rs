//! The policy projects in effect: read and compiled at the start and at each reload.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::Arc;

use ::policy::{Limits, Project, Service};

use crate::config::Policies;

/// A project that the PCF has without settings.
struct BuiltIn {
    name: &'static str,
    text: &'static str,
}

const SM: BuiltIn = BuiltIn {
    name: "the built-in project for sm",
    text: include_str!("../projects/sm/project.yaml"),
};
const AM: BuiltIn = BuiltIn {
    name: "the built-in project for am",
    text: include_str!("../projects/am/project.yaml"),
};
const UE: BuiltIn = BuiltIn {
    name: "the built-in project for ue",
    text: include_str!("../projects/ue/project.yaml"),
};

/// The project of a service, and the one that decides when its evaluation fails.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub(crate) project: Arc<Project>,
    /// Checksum of the project's files.
    checksum: u64,
    pub(crate) built_in: Arc<Project>,
}

/// The projects of all services.
#[derive(Clone, Debug)]
pub(crate) struct Projects {
    pub(crate) sm: Pair,
    pub(crate) am: Pair,
    pub(crate) ue: Pair,
}

impl Projects {
    /// Reads and compiles what the settings name.
    ///
    /// # Errors
    /// Every mistake of a project, with file, line and block.
    pub(crate) fn read(settings: &Policies) -> Result<Self, String> {
        let pair = |folder: Option<&Path>, key: &str, service: Service, built_in: &BuiltIn| {
            pair(folder, key, service, built_in, &settings.limits)
        };
        Ok(Self {
            sm: pair(settings.sm.as_deref(), "policy.sm", Service::Sm, &SM)?,
            am: pair(settings.am.as_deref(), "policy.am", Service::Am, &AM)?,
            ue: pair(settings.ue.as_deref(), "policy.ue", Service::Ue, &UE)?,
        })
    }

    /// Whether files have the same content as those of other projects.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let pairs = self.all().into_iter().zip(other.all());
        pairs
            .into_iter()
            .all(|(own, other)| own.checksum == other.checksum)
    }

    /// Those of a service.
    pub(crate) fn of(&self, service: Service) -> &Pair {
        match service {
            Service::Sm => &self.sm,
            Service::Am => &self.am,
            Service::Ue => &self.ue,
        }
    }

    /// Those of each service.
    pub(crate) fn all(&self) -> [&Pair; 3] {
        [&self.sm, &self.am, &self.ue]
    }
}

fn pair(
    folder: Option<&Path>,
    key: &str,
    service: Service,
    built_in: &BuiltIn,
    limits: &Limits,
) -> Result<Pair, String> {
    // What an operator limits holds for the operator's projects.
    let text = [(built_in.name, built_in.text)];
    let text = text.map(|(_, text)| ("project.yaml", text));
    let built_in =
        Project::compile(&text, &Limits::default()).map_err(|error| format!("{}: {error}", built_in.name))?;
    let built_in = Arc::new(built_in);
    let (project, checksum) = match folder {
        None => (built_in.clone(), 0),
        Some(folder) => {
            let (project, checksum) = compile(folder, key, service, limits)?;
            (Arc::new(project), checksum)
        }
    };
    Ok(Pair {
        project,
        checksum,
        built_in,
    })
}

/// The project of a folder, with a checksum of its files.
fn compile(folder: &Path, key: &str, service: Service, limits: &Limits) -> Result<(Project, u64), String> {
    let files = files(folder, limits).map_err(|reason| format!("{key}: {reason}"))?;
    let mut checksum = DefaultHasher::new();
    files.hash(&mut checksum);
    let texts: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    let project = Project::compile(&texts, limits).map_err(|error| format!("{key}: {error}"))?;
    if project.service() != service {
        return Err(format!(
            "{key}: {} is a project with `service: {}`; expected `service: {}`",
            folder.display(),
            project.service().name(),
            service.name()
        ));
    }
    Ok((project, checksum.finish()))
}

/// The YAML and JSON files of a folder, in the order of their names.
fn files(folder: &Path, limits: &Limits) -> Result<Vec<(String, String)>, String> {
    let unreadable = |path: &Path, error: std::io::Error| {
        let path = path.display();
        format!("{path}: {error}; expected a folder with YAML or JSON files")
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| unreadable(folder, error))? {
        let path = entry.map_err(|error| unreadable(folder, error))?.path();
        let known = path
            .extension()
            .is_some_and(|ending| ["yaml", "yml", "json"].iter().any(|known| ending == *known));
        if known && path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    let mut left = limits.project_bytes as u64;
    let mut files = Vec::new();
    for path in paths {
        let bytes = std::fs::metadata(&path).map_err(|error| unreadable(&path, error))?;
        left = left.checked_sub(bytes.len()).ok_or_else(|| {
            let (folder, most) = (folder.display(), limits.project_bytes);
            format!("{folder}: its files have more than {most} bytes together (policy.limits.projectBytes)")
        })?;
        let text = std::fs::read_to_string(&path).map_err(|error| unreadable(&path, error))?;
        files.push((path.display().to_string(), text));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_named_with_setting_file_and_block() {
        let folder = tempfile::tempdir().unwrap();
        let read = || {
            let settings = Policies {
                sm: Some(folder.path().to_owned()),
                ..Policies::default()
            };
            Projects::read(&settings).map(drop)
        };
        assert!(read().unwrap_err().starts_with("policy.sm: "));
        let write = |text: &str| std::fs::write(folder.path().join("project.yaml"), text).unwrap();
        write("name: x\nservice: am\nblocks: [amPolicy: {rfsp: 7}]\n");
        assert!(read().unwrap_err().contains("service: am"));
        write(
            "name: x\nservice: sm\nblocks:\n  - block: wrong\n    sessionRule: {sessRuleId: 7, nonsense: 1}\n",
        );
        let wrong = read().unwrap_err();
        assert!(
            wrong.contains("project.yaml:5") && wrong.contains("blocks[0]"),
            "{wrong}"
        );
        write("name: x\nservice: sm\nblocks:\n  - sessionRule: {sessRuleId: a}\n");
        assert_eq!(read(), Ok(()));
        assert_eq!(Projects::read(&Policies::default()).map(drop), Ok(()));
    }
}
