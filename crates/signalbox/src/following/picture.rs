//! A ladder as text: a lane for each function and peer, an arrow for each message.

use follow::ladder::Arrow;
use function::pages::cell;
use serde_json::Value;

/// Columns of a lane.
const LANE: usize = 12;
/// Lanes that are drawn; with more the names stand beside the message.
const MOST_LANES: usize = 12;

/// Draws the messages, each on a line of its own.
pub(super) fn draw(arrows: &[Arrow]) -> String {
    if arrows.is_empty() {
        return "no message of the subscriber came\n".to_owned();
    }
    let mut lanes: Vec<&str> = Vec::new();
    for name in arrows.iter().flat_map(|arrow| [&arrow.from, &arrow.to]) {
        if !lanes.contains(&name.as_str()) {
            lanes.push(name);
        }
    }
    let is_drawn = lanes.len() <= MOST_LANES;
    let mut text = String::new();
    for (number, lane) in lanes.iter().enumerate() {
        text.push_str(&format!("{:>3}  {}\n", number + 1, plain(lane)));
    }
    text.push('\n');
    if is_drawn {
        let heads: String = (1..=lanes.len())
            .map(|number| format!("{number:<LANE$}"))
            .collect();
        text.push_str(&format!("{:16}{}\n", "", heads.trim_end()));
    }
    for arrow in arrows {
        let place = |name: &str| lanes.iter().position(|lane| *lane == name).unwrap_or_default();
        let (from, to) = (place(&arrow.from), place(&arrow.to));
        let route = match is_drawn {
            true => rung(lanes.len(), from, to),
            false => format!("{:>3} -> {:<3}", from + 1, to + 1),
        };
        let time = arrow.message.time.get(11..26).unwrap_or_default();
        let mut line = format!("{time} {route}  {}", plain(&arrow.message.title));
        if arrow.message.is_failure {
            line.push_str("  !");
        }
        if arrow.message.found_by.is_none() {
            line.push_str("  (sent for a message of the subscriber)");
        }
        if arrow.clocks_differ {
            line.push_str("  (clocks differ)");
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// The lanes with an arrow from one to another.
fn rung(lanes: usize, from: usize, to: usize) -> String {
    let width = (lanes - 1) * LANE + 1;
    let mut line = vec![' '; width];
    (0..lanes).for_each(|lane| line[lane * LANE] = '|');
    let (left, right) = (from.min(to) * LANE, from.max(to) * LANE);
    if left == right {
        line[left] = '*';
    } else {
        line[left + 1..right].fill('-');
        let head = if from < to {
            (right - 1, '>')
        } else {
            (left + 1, '<')
        };
        line[head.0] = head.1;
    }
    line.into_iter().collect()
}

/// A text of a peer, which a terminal must not obey.
fn plain(text: &str) -> String {
    let text: String = text.chars().take(160).collect();
    cell(Some(&Value::String(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_point_from_lane_to_lane() {
        assert_eq!(rung(3, 0, 1), "|---------->|           |");
        assert_eq!(rung(3, 2, 0), "|<----------------------|");
        assert_eq!(rung(1, 0, 0), "*");
    }
}
