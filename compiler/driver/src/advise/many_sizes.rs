//! Tensor code that is called with ever new sizes: kernels are made for each of them.

use super::{Facts, Finding, Rule, place};
use crate::called::Called;

/// Sizes from which on there are many.
const SIZES_MIN: usize = 4;

pub fn find(facts: &Facts) -> Vec<Finding> {
    facts.calls.iter().filter(|c| c.sized.len() >= SIZES_MIN && !super::growing::grows(c)).map(finding).collect()
}

fn finding(c: &Called) -> Finding {
    let sizes = c.sized.len();
    let cost = c.making() + c.time();
    // What remains is made once, of kernels that the cache has from the first run on. Here each run finds those of the sizes
    // that earlier ones came to, and makes others. It takes as long as where it took least: some were interpreted meanwhile.
    let once = c.sized.iter().map(|s| s.making.saturating_sub(s.compiling)).max().unwrap_or_default();
    let least = c.sized.iter().map(|s| s.time.div_f64(s.calls.max(1) as f64)).min().unwrap_or_default();
    Finding {
        rule: Rule::ManySizes,
        span: place(c),
        what: format!(
            "`{}` was called {} times with {sizes} different sizes, and is made anew for each of them",
            c.name,
            c.calls()
        ),
        edit: "bring its arguments to one size, or a few: `op.pad` them, or take parts of one size".into(),
        cost,
        gain: cost.saturating_sub(once + least.mul_f64(c.calls() as f64)),
    }
}
