//! What the container images are made of, without containers: their scripts are run, their configuration is used, and every query of the
//! dashboard is answered as Grafana would send it.
//!
//! | module | one thing |
//! |---|---|
//! | [`database`] | the database image's scripts, run in a folder: passwords made, cluster made, server started |
//! | [`dashboard`] | the dashboard's queries, with Grafana's macros put in |
//! | [`files`] | what the image's files say of each other and of the product |

mod dashboard;
mod database;
mod files;
