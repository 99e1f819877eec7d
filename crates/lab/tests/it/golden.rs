//! Reports against kept ones. `LAB_GOLDEN=write` keeps new ones.

use std::path::Path;

use lab::report::measure::Machine;
use lab::report::{
    Check, Conditions, FunctionFigures, GuideFigures, GuideRow, Knee, LabProcess, Latency, OperationFigures,
    Point, Report, RoleFigures, Series, Spread, Step, Verdict,
};

fn latency(scale: f64) -> Latency {
    Latency {
        mean: Some(1.5 * scale),
        p50: Some(scale),
        p90: Some(2.0 * scale),
        p95: Some(3.0 * scale),
        p99: Some(5.0 * scale),
        p999: Some(9.0 * scale),
        max: Some(20.0 * scale),
    }
}

fn sample() -> (Report, Series) {
    let operation = |name: &str, count, errors, scale| OperationFigures {
        name: name.to_owned(),
        count,
        errors,
        latency_ms: latency(scale),
    };
    let function = FunctionFigures {
        name: "nrf".into(),
        pinned_cpus: vec![0],
        cpu_cores_avg: 0.97,
        cpu_us_per_transaction: 31.25,
        cpu_cores_max: 0.99,
        rss_mb_max: 64.5,
        rss_mb_avg: 60.25,
        roles: vec![RoleFigures {
            name: "nrf".into(),
            threads: 2,
            cpu_cores_avg: 0.95,
            cpu_cores_max: 0.98,
        }],
        connections_in: 287,
        connections_out: 24,
        bytes_in: 1_234_567,
        bytes_out: 987_654_321,
    };
    let check = |name: &str, pass| Check {
        of_time: false,
        name: name.to_owned(),
        expected: "at least 99.9%".into(),
        got: "99.95% <b>".into(),
        pass,
    };
    let report = Report {
        model: "nrf/51k".into(),
        started: "2026-01-02T03:04:05Z".into(),
        duration_s: 20.004,
        machine: Machine {
            cpu_model: "A processor".into(),
            cores: 2,
            memory_mb: 24_000,
            kernel: "Linux 6".into(),
            architecture: "x86_64".into(),
        },
        conditions: Conditions {
            program: "signalbox 0.1.0 (0123abc)".into(),
            clock_source: "tsc".into(),
            cpu_mhz: 2_900.0,
            stolen_cores: Some(0.05),
            foreign_cores: Some(0.1),
        },
        offered_tps: 31_000.4,
        achieved_tps: 30_990.1,
        success_ratio: 0.99967,
        latency_ms: latency(150.0),
        operations: vec![
            operation("nfDiscover.slf", 500_000, 12, 151.0),
            operation("nfHeartbeat", 600, 0, 0.4),
        ],
        functions: vec![function.clone()],
        guide: GuideFigures {
            source: "A guide".into(),
            duration_s: 259_200.0,
            offered_tps: 51_666.0,
            achieved_tps: 51_666.0,
            operations: vec![GuideRow {
                name: "nfDiscover.slf".into(),
                stretch: "gateway + discovery".into(),
                latency_ms: Latency {
                    mean: Some(218.0),
                    max: Some(463.0),
                    ..Latency::default()
                },
            }],
            functions: vec![FunctionFigures {
                cpu_cores_avg: 486.0,
                cpu_us_per_transaction: 9406.4,
                connections_out: 1200,
                ..function
            }],
        },
        checks: vec![check("success", true), check("SLF queries", false)],
        knee: Some(Knee {
            tps: 31_000.0,
            limited_by: "function: its 1 core(s) are full".into(),
        }),
        messages: None,
        egress: None,
        services: Vec::new(),
        store: None,
        destinations: None,
        verdict: Verdict::Fail,
    };
    let series = Series {
        title: "51.6K TPS".into(),
        summary: "Traffic & more of it.".into(),
        timeline: (0..6_u32)
            .map(|t| Point {
                t: f64::from(t),
                measured: t > 1,
                offered: 31_000.0,
                achieved: 30_000.0 + f64::from(t) * 200.0,
                failed: f64::from(t % 2),
                p50: 151.0,
                p99: 160.0 + f64::from(t),
                cpu: 0.9,
                generator_cpu: 0.3,
                in_flight: 4500,
            })
            .collect(),
        spreads: vec![Spread {
            name: "nfDiscover.slf".into(),
            at: vec![150.0, 150.2, 150.6, 151.0, 152.0, 155.0, 160.0, 180.0, 240.0],
        }],
        failures: vec![("timeout".into(), 12)],
        examples: vec!["nfDiscover.slf: no answer in time".into()],
        lab: vec![LabProcess {
            name: "generator".into(),
            cpu_cores_avg: 0.3,
            requests: 600_000,
        }],
        steps: vec![
            Step {
                tps: 16_000.0,
                achieved_tps: 16_001.0,
                success_ratio: 1.0,
                p99_ms: 152.0,
                cpu_cores: 0.5,
                other_cores: 0.1,
                generator_busy: 0.2,
                failed: None,
            },
            Step {
                tps: 32_000.0,
                p99_ms: 900.0,
                failed: Some("p99 900 ms over 700 ms".into()),
                ..Step::default()
            },
        ],
        guide_cpu: vec![("nfdiscovery".into(), "68 × 8 × 61% = 331.840".into(), 331.84)],
        guide_cpu_excludes: "the database".into(),
        choices: vec![("rate".into(), "This.".into(), "That.".into())],
        notes: vec!["260 functions".into()],
    };
    (report, series)
}

