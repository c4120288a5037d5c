//! The object store of a gateway: a directory, or MinIO, as settings of the gateway.

use crate::peers::data_folder::remove;
use lanes_support::error::Result;
use lanes_support::minio::{self, Minio};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// A kind of store, named as in a data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A local directory.
    Directory,
    /// MinIO on this machine, over S3.
    Minio,
}

impl Kind {
    /// Returns the kind's name for people.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Directory => "a directory",
            Kind::Minio => "MinIO",
        }
    }
}

/// A store that exists as long as the value.
pub struct ObjectStore {
    environment: Vec<(String, String)>,
    directory: Option<PathBuf>,
    _minio: Option<Minio>,
}

impl ObjectStore {
    /// Starts an empty store with its files below a folder.
    ///
    /// # Errors
    /// MinIO is not built or does not start. Files of an earlier run cannot be removed.
    pub fn start(kind: Kind, folder: &Path) -> Result<ObjectStore> {
        let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        match kind {
            Kind::Directory => {
                let directory = folder.join("objects");
                remove(&directory)?;
                Ok(ObjectStore {
                    environment: vec![variable(
                        "LANES_GATEWAY_OBJECTS_URL",
                        &directory.display().to_string(),
                    )],
                    directory: Some(directory),
                    _minio: None,
                })
            }
            Kind::Minio => {
                let minio = Minio::start()?;
                let url = format!("s3://{}/bench", minio::BUCKET);
                let environment = vec![
                    variable("LANES_GATEWAY_OBJECTS_URL", &url),
                    variable("AWS_ENDPOINT_URL", &minio.url()),
                    variable("AWS_ACCESS_KEY_ID", minio::USER),
                    variable("AWS_SECRET_ACCESS_KEY", minio::PASSWORD),
                    variable("AWS_REGION", "us-east-1"),
                ];
                Ok(ObjectStore {
                    environment,
                    directory: None,
                    _minio: Some(minio),
                })
            }
        }
    }

    /// Returns the environment variables of a gateway that uses the store.
    pub fn environment(&self) -> &[(String, String)] {
        &self.environment
    }
}

impl Drop for ObjectStore {
    fn drop(&mut self) {
        if let Some(directory) = &self.directory {
            // Files that remain are removed before the next run.
            let _ = remove(directory);
        }
    }
}
