//! Gauges of what is available, read from the control side.

use std::sync::{Arc, Weak};

use telemetry::Registry;

use crate::control::Control;
use crate::metrics::{CONGESTED, DESTINATIONS, ENTRIES, HOPS, LINKS, QUEUED, SEGMENTS, TRANSACTIONS};

/// The names that a gauge shows, each with its value.
type Values = fn(&Control) -> Vec<(String, f64)>;

/// What a gauge without names shows.
type Count = fn(&Control) -> usize;

/// Shows what is available for as long as the control side is in use.
pub(crate) fn observe(registry: &Registry, control: &Arc<Control>) {
    let counts: [(&telemetry::Declaration, Count); 2] = [
        (&CONGESTED, Control::congested),
        (&TRANSACTIONS, |control| control.transactions.len()),
    ];
    for (declaration, count) in counts {
        let control: Weak<Control> = Arc::downgrade(control);
        registry.observe_all(declaration, move || {
            let count = control.upgrade().map(|control| count(&control) as f64);
            count.map(|count| (Vec::new(), count)).into_iter().collect()
        });
    }
    let shown: [(&telemetry::Declaration, Values); 6] = [
        (&QUEUED, |control| {
            let rows = control.links().into_iter();
            rows.map(|row| (row.name, row.queued as f64)).collect()
        }),
        (&LINKS, |control| {
            let rows = control.links().into_iter();
            rows.map(|row| (row.name, f64::from(u8::from(row.state == "active"))))
                .collect()
        }),
        (&HOPS, |control| {
            let rows = control.hops().into_iter();
            rows.map(|row| (row.name, f64::from(u8::from(row.state == "active"))))
                .collect()
        }),
        (&DESTINATIONS, |control| {
            let rows = control.routes().into_iter();
            rows.map(|row| (row.destination, f64::from(u8::from(row.state == "available"))))
                .collect()
        }),
        (&SEGMENTS, |control| {
            let state = control.state.load();
            let counts = state.tables.hops.iter().zip(&control.segments);
            counts
                .map(|(hop, segments)| (hop.name.clone(), segments.lock().len() as f64))
                .collect()
        }),
        (&ENTRIES, |control| {
            let state = control.state.load();
            let translations = &state.tables.translations;
            let counts = translations.sets.iter().zip(&translations.entries);
            counts.map(|(set, count)| (set.clone(), *count as f64)).collect()
        }),
    ];
    for (declaration, values) in shown {
        let control: Weak<Control> = Arc::downgrade(control);
        registry.observe_all(declaration, move || {
            let rows = control
                .upgrade()
                .map_or_else(Vec::new, |control| values(&control));
            rows.into_iter()
                .map(|(name, value)| (vec![name], value))
                .collect()
        });
    }
}
