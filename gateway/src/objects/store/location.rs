//! Where objects lie: a directory, or a bucket and a prefix in it.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, RetryConfig};

use super::StoreError;

/// The folder of the store below a location: another may come to lie beside it.
const FOLDER: &str = "segments";

/// The variable that names another server than Amazon's.
const ENDPOINTS: [&str; 2] = ["AWS_ENDPOINT_URL", "AWS_ENDPOINT"];

/// A place for objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A directory of this machine.
    Directory(PathBuf),
    /// A bucket of S3, or of what speaks like it.
    Bucket {
        /// Its name.
        bucket: String,
        /// What all keys begin with.
        prefix: String,
    },
}

impl FromStr for Location {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(rest) = text.strip_prefix("s3://") {
            let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
            if bucket.is_empty() {
                return Err(format!("{text:?} names no bucket"));
            }
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
            if !(3..=63).contains(&bucket.len()) || !bucket.bytes().all(is_name) {
                return Err(format!("{bucket:?} is no name of a bucket"));
            }
            Path::parse(prefix).map_err(|error| error.to_string())?;
            return Ok(Self::Bucket {
                bucket: bucket.to_owned(),
                prefix: prefix.trim_matches('/').to_owned(),
            });
        }
        let path = text.strip_prefix("file://").unwrap_or(text);
        // A scheme with a slash too few is one as well.
        let first = path.split('/').next().unwrap_or_default();
        if path.contains("://") || path.is_empty() || first.ends_with(':') {
            return Err(format!(
                "{text:?} is no directory and no s3://bucket/prefix"
            ));
        }
        Ok(Self::Directory(PathBuf::from(path)))
    }
}

impl Location {
    /// Whether the place is possible at all, as far as this machine can tell; nothing is made.
    ///
    /// # Errors
    /// The path is below something that is no directory, which the message names.
    pub fn check(&self) -> Result<(), String> {
        let Self::Directory(directory) = self else {
            return Ok(());
        };
        let mut there = directory.ancestors().filter(|path| path.exists());
        match there.next() {
            Some(path) if !path.is_dir() => Err(format!("{} is no directory", path.display())),
            _ => Ok(()),
        }
    }

    /// Whether objects can be replaced on condition that they are as they were read.
    pub fn has_conditional_put(&self) -> bool {
        matches!(self, Self::Bucket { .. })
    }

    /// The object store, and the path of ours in it.
    ///
    /// # Errors
    /// The directory cannot be made, or the environment's variables are no configuration. Nothing is asked of a server yet.
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
                // What is durable outlives a power cut: rows are given up for it.
                Ok((Arc::new(files.with_fsync(true)), Path::from(FOLDER)))
            }
            Self::Bucket { bucket, prefix } => {
                // Asked for by name, once a process; whoever was first is as good.
                let _ = rustls::crypto::ring::default_provider().install_default();
                let is_plain = ENDPOINTS.iter().any(|name| {
                    std::env::var(name).is_ok_and(|endpoint| endpoint.starts_with("http://"))
                });
                // SlateDB repeats requests itself, for ever and in sight of the metrics.
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
