//! The content of the container images, tested without containers: their scripts run, their
//! configuration is loaded, and every query of the dashboards is answered in the form that Grafana
//! sends.
//!
//! | module | contents |
//! |---|---|
//! | [`database`] | the database image's scripts, run in a folder |
//! | [`dashboard`] | the queries of the dashboard in SQL, with Grafana's macros expanded |
//! | [`promql_dashboard`] | the queries of the dashboard in PromQL, with Grafana's variables replaced |
//! | [`files`] | consistency of the images' files with each other and with the product |

mod dashboard;
mod database;
mod files;
mod promql_dashboard;
