//! Exit codes and what is printed.

use std::path::Path;

use crate::process::{Process, examples, signalbox, text};

#[test]
fn check_tells_every_mistake_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.yaml");
    std::fs::write(
        &file,
        "nrf:\n  lisen: 127.0.0.1:1\n  heartBeat:\n    min: 2h\n    max: 1h\n  workers: many\nlog: {filter: 'x=y=z'}\n",
    )
    .unwrap();
    let output = signalbox(&["check", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    for part in [
        "wrong.yaml:2:3",
        "did you mean `listen`?",
        "wrong.yaml:6",
        "workers",
        "log.filter",
        "mistakes",
    ] {
        assert!(said.contains(part), "{part} is missing:\n{said}");
    }

    let output = signalbox(&["check", "--json", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let results: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(results[0]["pass"], false);
    assert_eq!(results[0]["mistakes"][0]["line"], 2);

    let missing = signalbox(&["check", "/nowhere/at-all.yaml"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("/nowhere/at-all.yaml"));
}

#[test]
fn check_compiles_the_policy_projects_of_a_pcf() {
    let folder = tempfile::tempdir().unwrap();
    let (project, file) = (folder.path().join("sm"), folder.path().join("pcf.yaml"));
    std::fs::create_dir(&project).unwrap();
    let config = format!("pcf:\n  policy: {{sm: {}}}\n", project.display());
    std::fs::write(&file, config).unwrap();
    let write = |text: &str| std::fs::write(project.join("project.yaml"), text).unwrap();
    write("name: x\nservice: sm\nblocks:\n  - block: wrong\n    sessionRule: {sessRuleId: 7, nonsense: 1}\n");
    let file = file.to_str().unwrap();
    let output = signalbox(&["check", file]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    for part in [file, "pcf.policy.sm", "project.yaml:5", "blocks[0]"] {
        assert!(said.contains(part), "{part} is missing:\n{said}");
    }
    let output = signalbox(&["check", "--json", file]);
    assert_eq!(output.status.code(), Some(2));
    let results: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let mistake = &results[0]["mistakes"][0];
    assert_eq!(
        (&mistake["line"], &mistake["setting"]),
        (&5.into(), &"pcf.policy.sm".into())
    );
    assert!(
        mistake["file"].as_str().unwrap().ends_with("project.yaml"),
        "{mistake}"
    );

    write("name: x\nservice: am\nblocks: [amPolicy: {rfsp: 7}]\n");
    let said = text(&signalbox(&["check", file]).stderr);
    assert!(said.contains("expected `service: sm`"), "{said}");
    write("name: x\nservice: sm\nblocks:\n  - sessionRule: {sessRuleId: a}\n");
    assert!(signalbox(&["check", file]).status.success());
    // A server that the settings do not have; without settings any is right.
    write("name: x\nservice: sm\nblocks:\n  - notify: {server: crm, body: 1}\n");
    let folder_of_project = project.to_str().unwrap();
    assert!(
        signalbox(&["policy", "check", folder_of_project])
            .status
            .success()
    );
    for args in [
        &["check", file][..],
        &["policy", "check", "--config", file, folder_of_project],
    ] {
        let output = signalbox(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let said = text(&output.stderr);
        for part in [
            "project.yaml:4",
            "blocks[0].notify.server",
            "no server is called `crm`",
        ] {
            assert!(said.contains(part), "{part} is missing:\n{said}");
        }
    }
    std::fs::remove_dir_all(&project).unwrap();
    let said = text(&signalbox(&["check", file]).stderr);
    assert!(
        said.contains("pcf.policy.sm") && said.contains("No such file"),
        "{said}"
    );
}

/// Reports end in journals: no form of them shows a secret.
#[test]
fn mistakes_show_no_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secrets.yaml");
    for server in [
        "{url: 'http://crm:8080', headers: {X-Api-Key: [geheim]}}",
        "{url: 'http://crm:8080', headers: {X-Api-Key: geheim}, authorization: 'Bearer geheim'}",
        "{url: 'http://crm:8080', header: {X-Api-Key: geheim}}",
        "{url: 'http://u:geheim@crm:8080', timeout: never}",
        "{url: 'http://crm:8080', headers: {'X Api Key': geheim}}",
    ] {
        let text_of = format!("pcf: {{notifier: {{servers: {{crm: {server}}}}}}}\n");
        std::fs::write(&file, text_of).unwrap();
        let name = file.to_str().unwrap();
        for args in [
            &["check", name][..],
            &["check", "--json", name],
            &["run", "pcf", "--config", name],
            &["config", "show", "--config", name],
        ] {
            let output = signalbox(args);
            let said = text(&output.stdout) + &text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{args:?} {server}: {said}");
            assert!(!said.contains("geheim"), "{args:?}: {said}");
        }
    }
}

/// As NRF, BSF and PCF: others know the SCP by its certificate.
#[test]
fn an_id_that_contradicts_the_certificate_is_a_mistake_of_each_function() {
    let (own, other) = (
        "4947a69a-f61b-4bc1-b9da-47c9c5d14b64",
        "4947a69a-f61b-4bc1-b9da-47c9c5d14b65",
    );
    let folder = tempfile::tempdir().unwrap();
    let authority = tls::authority::Authority::new("test").unwrap();
    let identity = authority.issue(&["nf", &format!("urn:uuid:{own}")]).unwrap();
    let files = authority.write(&identity, folder.path(), "nf").unwrap();
    let file = folder.path().join("nf.yaml");
    for function in ["nrf", "scp", "bsf", "pcf"] {
        for (id, is_right) in [(own, true), (other, false)] {
            let config = serde_json::json!({function: {"nfInstanceId": id, "tls": files}});
            std::fs::write(&file, settings::to_yaml(&config)).unwrap();
            let output = signalbox(&["check", file.to_str().unwrap()]);
            let said = text(&output.stderr);
            assert_eq!(output.status.success(), is_right, "{function}: {said}");
            assert!(is_right || (said.contains(own) && said.contains(other)), "{said}");
        }
    }
}

/// Wherever a command is run, a project lies beside the file that names it.
#[test]
fn projects_are_found_from_the_folder_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("configuration/projects/low");
    std::fs::create_dir_all(&project).unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/policy/low/project.yaml");
    std::fs::copy(example, project.join("project.yaml")).unwrap();
    let file = folder.path().join("configuration/pcf.yaml");
    std::fs::write(&file, "pcf: {policy: {sm: projects/low}}\n").unwrap();
    let file = file.to_str().unwrap();
    let checked = signalbox(&["check", file]);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    let shown = signalbox(&["config", "show", "--config", file]);
    assert!(
        text(&shown.stdout).contains(project.to_str().unwrap()),
        "{}",
        text(&shown.stdout)
    );
    // From its own folder, by its name alone.
    let beside = std::process::Command::new(env!("CARGO_BIN_EXE_signalbox"))
        .args(["check", "pcf.yaml"])
        .current_dir(folder.path().join("configuration"))
        .output()
        .unwrap();
    assert!(beside.status.success(), "{}", text(&beside.stderr));
}

#[test]
fn check_knows_call_models() {
    let model = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../callmodels/nrf/5k.yaml");
    let output = signalbox(&["check", model.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("call model"));

    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("model.yaml");
    std::fs::write(&wrong, "title: x\nbonds: {}\n").unwrap();
    let output = signalbox(&["check", wrong.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("did you mean `bounds`?"),
        "{}",
        text(&output.stderr)
    );
    // With `--as config` it is judged as a configuration.
    let output = signalbox(&["check", "--as", "config", wrong.to_str().unwrap()]);
    assert!(text(&output.stderr).contains("unknown key `title`"));
}

#[test]
fn what_is_wrong_with_a_run_is_said() {
    for (args, said) in [
        (&["scp/modelc1"][..], "did you mean scp/model-c-1?"),
        (
            &["scp/model-c-1", "--latency", "-1"],
            "is not a factor from 0 to 10",
        ),
    ] {
        let output = signalbox(&[&["lab", "run"], args].concat());
        assert!(!output.status.success());
        assert!(text(&output.stderr).contains(said), "{}", text(&output.stderr));
    }
}

#[test]
fn what_it_prints_it_reads() {
    let folder = tempfile::tempdir().unwrap();
    for args in [&["config", "show"][..], &["config", "show", "--json"]] {
        let shown = signalbox(args);
        assert!(shown.status.success());
        let file = folder.path().join("shown.yaml");
        std::fs::write(&file, &shown.stdout).unwrap();
        let checked = signalbox(&["check", file.to_str().unwrap()]);
        assert!(checked.status.success(), "{}", text(&checked.stderr));
    }
}

#[test]
fn the_references_name_every_section() {
    let page = text(&signalbox(&["config", "reference"]).stdout);
    for part in [
        "# Configuration",
        "## `nrf`",
        "heartBeat",
        "staticTargets",
        "maxConcurrentStreams",
        "`log.filter`",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
    let page = text(&signalbox(&["metrics"]).stdout);
    for part in [
        "# Metrics",
        "## NRF",
        "signalbox_nrf_registrations_total",
        "signalbox_process_cpu_seconds_total",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
}

#[test]
fn the_lab_lists_and_shows_its_models() {
    let list = text(&signalbox(&["lab", "list"]).stdout);
    for model in ["nrf/5k", "nrf/38k", "nrf/51k"] {
        assert!(list.contains(model), "{list}");
    }
    assert!(text(&signalbox(&["lab", "show", "nrf/5k"]).stdout).contains("UDM"));
    assert_eq!(signalbox(&["lab", "show", "nrf/none"]).status.code(), Some(2));
}

#[test]
fn examples_have_no_mistakes() {
    for file in examples() {
        let output = signalbox(&["check", file.to_str().unwrap()]);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
}

/// The sections of the configuration that are functions, in order.
fn functions() -> Vec<String> {
    let shown: serde_json::Value =
        serde_json::from_slice(&signalbox(&["config", "show", "--json"]).stdout).unwrap();
    let sections = shown.as_object().unwrap().keys().cloned();
    let mut functions: Vec<String> = sections
        .filter(|name| !["log", "admin", "alarms", "traces", "changes"].contains(&name.as_str()))
        .collect();
    functions.sort_unstable();
    functions
}

/// The words between two texts of a file, in order.
fn words(file: &Path, from: &str, to: &str) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap();
    let (_, rest) = text.split_once(from).unwrap_or_else(|| panic!("{from}"));
    let (part, _) = rest.split_once(to).unwrap();
    let words = part
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    let mut words: Vec<String> = words.map(str::to_owned).collect();
    words.sort_unstable();
    words
}

#[test]
fn the_package_has_a_configuration_and_a_user_for_each_function() {
    let functions = functions();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let package = root.join("deploy/package");
    for function in &functions {
        let file = package.join(format!("etc/{function}.yaml"));
        let output = signalbox(&["check", file.to_str().unwrap()]);
        assert!(output.status.success(), "{function}: {}", text(&output.stderr));
    }
    assert_eq!(
        words(&package.join("scripts/postinst"), "for name in ", ";"),
        functions
    );
    let tried = words(&root.join("scripts/test-packages.sh"), "FUNCTIONS=\"", "\"");
    assert_eq!(tried, functions);
    // What is not listed as configuration, an upgrade overwrites.
    let manifest = root.join("crates/signalbox/Cargo.toml");
    let mut listed = words(&manifest, "conf-files = [", "]");
    listed.retain(|word| !["etc", "signalbox", "yaml"].contains(&word.as_str()));
    assert_eq!(listed, functions);
}

#[test]
fn the_chart_has_each_function_that_a_cluster_can_run() {
    // The IP front end moves addresses of machines, and the console listens on loopback alone.
    let mut functions = functions();
    functions.retain(|name| !["ipfe", "console"].contains(&name.as_str()));
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/helm/signalbox");
    let read = |file: &str| std::fs::read_to_string(chart.join(file)).unwrap();
    let named = |text: &str, before: &str, after: &str| {
        let names = text
            .lines()
            .filter_map(|line| line.strip_prefix(before)?.split_once(after))
            .map(|(name, _)| name.to_owned());
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        names
    };
    assert_eq!(named(&read("values.yaml"), "  ", ": {enabled: "), functions);
    assert_eq!(
        named(&read("templates/_helpers.tpl"), "  \"", "\" (dict "),
        functions
    );
    let schema: serde_json::Value = serde_json::from_str(&read("values.schema.json")).unwrap();
    let schema = schema["properties"]["functions"]["properties"]
        .as_object()
        .unwrap();
    let mut schema: Vec<&String> = schema.keys().collect();
    schema.sort_unstable();
    assert_eq!(schema, functions.iter().collect::<Vec<_>>());
    for function in &functions {
        let dashboard = chart.join(format!("files/dashboards/signalbox-{function}.json"));
        assert!(dashboard.exists(), "{function}");
    }
}

#[test]
fn usage_is_2_and_help_is_worth_reading() {
    for args in [
        &["run"][..],
        &["run", "hlr"],
        &["frobnicate"],
        &["nrf"],
        &["nrf", "peers"],
        &[],
    ] {
        assert_eq!(signalbox(args).status.code(), Some(2), "{args:?}");
    }
    assert!(text(&signalbox(&["run", "hlr"]).stderr).contains("valid are nrf"));
    let help = signalbox(&["--help"]);
    assert!(help.status.success());
    let help = text(&help.stdout);
    for part in ["up", "run", "check", "lab", "nrf", "Exit codes"] {
        assert!(help.contains(part), "{part} is missing:\n{help}");
    }
    assert!(signalbox(&["--version"]).status.success());
}

#[test]
fn an_unreachable_function_is_1() {
    // Port 1 of loopback: no program listens there.
    let output = signalbox(&["nrf", "instances", "--admin", "127.0.0.1:1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("is the function running?"));
}

#[test]
fn a_page_that_answers_an_error_is_1() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yaml");
    std::fs::write(&config, "enum:\n  listen: [127.0.0.1:0]\n  admin: 127.0.0.1:0\n").unwrap();
    let process = Process::start(
        &["run", "enum", "--config", config.to_str().unwrap()],
        folder.path(),
    );
    let admin = process.address("enum admin").to_string();
    for format in [&[][..], &["--json"]] {
        let output = signalbox(&[&["enum", "why", "zz", "--admin", &admin], format].concat());
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(text(&output.stderr).contains("expected a number"), "{output:?}");
        assert_eq!(output.stdout.is_empty(), format.is_empty(), "{output:?}");
    }
}

/// What a start finds one after the other, `check` finds at once: mistakes of form, of content, of files and of addresses.
#[test]
fn check_reads_the_files_that_a_configuration_names() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(at("plain-file"), "x").unwrap();
    let config = at("c.yaml");
    let lines = [
        "nrf:".to_owned(),
        "  listen: 192.0.2.77:8010".to_owned(),
        format!(
            "  tls: {{certificate: {}, key: {}}}",
            at("gone.crt"),
            at("gone.key")
        ),
        format!("  store: {{embedded: {{directory: {}}}}}", at("plain-file/below")),
        "  apiRoot: no-uri".to_owned(),
        "  lisen: x".to_owned(),
    ];
    std::fs::write(&config, lines.join("\n")).unwrap();
    let output = signalbox(&["check", &config]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for part in [
        "unknown key `lisen`",
        "nrf.apiRoot",
        "gone.crt",
        "gone.key",
        "is not a directory",
        "192.0.2.77 is not an address of this machine",
        "6 mistakes",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // For another machine.
    let said = text(&signalbox(&["check", "--elsewhere", &config]).stderr);
    assert!(said.contains("2 mistakes") && !said.contains("gone"), "{said}");
}

#[test]
fn check_reads_the_translations_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let (table, config) = (folder.path().join("t.csv"), folder.path().join("c.yaml"));
    std::fs::write(&table, "digits,group\n43660,hlr\n43661,absent\n").unwrap();
    let text_of = format!(
        "stp:\n  pointCodes: {{own: 1-1-1}}\n  translation:\n    groups: [{{name: hlr, members: [{{pointCode: 1-1-2}}]}}]\n    sets: [{{name: e164, file: {}}}]\n",
        table.display()
    );
    std::fs::write(&config, text_of).unwrap();
    let output = signalbox(&["check", config.to_str().unwrap()]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("t.csv:3") && said.contains("absent"), "{said}");
}

#[test]
fn check_judges_certificates_and_keys_together() {
    let folder = tempfile::tempdir().unwrap();
    let authority = tls::authority::Authority::new("a").unwrap();
    let write = |name: &str| {
        let identity = authority.issue(&["localhost"]).unwrap();
        authority.write(&identity, folder.path(), name).unwrap()
    };
    let (one, other) = (write("one"), write("other"));
    let config = folder.path().join("c.yaml");
    let check = |files: &tls::TlsFiles| {
        let settings = serde_json::json!({"scp": {"tls": files, "clientTls": files}});
        std::fs::write(&config, settings::to_yaml(&settings)).unwrap();
        let output = signalbox(&["check", config.to_str().unwrap()]);
        (output.status.success(), text(&output.stderr))
    };
    assert_eq!(check(&one), (true, String::new()));
    let (right, said) = check(&tls::TlsFiles {
        key: other.key,
        ..one.clone()
    });
    assert!(
        !right && said.contains("do not belong together") && said.contains("2 mistakes"),
        "{said}"
    );
    assert!(
        said.contains("one.crt") || said.contains(one.certificate.to_str().unwrap()),
        "{said}"
    );
}

#[test]
fn man_pages_and_completions_have_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    let output = signalbox(&["man", pages.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for (page, parts) in [
        ("signalbox", ["signalbox\\-run", "Exit codes"]),
        ("signalbox-run", ["SIGHUP reloads", "FUNCTION"]),
        ("signalbox-nrf", ["instances", "admin"]),
        ("signalbox-nrf-instances", ["filter", "json"]),
    ] {
        let page = std::fs::read_to_string(pages.join(format!("{page}.1"))).unwrap();
        for part in parts {
            assert!(page.contains(part), "{part} is missing:\n{page}");
        }
    }
    assert!(
        !pages.join("signalbox-lab-sim.1").exists(),
        "the command is hidden"
    );
    assert!(!pages.join("signalbox-help.1").exists());
    for shell in ["bash", "zsh", "fish"] {
        let output = signalbox(&["completions", shell]);
        let script = text(&output.stdout);
        assert!(
            output.status.success() && script.contains("instances"),
            "{shell}: {script}"
        );
    }
    assert_eq!(signalbox(&["completions", "cmd"]).status.code(), Some(2));
    let taken = folder.path().join("file");
    std::fs::write(&taken, "").unwrap();
    let output = signalbox(&["man", taken.join("x").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("writing man pages to"));
}
