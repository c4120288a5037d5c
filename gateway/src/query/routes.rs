//! All routes of the query API, and what happens to each request.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use bytes::Bytes;
use parking_lot::Mutex;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, NotForContentType, Predicate};

use super::answer::Answer;
use super::deletion::Deletions;
use super::failure::{Failure, Kind};
use super::form::{self, BODY_BYTES_MAX, Form};
use super::metrics::{Observation, QueryMetrics};
use super::remote_read::answer as remote_read;
use super::remote_read::samples::SampleLimits;
use super::sessions::{AsRole, ReadSessions};
use super::settings::QuerySettings;
use super::{evaluate, federate, labels, status, storage, syntax};
use crate::access::User;
use crate::clock::{self, Instant};
use crate::http::Refusal;
use crate::http::body::{self, BodyError, BodyLimits};
use crate::model::{Budget, Reservation};

/// The time in which only one failure of the database is logged.
const WARNING_INTERVAL: Duration = Duration::from_secs(10);

/// The media type of chunks, without its parameters.
const CHUNKS: &str = "application/x-streamed-protobuf";

/// The error of all routes without a connection.
const OFF: &str = "queries are not served: set query.connection (LANES_GATEWAY_QUERY_CONNECTION) to a role that lanes.grant_reader was called for";

/// What the query API of all workers shares.
pub struct QueryApi {
    settings: QuerySettings,
    /// `None` if queries are not served.
    database: Option<Database>,
    budget: Budget,
    body_timeout: Duration,
    metrics: Arc<QueryMetrics>,
    /// The start of the gateway, in milliseconds since 1970.
    started: i64,
    last_warning: Mutex<Option<Instant>>,
    /// How long answers to remote reads of type `SAMPLES` may be.
    read_limits: SampleLimits,
}

/// The ways to the database.
struct Database {
    sessions: ReadSessions,
    deletions: Deletions,
}

/// What the handlers of routes use.
pub struct Served<'a> {
    /// The settings.
    pub settings: &'a QuerySettings,
    /// The sessions, as the role of the user.
    pub sessions: AsRole<'a>,
    /// The counters of queries.
    pub metrics: &'a QueryMetrics,
}

/// The parameters and the body of a request.
#[derive(Default)]
struct Input {
    form: Form,
    /// The body of a request that is no form.
    message: Bytes,
    /// The memory of both.
    reservation: Reservation,
}

/// The routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route {
    Query,
    QueryRange,
    QueryExemplars,
    FormatQuery,
    ParseQuery,
    Federate,
    Read,
    Series,
    Labels,
    LabelValues,
    Metadata,
    BuildInfo,
    RuntimeInfo,
    Config,
    Flags,
    Tsdb,
    Storage,
    Rules,
    Alerts,
    Targets,
    TargetMetadata,
    Alertmanagers,
    DeleteSeries,
    CleanTombstones,
    Snapshot,
}

/// The methods of most routes, of those that also take a form, of remote read, and of those that
/// change something.
const GET: MethodFilter = MethodFilter::GET;
const FORM: MethodFilter = GET.or(MethodFilter::POST);
const POST: MethodFilter = MethodFilter::POST;
const CHANGE: MethodFilter = POST.or(MethodFilter::PUT);

