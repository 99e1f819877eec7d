//! `signalbox lab list` and `lab show`: the call models there are.

use std::process::ExitCode;

use callmodel::stp::{Kind, StpModel};
use callmodel::{CallModel, Found};

use super::{Failure, find, json_text, say};
use crate::run::figure;

pub(super) fn list(json: bool) -> Result<ExitCode, Failure> {
    let found: Vec<Found> = callmodel::names().map(find).collect::<Result<_, _>>()?;
    if json {
        let rows: Vec<_> = found
            .iter()
            .map(|f| serde_json::json!({ "name": f.name, "title": f.model.title, "tps": f.model.ingress_tps() }))
            .collect();
        say(&json_text(&rows)?)?;
    } else {
        for Found { name, model } in &found {
            let each = model
                .guide
                .as_ref()
                .and_then(callmodel::Guide::cpu_us_per_transaction);
            let guide = each.map_or(String::new(), |us| {
                format!(
                    "   guide: {} ms of processor time per transaction",
                    figure(us / 1000.0)
                )
            });
            say(&format!(
                "{name:<22} {:>8} TPS   {}{guide}\n",
                figure(model.ingress_tps()),
                model.title
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn show(name: &str, json: bool) -> Result<ExitCode, Failure> {
    let found = find(name)?;
    say(&if json {
        json_text(&found.model)?
    } else {
        describe(&found)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A call model for people.
fn describe(Found { name, model }: &Found) -> String {
    use std::fmt::Write;
    let mut out = String::new();
    let CallModel {
        title,
        summary,
        source,
        guide,
        ..
    } = model;
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "{name}: {title}\n\n{summary}\n\nFrom: {}, release {}, section {}",
        source.guide, source.release, source.section
    );
    let _ = writeln!(
        out,
        "\nTraffic ({} ingress transactions per second):",
        figure(model.ingress_tps())
    );
    if let Some(nrf) = &model.nrf {
        let rows = serde_json::to_value(nrf.operations).unwrap_or_default();
        for (operation, tps) in rows.as_object().into_iter().flatten() {
            let tps = tps.as_f64().unwrap_or(0.0);
            if tps > 0.0 {
                let _ = writeln!(out, "  {operation:<26} {:>9}/s", figure(tps));
            }
        }
        let _ = writeln!(
            out,
            "  and out: {} SLF queries, {} forwarded discoveries, {} notifications per second",
            figure(nrf.slf_queries()),
            figure(nrf.outgoing.forwarded),
            figure(nrf.outgoing.notifications)
        );
        let _ = writeln!(out, "\n{} functions:", nrf.population_total());
        for row in &nrf.population {
            let [least, most] = row.profile_bytes;
            let _ = writeln!(
                out,
                "  {:<5} {:>4}  profiles of {least} to {most} bytes",
                row.nf_type, row.count
            );
        }
    }
    if let Some(bsf) = &model.bsf {
        let mut rows = serde_json::to_value(bsf.operations).unwrap_or_default();
        if let (Some(rows), Ok(serde_json::Value::Object(rx))) =
            (rows.as_object_mut(), serde_json::to_value(bsf.rx))
        {
            rows.extend(rx.into_iter().filter(|(_, value)| value.is_number()));
        }
        for (operation, tps) in rows.as_object().into_iter().flatten() {
            let _ = writeln!(
                out,
                "  {operation:<26} {:>9}/s",
                figure(tps.as_f64().unwrap_or(0.0))
            );
        }
        let _ = writeln!(
            out,
            "\n{} bindings stand, at {} of {} sites",
            figure(bsf.sessions as f64),
            bsf.sites_with_traffic,
            bsf.sites
        );
    }
    if let Some(core) = &model.core {
        let _ = writeln!(
            out,
            "  calls of {} subscribers, each with {} checked legs",
            figure(core.subscribers as f64),
            crate::call::LEGS.len()
        );
    }
    if let Some(policy) = &model.policy {
        describe_policy(&mut out, policy);
    }
    if let Some(dsr) = &model.dsr {
        let _ = writeln!(
            out,
            "  {} messages per second (a request with its answer is two), {} bytes on average\n  \
             {} MMEs, {} HSSs, {} message processors, destination by {}",
            figure(dsr.mps),
            dsr.message_bytes,
            model.load.connections,
            dsr.hss,
            dsr.da_mps,
            dsr.destination.name()
        );
    }
    if let Some(scef) = &model.scef {
        let [nidd, monitoring, triggering] = scef.thirds().map(figure);
        let _ = writeln!(
            out,
            "  {} messages per second that the SCEF reads: {nidd} of NIDD, {monitoring} of monitoring, {triggering} of triggering\n  \
             {} MMEs, {} devices of {} SCS/AS, {} subscriptions",
            figure(scef.mps()),
            model.load.connections,
            scef.devices,
            scef.servers,
            scef.monitoring.standing
        );
    }
    if let Some(stp) = &model.stp {
        describe_stp(&mut out, model.load.connections, stp);
    }
    if let Some(scp) = &model.scp {
        let whole: f64 = scp.interfaces.iter().map(|one| one.weight).sum();
        for one in &scp.interfaces {
            let rate = figure(scp.requests() * one.weight / whole.max(1e-9));
            let parties = format!("{} to {}", one.consumer, one.producer);
            let _ = writeln!(
                out,
                "  {:<18} {parties:<16} {:<26} {rate:>9}/s",
                one.name, one.service
            );
        }
        let _ = writeln!(
            out,
            "\n{} profiles at the NRF; {} of the requests by delegated discovery, {} alternate routed, {} mediated{}",
            scp.profiles,
            scp.delegated,
            scp.alternate_routed,
            scp.mediated,
            if scp.tls { "; TLS" } else { "" }
        );
    }
    if let Some(guide) = guide {
        let _ = writeln!(
            out,
            "\nThe guide's processor time, without {}:",
            guide.cpu_excludes.as_deref().unwrap_or("nothing")
        );
        for row in &guide.cpu {
            let _ = writeln!(
                out,
                "  {:<18} {:<40} {:>8.3} cores",
                row.service,
                row.arithmetic(),
                row.cores_used()
            );
        }
        if let Some(us) = guide.cpu_us_per_transaction() {
            let _ = writeln!(
                out,
                "  {:.3} cores / {} TPS = {} µs per ingress transaction",
                guide.cores_used(),
                figure(guide.ingress_tps),
                figure(us)
            );
        }
    }
    if !model.choices.is_empty() {
        let _ = writeln!(out, "\nWhere the guide contradicts itself or is silent:");
        for choice in &model.choices {
            let _ = writeln!(
                out,
                "  {}\n    printed: {}\n    taken:   {}",
                choice.about, choice.printed, choice.taken
            );
        }
    }
    out
}

/// The traffic of a signal transfer point.
fn describe_stp(out: &mut String, mscs: u32, stp: &StpModel) {
    use std::fmt::Write;
    for (kind, share) in Kind::ALL.into_iter().zip(stp.mix.shares()) {
        if share.percent() > 0.0 {
            // Writing to a String cannot fail.
            let rate = figure(stp.mps * share.fraction());
            let _ = writeln!(out, "  {:<28} {rate:>9}/s", kind.name());
        }
    }
    let _ = writeln!(
        out,
        "\n{mscs} MSCs, {} HLRs, {} SMSCs; {} translations, {} numbers of each kind, {} screening rules",
        stp.hlrs,
        stp.smscs,
        figure(f64::from(stp.translations)),
        figure(f64::from(stp.numbers)),
        stp.screening_rules
    );
}

fn describe_policy(out: &mut String, policy: &callmodel::policy::PolicyModel) {
    use std::fmt::Write;
    let networks = policy
        .sm
        .iter()
        .map(|one| (format!("SM, {}", one.dnn), one.rates()));
    let apn = policy.gx.as_ref().map_or("", |gx| gx.apn.as_str());
    let others = [
        ("AM".to_owned(), policy.am),
        ("UE".to_owned(), policy.ue),
        (format!("Gx, {apn}"), policy.gx_rates()),
        ("Rx".to_owned(), policy.rx),
    ];
    let kinds = networks.chain(others).filter(|(_, rates)| rates.total() > 0.0);
    for (kind, rates) in kinds {
        let [create, update, delete] = [rates.create, rates.update, rates.delete].map(figure);
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "  {kind:<26} {create:>9} creations, {update:>9} updates, {delete:>9} deletions/s"
        );
    }
    let _ = writeln!(
        out,
        "  and out: {} requests per second to other functions, as the guide counts them",
        figure(policy.egress)
    );
    let _ = writeln!(
        out,
        "\n{} associations of {} subscribers stand, at {} of {} sites; the project is of {} complexity",
        figure(policy.associations as f64),
        figure(policy.subscribers as f64),
        policy.sites_with_traffic,
        policy.sites,
        policy.project.name()
    );
}
