//! An object store whose requests are counted. SlateDB repeats failed requests above this layer, so
//! each error here is followed by a repetition.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use parking_lot::Mutex;

use crate::objects::model::ObjectMetrics;

/// The wrapped store, and the counters.
pub struct Observed {
    inner: Arc<dyn ObjectStore>,
    counts: Counts,
}

#[derive(Clone)]
struct Counts {
    metrics: Arc<ObjectMetrics>,
    last_error: LastError,
}

/// The answer to the last failed request. SlateDB does not report it while it repeats the request.
#[derive(Clone, Default)]
pub struct LastError(Arc<Mutex<Option<String>>>);

impl LastError {
    /// Takes the error, if there was one.
    pub fn take(&self) -> Option<String> {
        self.0.lock().take()
    }
}

impl Observed {
    /// Counts the requests to `inner`.
    pub fn new(
        inner: Arc<dyn ObjectStore>,
        metrics: Arc<ObjectMetrics>,
        last_error: LastError,
    ) -> Self {
        Self {
            inner,
            counts: Counts {
                metrics,
                last_error,
            },
        }
    }
}

impl Counts {
    fn of<T>(&self, operation: &str, result: Result<T>) -> Result<T> {
        let objects = &self.metrics;
        objects.store.requests.with_label_values(&[operation]).inc();
        match &result {
            Ok(_)
            // These are answers, not failures. SlateDB uses them to look for what may exist, to
            // detect that another writer was first, and to find out what local files do not
            // support.
            | Err(
                Error::NotFound { .. }
                | Error::AlreadyExists { .. }
                | Error::Precondition { .. }
                | Error::NotModified { .. }
                | Error::NotSupported { .. }
                | Error::NotImplemented { .. },
            ) => {}
            Err(error) => {
                objects.store.errors.with_label_values(&[operation]).inc();
                let text = error.to_string();
                tracing::debug!(operation, "object store: {text}");
                *self.last_error.0.lock() = Some(text);
            }
        }
        result
    }
}

impl fmt::Debug for Observed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.inner, formatter)
    }
}

impl fmt::Display for Observed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner, formatter)
    }
}

#[async_trait]
impl ObjectStore for Observed {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let result = self.inner.put_opts(location, payload, options).await;
        self.counts.of("put", result)
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let result = self.inner.put_multipart_opts(location, options).await;
        self.counts.of("put_multipart", result)
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let operation = if options.head { "head" } else { "get" };
        let result = self.inner.get_opts(location, options).await;
        self.counts.of(operation, result)
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let result = self.inner.get_ranges(location, ranges).await;
        self.counts.of("get", result)
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let counts = self.counts.clone();
        let deleted = self.inner.delete_stream(locations);
        deleted
            .map(move |result| counts.of("delete", result))
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let counts = self.counts.clone();
        let mut is_first = true;
        // There is one request for each page, but pages are not visible here. The listing is
        // counted once, and errors as they occur.
        self.inner
            .list(prefix)
            .map(move |result| match result {
                Ok(listed) if !std::mem::take(&mut is_first) => Ok(listed),
                other => counts.of("list", other),
            })
            .boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let result = self.inner.list_with_delimiter(prefix).await;
        self.counts.of("list", result)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let result = self.inner.copy_opts(from, to, options).await;
        self.counts.of("copy", result)
    }
}
