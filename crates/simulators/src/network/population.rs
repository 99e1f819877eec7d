//! Which functions are registered.
//!
//! The functions of a type fall into *cells* of as many as the model wants in an answer: a cell shares set,
//! group, data network, tracking areas and identities, so that a query for one of those finds exactly it.

use std::collections::BTreeMap;

use callmodel::nrf::NrfModel;

/// A registered function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// The type as the model names it; `SLF` is registered as a UDR.
    pub kind: String,
    /// Its instance identifier.
    pub id: String,
    /// Its number within its type.
    pub number: u32,
    /// Its cell within its type.
    pub cell: u32,
    /// Bytes of its profile.
    pub bytes: u32,
}

/// All registered functions.
#[derive(Clone, Debug)]
pub struct Population {
    /// In the order of the model.
    pub functions: Vec<Function>,
    /// Functions per cell, by type.
    cell_sizes: BTreeMap<String, u32>,
}

impl Function {
    /// The type it registers as.
    #[must_use]
    pub fn nf_type(&self) -> &str {
        if self.kind == "SLF" { "UDR" } else { &self.kind }
    }

    /// Its NF set, if functions of its type form sets.
    #[must_use]
    pub fn set(&self) -> Option<String> {
        (self.bytes >= 1500).then(|| {
            let prefix = if self.kind == "SLF" { "slf" } else { "" };
            let nf_type = self.nf_type().to_ascii_lowercase();
            // TS 23.003 §28.12.
            format!("set{prefix}{}.{nf_type}set.5gc.mnc001.mcc001", self.cell)
        })
    }

    /// Its group (TS 23.501 §6.3), if functions of its type have one.
    #[must_use]
    pub fn group(&self) -> Option<String> {
        matches!(self.kind.as_str(), "AUSF" | "UDM" | "UDR" | "PCF" | "CHF")
            .then(|| group(&self.kind, self.cell))
    }

    /// Names of its services.
    #[must_use]
    pub fn services(&self) -> &'static [&'static str] {
        services(&self.kind)
    }
}

/// The group of a cell.
#[must_use]
pub fn group(kind: &str, cell: u32) -> String {
    format!("{}-group-{cell}", kind.to_ascii_lowercase())
}

/// The services that functions of a type offer.
#[must_use]
pub fn services(kind: &str) -> &'static [&'static str] {
    match kind {
        "AMF" => &["namf-comm", "namf-evts", "namf-mt", "namf-loc"],
        "AUSF" => &["nausf-auth", "nausf-sorprotection", "nausf-upuprotection"],
        "BSF" => &["nbsf-management"],
        "CHF" => &["nchf-convergedcharging", "nchf-spendinglimitcontrol"],
        "GMLC" => &["ngmlc-loc"],
        "LMF" => &["nlmf-loc"],
        "NEF" => &["nnef-pfdmanagement", "nnef-eventexposure"],
        "PCF" => &[
            "npcf-am-policy-control",
            "npcf-smpolicycontrol",
            "npcf-policyauthorization",
        ],
        "SLF" => &["nudr-group-id-map"],
        "SMF" => &["nsmf-pdusession", "nsmf-event-exposure"],
        "SMSF" => &["nsmsf-sms"],
        "UDM" => &["nudm-sdm", "nudm-uecm", "nudm-ueau", "nudm-ee", "nudm-pp"],
        "UDR" => &["nudr-dr"],
        _ => &["ncbcf-lab"],
    }
}

impl Population {
    /// The functions of a model.
    #[must_use]
    pub fn new(model: &NrfModel) -> Self {
        let mut functions = Vec::new();
        let mut cell_sizes = BTreeMap::new();
        for (row, entry) in model.population.iter().enumerate() {
            let wanted = model
                .discovery
                .iter()
                .find(|d| d.target == entry.nf_type)
                .map(|d| d.profiles);
            let cell_size = wanted.unwrap_or(entry.count).max(1);
            cell_sizes.insert(entry.nf_type.clone(), cell_size);
            let [least, most] = entry.profile_bytes;
            for number in 0..entry.count {
                functions.push(Function {
                    kind: entry.nf_type.clone(),
                    id: instance_id(row as u32, number),
                    number,
                    cell: number / cell_size,
                    bytes: least + (most - least) * number / entry.count.saturating_sub(1).max(1),
                });
            }
        }
        Self {
            functions,
            cell_sizes,
        }
    }

    /// The functions of a type, as the model names it.
    pub fn of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Function> {
        self.functions.iter().filter(move |f| f.kind == kind)
    }

    /// How many cells of a type are full, so that a query for one finds as many as the model wants.
    #[must_use]
    pub fn full_cells(&self, kind: &str) -> u32 {
        self.of(kind).count() as u32 / self.cell_sizes.get(kind).copied().unwrap_or(1)
    }
}

/// A version 4 UUID that is the same in every run.
#[must_use]
pub fn instance_id(row: u32, number: u32) -> String {
    format!("5b0000{row:02x}-51ab-4000-8000-{number:012x}")
}
