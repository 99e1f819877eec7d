//! `signalbox numbers import --ldap` from a real directory.

use std::path::Path;

use tls::authority::Authority;

use crate::process::{signalbox, text};
use crate::slapd::{ADMIN, SUBSCRIBERS, Slapd};

/// Entries beyond two pages.
const MORE: usize = 2_500;

fn more() -> String {
    let entry = |number: usize| {
        format!(
            "\ndn: cn=s{number},{SUBSCRIBERS}\nobjectClass: subscriber\ncn: s{number}\nimsi: 00101{:010}\nimsi: 00102{:010}\n\
             tier: hss{}.example,pcrf=pcrf{}\n",
            number + 1_000,
            number,
            number % 3,
            number % 7,
        )
    };
    (0..MORE).map(entry).collect()
}

/// The command for this directory, with its output in a folder.
fn import(slapd: &Slapd, folder: &Path, more: &[&str]) -> std::process::Output {
    let at = |name: &str| folder.join(name).display().to_string();
    std::fs::write(at("password"), format!("{}\n", ADMIN.1)).unwrap();
    let (output, password) = (at("s.num"), at("password"));
    let mut arguments = vec!["numbers", "import", "--ldap", &slapd.url, "--output", &output];
    let bind = [
        "--bind-dn",
        ADMIN.0,
        "--password-file",
        &password,
        "--attribute",
        "imsi=IMSI",
    ];
    arguments.extend(bind);
    arguments.extend(more);
    signalbox(&arguments)
}

#[test]
fn all_entries_of_a_directory_are_imported_or_none() {
    let Some(slapd) = Slapd::with_entries(None, &more()) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let import = |more: &[&str]| import(&slapd, folder.path(), more);
    let file = folder.path().join("s.num");
    let search = ["--base", SUBSCRIBERS, "--destination", "tier"];
    let imported = import(&[&search[..], &["--filter", "(tier=*)"]].concat());
    assert!(imported.status.success(), "{}", text(&imported.stderr));
    let said = text(&imported.stdout);
    let expected = format!("{} numbers, 23 destination sets", 2 * MORE + 2);
    assert!(said.contains(&expected), "{said}");
    let expected = format!("; {} entries, 0 of them without a number", MORE + 2);
    assert!(said.contains(&expected), "{said}");
    let before = std::fs::read(&file).unwrap();
    let shown = file.display().to_string();
    let found = signalbox(&[
        "numbers",
        "find",
        &shown,
        "imsi",
        "001010000003499",
        "001020000002499",
        "001010000000001",
    ]);
    assert_eq!(
        text(&found.stdout),
        "imsi,001010000003499,hss0.example,pcrf=pcrf0\nimsi,001020000002499,hss0.example,pcrf=pcrf0\nimsi,001010000000001,gold\n"
    );

    // One entry without a destination, one whose number another one has, a reference to another directory, a wrong password.
    let at_another = folder.path().join("wrong");
    std::fs::write(&at_another, "guess").unwrap();
    let another = at_another.display().to_string();
    let double = format!("cn=double,{SUBSCRIBERS}: ");
    let both = format!("{double}imsi,001010000000002 is there twice; also cn=two,{SUBSCRIBERS}");
    for (arguments, reason) in [
        (
            &[&search[..]].concat()[..],
            format!("{double}no destination; expected tier"),
        ),
        (&["--base", SUBSCRIBERS, "--destination", "cn"], both),
        (
            &["--base", "dc=example,dc=org", "--destination", "cn"],
            "refers to others".to_owned(),
        ),
        (
            &["--base", "dc=nowhere", "--destination", "cn"],
            "refers to ldap://other.example".to_owned(),
        ),
        (
            &[
                "--base",
                SUBSCRIBERS,
                "--destination",
                "cn",
                "--filter",
                "(imsi=9*)",
            ],
            "none of 0 entries".to_owned(),
        ),
        (
            &["--base", SUBSCRIBERS, "--destination", "cn", "--filter", "(imsi="],
            "--filter `(imsi=`".to_owned(),
        ),
    ] {
        let refused = import(arguments);
        assert_eq!(refused.status.code(), Some(1), "{arguments:?}");
        let said = text(&refused.stderr);
        assert!(said.contains(&reason), "{reason}: {said}");
        assert_eq!(std::fs::read(&file).unwrap(), before, "{reason}");
    }
    let wrong = [
        "numbers",
        "import",
        "--ldap",
        &slapd.url,
        "--output",
        &shown,
        "--bind-dn",
        ADMIN.0,
    ];
    let wrong = [
        &wrong[..],
        &["--password-file", &another, "--attribute", "imsi=imsi"],
        &search[..],
    ]
    .concat();
    let refused = signalbox(&wrong);
    assert!(
        text(&refused.stderr).contains("rc=49 (invalidCredentials)"),
        "{}",
        text(&refused.stderr)
    );
    assert_eq!(std::fs::read(&file).unwrap(), before);
    let names: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|one| one.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 3, "{names:?}");
}

