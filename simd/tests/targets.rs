//! The choice of the instruction set.

use lanes_simd::target::Target;

#[test]
fn plain_code_is_the_last_resort_and_tested_like_the_others() {
    let targets = Target::supported();
    let names: Vec<&str> = targets.iter().map(|target| target.name()).collect();
    println!("{names:?}");
    assert!(!names.contains(&"Unknown"), "{names:?}");
    assert!(
        matches!(names.last(), Some(&"SCALAR" | &"EMU128" | &"NEON")),
        "{names:?}"
    );
}
