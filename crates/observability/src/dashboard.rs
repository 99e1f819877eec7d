//! A dashboard of Grafana as JSON: rows, panels and where they stand. It imports by file, ConfigMap and provisioning as it
//! is: the data source is a variable, and there is neither `__inputs` nor `id`.

use serde_json::{Value, json};

/// The schema of Grafana 12. Later versions migrate it, and 11 reads it as well.
const SCHEMA: u32 = 41;
/// Columns of a dashboard.
const WIDTH: u32 = 24;

/// How a panel shows its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Show {
    /// As lines over time.
    Lines,
    /// The last values, large.
    Numbers,
    /// The last values with their labels.
    Table,
}

/// A panel.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) show: Show,
    /// Grafana's name of the unit.
    pub(crate) unit: &'static str,
    pub(crate) queries: Vec<Query>,
}

/// A query of a panel.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    pub(crate) expression: String,
    /// The name of each line: `{{instance}}`.
    pub(crate) legend: String,
}

/// A dashboard that is being built.
#[derive(Debug, Default)]
pub(crate) struct Dashboard {
    panels: Vec<Value>,
    x: u32,
    y: u32,
    /// Height of the panels of the line that is being filled.
    height: u32,
}

impl Dashboard {
    /// Begins a row.
    pub(crate) fn row(&mut self, title: &str) {
        self.line();
        self.panels.push(json!({
            "type": "row",
            "title": title,
            "collapsed": false,
            "gridPos": { "h": 1, "w": WIDTH, "x": 0, "y": self.y },
            "panels": [],
        }));
        self.y += 1;
    }

    /// Adds a panel beside the last one, or below it where the line is full.
    pub(crate) fn add(&mut self, panel: &Panel) {
        let (width, height) = match panel.show {
            Show::Lines => (8, 8),
            Show::Numbers => (4, 4),
            Show::Table => (WIDTH, 8),
        };
        if self.x + width > WIDTH {
            self.line();
        }
        let place = json!({ "h": height, "w": width, "x": self.x, "y": self.y });
        self.panels.push(panel.to_json(place));
        self.x += width;
        self.height = self.height.max(height);
    }

    /// Begins a line.
    fn line(&mut self) {
        self.y += self.height;
        self.x = 0;
        self.height = 0;
    }

    /// The text of the file. `series` is a selector of what the dashboard is about: its jobs and instances can be chosen.
    pub(crate) fn finish(self, uid: &str, title: &str, series: &str) -> String {
        let dashboard = json!({
            "uid": uid,
            "title": title,
            "tags": ["signalbox"],
            "editable": true,
            "graphTooltip": 1,
            "schemaVersion": SCHEMA,
            "refresh": "30s",
            "time": { "from": "now-1h", "to": "now" },
            "timepicker": {},
            "timezone": "",
            "links": [{
                "type": "dashboards",
                "title": "Signalbox",
                "tags": ["signalbox"],
                "asDropdown": true,
                "includeVars": true,
                "keepTime": true,
                "targetBlank": false,
                "icon": "external link",
                "tooltip": "",
                "url": "",
            }],
            "annotations": { "list": [] },
            "templating": { "list": [
                {
                    "name": "datasource",
                    "label": "Data source",
                    "type": "datasource",
                    "query": "prometheus",
                    "refresh": 1,
                },
                choice("job", &format!("label_values({series}, job)")),
                choice("instance", &format!("label_values({}, instance)", within(series, "job=~\"$job\""))),
            ] },
            "panels": self.panels,
        });
        // Indented, so that a change of one metric is a change of a few lines.
        let mut text = serde_json::to_string_pretty(&dashboard).unwrap_or_default();
        text.push('\n');
        text
    }
}

/// A selector with one more label: `name{}` or `{…}`.
fn within(series: &str, label: &str) -> String {
    match series.strip_suffix('}') {
        Some(head) => format!("{head},{label}}}"),
        None => format!("{series}{{{label}}}"),
    }
}

/// A variable with the values of a label, all of them at first.
fn choice(name: &str, query: &str) -> Value {
    json!({
        "name": name,
        "label": name,
        "type": "query",
        "datasource": source(),
        "query": { "query": query, "refId": name },
        "refresh": 2,
        "sort": 1,
        "multi": true,
        "includeAll": true,
        "allValue": ".*",
        "current": { "selected": true, "text": ["All"], "value": ["$__all"] },
    })
}

fn source() -> Value {
    json!({ "type": "prometheus", "uid": "${datasource}" })
}

impl Panel {
    fn to_json(&self, place: Value) -> Value {
        let is_table = self.show == Show::Table;
        let targets = self.queries.iter().enumerate().map(|(index, query)| {
            json!({
                "refId": letters(index),
                "datasource": source(),
                "editorMode": "code",
                "expr": query.expression,
                "legendFormat": query.legend,
                "range": self.show == Show::Lines,
                "instant": self.show != Show::Lines,
                "format": if is_table { "table" } else { "time_series" },
            })
        });
        let (kind, options) = match self.show {
            Show::Lines => (
                "timeseries",
                json!({
                    "legend": { "displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": [] },
                    "tooltip": { "mode": "multi", "sort": "desc" },
                }),
            ),
            Show::Numbers => (
                "stat",
                json!({
                    "reduceOptions": { "calcs": ["lastNotNull"], "fields": "", "values": false },
                    "colorMode": "value",
                    "graphMode": "none",
                    "justifyMode": "auto",
                    "orientation": "auto",
                    "textMode": "auto",
                }),
            ),
            Show::Table => ("table", json!({ "showHeader": true })),
        };
        json!({
            "type": kind,
            "title": self.title,
            "description": self.description,
            "datasource": source(),
            "gridPos": place,
            "fieldConfig": { "defaults": { "unit": self.unit }, "overrides": [] },
            "options": options,
            "targets": targets.collect::<Vec<_>>(),
        })
    }
}

/// Identity of a query in its panel: A to Z, then Q27.
fn letters(index: usize) -> String {
    match u8::try_from(index) {
        Ok(index) if index < 26 => char::from(b'A' + index).to_string(),
        _ => format!("Q{}", index + 1),
    }
}
