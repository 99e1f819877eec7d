//! `complex-query`: conjunctive and disjunctive normal forms of parameters (`ComplexQuery`, TS 29.571).

use sbi_proto::query::json_text;
use serde::Deserialize;
use serde_json::Value;

use super::fault::ParamFault;
use super::test::{Param, Test};
use crate::params::test_of;

/// Atoms a query may have; more cost more than an answer is worth.
const ATOMS_MAX: usize = 256;

/// Also with the names of earlier releases of the OpenAPI file, `cNfUnits` and so on.
#[derive(Deserialize)]
struct ComplexQuery {
    #[serde(default, rename = "cnfUnits", alias = "cNfUnits")]
    cnf_units: Vec<ConjunctiveUnit>,
    #[serde(default, rename = "dnfUnits", alias = "dNfUnits")]
    dnf_units: Vec<DisjunctiveUnit>,
}

#[derive(Deserialize)]
struct ConjunctiveUnit {
    #[serde(rename = "cnfUnit", alias = "cNfUnit")]
    cnf_unit: Vec<Atom>,
}

#[derive(Deserialize)]
struct DisjunctiveUnit {
    #[serde(rename = "dnfUnit", alias = "dNfUnit")]
    dnf_unit: Vec<Atom>,
}

#[derive(Deserialize)]
struct Atom {
    attr: String,
    value: Value,
    #[serde(default)]
    negative: bool,
}

/// Reads a complex query. Units of a conjunctive form (`cnfUnits`) must each have an atom that holds; of a
/// disjunctive form (`dnfUnits`) one unit must hold whole.
///
/// # Errors
/// When the value is neither form, or an atom cannot be used.
pub(crate) fn parse(param: Param<'_>) -> Result<Test, ParamFault> {
    let query: ComplexQuery = serde_json::from_str(&json_text(param.value))
        .map_err(|error| param.fault(format!("expected a ComplexQuery, cnfUnits or dnfUnits: {error}")))?;
    let conjunctive = !query.cnf_units.is_empty();
    if conjunctive != query.dnf_units.is_empty() {
        return Err(param.fault("expected either cnfUnits or dnfUnits, with at least one unit"));
    }
    let units: Vec<Vec<Atom>> = match conjunctive {
        true => query.cnf_units.into_iter().map(|unit| unit.cnf_unit).collect(),
        false => query.dnf_units.into_iter().map(|unit| unit.dnf_unit).collect(),
    };
    if units.iter().map(Vec::len).sum::<usize>() > ATOMS_MAX {
        return Err(param.fault(format!("expected at most {ATOMS_MAX} atoms")));
    }
    let units: Vec<Vec<Test>> = units
        .into_iter()
        .map(|unit| unit.into_iter().map(|atom| test_of_atom(&param, &atom)).collect())
        .collect::<Result<_, _>>()?;
    Ok(match conjunctive {
        true => Test::new(move |p| units.iter().all(|unit| unit.iter().any(|test| test.fits(p)))),
        false => Test::new(move |p| units.iter().any(|unit| unit.iter().all(|test| test.fits(p)))),
    })
}

fn test_of_atom(param: &Param<'_>, atom: &Atom) -> Result<Test, ParamFault> {
    // An atom's value is JSON; a parameter's is text, or JSON as text.
    let text = match &atom.value {
        Value::String(text) => text.clone(),
        Value::Array(items) if items.iter().all(Value::is_string) => items
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(","),
        other => other.to_string(),
    };
    let inner = Param {
        name: &atom.attr,
        value: &text,
    };
    let faulty = |fault: ParamFault| param.fault(format!("attr `{}`: {}", atom.attr, fault.expected()));
    let test = match atom.attr.as_str() {
        "target-nf-type" => {
            let wanted = model::NfType::from(text.as_str());
            Test::new(move |p| p.nf_type == wanted)
        }
        "service-names" => {
            let names: Vec<model::ServiceName> = inner
                .list()
                .map_err(faulty)?
                .into_iter()
                .map(Into::into)
                .collect();
            Test::new(move |p| names.iter().any(|name| p.has_service(name)))
        }
        "supi" => {
            let supi = inner.text().map_err(faulty)?;
            Test::new(move |p| crate::params::fits_supi_in(p, &supi, None))
        }
        "gpsi" => {
            let gpsi = inner.text().map_err(faulty)?;
            Test::new(move |p| crate::params::fits_gpsi_in(p, &gpsi, None))
        }
        _ => test_of(inner).map_err(faulty)?.ok_or_else(|| {
            param.fault(format!(
                "attr `{}`: expected the name of a query parameter",
                atom.attr
            ))
        })?,
    };
    Ok(if atom.negative { test.negated() } else { test })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_may_look_like_the_name_of_a_unit() {
        let profile: model::NfProfile = serde_json::from_str(
            r#"{"nfInstanceId":"4947a69a-f61b-4bc1-b9da-47c9c5d14b64","nfType":"SMF","nfStatus":"REGISTERED",
                "nfSetIdList":["cnf-1.smfset.5gc.mnc001.mcc001"]}"#,
        )
        .unwrap();
        let holds = |value: &str| {
            let name = "complex-query";
            parse(Param { name, value }).unwrap().holds(&profile)
        };
        for units in ["cnfUnits", "cNfUnits"] {
            let unit = units.trim_end_matches('s');
            let set = "cnf-1.smfset.5gc.mnc001.mcc001";
            let query =
                format!(r#"{{"{units}":[{{"{unit}":[{{"attr":"target-nf-set-id","value":"{set}"}}]}}]}}"#);
            assert!(holds(&query), "{query}");
        }
    }
}
