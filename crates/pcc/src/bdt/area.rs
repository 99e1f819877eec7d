//! Network areas (`NetworkAreaInfo`, TS 29.554 §5.6.2.8).

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A part of the network: tracking areas and cells, each with its PLMN. Without any it is the whole network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Area {
    /// Tracking areas, as MCC, MNC and TAC (`001-01-0000a1`).
    pub tais: BTreeSet<String>,
    /// Cells of E-UTRA, as MCC, MNC and cell identity (`001-01-00a1b2c`).
    pub ecgis: BTreeSet<String>,
    /// Cells of NR, as MCC, MNC and cell identity (`001-01-000000001`).
    pub ncgis: BTreeSet<String>,
    /// RAN nodes that a consumer names, as JSON; settings have none.
    #[serde(skip)]
    #[schemars(skip)]
    pub(super) nodes: BTreeSet<String>,
}

/// The members of `NetworkAreaInfo`, the member of an item that identifies it within its PLMN, and the list of an area.
type Kind = (
    &'static str,
    &'static str,
    fn(&mut Area) -> &mut BTreeSet<String>,
    fn(&Area) -> &BTreeSet<String>,
);

const KINDS: [Kind; 3] = [
    ("tais", "tac", |area| &mut area.tais, |area| &area.tais),
    ("ecgis", "eutraCellId", |area| &mut area.ecgis, |area| &area.ecgis),
    ("ncgis", "nrCellId", |area| &mut area.ncgis, |area| &area.ncgis),
];

impl Area {
    /// The area of a `NetworkAreaInfo`.
    #[must_use]
    pub fn read(info: &Value) -> Self {
        let mut area = Self::default();
        let items = |name: &str| info.get(name).and_then(Value::as_array).into_iter().flatten();
        for (name, member, list, _) in KINDS {
            list(&mut area).extend(items(name).filter_map(|item| text_of(item, member)));
        }
        area.nodes.extend(items("gRanNodeIds").map(ToString::to_string));
        area
    }

    /// The area as `NetworkAreaInfo`; `None`: it is the whole network.
    #[must_use]
    pub fn to_json(&self) -> Option<Value> {
        if self.is_everywhere() {
            return None;
        }
        let mut info = json!({});
        for (name, member, _, list) in KINDS {
            let item = |text: &String| {
                let (mcc, rest) = text.split_once('-')?;
                let (mnc, id) = rest.split_once('-')?;
                Some(json!({"plmnId": {"mcc": mcc, "mnc": mnc}, member: id}))
            };
            let items: Vec<Value> = list(self).iter().filter_map(item).collect();
            if !items.is_empty() {
                info[name] = items.into();
            }
        }
        Some(info)
    }

    /// Whether it is the whole network.
    #[must_use]
    pub fn is_everywhere(&self) -> bool {
        self.nodes.is_empty() && KINDS.iter().all(|(_, _, _, list)| list(self).is_empty())
    }

    /// Whether all of another area lies in it, as far as their items are the same: which cells a tracking area has is not known here.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        let has_all = |list: fn(&Self) -> &BTreeSet<String>| list(other).is_subset(list(self));
        self.is_everywhere()
            || !other.is_everywhere()
                && other.nodes.is_subset(&self.nodes)
                && KINDS.iter().all(|(_, _, _, list)| has_all(*list))
    }

    /// Whether something of another area may lie in it.
    #[must_use]
    pub fn touches(&self, other: &Self) -> bool {
        let shares = |list: fn(&Self) -> &BTreeSet<String>| !list(other).is_disjoint(list(self));
        self.is_everywhere() || other.is_everywhere() || KINDS.iter().any(|(_, _, _, list)| shares(*list))
    }

    /// What is wrong with an area of the settings, and where.
    #[must_use]
    pub fn fault(&self) -> Option<(&'static str, String)> {
        KINDS.iter().find_map(|(name, _, _, list)| {
            let wrong = list(self).iter().find(|text| !is_item(text))?;
            Some((*name, wrong.clone()))
        })
    }
}

/// `MCC-MNC-identity` of an item.
fn text_of(item: &Value, member: &str) -> Option<String> {
    let plmn = item.get("plmnId")?;
    let text = |value: &Value, name: &str| value.get(name)?.as_str().map(str::to_ascii_lowercase);
    let (mcc, mnc, id) = (text(plmn, "mcc")?, text(plmn, "mnc")?, text(item, member)?);
    Some(format!("{mcc}-{mnc}-{id}"))
}

fn is_item(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    matches!(parts.as_slice(), [mcc, mnc, id] if mcc.len() == 3 && digits(mcc) && (2..=3).contains(&mnc.len())
        && digits(mnc) && (4..=9).contains(&id.len()) && id.bytes().all(hex))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_are_read_written_and_compared() {
        let info = json!({"tais": [{"plmnId": {"mcc": "001", "mnc": "01"}, "tac": "0000A1"}]});
        let area = Area::read(&info);
        assert_eq!(area.tais, BTreeSet::from(["001-01-0000a1".to_owned()]));
        assert_eq!(area.to_json().unwrap()["tais"][0]["tac"], "0000a1");
        let (everywhere, other) = (
            Area::default(),
            Area::read(&json!({"ncgis": [
            {"plmnId": {"mcc": "001", "mnc": "01"}, "nrCellId": "000000001"}]})),
        );
        let node = Area::read(&json!({"gRanNodeIds": [{"gNbId": {"bitLength": 22, "gNBValue": "000001"}}]}));
        assert_eq!(everywhere.to_json(), None);
        for (held, wanted, contains, touches) in [
            (&everywhere, &area, true, true),
            (&everywhere, &node, true, true),
            (&area, &everywhere, false, true),
            (&area, &area, true, true),
            (&area, &other, false, false),
            (&area, &node, false, false),
        ] {
            assert_eq!((held.contains(wanted), held.touches(wanted)), (contains, touches));
        }
        assert_eq!(area.fault(), None);
        for wrong in [
            "001-01",
            "1-01-0000a1",
            "001-01-0000A1",
            "001-01-xyz1",
            "001-1-0000a1",
        ] {
            let area = Area {
                tais: BTreeSet::from([wrong.to_owned()]),
                ..Area::default()
            };
            assert_eq!(area.fault(), Some(("tais", wrong.to_owned())));
        }
    }
}
