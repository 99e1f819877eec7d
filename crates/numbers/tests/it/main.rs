//! Files of numbers from outside: exact, changed while they are read, damaged, cut, imported.

mod changes;
mod checkpoint;
mod counted;
mod csv;
mod damage;
mod exact;
mod fuzz;
mod longer;
mod names;
mod support;
mod walk;
