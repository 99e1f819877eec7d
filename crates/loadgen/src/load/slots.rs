//! Pending requests of a connection, found by their identifier without hashing.

use crate::load::Sent;

/// Bits of an identifier that hold the slot of the request; the others count the uses of the slot.
const PLACE_BITS: u32 = 16;
const PLACES: usize = 1 << PLACE_BITS;

/// Pending requests.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    places: Vec<Place>,
    free: Vec<u16>,
    taken: usize,
}

#[derive(Debug)]
struct Place {
    generation: u16,
    sent: Option<Sent>,
}

impl Slots {
    /// Free slots.
    pub(crate) fn room(&self) -> usize {
        PLACES - self.taken
    }

    /// Stores a request; returns its identifier. `None` when no slot is free.
    pub(crate) fn keep(&mut self, sent: Sent) -> Option<u32> {
        let at = match self.free.pop() {
            Some(at) => at,
            None => {
                let at = u16::try_from(self.places.len()).ok()?;
                self.places.push(Place {
                    generation: 0,
                    sent: None,
                });
                at
            }
        };
        let place = &mut self.places[usize::from(at)];
        place.generation = place.generation.wrapping_add(1);
        place.sent = Some(sent);
        self.taken += 1;
        Some(u32::from(place.generation) << PLACE_BITS | u32::from(at))
    }

    /// The request of this identifier, if it is still pending.
    pub(crate) fn get(&self, id: u32) -> Option<&Sent> {
        let place = self.places.get((id & 0xffff) as usize)?;
        (u32::from(place.generation) == id >> PLACE_BITS)
            .then_some(place.sent.as_ref())
            .flatten()
    }

    /// Removes the request of this identifier.
    pub(crate) fn take(&mut self, id: u32) -> Option<Sent> {
        self.get(id)?;
        let at = id as u16;
        let sent = self.places[usize::from(at)].sent.take()?;
        self.free.push(at);
        self.taken -= 1;
        Some(sent)
    }

    /// Removes all requests.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Sent> + '_ {
        self.taken = 0;
        let free = &mut self.free;
        self.places.iter_mut().enumerate().filter_map(move |(at, place)| {
            let sent = place.sent.take()?;
            free.push(at as u16);
            Some(sent)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Ticket;
    use std::time::Duration;

    fn sent(number: u32) -> Sent {
        Sent {
            ticket: Ticket {
                first: number,
                ..Ticket::default()
            },
            intended: Duration::ZERO,
            step: 0,
        }
    }

    #[test]
    fn an_identifier_finds_its_request_once() {
        let mut slots = Slots::default();
        let ids: Vec<u32> = (0..1000).map(|n| slots.keep(sent(n)).unwrap()).collect();
        for (n, id) in ids.iter().enumerate() {
            assert_eq!(slots.take(*id).unwrap().ticket.first, n as u32);
            assert!(slots.take(*id).is_none());
        }
        assert_eq!(slots.room(), PLACES);
        let again = slots.keep(sent(7)).unwrap();
        assert!(!ids.contains(&again), "a reused slot has another identifier");
        assert!(slots.take(0xdead_beef).is_none());
        assert_eq!(slots.drain().count(), 1);
        assert!(slots.room() == PLACES && slots.get(again).is_none());
        assert!((0..PLACES).all(|n| slots.keep(sent(n as u32)).is_some()));
        assert!(slots.keep(sent(0)).is_none() && slots.room() == 0);
    }
}
