//! The object store of a gateway in a test: a directory, a bucket of a separate MinIO, possibly
//! behind a faulty network, or a directory on a small disk.
//!
//! The store and its content end with the value.

use crate::error::Result;
use crate::faulty_proxy::FaultyProxy;
use crate::gateway::Settings;
use crate::minio::{self, Minio};
use crate::process::through;
use crate::small_disk::SmallDisk;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An object store.
#[derive(Debug)]
pub struct Store {
    url: String,
    keeper: Keeper,
}

#[derive(Debug)]
enum Keeper {
    Directory(PathBuf),
    Minio(Minio),
    BehindProxy(FaultyProxy, Minio),
    SmallDisk(SmallDisk),
}

impl Store {
    /// Creates an empty directory.
    pub fn directory(name: &str) -> Store {
        let folder = std::env::temp_dir().join(format!("lanes-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        Store {
            url: folder.display().to_string(),
            keeper: Keeper::Directory(folder),
        }
    }

    /// Starts a MinIO and returns a prefix of its bucket.
    ///
    /// # Errors
    /// As for [`Minio::start`].
    pub fn minio() -> Result<Store> {
        Ok(Store::on(Keeper::Minio(Minio::start()?)))
    }

    /// Starts a MinIO behind a proxy that can cause faults. Equal seeds cause equal faults for
    /// equal sequences of connections.
    ///
    /// # Errors
    /// As for [`Minio::start`] and [`FaultyProxy::start`].
    pub fn minio_behind_proxy(seed: u64) -> Result<Store> {
        let minio = Minio::start()?;
        let proxy = FaultyProxy::start(minio.port(), seed)?;
        Ok(Store::on(Keeper::BehindProxy(proxy, minio)))
    }

    fn on(keeper: Keeper) -> Store {
        Store {
            url: format!("s3://{}/a/prefix", minio::BUCKET),
            keeper,
        }
    }

    /// Creates a directory on a disk of `bytes` bytes.
    ///
    /// # Errors
    /// As for [`SmallDisk::new`].
    pub fn small_disk(name: &str, bytes: u64) -> Result<Store> {
        let disk = SmallDisk::new(name, bytes)?;
        Ok(Store {
            url: disk.folder().join("objects").display().to_string(),
            keeper: Keeper::SmallDisk(disk),
        })
    }

    /// Returns the URL for a gateway.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the directory, if the store is one.
    pub fn folder(&self) -> Option<&Path> {
        match &self.keeper {
            Keeper::Directory(folder) => Some(folder),
            _ => None,
        }
    }

    /// Returns the MinIO, if the store is one.
    pub fn server(&self) -> Option<&Minio> {
        match &self.keeper {
            Keeper::Minio(minio) | Keeper::BehindProxy(_, minio) => Some(minio),
            _ => None,
        }
    }

    /// Returns the proxy in front of the store, if there is one.
    pub fn proxy(&self) -> Option<&FaultyProxy> {
        match &self.keeper {
            Keeper::BehindProxy(proxy, _) => Some(proxy),
            _ => None,
        }
    }

    /// Returns the small disk, if the store is on one.
    pub fn disk(&self) -> Option<&SmallDisk> {
        match &self.keeper {
            Keeper::SmallDisk(disk) => Some(disk),
            _ => None,
        }
    }

    /// Makes it the store of a gateway.
    pub fn configure(&self, mut settings: Settings) -> Settings {
        for (name, value) in self.environment() {
            settings = settings.environment(name, &value);
        }
        settings = settings.through(&self.through());
        settings.environment("LANES_GATEWAY_OBJECTS_URL", &self.url)
    }

    /// Returns a program that can use the store by its URL.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = through(&self.through(), program);
        command.envs(self.environment());
        command
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        let endpoint = match &self.keeper {
            Keeper::Minio(minio) => minio.url(),
            Keeper::BehindProxy(proxy, _) => format!("http://127.0.0.1:{}", proxy.port()),
            Keeper::Directory(_) | Keeper::SmallDisk(_) => return Vec::new(),
        };
        vec![
            ("AWS_ENDPOINT_URL", endpoint),
            ("AWS_ACCESS_KEY_ID", minio::USER.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", minio::PASSWORD.to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
        ]
    }

    fn through(&self) -> Vec<String> {
        match &self.keeper {
            Keeper::SmallDisk(disk) => disk.through(),
            _ => Vec::new(),
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Keeper::Directory(folder) = &self.keeper {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}
