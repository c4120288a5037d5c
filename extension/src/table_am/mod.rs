//! The table access method: [`routine`] lists every callback; the other files answer them.
//!
//! Reading: [`reader`] opens a table under its current directory, [`scan`] turns runs, snapshot and tombstones into
//! ranges of visible rows and hands them out in either direction, [`one_row`] finds a row by its number, [`sample`] serves
//! ANALYZE and TABLESAMPLE.
//! Writing: [`insert`] appends runs, [`insert_buffer`] gathers the rows of one executor run, [`modify`] adds tombstones and row locks by one shared conflict check.
//! [`row_numbers`] keeps the numbers of rows that such statements have found.
//! The rest: [`relation`] (files and sizes), [`vacuum`] with its [`vacuum_report`], [`rewrite`] (VACUUM FULL),
//! [`refuse`] (what is not done, by name), [`tid`] (rows as tuple ids).

pub mod insert;
pub mod insert_buffer;
pub mod modify;
pub mod refuse;
pub mod relation;
pub mod rewrite;
pub mod routine;
pub mod sample;
