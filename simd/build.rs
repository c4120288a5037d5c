//! Compiles the kernels and links Highway.

/// One file of kernels each: `kernels/<name>.cc`.
const KERNELS: [&str; 11] = [
    "aggregate",
    "combine",
    "copy",
    "decode",
    "distance",
    "extremes",
    "frames",
    "group",
    "stretches",
    "search",
    "select",
];

const BRIDGES: [&str; 2] = ["src/bridge/plain.rs", "src/bridge/typed.rs"];

fn main() {
    let highway = pkg_config::Config::new()
        .atleast_version("1.0.3")
        .probe("libhwy")
        .unwrap_or_else(|error| {
            panic!("Highway is missing (Debian: apt-get install libhwy-dev pkg-config): {error}")
        });
    let mut build = cxx_build::bridges(BRIDGES);
    build
        .std("c++17")
        .include(".")
        .includes(&highway.include_paths)
        // Unoptimised, an intrinsic is a function call; so the kernels are optimised in every
        // profile.
        .opt_level(3)
        .debug(false)
        // A fused multiply-add rounds once where two instructions round twice: results would differ
        // between targets.
        .flag("-ffp-contract=off")
        .flag("-fno-exceptions")
        .flag("-fno-rtti")
        .define("HWY_SHARED_DEFINE", None)
        // Vectors whose length is known only at run time cannot be stored in arrays; CPUs with such
        // vectors also have NEON. SSSE3 adds little to SSE2, and no CPU of the last fifteen years
        // ends with it.
        .define(
            "HWY_DISABLED_TARGETS",
            "(HWY_SSSE3|HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128|HWY_RVV)",
        )
        .file("kernels/target.cc");
    for kernel in KERNELS {
        build.file(format!("kernels/{kernel}.cc"));
    }
    build.compile("lanes_simd_kernels");
    println!("cargo:rerun-if-changed=kernels");
    for bridge in BRIDGES {
        println!("cargo:rerun-if-changed={bridge}");
    }
}
