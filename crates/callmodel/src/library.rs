//! The models that are part of the binary, and finding one by name or path.

use std::path::Path;

use super::CallModel;

/// Name and text of every model under `callmodels/`.
const MODELS: &[(&str, &str)] = &[
    (
        "bsf/overload-3x",
        include_str!("../../../callmodels/bsf/overload-3x.yaml"),
    ),
    (
        "bsf/scenario-1",
        include_str!("../../../callmodels/bsf/scenario-1.yaml"),
    ),
    (
        "bsf/scenario-2",
        include_str!("../../../callmodels/bsf/scenario-2.yaml"),
    ),
    (
        "bsf/scenario-3",
        include_str!("../../../callmodels/bsf/scenario-3.yaml"),
    ),
    (
        "bsf/scenario-4",
        include_str!("../../../callmodels/bsf/scenario-4.yaml"),
    ),
    (
        "bsf/scenario-5",
        include_str!("../../../callmodels/bsf/scenario-5.yaml"),
    ),
    (
        "bsf/scenario-6",
        include_str!("../../../callmodels/bsf/scenario-6.yaml"),
    ),
    (
        "bsf/scenario-7",
        include_str!("../../../callmodels/bsf/scenario-7.yaml"),
    ),
    (
        "bsf/scenario-8",
        include_str!("../../../callmodels/bsf/scenario-8.yaml"),
    ),
    (
        "bsf/scenario-9",
        include_str!("../../../callmodels/bsf/scenario-9.yaml"),
    ),
    (
        "bsf/scenario-10",
        include_str!("../../../callmodels/bsf/scenario-10.yaml"),
    ),
    (
        "bsf/scenario-11",
        include_str!("../../../callmodels/bsf/scenario-11.yaml"),
    ),
    (
        "bsf/scenario-12",
        include_str!("../../../callmodels/bsf/scenario-12.yaml"),
    ),
    (
        "bsf/scenario-13",
        include_str!("../../../callmodels/bsf/scenario-13.yaml"),
    ),
    (
        "bsf/scenario-14",
        include_str!("../../../callmodels/bsf/scenario-14.yaml"),
    ),
    (
        "core/bad-day",
        include_str!("../../../callmodels/core/bad-day.yaml"),
    ),
    (
        "core/voice-call",
        include_str!("../../../callmodels/core/voice-call.yaml"),
    ),
    (
        "dsr/da-mp-relay",
        include_str!("../../../callmodels/dsr/da-mp-relay.yaml"),
    ),
    (
        "dsr/da-mp-large-rbar",
        include_str!("../../../callmodels/dsr/da-mp-large-rbar.yaml"),
    ),
    (
        "dsr/overload-3x",
        include_str!("../../../callmodels/dsr/overload-3x.yaml"),
    ),
    (
        "dsr/reconnect",
        include_str!("../../../callmodels/dsr/reconnect.yaml"),
    ),
    (
        "dsr/kill-peers",
        include_str!("../../../callmodels/dsr/kill-peers.yaml"),
    ),
    ("dsr/eir", include_str!("../../../callmodels/dsr/eir.yaml")),
    ("dsr/ipfe", include_str!("../../../callmodels/dsr/ipfe.yaml")),
    (
        "dsr/kill-front-end",
        include_str!("../../../callmodels/dsr/kill-front-end.yaml"),
    ),
    (
        "dsr/kill-mate",
        include_str!("../../../callmodels/dsr/kill-mate.yaml"),
    ),
    (
        "dsr/kill-router",
        include_str!("../../../callmodels/dsr/kill-router.yaml"),
    ),
    (
        "dsr/x9-2-relay",
        include_str!("../../../callmodels/dsr/x9-2-relay.yaml"),
    ),
    (
        "dsr/gen9-relay",
        include_str!("../../../callmodels/dsr/gen9-relay.yaml"),
    ),
    (
        "dsr/small-rbar",
        include_str!("../../../callmodels/dsr/small-rbar.yaml"),
    ),
    ("dsr/dsa", include_str!("../../../callmodels/dsr/dsa.yaml")),
    (
        "dsr/dsa-attacks",
        include_str!("../../../callmodels/dsr/dsa-attacks.yaml"),
    ),
    (
        "dsr/dsa-stateful",
        include_str!("../../../callmodels/dsr/dsa-stateful.yaml"),
    ),
    (
        "dsr/dsa-stateless",
        include_str!("../../../callmodels/dsr/dsa-stateless.yaml"),
    ),
    (
        "dsr/fabr-sds",
        include_str!("../../../callmodels/dsr/fabr-sds.yaml"),
    ),
    (
        "dsr/fabr-udr",
        include_str!("../../../callmodels/dsr/fabr-udr.yaml"),
    ),
    (
        "dsr/fabr-udr-30",
        include_str!("../../../callmodels/dsr/fabr-udr-30.yaml"),
    ),
    (
        "dsr/fabr-udr-70",
        include_str!("../../../callmodels/dsr/fabr-udr-70.yaml"),
    ),
    ("dsr/pdra", include_str!("../../../callmodels/dsr/pdra.yaml")),
    (
        "dsr/pdra-kill-pcrfs",
        include_str!("../../../callmodels/dsr/pdra-kill-pcrfs.yaml"),
    ),
    (
        "dsr/pdra-kill-router",
        include_str!("../../../callmodels/dsr/pdra-kill-router.yaml"),
    ),
    (
        "dsr/x9-2-fabr",
        include_str!("../../../callmodels/dsr/x9-2-fabr.yaml"),
    ),
    ("nrf/5k", include_str!("../../../callmodels/nrf/5k.yaml")),
    ("nrf/38k", include_str!("../../../callmodels/nrf/38k.yaml")),
    ("nrf/51k", include_str!("../../../callmodels/nrf/51k.yaml")),
    (
        "nrf/kill-one",
        include_str!("../../../callmodels/nrf/kill-one.yaml"),
    ),
    (
        "nrf/profiles-500",
        include_str!("../../../callmodels/nrf/profiles-500.yaml"),
    ),
    (
        "nrf/profiles-50k",
        include_str!("../../../callmodels/nrf/profiles-50k.yaml"),
    ),
    (
        "policy/am-ue-15k",
        include_str!("../../../callmodels/policy/am-ue-15k.yaml"),
    ),
    (
        "policy/am-ue-25k",
        include_str!("../../../callmodels/policy/am-ue-25k.yaml"),
    ),
    (
        "policy/am-ue-30k",
        include_str!("../../../callmodels/policy/am-ue-30k.yaml"),
    ),
    (
        "policy/am-ue-60k",
        include_str!("../../../callmodels/policy/am-ue-60k.yaml"),
    ),
    (
        "policy/am-ue-75k",
        include_str!("../../../callmodels/policy/am-ue-75k.yaml"),
    ),
    (
        "policy/kill-pcf",
        include_str!("../../../callmodels/policy/kill-pcf.yaml"),
    ),
    (
        "policy/sm-30k",
        include_str!("../../../callmodels/policy/sm-30k.yaml"),
    ),
    (
        "policy/sm-41k",
        include_str!("../../../callmodels/policy/sm-41k.yaml"),
    ),
    (
        "policy/sm-43k",
        include_str!("../../../callmodels/policy/sm-43k.yaml"),
    ),
    (
        "policy/pcf-30k-binding",
        include_str!("../../../callmodels/policy/pcf-30k-binding.yaml"),
    ),
    (
        "policy/pcf-30k-no-binding",
        include_str!("../../../callmodels/policy/pcf-30k-no-binding.yaml"),
    ),
    (
        "policy/pcrf-data-30k",
        include_str!("../../../callmodels/policy/pcrf-data-30k.yaml"),
    ),
    (
        "policy/pcrf-voice-30k",
        include_str!("../../../callmodels/policy/pcrf-voice-30k.yaml"),
    ),
    (
        "policy/voice-7k5",
        include_str!("../../../callmodels/policy/voice-7k5.yaml"),
    ),
    (
        "policy/voice-15k",
        include_str!("../../../callmodels/policy/voice-15k.yaml"),
    ),
    (
        "policy/data-7k5",
        include_str!("../../../callmodels/policy/data-7k5.yaml"),
    ),
    (
        "policy/data-15k",
        include_str!("../../../callmodels/policy/data-15k.yaml"),
    ),
    (
        "policy/data-15k-two-sites",
        include_str!("../../../callmodels/policy/data-15k-two-sites.yaml"),
    ),
    (
        "policy/usage-monitoring-27k",
        include_str!("../../../callmodels/policy/usage-monitoring-27k.yaml"),
    ),
    (
        "scp/kill-producer",
        include_str!("../../../callmodels/scp/kill-producer.yaml"),
    ),
    (
        "scp/lose-site",
        include_str!("../../../callmodels/scp/lose-site.yaml"),
    ),
    (
        "scp/nrf-gone",
        include_str!("../../../callmodels/scp/nrf-gone.yaml"),
    ),
    (
        "scp/overload-3x",
        include_str!("../../../callmodels/scp/overload-3x.yaml"),
    ),
    (
        "scp/model-c-1",
        include_str!("../../../callmodels/scp/model-c-1.yaml"),
    ),
    (
        "scp/model-c-2",
        include_str!("../../../callmodels/scp/model-c-2.yaml"),
    ),
    (
        "scp/model-d-1",
        include_str!("../../../callmodels/scp/model-d-1.yaml"),
    ),
    (
        "scp/model-d-2",
        include_str!("../../../callmodels/scp/model-d-2.yaml"),
    ),
    (
        "scp/model-d-3",
        include_str!("../../../callmodels/scp/model-d-3.yaml"),
    ),
    (
        "scp/model-d-4",
        include_str!("../../../callmodels/scp/model-d-4.yaml"),
    ),
    (
        "scp/model-d-5",
        include_str!("../../../callmodels/scp/model-d-5.yaml"),
    ),
    (
        "scp/model-d-6",
        include_str!("../../../callmodels/scp/model-d-6.yaml"),
    ),
    (
        "scp/model-d-7",
        include_str!("../../../callmodels/scp/model-d-7.yaml"),
    ),
    (
        "scp/model-d-8",
        include_str!("../../../callmodels/scp/model-d-8.yaml"),
    ),
    (
        "scp/model-d-9",
        include_str!("../../../callmodels/scp/model-d-9.yaml"),
    ),
    (
        "scp/model-d-10",
        include_str!("../../../callmodels/scp/model-d-10.yaml"),
    ),
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
