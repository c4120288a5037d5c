//! Consistency of the images' files with each other and with the product.

use lanes_support::installation::DEFAULT_MAJOR;
use lanes_support::place;
use std::path::PathBuf;
use std::process::Command;

fn text(path: &str) -> String {
    let path = place::workspace().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Both of Docker's builders read the file at this place. Only one of them reads a file beside the
/// Dockerfile.
#[test]
fn build_artifacts_are_not_sent_to_docker() {
    let ignored = text(".dockerignore");
    for folder in ["target", ".lanes", ".git"] {
        assert!(ignored.lines().any(|line| line == folder), "{folder}");
    }
}

#[test]
fn every_file_that_the_images_copy_exists() {
    let dockerfile = text("docker/Dockerfile");
    let copies = dockerfile
        .lines()
        .filter_map(|line| line.strip_prefix("COPY "))
        .filter(|arguments| !arguments.starts_with("--from"));
    let mut copied = 0;
    for arguments in copies {
        let words: Vec<&str> = arguments.split_whitespace().collect();
        for source in &words[..words.len() - 1] {
            assert!(place::workspace().join(source).exists(), "{source}");
            copied += 1;
        }
    }
    assert!(copied > 4);
    let major = format!("ENV POSTGRES_MAJOR={}\n", DEFAULT_MAJOR);
    assert!(dockerfile.contains(&major));
    for compose in ["docker/compose.yml", "docker/compose.bench.yml"] {
        for line in text(compose).lines() {
            if let Some((_, target)) = line.split_once("target: ") {
                let stage = format!(" AS {}\n", target.trim_end_matches('}'));
                assert!(dockerfile.contains(&stage), "{compose}: {line}");
            }
        }
    }
}

#[test]
fn every_file_that_the_compose_file_mounts_exists() {
    let compose = text("docker/compose.yml");
    let mounts: Vec<&str> = compose
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- ./")?.split(':').next())
        .collect();
    assert_eq!(mounts.len(), 4);
    for path in mounts {
        let path: PathBuf = place::workspace().join("docker").join(path);
        assert!(path.exists(), "{}", path.display());
    }
}

#[test]
fn the_image_of_vmalert_has_the_version_that_is_tested() {
    let image = format!(
        "image: victoriametrics/vmalert:v{}\n",
        place::VICTORIA_METRICS_NEWEST
    );
    assert!(text("docker/compose.yml").contains(&image), "{image}");
}

#[test]
fn the_gateway_accepts_the_settings_of_its_container() {
    let mut command = Command::new(place::gateway_program().unwrap());
    command.arg("--check-config");
    let mut settings = 0;
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("LANES_") {
            command.env_remove(name);
        }
    }
    let password = std::env::temp_dir().join(format!("lanes-images-{}", std::process::id()));
    std::fs::write(&password, "secret").unwrap();
    for (file, separator) in [("docker/compose.yml", ": "), ("docker/Dockerfile", "=")] {
        for line in text(file).lines() {
            let line = line.trim().trim_start_matches("ENV ");
            if let Some((name, value)) = line.split_once(separator)
                && name.starts_with("LANES_GATEWAY_")
            {
                if name.ends_with("PASSWORD_FILE") {
                    command.env(name, &password);
                } else {
                    command.env(name, value.trim_matches('"'));
                }
                settings += 1;
            }
        }
    }
    let output = command.output().unwrap();
    std::fs::remove_file(&password).unwrap();
    assert_eq!(settings, 9);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let shown = String::from_utf8_lossy(&output.stdout);
    // The gateway ignores an unknown variable, so each one has to appear as the origin of a
    // setting.
    assert_eq!(shown.matches("(environment)").count(), settings, "{shown}");
    for line in [
        "listen.address = \"0.0.0.0:9201\" (environment)",
        "listen.insecure = \"true\" (environment)",
        "postgres.connection = \"(not shown)\" (environment)",
        "query.connection = \"(not shown)\" (environment)",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
}

#[test]
fn ports_are_published_on_the_loopback_address_only() {
    for file in ["docker/compose.yml", "docker/compose.bench.yml"] {
        let text = text(file);
        let published = text
            .lines()
            .filter(|line| line.trim_start().starts_with("ports:"));
        for line in published {
            assert!(line.contains("[\"127.0.0.1:"), "{file}: {line}");
        }
    }
}