/// The path of each route and its methods.
const ROUTES: [(Route, &str, MethodFilter); 25] = [
    (Route::Query, "/api/v1/query", FORM),
    (Route::QueryRange, "/api/v1/query_range", FORM),
    (Route::QueryExemplars, "/api/v1/query_exemplars", FORM),
    (Route::FormatQuery, "/api/v1/format_query", FORM),
    (Route::ParseQuery, "/api/v1/parse_query", FORM),
    (Route::Federate, "/federate", GET),
    (Route::Read, "/api/v1/read", POST),
    (Route::Series, "/api/v1/series", FORM),
    (Route::Labels, "/api/v1/labels", FORM),
    (Route::LabelValues, "/api/v1/label/{name}/values", GET),
    (Route::Metadata, "/api/v1/metadata", GET),
    (Route::BuildInfo, "/api/v1/status/buildinfo", GET),
    (Route::RuntimeInfo, "/api/v1/status/runtimeinfo", GET),
    (Route::Config, "/api/v1/status/config", GET),
    (Route::Flags, "/api/v1/status/flags", GET),
    (Route::Tsdb, "/api/v1/status/tsdb", GET),
    (Route::Storage, "/api/v1/status/storage", GET),
    (Route::Rules, "/api/v1/rules", GET),
    (Route::Alerts, "/api/v1/alerts", GET),
    (Route::Targets, "/api/v1/targets", GET),
    (Route::TargetMetadata, "/api/v1/targets/metadata", GET),
    (Route::Alertmanagers, "/api/v1/alertmanagers", GET),
    (
        Route::DeleteSeries,
        "/api/v1/admin/tsdb/delete_series",
        CHANGE,
    ),
    (
        Route::CleanTombstones,
        "/api/v1/admin/tsdb/clean_tombstones",
        CHANGE,
    ),
    (Route::Snapshot, "/api/v1/admin/tsdb/snapshot", CHANGE),
];

/// Returns the router of the query API. Answers are compressed for clients that accept gzip;
/// `tower-http` reads `Accept-Encoding` and compresses piece by piece. Other routes of the gateway
/// have short answers, and are not compressed.
pub fn router<S: Clone + Send + Sync + 'static>(api: Arc<QueryApi>) -> Router<S> {
    let mut router = Router::new();
    for (route, path, methods) in ROUTES {
        let handler = move |State(api): State<Arc<QueryApi>>,
                            name: Option<Path<String>>,
                            request: Request| async move {
            let name = name.map(|Path(name)| name).unwrap_or_default();
            api.respond(route, path, &name, request).await
        };
        router = router.route(path, on(methods, handler));
    }
    // More effort would take longer than the query, on the threads that also serve writes. Chunks
    // have no pattern left.
    let compression = CompressionLayer::new().quality(CompressionLevel::Fastest);
    let is_compressible = DefaultPredicate::new().and(NotForContentType::const_new(CHUNKS));
    let compression = compression.compress_when(is_compressible);
    router.layer(compression).with_state(api)
}

/// Whether a form in the body counts, as in Prometheus.
fn takes_form(method: &Method) -> bool {
    [Method::POST, Method::PUT].contains(method)
}

impl QueryApi {
    /// Creates the API without opening a session. Its deletions run on the current runtime.
    ///
    /// # Panics
    /// Panics outside of a runtime.
    pub fn new(
        settings: QuerySettings,
        budget: Budget,
        body_timeout: Duration,
        metrics: Arc<QueryMetrics>,
    ) -> Self {
        let database = settings.connection.clone().map(|connection| Database {
            deletions: Deletions::new(connection.clone(), &settings, Arc::clone(&metrics)),
            sessions: ReadSessions::new(connection, settings.clone(), Arc::clone(&metrics)),
        });
        let read_limits = SampleLimits {
            samples_max: settings.read_samples_max,
            bytes_max: settings.read_bytes_max,
            budget: Budget::new(settings.read_bytes_max, Duration::ZERO),
        };
        Self {
            settings,
            read_limits,
            database,
            budget,
            body_timeout,
            metrics,
            started: clock::unix_ms(),
            last_warning: Mutex::new(None),
        }
    }

    async fn respond(
        &self,
        route: Route,
        path: &'static str,
        name: &str,
        request: Request,
    ) -> Response {
        let mut observation = Observation::start(&self.metrics, path);
        match self.answer(route, name, request).await {
            Ok(answer) => answer.into_response(observation),
            Err(failure) => {
                self.log(&failure);
                observation.end(failure.kind.name());
                match route {
                    Route::Federate | Route::Read => failure.into_text_response(),
                    _ => failure.into_response(),
                }
            }
        }
    }

