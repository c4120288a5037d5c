//! The content of the container images, tested without containers: their scripts run, their
//! configuration is loaded, and every query of the dashboard is answered in the form that Grafana
//! sends.
//!
//! | module | contents |
//! |---|---|
//! | [`database`] | the database image's scripts, run in a folder |
//! | [`dashboard`] | the dashboard's queries, with Grafana's macros expanded |
//! | [`files`] | consistency of the images' files with each other and with the product |

mod dashboard;
mod database;
mod files;
