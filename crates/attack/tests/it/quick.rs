//! Two halves, so that they run side by side on two cores; stages are shared within each.

use attack::{Attack, Dose, attacks, report, run, stage};

fn withstood(part: usize) {
    let binary = stage::binary().unwrap();
    let mut chosen: Vec<Attack> = attacks::all()
        .into_iter()
        .filter(|attack| attack.stage as usize % 2 == part)
        .collect();
    // Those that share a stage follow one another.
    chosen.sort_by_key(|attack| (attack.stage, !attack.shares()));
    let outcomes = run::run(&chosen, &binary, Dose::Quick, |outcome| {
        eprintln!("{}", outcome.row());
    });
    assert!(
        outcomes.iter().all(report::Outcome::withstood),
        "{}",
        report::summary(&outcomes)
    );
}

#[test]
fn small_doses_are_withstood_1() {
    withstood(0);
}

#[test]
fn small_doses_are_withstood_2() {
    withstood(1);
}
