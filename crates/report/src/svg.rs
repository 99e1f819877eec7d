//! Plots as inline SVG. Colours come from the page's style sheet, so that they fit light and dark.

use std::fmt::Write;

use super::data::Spread;
use crate::figure;

const WIDTH: f64 = 640.0;
/// Of a plot that takes the whole row, so that its text is as large as the others'.
const WIDE: f64 = 1300.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 26.0;

/// A line of a plot over time.
pub(super) struct Line<'a> {
    /// What it shows, for the legend.
    pub(super) name: &'a str,
    /// Class of the style sheet that gives its colour.
    pub(super) class: &'static str,
    /// Seconds and value.
    pub(super) points: Vec<(f64, f64)>,
}

/// Text that is safe inside an element.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Round values from 0 to at least `top`: few enough to read.
pub(super) fn ticks(top: f64) -> Vec<f64> {
    if !(top.is_finite() && top > 0.0) {
        return vec![0.0, 1.0];
    }
    let raw = top / 4.0;
    let power = 10_f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|m| m * power)
        .find(|s| *s >= raw * 0.999)
        .unwrap_or(raw);
    let count = (top / step).ceil() as usize;
    (0..=count).map(|at| at as f64 * step).collect()
}

/// A plot over time. `measured` is shaded: from when to when the figures of the report are of.
pub(super) fn over_time(lines: &[Line<'_>], measured: Option<(f64, f64)>, unit: &str, label: &str) -> String {
    let height = 220.0;
    let bottom = height - BOTTOM;
    let points = || lines.iter().flat_map(|line| &line.points);
    let first = points().map(|p| p.0).fold(f64::MAX, f64::min).min(1e9);
    let last = points().map(|p| p.0).fold(first + 1.0, f64::max);
    let top = points().map(|p| p.1).fold(0.0, f64::max);
    let rows = ticks(top * 1.05);
    let top = rows.last().copied().unwrap_or(1.0);
    let x = |t: f64| LEFT + (t - first) / (last - first) * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| bottom - value / top * (bottom - TOP);
    let mut svg = open(WIDTH, height, label);
    if let Some((from, to)) = measured {
        let (from, to) = (x(from.max(first)), x(to.min(last)));
        let _ = write!(
            svg,
            r#"<rect class="measured" x="{from:.1}" y="{TOP}" width="{:.1}" height="{:.1}"/>"#,
            (to - from).max(0.0),
            bottom - TOP
        );
    }
    for value in &rows {
        grid_row(&mut svg, y(*value), &figure(*value));
    }
    for t in ticks(last - first)
        .into_iter()
        .map(|t| t + first)
        .filter(|t| *t <= last)
    {
        let _ = write!(
            svg,
            r#"<text class="tick" x="{:.1}" y="{:.1}" text-anchor="middle">{} s</text>"#,
            x(t),
            height - 8.0,
            figure(t - first)
        );
    }
    for line in lines {
        let path: Vec<String> = line
            .points
            .iter()
            .map(|(t, v)| format!("{:.1},{:.1}", x(*t), y(*v)))
            .collect();
        let _ = write!(
            svg,
            r#"<polyline class="line {}" points="{}"/>"#,
            line.class,
            path.join(" ")
        );
        for (t, v) in &line.points {
            let _ = write!(
                svg,
                r#"<circle class="hover" cx="{:.1}" cy="{:.1}" r="6"><title>{} at {:.0} s: {} {unit}</title></circle>"#,
                x(*t),
                y(*v),
                escape(line.name),
                t - first,
                figure(*v)
            );
        }
    }
    svg.push_str("</svg>");
    svg
}

/// The spread of latencies of each operation on a logarithmic axis, with the guide's figures as diamonds.
/// `guide` gives, by operation, figures in milliseconds with their names.
pub(super) fn spreads(
    spreads: &[Spread],
    guide: &[(String, Vec<(&'static str, f64)>)],
    label: &str,
) -> String {
    let row = 26.0;
    let left = 170.0;
    let height = TOP + spreads.len() as f64 * row + BOTTOM;
    let all = || {
        let ours = spreads.iter().flat_map(|s| s.at.iter().copied());
        ours.chain(guide.iter().flat_map(|(_, g)| g.iter().map(|(_, value)| *value)))
            .filter(|v| *v > 0.0)
    };
    let low = 10_f64.powf(all().fold(f64::MAX, f64::min).clamp(0.01, 1e5).log10().floor());
    let high = all().fold(low * 10.0, f64::max);
    let high = 10_f64.powf(high.log10()) * 1.15;
    let x = |v: f64| left + (v.max(low) / low).log10() / (high / low).log10() * (WIDE - left - RIGHT);
    let mut svg = open(WIDE, height, label);
    let mut decade = low;
    while decade <= high {
        let at = x(decade);
        let _ = write!(
            svg,
            r#"<line class="grid" x1="{at:.1}" y1="{TOP}" x2="{at:.1}" y2="{:.1}"/><text class="tick" x="{at:.1}" y="{:.1}" text-anchor="middle">{} ms</text>"#,
            height - BOTTOM,
            height - 8.0,
            figure(decade)
        );
        decade *= 10.0;
    }
    for (at, spread) in spreads.iter().enumerate() {
        let [least, p1, p25, p50, p75, p90, p99, p999, most] = spread.at[..] else {
            continue;
        };
        let middle = TOP + (at as f64 + 0.5) * row;
        let _ = write!(
            svg,
            r#"<g><title>{}: least {}, p25 {}, median {}, p75 {}, p90 {}, p99 {}, p99.9 {}, most {} ms</title><text class="label" x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
            escape(&spread.name),
            figure(least),
            figure(p25),
            figure(p50),
            figure(p75),
            figure(p90),
            figure(p99),
            figure(p999),
            figure(most),
            left - 10.0,
            middle + 4.0,
            escape(&spread.name),
        );
        for (class, from, to, thickness) in [
            ("whisker", p1, p999, 2.0),
            ("wide", p1, p99, 8.0),
            ("narrow", p25, p75, 12.0),
        ] {
            let _ = write!(
                svg,
                r#"<rect class="{class}" x="{:.1}" y="{:.1}" width="{:.1}" height="{thickness}" rx="2"/>"#,
                x(from),
                middle - thickness / 2.0,
                (x(to) - x(from)).max(1.5)
            );
        }
        let _ = write!(
            svg,
            r#"<rect class="median" x="{:.1}" y="{:.1}" width="2.5" height="16"/><circle class="most" cx="{:.1}" cy="{middle:.1}" r="2.5"/></g>"#,
            x(p50) - 1.25,
            middle - 8.0,
            x(most)
        );
        for (name, value) in guide
            .iter()
            .filter(|(name, _)| *name == spread.name)
            .flat_map(|(_, g)| g)
        {
            let cx = x(*value);
            let _ = write!(
                svg,
                r#"<path class="guide" d="M{cx:.1} {:.1}l5 5l-5 5l-5 -5z"><title>guide, {name}: {} ms</title></path>"#,
                middle - 5.0,
                figure(*value)
            );
        }
    }
    svg.push_str("</svg>");
    svg
}

/// Rate against 99th percentile of the steps of a search; `true` where a step held.
pub(super) fn steps(points: &[(f64, f64, bool)], label: &str) -> String {
    let height = 220.0;
    let bottom = height - BOTTOM;
    let columns = ticks(points.iter().map(|p| p.0).fold(0.0, f64::max));
    let rows = ticks(points.iter().map(|p| p.1).fold(0.0, f64::max));
    let (right, top) = (
        columns.last().copied().unwrap_or(1.0),
        rows.last().copied().unwrap_or(1.0),
    );
    let x = |v: f64| LEFT + v / right * (WIDTH - LEFT - RIGHT - 10.0);
    let y = |v: f64| bottom - v / top * (bottom - TOP);
    let mut svg = open(WIDTH, height, label);
    for value in rows {
        grid_row(&mut svg, y(value), &figure(value));
    }
    for value in columns {
        let _ = write!(
            svg,
            r#"<text class="tick" x="{:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
            x(value),
            height - 8.0,
            figure(value)
        );
    }
    let mut sorted: Vec<_> = points.iter().filter(|p| p.2).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let path: Vec<String> = sorted
        .iter()
        .map(|p| format!("{:.1},{:.1}", x(p.0), y(p.1)))
        .collect();
    let _ = write!(
        svg,
        r#"<polyline class="line ours" points="{}"/>"#,
        path.join(" ")
    );
    for (tps, p99, held) in points {
        let (class, word) = if *held {
            ("held", "held")
        } else {
            ("broke", "failed")
        };
        let _ = write!(
            svg,
            r#"<circle class="{class}" cx="{:.1}" cy="{:.1}" r="4.5"><title>{} TPS: p99 {} ms, {word}</title></circle>"#,
            x(*tps),
            y(*p99),
            figure(*tps),
            figure(*p99)
        );
    }
    svg.push_str("</svg>");
    svg
}

fn open(width: f64, height: f64, label: &str) -> String {
    format!(
        r#"<svg viewBox="0 0 {width} {height}" role="img" aria-label="{}">"#,
        escape(label)
    )
}

fn grid_row(svg: &mut String, y: f64, text: &str) {
    let _ = write!(
        svg,
        r#"<line class="grid" x1="{LEFT}" y1="{y:.1}" x2="{:.1}" y2="{y:.1}"/><text class="tick" x="{:.1}" y="{:.1}" text-anchor="end">{text}</text>"#,
        WIDTH - RIGHT,
        LEFT - 8.0,
        y + 4.0
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_few_round_and_reach_the_top() {
        for top in [0.003, 0.9, 1.0, 7.3, 99.0, 5066.0, 51_666.0, 1e9] {
            let ticks = ticks(top);
            assert!(ticks.len() >= 3 && ticks.len() <= 7, "{top}: {ticks:?}");
            assert!(ticks.last().unwrap() * 1.0001 >= top, "{top}: {ticks:?}");
        }
        assert_eq!(ticks(f64::NAN), [0.0, 1.0]);
    }

    #[test]
    fn plots_hold_no_broken_numbers() {
        let lines = [Line {
            name: "a<b",
            class: "ours",
            points: vec![(1.0, 0.0), (2.0, 5.0)],
        }];
        let spread = Spread {
            name: "x".into(),
            at: vec![0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8],
        };
        for svg in [
            over_time(&lines, Some((1.0, 2.0)), "TPS", "l"),
            over_time(&[], None, "", "l"),
            spreads(&[spread], &[("x".into(), vec![("p50", 143.0)])], "l"),
            spreads(&[], &[], "l"),
            steps(&[(1000.0, 5.0, true), (2000.0, 900.0, false)], "l"),
        ] {
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            assert!(svg.ends_with("</svg>") && !svg.contains("a<b"));
        }
    }
}
