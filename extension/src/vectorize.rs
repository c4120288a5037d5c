//! Settings of how queries are planned and executed: `lanes.vectorize` and `lanes.zone_maps`.

use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, PostgresGucEnum};

/// Whether queries are vectorised.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PostgresGucEnum)]
pub enum Vectorize {
    /// Never.
    #[name = c"off"]
    Off,
    /// Where possible.
    #[name = c"on"]
    On,
    /// Everywhere. A query that cannot be vectorised fails with the reason.
    #[name = c"require"]
    Require,
}

static VECTORIZE: GucSetting<Vectorize> = GucSetting::<Vectorize>::new(Vectorize::On);

/// The setting `lanes.vectorize`.
pub fn vectorize() -> Vectorize {
    VECTORIZE.get()
}

static ZONE_MAPS: GucSetting<bool> = GucSetting::<bool>::new(true);

/// Whether zone maps are used.
pub fn zone_maps() -> bool {
    ZONE_MAPS.get()
}

/// Defines the settings.
pub fn register() {
    GucRegistry::define_enum_guc(
        c"lanes.vectorize",
        c"Whether queries on lanes tables use the vectorised executor.",
        c"off: never. on: where it can be done. require: a query on lanes tables that cannot be vectorised fails and says why.",
        &VECTORIZE,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_bool_guc(
        c"lanes.zone_maps",
        c"Whether vectorised queries use zone maps: to skip vectors, and to answer without a look at their rows.",
        c"Answers are the same either way; off is for measuring.",
        &ZONE_MAPS,
        GucContext::Userset,
        GucFlags::default(),
    );
}
