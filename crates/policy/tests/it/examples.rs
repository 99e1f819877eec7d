//! The projects of the guide's three levels of complexity, and those that share variables of the subscriber.

use policy::{Limits, Project, testing};

use crate::{borrowed, example, files};

#[test]
fn the_example_projects_pass_their_cases() {
    for (name, cases) in [
        ("low", 5),
        ("medium", 3),
        ("high", 5),
        ("roaming/am", 2),
        ("roaming/sm", 3),
    ] {
        let folder = example(name);
        let (project, tests) = (files(&folder), files(&folder.join("cases")));
        let results = testing::run(&borrowed(&project), &borrowed(&tests), &Limits::default());
        let results = results.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(results.len(), cases, "{name}");
        for result in results {
            assert!(result.passed(), "{name}: {result}");
        }
    }
}

#[test]
fn a_project_is_shared_by_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Project>();
}
