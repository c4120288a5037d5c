//! `LanesWindow`: the rows of a table in the order of time, with window functions of this extension.

pub mod input;
pub mod plan;
pub mod rows;
pub mod run;
pub mod state;
pub mod values;