#[test]
fn reports_are_as_kept() {
    let (report, series) = sample();
    let folder = tempfile::tempdir().unwrap();
    lab::report::write(folder.path(), &report, &series).unwrap();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for name in ["report.json", "report.md", "report.html"] {
        let made = std::fs::read_to_string(folder.path().join(name)).unwrap();
        if std::env::var_os("LAB_GOLDEN").is_some_and(|v| v == "write") {
            std::fs::write(kept.join(name), &made).unwrap();
        }
        let expected = std::fs::read_to_string(kept.join(name)).unwrap_or_default();
        assert!(
            made == expected,
            "{name} has changed; look at it, then keep it with LAB_GOLDEN=write"
        );
    }
    assert_eq!(lab::report::read(folder.path()).unwrap(), (report, series));
}

#[test]
fn strangers_words_are_no_markup() {
    let (report, series) = sample();
    let page = lab::report::html(&report, &series);
    assert!(!page.contains("99.95% <b>") && page.contains("99.95% &lt;b&gt;"));
    assert!(
        !page.contains("http://") && !page.contains("https://"),
        "the page needs nothing else"
    );
}

/// A tile agrees with the plot and the check below it: all show all transactions.
#[test]
fn the_tile_of_the_99th_percentile_is_of_all_transactions() {
    let (mut report, series) = sample();
    let page = lab::report::html(&report, &series);
    assert!(page.contains("750<small> ms</small>") && page.contains("all transactions, median 150 ms"));
    // A report of an earlier release has percentiles of operations only.
    report.latency_ms = Latency::default();
    assert!(lab::report::html(&report, &series).contains("nfDiscover.slf, median 151 ms"));
}

/// Guides of some functions print latencies and no processor time.
#[test]
fn processor_time_that_the_guide_does_not_print_is_not_zero() {
    let (mut report, series) = sample();
    report.guide.functions[0].cpu_us_per_transaction = 0.0;
    report.guide.functions[0].cpu_cores_avg = 0.0;
    let page = lab::report::html(&report, &series);
    assert!(page.contains("the guide prints none") && !page.contains("guide 0 µs"));
    let text = lab::report::markdown(&report, &series);
    let row = text
        .lines()
        .find(|line| line.contains("processor time per ingress transaction"));
    assert!(row.is_some_and(|row| row.contains('–')), "{text}");
}

/// `report.json` of an earlier release is still read.
#[test]
fn reports_without_conditions_are_read() {
    let (report, _) = sample();
    let mut json = serde_json::to_value(&report).unwrap();
    for name in ["conditions", "latency_ms"] {
        json.as_object_mut().unwrap().remove(name);
    }
    let read: Report = serde_json::from_value(json).unwrap();
    assert_eq!(read.conditions, Conditions::default());
    assert!(!lab::report::html(&read, &Series::default()).contains("clock"));
}

#[test]
fn two_runs_compare() {
    let (first, _) = sample();
    let mut second = first.clone();
    second.functions[0].cpu_us_per_transaction = 25.0;
    second.model = "nrf/5k".into();
    let words = lab::report::compare(&first, &second).to_string();
    for run in [
        "nrf/51k, 2026-01-02 03:04, signalbox 0.1.0 (0123abc)",
        "nrf/5k, 2026",
    ] {
        assert!(words.contains(run), "{words}");
    }
    assert!(
        words
            .lines()
            .any(|l| l.contains("CPU µs") && l.contains("-20.0%")),
        "{words}"
    );
}

/// A busy machine makes measurements of time worthless, and no wrong answer right.
#[test]
fn a_run_beside_other_work_is_not_valid_and_says_so() {
    use lab::report::Check;
    let (mut report, series) = sample();
    let late = Check::new("latency", "p99 up to 50 ms", "900 ms", false).of_time();
    let wrong = Check::new("RARs", "40", "12", false);
    let held = Check::new("growth", "all", "all", true);
    let busy = Conditions {
        foreign_cores: Some(1.7),
        ..report.conditions.clone()
    };
    let calm = Conditions {
        foreign_cores: Some(0.01),
        stolen_cores: None,
        ..busy.clone()
    };
    let judge = |checks: &[&Check], conditions: &Conditions| {
        let checks: Vec<Check> = checks.iter().map(|check| (*check).clone()).collect();
        Verdict::of(&checks, conditions, 2)
    };
    assert_eq!(judge(&[&held, &late], &busy), Verdict::Invalid);
    assert_eq!(judge(&[&held, &late], &calm), Verdict::Fail);
    assert_eq!(judge(&[&late, &wrong], &busy), Verdict::Fail);
    assert_eq!(judge(&[&held], &busy), Verdict::Pass);
    (report.checks, report.conditions, report.verdict) = (vec![held, late], busy, Verdict::Invalid);
    let words = lab::report::reason(&report).unwrap();
    assert!(
        words.contains("1.70 of 2 cores") && words.contains("latency: 900 ms"),
        "{words}"
    );
    let page = lab::report::html(&report, &series);
    let (title, reason) = (page.find("<h1>").unwrap(), page.find("Why not valid:").unwrap());
    assert!(title < reason && reason < page.find("class=\"tiles\"").unwrap());
    report.conditions.foreign_cores = None;
    assert!(lab::report::html(&report, &series).contains("other processes not measured"));
}

/// A kind of run that records nothing by second has no empty axes.
#[test]
fn a_report_without_points_says_why_it_has_no_plots() {
    let (report, mut series) = sample();
    assert!(lab::report::html(&report, &series).contains("rate over time"));
    (series.timeline, series.steps) = (Vec::new(), Vec::new());
    let page = lab::report::html(&report, &series);
    assert!(page.contains("No plots over time") && !page.contains("rate over time"));
}
