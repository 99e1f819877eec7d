//! The messages of several functions in one order: by time within a function, and never a message where it comes in before it
//! went out.

use std::collections::{HashMap, HashSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::message::{Direction, Message};

/// A message between two lanes: as its sender has it, as its receiver has it, or both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Arrow {
    /// The sending lane.
    pub from: String,
    /// The receiving lane.
    pub to: String,
    /// The receiver's clock says that it came before it went.
    pub clocks_differ: bool,
    /// The message, as its sender has it where that is followed.
    pub message: Message,
}

/// What names a message at both ends of its connection.
type Key = (String, String, String, u64, String);

fn key(message: &Message) -> Key {
    let Message {
        interface,
        from,
        to,
        stream,
        kind,
        ..
    } = message;
    (interface.clone(), from.clone(), to.clone(), *stream, kind.clone())
}

/// Arrows in their order. Each list has the messages of one function, the oldest first.
#[must_use]
pub fn arrows(lists: Vec<Vec<Message>>) -> Vec<Arrow> {
    let names = lane_names(&lists);
    let senders: HashMap<Key, usize> = lists
        .iter()
        .enumerate()
        .flat_map(|(list, messages)| messages.iter().map(move |one| (list, one)))
        .filter(|(_, one)| one.direction == Some(Direction::Out))
        .map(|(list, one)| (key(one), list))
        .collect();
    let mut queues: Vec<VecDeque<Message>> = lists.into_iter().map(VecDeque::from).collect();
    let mut drawn: HashSet<Key> = HashSet::new();
    let mut position: HashMap<Key, usize> = HashMap::new();
    let mut arrows: Vec<Arrow> = Vec::new();
    while let Some(list) = next(&queues, &senders, &drawn) {
        let Some(message) = queues[list].pop_front() else {
            break;
        };
        let key = key(&message);
        if message.direction == Some(Direction::In)
            && let Some(arrow) = position.remove(&key).and_then(|at| arrows.get_mut(at))
        {
            arrow.to.clone_from(&message.function);
            arrow.clocks_differ = message.microseconds < arrow.message.microseconds;
            continue;
        }
        if message.direction == Some(Direction::Out) {
            drawn.insert(key.clone());
            position.insert(key, arrows.len());
        }
        arrows.push(arrow(message, &names));
    }
    arrows
}

/// The list whose oldest message is next: the earliest of those that wait for no sender.
fn next(queues: &[VecDeque<Message>], senders: &HashMap<Key, usize>, drawn: &HashSet<Key>) -> Option<usize> {
    let heads = queues
        .iter()
        .enumerate()
        .filter_map(|(list, queue)| Some((list, queue.front()?)));
    let rank = |(list, head): &(usize, &Message)| {
        let waits = head.direction == Some(Direction::In) && {
            let key = key(head);
            !drawn.contains(&key) && senders.get(&key).is_some_and(|sender| sender != list)
        };
        (waits, head.microseconds)
    };
    heads.min_by_key(rank).map(|(list, _)| list)
}

/// Names of the ends of connections: those of followed functions; of others what they say of themselves.
fn lane_names(lists: &[Vec<Message>]) -> HashMap<String, String> {
    let mut names = HashMap::new();
    let all = || lists.iter().flatten();
    for message in all().filter(|one| one.direction == Some(Direction::In) && one.kind == "request") {
        if let Some(name) = user_agent(message) {
            names.insert(message.from.clone(), name.to_owned());
        }
    }
    // Where both ends are followed, the client is the function itself.
    for message in all().filter(|one| one.kind != "lost") {
        let own = match message.direction {
            Some(Direction::In) => &message.to,
            _ => &message.from,
        };
        names.insert(own.clone(), message.function.clone());
    }
    names
}

/// What a client says of itself: the type of the network function, and its name (TS 29.500 §5.2.2.2).
fn user_agent(message: &Message) -> Option<&str> {
    let (_, value) = message.headers.iter().find(|(name, _)| name == "user-agent")?;
    let name = value.split([' ', '/']).next()?;
    let is_usable = !name.is_empty() && name.len() <= 64 && name.bytes().all(|byte| byte.is_ascii_graphic());
    is_usable.then_some(name)
}

fn arrow(message: Message, names: &HashMap<String, String>) -> Arrow {
    let other = match message.direction {
        Some(Direction::In) => &message.from,
        _ => &message.to,
    };
    let peer = match names.get(other) {
        Some(name) => name.clone(),
        None if message.peer.is_empty() => other.clone(),
        None => message.peer.clone(),
    };
    let (from, to) = match message.direction {
        Some(Direction::In) => (peer, message.function.clone()),
        _ => (message.function.clone(), peer),
    };
    Arrow {
        from,
        to,
        clocks_differ: false,
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(function: &str, direction: Direction, kind: &str, at: u64, stream: u64) -> Message {
        let (client, server) = ("10.0.0.1:1".to_owned(), "10.0.0.2:2".to_owned());
        let (from, to) = if kind == "request" {
            (client, server)
        } else {
            (server, client)
        };
        Message {
            function: function.to_owned(),
            direction: Some(direction),
            interface: "sbi".to_owned(),
            kind: kind.to_owned(),
            microseconds: at,
            stream,
            from,
            to,
            ..Message::default()
        }
    }

    #[test]
    fn an_answer_is_never_before_its_request_whatever_clocks_say() {
        use Direction::{In, Out};
        // The clock of the PCF is 1,000 behind.
        let scp = vec![
            message("scp", Out, "request", 2_000, 1),
            message("scp", In, "answer", 2_010, 1),
        ];
        let pcf = vec![
            message("pcf", In, "request", 1_001, 1),
            message("pcf", Out, "answer", 1_005, 1),
        ];
        for lists in [vec![scp.clone(), pcf.clone()], vec![pcf, scp]] {
            let found = arrows(lists);
            let shown: Vec<_> = found
                .iter()
                .map(|one| {
                    (
                        one.from.as_str(),
                        one.to.as_str(),
                        one.message.kind.as_str(),
                        one.clocks_differ,
                    )
                })
                .collect();
            assert_eq!(
                shown,
                [("scp", "pcf", "request", true), ("pcf", "scp", "answer", false)]
            );
        }
    }

    #[test]
    fn every_message_is_drawn_once_even_where_the_order_is_impossible() {
        use Direction::{In, Out};
        let one = vec![
            message("a", In, "request", 1, 1),
            message("a", Out, "answer", 2, 1),
        ];
        let other = vec![
            message("b", In, "answer", 1, 1),
            message("b", Out, "request", 2, 1),
        ];
        assert_eq!(arrows(vec![one, other]).len(), 3);
        assert!(arrows(Vec::new()).is_empty());
    }
}
