//! The location of objects: a directory, or a bucket and a prefix.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, RetryConfig};

use super::StoreError;

/// The folder of the store within its location, which leaves room for other stores.
const FOLDER: &str = "segments";

/// The environment variables that name a server other than Amazon's.
const ENDPOINTS: [&str; 2] = ["AWS_ENDPOINT_URL", "AWS_ENDPOINT"];

/// The location of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A local directory.
    Directory(PathBuf),
    /// A bucket of S3, or of a compatible service.
    Bucket {
        /// The name of the bucket.
        bucket: String,
        /// The prefix of all keys.
        prefix: String,
    },
}

impl FromStr for Location {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(rest) = text.strip_prefix("s3://") {
            let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
            if bucket.is_empty() {
                return Err(format!("{text:?} does not name a bucket"));
            }
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
            if !(3..=63).contains(&bucket.len()) || !bucket.bytes().all(is_name) {
                return Err(format!("{bucket:?} is not a valid bucket name"));
            }
            Path::parse(prefix).map_err(|error| error.to_string())?;
            return Ok(Self::Bucket {
                bucket: bucket.to_owned(),
                prefix: prefix.trim_matches('/').to_owned(),
            });
        }
        let path = text.strip_prefix("file://").unwrap_or(text);
        // A scheme with a missing slash also counts as a scheme.
        let first = path.split('/').next().unwrap_or_default();
        if path.contains("://") || path.is_empty() || first.ends_with(':') {
            return Err(format!(
                "{text:?} is neither a directory nor s3://bucket/prefix"
            ));
        }
        Ok(Self::Directory(PathBuf::from(path)))
    }
}

impl Location {
    /// Checks whether the location is possible, as far as this machine can determine. Nothing is
    /// created.
    ///
    /// # Errors
    /// Returns an error if the path is below a file, which the message names.
    pub fn check(&self) -> Result<(), String> {
        let Self::Directory(directory) = self else {
            return Ok(());
        };
        let mut there = directory.ancestors().filter(|path| path.exists());
        match there.next() {
            Some(path) if !path.is_dir() => Err(format!("{} is not a directory", path.display())),
            _ => Ok(()),
        }
    }

    /// Whether objects can be replaced on the condition that they are unchanged.
    pub fn has_conditional_put(&self) -> bool {
        matches!(self, Self::Bucket { .. })
    }

    /// Opens the object store. Returns it and the path of the store within it.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be created, or if the environment is not a valid
    /// configuration. No server is contacted yet.
    pub fn open(&self) -> Result<(Arc<dyn ObjectStore>, Path), StoreError> {
        let unavailable =
            |error: &dyn std::error::Error| StoreError::Unavailable(format!("{error}"));
        match self {
            Self::Directory(directory) => {
                std::fs::create_dir_all(directory).map_err(|error| {
                    StoreError::Unavailable(format!("{}: {error}", directory.display()))
                })?;
                let files = LocalFileSystem::new_with_prefix(directory)
                    .map_err(|error| unavailable(&error))?;
                // Durable objects must survive a power failure, because rows are given up for them.
                Ok((Arc::new(files.with_fsync(true)), Path::from(FOLDER)))
            }
            Self::Bucket { bucket, prefix } => {
                // The provider is installed once in each process. If another one was installed
                // first, it is used.
                let _ = rustls::crypto::ring::default_provider().install_default();
                let is_plain = ENDPOINTS.iter().any(|name| {
                    std::env::var(name).is_ok_and(|endpoint| endpoint.starts_with("http://"))
                });
                // SlateDB repeats requests itself, forever and visible in the metrics.
                let retry = RetryConfig {
                    max_retries: 1,
                    ..RetryConfig::default()
                };
                let mut builder = AmazonS3Builder::from_env()
                    .with_retry(retry)
                    .with_bucket_name(bucket);
                if is_plain {
                    builder = builder.with_allow_http(true);
                }
                let store = builder.build().map_err(|error| unavailable(&error))?;
                let path = Path::from_iter(
                    prefix
                        .split('/')
                        .chain([FOLDER])
                        .filter(|part| !part.is_empty()),
                );
                Ok((Arc::new(store), path))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_a_directory_or_a_bucket() {
        let location = |text: &str| text.parse::<Location>();
        let bucket = |bucket: &str, prefix: &str| {
            Ok(Location::Bucket {
                bucket: bucket.to_owned(),
                prefix: prefix.to_owned(),
            })
        };
        for directory in [".lanes/objects", "file://.lanes/objects"] {
            assert_eq!(
                location(directory),
                Ok(Location::Directory(".lanes/objects".into()))
            );
        }
        assert_eq!(location("s3://bucket"), bucket("bucket", ""));
        assert_eq!(location("s3://bucket/p/q/"), bucket("bucket", "p/q"));
        for wrong in [
            "s3://",
            "s3:///p",
            "gs://b/p",
            "file://",
            "s3://bucket/p//q",
            "s3://b/p",
            "s3://a bucket",
            "s3:/bucket",
        ] {
            assert!(location(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_directory_below_a_file_is_impossible() {
        let check = |text: &str| text.parse::<Location>().unwrap().check();
        assert!(check("/dev/null/objects").is_err());
        assert_eq!(check("/dev/shm/not/there/yet"), Ok(()));
        assert_eq!(check("s3://bucket/p"), Ok(()));
    }

    #[test]
    fn a_bucket_opens_without_a_server() {
        let location: Location = "s3://bucket/p".parse().unwrap();
        let (_, path) = location.open().unwrap();
        assert_eq!(path.as_ref(), "p/segments");
    }
}