#[test]
fn a_directory_over_tls_is_trusted_by_its_authority() {
    let files = tempfile::tempdir().unwrap();
    let authority = Authority::new("lab").unwrap();
    let identity = authority.issue(&["localhost"]).unwrap();
    for (name, text) in [
        ("cert.pem", &*identity.certificate),
        ("key.pem", &identity.key),
        ("ca.pem", authority.pem()),
        ("other.pem", Authority::new("other").unwrap().pem()),
    ] {
        std::fs::write(files.path().join(name), text).unwrap();
    }
    let Some(slapd) = Slapd::start(Some(files.path())) else {
        return;
    };
    let import = |more: &[&str]| {
        let search = [
            "--base",
            SUBSCRIBERS,
            "--destination",
            "tier",
            "--filter",
            "(tier=*)",
        ];
        import(&slapd, files.path(), &[&search[..], more].concat())
    };
    let missing = import(&[]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(
        text(&missing.stderr).contains("--ldap-authorities"),
        "{}",
        text(&missing.stderr)
    );
    for (name, trusted) in [("ca.pem", true), ("other.pem", false)] {
        let path = files.path().join(name).display().to_string();
        let done = import(&["--ldap-authorities", &path]);
        assert_eq!(done.status.success(), trusted, "{}", text(&done.stderr));
    }
}

#[test]
fn records_of_a_directory_go_into_a_server() {
    let Some(slapd) = Slapd::with_entries(None, &more()) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let local = "127.0.0.1:0".parse().unwrap();
    let mut config = sds::Config {
        listen: settings::Listen(vec![local]),
        admin: local,
        workers: 1,
        directory: folder.path().join("sds"),
        ..sds::Config::default()
    };
    config.store.embedded.directory = folder.path().join("journal");
    config.overload.enabled = false;
    let server = sds::start(config).unwrap();
    let url = format!("http://{}", server.addresses()[0]);
    let password = folder.path().join("password");
    std::fs::write(&password, ADMIN.1).unwrap();
    let password = password.display().to_string();
    let import = |more: &[&str]| {
        let arguments = [
            "numbers",
            "import",
            "--ldap",
            &slapd.url,
            "--sds",
            &url,
            "--bind-dn",
            ADMIN.0,
        ];
        let search = [
            "--password-file",
            &password,
            "--base",
            SUBSCRIBERS,
            "--attribute",
            "imsi=imsi",
            "--attribute",
            "name=cn",
        ];
        signalbox(&[&arguments[..], &search, more].concat())
    };
    let has = |name: &str, count: usize| {
        let page = server.handle().registry().render();
        let lines: Vec<&str> = page.lines().filter(|line| line.starts_with(name)).collect();
        assert_eq!(lines, [format!("{name} {count}.0")]);
    };
    // One entry is wrong: nothing is written.
    let refused = import(&["--destination", "tier"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        text(&refused.stderr).contains("cn=double,"),
        "{}",
        text(&refused.stderr)
    );
    let refused = import(&["--destination", "cn"]);
    assert!(
        text(&refused.stderr).contains("imsi,001010000000002 is there twice"),
        "{}",
        text(&refused.stderr)
    );
    has("signalbox_sds_offset", 0);
    let done = import(&["--destination", "tier", "--filter", "(tier=*)"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let records = 3 * MORE + 4;
    let said = text(&done.stdout);
    assert!(
        said.starts_with(&format!(
            "{records} records written up to transaction {} ",
            records.div_ceil(1_000)
        )),
        "{said}"
    );
    has("signalbox_sds_numbers", 2 * MORE + 2);
    has("signalbox_sds_names", MORE + 2);
    // Text as well.
    let lines = folder.path().join("lines.csv");
    let path = lines.display().to_string();
    std::fs::write(&lines, "name,x@y,hss1\nmsisdn,49151,hss1\nimsi,1X,hss1\n").unwrap();
    let refused = signalbox(&["numbers", "import", &path, "--sds", &url]);
    assert!(
        text(&refused.stderr).contains("line 3: character 2"),
        "{}",
        text(&refused.stderr)
    );
    has("signalbox_sds_names", MORE + 2);
    std::fs::write(&lines, "name,x@y,hss1\nmsisdn,49151,hss1\n").unwrap();
    let done = signalbox(&["numbers", "import", &path, "--sds", &url]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    has("signalbox_sds_names", MORE + 3);
    server.stop().unwrap();
}
