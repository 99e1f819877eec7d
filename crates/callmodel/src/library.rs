//! The models that are part of the binary, and finding one by name or path.

use std::path::Path;

use super::CallModel;

/// Names of models, each with the text of its file.
macro_rules! models {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../callmodels/", $name, ".yaml")))),*]
    };
}

/// Name and text of every model under `callmodels/`.
const MODELS: &[(&str, &str)] = models![
    "bsf/overload-3x",
    "bsf/scenario-1",
    "bsf/scenario-2",
    "bsf/scenario-3",
    "bsf/scenario-4",
    "bsf/scenario-5",
    "bsf/scenario-6",
    "bsf/scenario-7",
    "bsf/scenario-8",
    "bsf/scenario-9",
    "bsf/scenario-10",
    "bsf/scenario-11",
    "bsf/scenario-12",
    "bsf/scenario-13",
    "bsf/scenario-14",
    "core/bad-day",
    "core/voice-call",
    "core/voice-pdra",
    "dsr/da-mp-relay",
    "dsr/da-mp-large-rbar",
    "dsr/overload-3x",
    "dsr/reconnect",
    "dsr/kill-peers",
    "dsr/eir",
    "dsr/ipfe",
    "dsr/ipfe-egress",
    "dsr/kill-front-end",
    "dsr/kill-mate",
    "dsr/kill-router",
    "dsr/x9-2-relay",
    "dsr/gen9-relay",
    "dsr/small-rbar",
    "dsr/vstp",
    "dsr/vstp-eir",
    "dsr/vstp-gflex",
    "dsr/vstp-inpq",
    "dsr/vstp-kill",
    "dsr/vstp-links",
    "dsr/vstp-lose-hlr",
    "dsr/vstp-lose-mate",
    "dsr/vstp-mixed",
    "dsr/vstp-mnp",
    "dsr/vstp-oscillation",
    "dsr/vstp-reload",
    "dsr/vstp-screening",
    "dsr/vstp-tif",
    "dsr/dsa",
    "dsr/dsa-attacks",
    "dsr/dsa-learning",
    "dsr/dsa-stateful",
    "dsr/dsa-stateless",
    "dsr/fabr-damaged",
    "dsr/fabr-dp",
    "dsr/fabr-dp-lose",
    "dsr/fabr-sds",
    "dsr/fabr-sds-kill",
    "dsr/fabr-udr",
    "dsr/fabr-udr-30",
    "dsr/fabr-udr-70",
    "dsr/ocdra",
    "dsr/ocdra-kill-ocs",
    "dsr/pdra",
    "dsr/pdra-cut-sites",
    "dsr/pdra-kill-database",
    "dsr/pdra-kill-pcrfs",
    "dsr/pdra-kill-router",
    "dsr/scef",
    "dsr/scef-kill",
    "dsr/scef-lose-hss",
    "dsr/scef-slow-as",
    "dsr/x9-2-fabr",
    "dsr/gen9-fabr",
    "nrf/5k",
    "nrf/38k",
    "nrf/51k",
    "nrf/kill-one",
    "nrf/profiles-500",
    "nrf/profiles-50k",
    "policy/am-ue-15k",
    "policy/am-ue-25k",
    "policy/am-ue-30k",
    "policy/am-ue-60k",
    "policy/am-ue-75k",
    "policy/kill-pcf",
    "policy/sm-30k",
    "policy/sm-41k",
    "policy/sm-43k",
    "policy/pcf-30k-binding",
    "policy/pcf-30k-no-binding",
    "policy/pcrf-data-30k",
    "policy/pcrf-voice-30k",
    "policy/voice-7k5",
    "policy/voice-15k",
    "policy/data-7k5",
    "policy/data-15k",
    "policy/data-15k-two-sites",
    "policy/usage-monitoring-27k",
    "scp/kill-producer",
    "scp/lose-site",
    "scp/nrf-gone",
    "scp/overload-3x",
    "scp/model-c-1",
    "scp/model-c-2",
    "scp/model-d-1",
    "scp/model-d-2",
    "scp/model-d-3",
    "scp/model-d-4",
    "scp/model-d-5",
    "scp/model-d-6",
    "scp/model-d-7",
    "scp/model-d-8",
    "scp/model-d-9",
    "scp/model-d-10",
];

/// A model that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// What it is called in reports.
    pub name: String,
    /// The model.
    pub model: CallModel,
}

/// A model that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// No model has this name, and no file this path.
    #[error(
        "the call model {name:?} does not exist{}`signalbox lab list` lists all names; the path of a YAML file is accepted as well",
        near.as_ref().map_or("; ".to_owned(), |near| format!(", did you mean {near}? "))
    )]
    Unknown {
        /// The name or path.
        name: String,
        /// The name that was probably meant.
        near: Option<String>,
    },
    /// The text has mistakes.
    #[error("{0}")]
    Faulty(Box<settings::Report>),
}

