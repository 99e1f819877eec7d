//! The paths at which producers notify the PCF of an association: a random one for each subscription, which the producer alone
//! has got. The identity of the association, which its consumer and others know, opens none of them.

use serde_json::Value;

use super::Association;

/// The room of an association that has them.
const ROOM: &str = "callbacks";

/// Who notifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Producer {
    /// Policy data have changed.
    Udr,
    /// Policy counters have changed.
    Chf,
    /// A UE has answered, or cannot be reached.
    Amf,
}

impl Producer {
    /// Its NF type.
    pub(crate) fn nf_type(self) -> &'static str {
        match self {
            Self::Udr => "UDR",
            Self::Chf => "CHF",
            Self::Amf => "AMF",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Udr => "udr",
            Self::Chf => "chf",
            Self::Amf => "amf",
        }
    }
}

/// The random segment of the path for a producer: the one that the association has, or a new one.
pub(crate) fn open(association: &mut Association, producer: Producer) -> String {
    if let Some(token) = token(association, producer) {
        return token.to_owned();
    }
    let token = uuid::Uuid::new_v4().simple().to_string();
    let room = association
        .rooms
        .entry(ROOM)
        .or_insert_with(|| Value::Object(serde_json::Map::new()));
    if let Value::Object(room) = room {
        room.insert(producer.name().to_owned(), token.clone().into());
    }
    token
}

/// The random segment of the path for a producer; none in an association that an earlier release has written.
pub(crate) fn token(association: &Association, producer: Producer) -> Option<&str> {
    association.rooms.get(ROOM)?.get(producer.name())?.as_str()
}

/// The name under which an association is found by a segment.
pub(crate) fn name(producer: Producer, token: &str) -> String {
    format!("callback:{}:{token}", producer.name())
}

/// The names under which an association is found.
pub(super) fn names(association: &Association) -> impl Iterator<Item = String> + '_ {
    let each = [Producer::Udr, Producer::Chf, Producer::Amf].into_iter();
    each.filter_map(|producer| Some(name(producer, token(association, producer)?)))
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;
    use serde_json::json;

    #[test]
    fn each_producer_has_a_path_of_its_own_that_stays() {
        let mut association = Association::new(Kind::Ue, json!({}));
        let udr = open(&mut association, Producer::Udr);
        let amf = open(&mut association, Producer::Amf);
        assert_eq!(open(&mut association, Producer::Udr), udr);
        assert!(udr != amf && udr.len() == 32);
        let found: Vec<String> = names(&association).collect();
        assert_eq!(found, [name(Producer::Udr, &udr), name(Producer::Amf, &amf)]);
        assert!(association.names().any(|name| name == found[0]));
    }
}
