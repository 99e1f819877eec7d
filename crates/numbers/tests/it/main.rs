//! Files of numbers from outside: exact, changed while they are read, damaged, cut, imported.

mod changes;
mod checkpoint;
mod counted;
mod csv;
mod damage;
mod exact;
mod fuzz;
mod longer;
mod name_file;
mod names;
mod support;
mod walk;
