//! The application: all parts put together.
//!
//! ```text
//! lifecycle ─► worker, one for each thread ─► handlers ─┬─► router ──┬─► service ─► connections
//!                                                       └─► events ──┘
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`settings`] | the settings of the application |
//! | [`lifecycle`] | starting, serving and stopping |
//! | [`worker`] | what each thread that serves requests owns |
//! | [`handlers`] | what the handlers of requests share |
//! | [`router`] | all routes |
//! | [`service`] | what a connection calls for a request |
//! | [`metrics`] | the metrics of all parts |

pub mod handlers;
pub mod lifecycle;
pub mod metrics;
pub mod router;
pub mod service;
pub mod settings;
pub mod worker;

pub use lifecycle::App;
pub use metrics::AppMetrics;
pub use settings::{AppSettings, SelfScrape};