/// The names of the models in the binary.
pub fn names() -> impl Iterator<Item = &'static str> {
    MODELS.iter().map(|(name, _)| *name)
}

/// Finds a model by its name, or reads it from a file.
///
/// # Errors
/// When there is none, or it has mistakes: all of them, with line and column.
pub fn find(name: &str) -> Result<Found, LoadError> {
    let read = if let Some((name, text)) = MODELS.iter().find(|(known, _)| *known == name) {
        settings::from_str(text, &format!("callmodels/{name}.yaml"))
    } else {
        let path = Path::new(name);
        if !path.is_file() {
            return Err(LoadError::Unknown {
                name: name.to_owned(),
                near: settings::nearest(name, &names().collect::<Vec<_>>()).map(str::to_owned),
            });
        }
        settings::from_file(path)
    };
    let model = read.map_err(|report| LoadError::Faulty(Box::new(report)))?;
    let name = name.strip_suffix(".yaml").unwrap_or(name).to_owned();
    Ok(Found { name, model })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy;

    #[test]
    fn every_file_is_listed_and_every_listed_model_is_right() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../callmodels");
        let mut files: Vec<String> = Vec::new();
        for folder in std::fs::read_dir(root)
            .unwrap()
            .map(|e| e.unwrap().path())
            .filter(|p| p.is_dir())
        {
            for file in std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()) {
                let folder = folder.file_name().unwrap().to_string_lossy().into_owned();
                files.push(format!(
                    "{folder}/{}",
                    file.file_stem().unwrap().to_string_lossy()
                ));
            }
        }
        files.sort();
        let mut listed: Vec<String> = names().map(str::to_owned).collect();
        listed.sort();
        assert_eq!(files, listed);
        for name in names() {
            find(name).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    #[test]
    fn limits_of_the_model_are_lifted_and_nothing_else() {
        let (free, lifted) = find("dsr/da-mp-relay").unwrap().model.without_limits().unwrap();
        assert!(lifted.contains("discards") && free.dsr.unwrap().discards.is_empty());
        let (free, _) = find("bsf/scenario-13").unwrap().model.without_limits().unwrap();
        assert!(!free.bsf.unwrap().congestion_control);
        assert!(find("nrf/51k").unwrap().model.without_limits().is_none());
        // What the drill is about stays.
        assert!(find("bsf/overload-3x").unwrap().model.without_limits().is_none());
        assert!(find("dsr/x9-2-relay").unwrap().model.without_limits().is_none());
    }

    #[test]
    fn mixes_imply_what_the_guide_prints() {
        for (name, ingress, slf, cpu_ms) in [
            ("nrf/5k", 5066.1, 4385.0, 7.6),
            ("nrf/38k", 37_698.1, 18_605.0, 4.57),
            ("nrf/51k", 51_666.1, 45_250.0, 9.4),
        ] {
            let model = find(name).unwrap().model;
            let nrf = model.nrf.as_ref().unwrap();
            assert!(
                (model.ingress_tps() - ingress).abs() < 0.2,
                "{name}: {}",
                model.ingress_tps()
            );
            assert!(
                (nrf.slf_queries() / slf - 1.0).abs() < 0.001,
                "{name}: {}",
                nrf.slf_queries()
            );
            assert_eq!(nrf.population_total(), 260);
            let cpu = model.guide.as_ref().unwrap().cpu_us_per_transaction().unwrap() / 1000.0;
            assert!((cpu / cpu_ms - 1.0).abs() < 0.05, "{name}: {cpu} ms");
        }
    }

    #[test]
    fn routers_cost_what_the_guide_prints_per_message() {
        for (name, requests, cpu_us) in [
            ("dsr/da-mp-relay", 18_000.0, 220.0),
            ("dsr/da-mp-large-rbar", 17_500.0, 277.7),
            ("dsr/x9-2-relay", 22_500.0, 240.0),
            ("dsr/gen9-relay", 22_500.0, 261.3),
            ("dsr/dsa", 2_625.0, 948.6),
            ("dsr/dsa-stateful", 4_000.0, 730.5),
            ("dsr/x9-2-fabr", 20_750.0, 294.9),
            ("dsr/gen9-fabr", 20_000.0, 390.0),
            ("dsr/small-rbar", 3_000.0, 360.0),
        ] {
            let model = find(name).unwrap().model;
            assert!((model.ingress_tps() - requests).abs() < 0.1, "{name}");
            let each = model.messages_per_transaction().unwrap();
            let cpu = model.guide.as_ref().unwrap().cpu_us_per_transaction().unwrap() / each;
            assert!((cpu / cpu_us - 1.0).abs() < 0.01, "{name}: {cpu} µs");
            let dsr = model.dsr.unwrap();
            assert!(dsr.crossing() >= dsr.cross_routed.fraction());
        }
    }

    #[test]
    fn bindings_and_rx_add_up_to_the_rate_of_the_guide() {
        let mut count = 0;
        for name in names().filter(|name| name.starts_with("bsf/")) {
            let model = find(name).unwrap().model;
            let bsf = model.bsf.as_ref().unwrap();
            if bsf.drill.is_some() {
                continue;
            }
            let all = bsf.transactions() + bsf.rx.rar;
            assert!(
                (all / model.guide.as_ref().unwrap().target_tps - 1.0).abs() < 0.011,
                "{name}: {all}"
            );
            assert!(bsf.sessions >= 14_000_000, "{name}");
            let cpu = model.guide.as_ref().unwrap().cpu_us_per_transaction().unwrap();
            assert!((150.0..1500.0).contains(&cpu), "{name}: {cpu} µs");
            count += 1;
        }
        assert_eq!(count, 14);
    }

    #[test]
    fn policies_have_the_ingress_and_the_egress_of_the_guide() {
        let mut count = 0;
        for name in names().filter(|name| name.starts_with("policy/")) {
            let model = find(name).unwrap().model;
            let policy = model.policy.as_ref().unwrap();
            let Some(guide) = &model.guide else {
                assert!(policy.drill.is_some(), "{name}");
                continue;
            };
            assert!(
                (policy.transactions() / guide.ingress_tps - 1.0).abs() < 0.001,
                "{name}"
            );
            let all = policy.transactions() + policy.egress;
            // The rest is Diameter, or what a section rounds.
            assert!(all <= guide.target_tps * 1.025, "{name}: {all}");
            assert!(all >= guide.target_tps * 0.72, "{name}: {all}");
            assert_eq!(policy.associations_for_run(None), policy::USUAL_ASSOCIATIONS);
            count += 1;
        }
        // One for each scenario of the guide.
        assert_eq!(count, 18);
    }

    #[test]
    fn an_unknown_name_is_answered_with_what_is_close() {
        for (asked, meant) in [
            ("scp/modelc1", "scp/model-c-1"),
            ("nrf/5l", "nrf/5k"),
            ("bsf/Scenario13", "bsf/scenario-13"),
        ] {
            let error = find(asked).unwrap_err().to_string();
            assert!(error.contains(&format!("did you mean {meant}?")), "{error}");
        }
        // An error for a name that resembles none says how to list the names, and does not list all of them.
        for strange in ["", "what: [is this", "quite-another-thing"] {
            let error = find(strange).unwrap_err().to_string();
            assert!(
                error.contains("signalbox lab list") && !error.contains("did you mean"),
                "{error}"
            );
            assert!(error.lines().count() == 1 && error.len() < 200, "{error}");
        }
    }

    #[test]
    fn a_drill_of_overload_needs_what_it_is_about() {
        let model = find("bsf/overload-3x").unwrap().model;
        assert!(model.searches() && !model.sets_rates());
        let text = text_of("bsf/overload-3x");
        for (from, to, fault) in [
            (
                "congestionControl: true",
                "congestionControl: false",
                "bsf.congestionControl",
            ),
            ("sessions: 100000", "sessions: 100000\n  sites: 2", "bsf.sites"),
            ("{ priority: 2,", "{ priority: 32,", "priority"),
            ("priorities:", "# priorities:", "bsf.priorities"),
        ] {
            let mut text = text.replace(from, to);
            if to.starts_with('#') {
                text = text
                    .lines()
                    .filter(|line| !line.contains("{ priority:"))
                    .fold(String::new(), |all, line| all + line + "\n");
            }
            let report = settings::from_str::<CallModel>(&text, "x.yaml")
                .unwrap_err()
                .to_string();
            assert!(report.contains(fault), "{report}");
        }
    }

    fn text_of(name: &str) -> &'static str {
        MODELS.iter().find(|(known, _)| *known == name).unwrap().1
    }

    #[test]
    fn mistakes_come_together_with_their_places() {
        let text = text_of("nrf/5k")
            .replace("target: UDM", "target: UDX")
            .replace("connections:", "conections:");
        let report = settings::from_str::<CallModel>(&text, "x.yaml")
            .unwrap_err()
            .to_string();
        assert!(
            report.contains("conections") && report.contains("connections"),
            "{report}"
        );
        let text = text_of("nrf/5k").replace("target: UDM", "target: UDX");
        let report = settings::from_str::<CallModel>(&text, "x.yaml")
            .unwrap_err()
            .to_string();
        let line = text.lines().position(|l| l.contains("target: UDX")).unwrap() + 1;
        assert!(report.contains(&format!("x.yaml:{line}:")), "{report}");
    }
}