    async fn answer(&self, route: Route, name: &str, request: Request) -> Result<Answer, Failure> {
        let Some(Database {
            sessions,
            deletions,
        }) = &self.database
        else {
            return Err(Failure::unavailable(OFF));
        };
        let user = request.extensions().get::<Arc<User>>();
        let role = user.map(|user| Arc::clone(&user.role));
        let served = Served {
            settings: &self.settings,
            sessions: sessions.as_role(role.clone()),
            metrics: &self.metrics,
        };
        let Input {
            form,
            message,
            reservation: _held,
        } = self.input(route, request).await?;
        match route {
            Route::Read => {
                let request = remote_read::request(&message)?;
                remote_read::answer(&served, request, &self.read_limits).await
            }
            Route::Query => evaluate::query(&served, &form).await,
            Route::QueryRange => evaluate::query_range(&served, &form).await,
            Route::QueryExemplars => syntax::query_exemplars(&form),
            Route::FormatQuery => syntax::format_query(&form),
            Route::ParseQuery => syntax::parse_query(&form),
            Route::Federate => federate::federate(&served, &form).await,
            Route::DeleteSeries => deletions.delete_series(role, &form).await,
            Route::CleanTombstones => deletions.clean_tombstones(),
            Route::Snapshot => deletions.snapshot(),
            Route::Series => labels::series(&served, &form).await,
            Route::Labels => labels::names(&served, &form).await,
            Route::LabelValues => labels::values(&served, name, &form).await,
            Route::Metadata => status::metadata(&form),
            Route::Tsdb => status::tsdb(&served, &form).await,
            Route::Storage => storage::storage(&served).await,
            Route::BuildInfo => Ok(Answer::Data(status::build_info())),
            Route::RuntimeInfo => Ok(Answer::Data(status::runtime_info(self.started))),
            Route::Config => Ok(Answer::Data(status::config())),
            Route::Flags => Ok(Answer::Data(status::flags(&served))),
            Route::Rules => Ok(Answer::Data(status::rules())),
            Route::Alerts => Ok(Answer::Data(status::alerts())),
            Route::Targets => Ok(Answer::Data(status::targets())),
            Route::TargetMetadata => Ok(Answer::Data(status::target_metadata())),
            Route::Alertmanagers => Ok(Answer::Data(status::alertmanagers())),
        }
    }

    /// Reads what a request brings. The reservation covers what comes in its body.
    async fn input(&self, route: Route, request: Request) -> Result<Input, Failure> {
        let (head, body) = request.into_parts();
        let url_query = head.uri.query().unwrap_or_default();
        let mut input = Input::default();
        if route == Route::Read {
            // The body, its decompressed bytes and the selectors made of these.
            (input.message, input.reservation) = self.body(body, 1).await?;
            let declared_bytes = remote_read::declared_bytes(&input.message)?;
            let bytes = input.message.len() + 2 * declared_bytes;
            let grown = input.reservation.grow(&self.budget, bytes);
            grown.map_err(|error| Failure::unavailable(error.to_string()))?;
        } else if takes_form(&head.method) && form::is_form(&head.headers) {
            // The body, and the parameters copied out of it.
            let (form, reservation) = self.body(body, 2).await?;
            input.form = Form::parse(&form, url_query);
            input.reservation = reservation;
        } else {
            input.form = Form::parse(b"", url_query);
        }
        Ok(input)
    }

    /// Reads a body. The reservation covers this many times its length.
    async fn body(&self, body: Body, times: usize) -> Result<(Bytes, Reservation), Failure> {
        let limits = BodyLimits {
            bytes_max: BODY_BYTES_MAX,
            time_max: self.body_timeout,
            times,
        };
        match body::read(body, limits, &self.budget).await {
            Ok(read) => Ok(read),
            Err(BodyError::TooLong { bytes_max }) => {
                let reason = format!("body is longer than {bytes_max} bytes");
                Err(Failure::bad_data(reason))
            }
            Err(error) => Err(Refusal::from(error).into()),
        }
    }

    /// Logs what an operator can repair, once in a while.
    fn log(&self, failure: &Failure) {
        let is_repairable = matches!(failure.kind, Kind::Unavailable | Kind::Forbidden);
        if !is_repairable || self.database.is_none() {
            return;
        }
        let now = clock::now();
        let mut last = self.last_warning.lock();
        if last.is_none_or(|last| now - last >= WARNING_INTERVAL) {
            *last = Some(now);
            tracing::warn!("a query was refused: {failure}");
        }
    }
}
