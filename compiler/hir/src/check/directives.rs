//! `schedule.…` inside a kernel, and what the decorators of kernels say.

use super::args::{Slot, Value};
use super::cx::Cx;
use super::modules::members;
use super::names::Meaning;
use crate::thir::{TExpr, TKind, TStmt};
use crate::ty::Ty;
use crate::walk::each_expr_in;
use std::sync::Arc;
use tessera_base::{Code, Diagnostic, Span};
use tessera_grammar::ast::{Arg, Expr, ExprKind};
use tessera_ir::hints::KernelHints;

/// Directives with their parameters; `true` marks those that may be left out.
const DIRECTIVES: &[(&str, &[(&str, bool)])] = &[
    ("tile", &[("shape", false)]),
    ("vectorize", &[("lanes", false)]),
    ("use_shared_memory", &[("enabled", true), ("padding", true)]),
    ("async_copy", &[("enabled", true)]),
    ("pipeline_stages", &[("stages", false)]),
    ("unroll", &[("factor", false)]),
    ("parallel", &[("axis", false)]),
    ("warps", &[("count", false)]),
    ("swizzle", &[("bytes", true)]),
];

/// Bytes of scratch memory that one thread of the CPU target has for the tiles of a kernel.
pub const SCRATCH_BYTES: u64 = 8 << 20;
/// Lanes of the longest vectors that kernels are written with.
const LANES_MAX: i64 = 64;
/// Greatest factor of `schedule.unroll`.
const UNROLL_MAX: i64 = 64;

/// The kernel whose body is being checked.
#[derive(Clone, Debug, Default)]
pub struct KernelState {
    /// Decorated with `@op.kernel`; otherwise only tuned.
    pub kernel: bool,
    pub hints: KernelHints,
    /// What makes it an explicit tile program.
    pub tiles: Option<super::tiles::Tiles>,
    /// The directives so far, by name, with where they stand.
    given: Vec<(&'static str, Span)>,
}

impl Cx<'_> {
    /// What the decorators make of a function; `None` for one that is no kernel and not tuned.
    /// They are checked where the function is defined.
    pub fn kernel_state(&mut self, decorators: &[Expr], name: &Arc<str>, head: Span) -> Option<KernelState> {
        let mut state = KernelState {
            hints: KernelHints { kernel: name.clone(), span: head, ..KernelHints::default() },
            ..KernelState::default()
        };
        for d in decorators {
            match super::outputs::decorator(d) {
                Some("kernel") => state.kernel = true,
                Some("autotune") => state.hints.autotune = cache_name(d).ok(),
                _ => {}
            }
        }
        (state.kernel || state.hints.autotune.is_some()).then_some(state)
    }

    /// Whether the body being checked is that of a kernel.
    pub fn in_kernel(&self) -> bool {
        self.kernel.as_ref().is_some_and(|k| k.kernel)
    }

    /// Checks what a decorator of a kernel is given.
    pub fn kernel_decorator(&mut self, e: &Expr, autotune: bool) -> bool {
        let problem = match (&e.kind, autotune) {
            (_, true) => cache_name(e).err(),
            (ExprKind::Call { args, .. }, false) if !args.is_empty() => Some(
                Diagnostic::new(Code::E0504, args[0].value.span, "`@op.kernel` takes no arguments")
                    .help("say how it is laid out with `schedule.…` in its body"),
            ),
            _ => None,
        };
        match problem {
            Some(d) => {
                self.report(d);
                false
            }
            None => true,
        }
    }

    /// Takes `schedule.…(…)` in a kernel; `false` for every other statement.
    pub fn directive_stmt(&mut self, e: &Expr) -> bool {
        let ExprKind::Call { func, args } = &e.kind else { return false };
        if !self.kernel.as_ref().is_some_and(|k| k.kernel) {
            return false;
        }
        let Some((name, params)) = self.directive_named(func) else { return false };
        let slots: Vec<Slot> = params.iter().map(|(n, optional)| Slot::plain(n, *optional)).collect();
        let values = self.directive_args(args);
        let shown = format!("schedule.{name}");
        let Some(values) = self.match_params(&shown, &slots, values, e.span, None) else { return true };
        if values.iter().flatten().any(|v| v.ty.is_error()) {
            return true;
        }
        if self.nested > 0 {
            let d = Diagnostic::new(Code::E0504, e.span, format!("`{shown}` stands under a condition or in a loop"))
                .note("a directive says how the whole kernel is laid out")
                .help("move it to the start of the kernel");
            self.report(d);
            return true;
        }
        if let Err(d) = self.record(name, &values, e.span) {
            self.report(*d);
        }
        true
    }

    /// The directive that a callee names; anything else, and unknown ones, take the usual way.
    fn directive_named(&mut self, func: &Expr) -> Option<(&'static str, &'static [(&'static str, bool)])> {
        let text = match &func.kind {
            ExprKind::Attr { base, name } if self.is_module_path(base) => name.text.clone(),
            ExprKind::Name(name) if self.env.get(name).is_none() => name.clone(),
            _ => return None,
        };
        if !members("schedule").iter().any(|m| **m == *text) {
            return None;
        }
        match &func.kind {
            ExprKind::Name(name) => {
                let scope = crate::db::scope(self.db, self.names_of());
                if !matches!(scope.names.get(name), Some(crate::db::Entity::Builtin(n)) if n.starts_with("schedule.")) {
                    return None;
                }
            }
            _ => match self.meaning(func) {
                Some(Meaning::Builtin(n)) if n.starts_with("schedule.") => {}
                _ => return None,
            },
        }
        DIRECTIVES.iter().find(|(n, _)| **n == *text).map(|(n, p)| (*n, *p))
    }

    fn directive_args(&mut self, args: &[Arg]) -> Vec<Value> {
        let untyped = self.untyped;
        let values = self.args(args);
        self.untyped = untyped;
        values
    }

    fn record(&mut self, name: &'static str, values: &[Option<TExpr>], span: Span) -> Result<(), Box<Diagnostic>> {
        let first = values.first().and_then(Option::as_ref);
        let mut hints = match &self.kernel {
            Some(k) => k.hints.clone(),
            None => return Ok(()),
        };
        match name {
            "tile" => hints.tile = shape(first)?,
            "vectorize" => hints.vectorize = self.lanes(int(first, 1, i64::from(u32::MAX))?, span),
            "use_shared_memory" => {
                hints.shared = Some(flag(first)?);
                hints.padding = match values.get(1).and_then(Option::as_ref) {
                    Some(e) => int(Some(e), 0, 1 << 20)? as u32,
                    None => 0,
                };
            }
            "async_copy" => hints.async_copy = flag(first)?,
            "pipeline_stages" => hints.stages = Some(int(first, 1, 64)? as u32),
            "unroll" => hints.unroll = Some(int(first, 1, UNROLL_MAX)? as u32),
            "parallel" => hints.parallel.push(int(first, 0, 64)? as u32),
            "warps" => hints.warps = Some(int(first, 1, 1024)? as u32),
            "swizzle" => hints.swizzle = Some(first.map_or(Ok(128), |e| int(Some(e), 1, 4096))? as u32),
            _ => {}
        }
        self.without_effect(name, &hints, span);
        if let Some(k) = &mut self.kernel {
            let again = k.given.iter().find(|(n, _)| *n == name && name != "parallel").copied();
            k.given.retain(|(n, _)| *n != name || name == "parallel");
            k.given.push((name, span));
            k.hints = hints;
            if let Some((_, before)) = again {
                let d =
                    Diagnostic::new(Code::W0503, before, format!("this `schedule.{name}` is replaced further down"))
                        .with_label(span, "by this one");
                self.report(d);
            }
        }
        Ok(())
    }

    /// Vector lengths that the CPU's kernels are written with.
    fn lanes(&mut self, wanted: i64, span: Span) -> Option<u32> {
        let lanes = (wanted.clamp(2, LANES_MAX) as u32).next_power_of_two();
        if i64::from(lanes) != wanted {
            let d = Diagnostic::new(Code::W0501, span, format!("the target `cpu` has no vectors of {wanted} elements"))
                .note("lengths are powers of two from 2 to 64")
                .note(format!("vectors of {lanes} elements are used"));
            self.report(d);
        }
        Some(lanes)
    }

    /// W0501 for what a CPU cannot honour.
    fn without_effect(&mut self, name: &str, hints: &KernelHints, span: Span) {
        let why = match name {
            "async_copy" if hints.async_copy => {
                "a core has no unit that copies while it computes; its caches fetch ahead on their own"
            }
            "pipeline_stages" if hints.stages.is_some_and(|n| n > 1) => {
                "panels are packed where they are used; there is no copy that could run ahead"
            }
            "warps" => "there are no warps; threads are chosen with `--threads` and `schedule.parallel`",
            "swizzle" => "its caches have no banks that a layout could keep apart",
            "use_shared_memory" if hints.padding > 0 => {
                "packed panels are read in order, and there are no banks that padding could keep apart"
            }
            _ => return,
        };
        let what = if name == "use_shared_memory" { "padding=".into() } else { format!("schedule.{name}") };
        let d = Diagnostic::new(Code::W0501, span, format!("`{what}` has no effect on the target `cpu`")).note(why);
        self.report(d);
    }

    /// What the directives of a whole kernel are checked for once its body is known.
    pub fn close_kernel(&mut self, body: &[TStmt]) {
        let Some(kernel) = self.kernel.clone() else { return };
        let (mut operators, mut calls, mut products) = (0, 0, vec![]);
        each_expr_in(body, &mut |e| match &e.kind {
            TKind::Op { def, .. } => {
                operators += 1;
                if matches!(def.name, "matmul" | "einsum" | "outer" | "attention" | "conv1d" | "conv2d") {
                    products.push(element_bytes(e));
                }
            }
            TKind::Builtin { name, .. } if name.starts_with("tile.") => calls += 1,
            TKind::Call { .. }
            | TKind::CallValue { .. }
            | TKind::Scan { .. }
            | TKind::Fori { .. }
            | TKind::Derive { .. } => calls += 1,
            _ => {}
        });
        if let (Some((_, span)), false) = (kernel.given.iter().find(|(n, _)| *n == "tile"), products.is_empty()) {
            self.tile_fits(&kernel.hints.tile, products.iter().copied().max().unwrap_or(4), *span);
        }
        if calls > 0 {
            return;
        }
        for (name, span) in &kernel.given {
            let why = match *name {
                _ if operators == 0 => "the kernel computes nothing that it could apply to",
                "use_shared_memory" if products.is_empty() && kernel.hints.shared == Some(true) => {
                    "only operands of matrix products are staged, and the kernel has none"
                }
                _ => continue,
            };
            let d = Diagnostic::new(Code::W0503, *span, format!("nothing consumes this `schedule.{name}`")).note(why);
            self.report(d);
        }
    }

    /// E0506 and W0502 for the tile of a product of elements of `bytes` bytes.
    fn tile_fits(&mut self, tile: &[u64], bytes: u64, span: Span) {
        let &[m, n, k] = tile else { return };
        let needs = scratch(m, n, k, bytes.max(4));
        if needs > u128::from(SCRATCH_BYTES) {
            let (m2, n2, k2) = nearest_tile(m, n, k, bytes.max(4));
            let d = Diagnostic::new(Code::E0506, span, format!("tiles of {m}×{n}×{k} do not fit the scratch memory"))
                .note(format!(
                    "they need {needs} bytes: {m}×{k} elements of the left operand and {m}×{n} accumulators, of {} bytes each",
                    bytes.max(4)
                ))
                .note(format!("a thread of the target `cpu` has {SCRATCH_BYTES} bytes"))
                .help(format!("the nearest tile that fits is `schedule.tile(({m2}, {n2}, {k2}))`"));
            self.report(d);
        } else if bytes == 2 && tile.iter().any(|t| !t.is_multiple_of(64)) {
            let d = Diagnostic::new(Code::W0502, span, format!("tiles of {m}×{n}×{k} do not suit 16-bit elements"))
                .note("multiples of 64 fill whole cache lines and, on a GPU, whole 128-byte rows");
            self.report(d);
        }
    }
}

/// Bytes that a point of the grid keeps: the packed block of the left operand, and accumulators.
fn scratch(m: u64, n: u64, k: u64, bytes: u64) -> u128 {
    let (m, n, k) = (u128::from(m), u128::from(n), u128::from(k));
    m.saturating_mul(n.saturating_add(k)).saturating_mul(u128::from(bytes))
}

/// The tile that fits: the longest side is halved until it does, then takes what room is left.
fn nearest_tile(m: u64, n: u64, k: u64, bytes: u64) -> (u64, u64, u64) {
    let mut tile = [m, n, k];
    let fits = |t: &[u64; 3]| scratch(t[0], t[1], t[2], bytes) <= u128::from(SCRATCH_BYTES);
    let mut last = (0, tile[0]);
    while !fits(&tile) {
        let longest = (0..3).rev().max_by_key(|&i| tile[i]).unwrap_or(0);
        last = (longest, tile[longest]);
        tile[longest] = (tile[longest] / 2).max(1);
    }
    let (at, before) = last;
    // Between what fits and what did not, in steps of 16.
    let (mut low, mut high) = (tile[at] / 16, before / 16);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        let mut other = tile;
        other[at] = middle * 16;
        if fits(&other) { low = middle } else { high = middle }
    }
    tile[at] = tile[at].max(low * 16);
    (tile[0], tile[1], tile[2])
}

/// Bytes of the elements that a product multiplies.
fn element_bytes(e: &TExpr) -> u64 {
    let bytes = |t: &Ty| match t {
        Ty::Tensor(t) => t.dtype.map(|d| d.bytes() as u64),
        _ => None,
    };
    let mut out = None;
    crate::walk::each_child(e, &mut |c| out = out.or(bytes(&c.ty)));
    out.or(bytes(&e.ty)).unwrap_or(4)
}

fn wrong(span: Span, what: &str, found: &Ty) -> Box<Diagnostic> {
    Box::new(Diagnostic::new(Code::E0504, span, format!("{what} is needed here")).here(format!("this is `{found}`")))
}

/// An int that is known before the program runs.
fn int(e: Option<&TExpr>, low: i64, high: i64) -> Result<i64, Box<Diagnostic>> {
    let Some(e) = e else { return Ok(low) };
    let Some(n) = e.ty.const_int() else {
        let d = wrong(e.span, "an int that is known before the program runs", &e.ty);
        return Err(Box::new(d.note("directives are settled when the kernel is checked")));
    };
    if n < low || n > high {
        let range =
            if high >= i64::from(u32::MAX) { format!("at least {low}") } else { format!("from {low} to {high}") };
        return Err(Box::new(
            Diagnostic::new(Code::E0504, e.span, format!("{n} is out of range")).note(format!("it may be {range}")),
        ));
    }
    Ok(n)
}

fn flag(e: Option<&TExpr>) -> Result<bool, Box<Diagnostic>> {
    match e.map(|e| (&e.kind, e)) {
        None => Ok(true),
        Some((TKind::Bool(b), _)) => Ok(*b),
        Some((_, e)) => Err(wrong(e.span, "`True` or `False`", &e.ty)),
    }
}

/// The sizes of a tile: one to three positive ints.
fn shape(e: Option<&TExpr>) -> Result<Vec<u64>, Box<Diagnostic>> {
    let Some(e) = e else { return Ok(vec![]) };
    let items = match &e.kind {
        TKind::Tuple(items) | TKind::List(items) => items.iter().collect(),
        _ => vec![e],
    };
    if items.is_empty() || items.len() > 3 {
        let d = Diagnostic::new(
            Code::E0504,
            e.span,
            format!("a tile has one to three sizes, and {} are given", items.len()),
        )
        .help("of a product `schedule.tile((rows, columns, depth))`");
        return Err(Box::new(d));
    }
    items.into_iter().map(|e| int(Some(e), 1, 1 << 40).map(|n| n as u64)).collect()
}

/// The `cache=` of `@op.autotune`.
fn cache_name(e: &Expr) -> Result<Arc<str>, Diagnostic> {
    let help = "write `@op.autotune(cache=\"name\")`";
    let ExprKind::Call { args, .. } = &e.kind else {
        return Err(Diagnostic::new(Code::E0504, e.span, "`@op.autotune` needs the name of a cache").help(help));
    };
    let [Arg { name: Some(name), star: false, value }] = args.as_slice() else {
        return Err(Diagnostic::new(Code::E0504, e.span, "`@op.autotune` takes `cache=` and nothing else").help(help));
    };
    let ExprKind::Str(text) = &value.kind else {
        return Err(Diagnostic::new(Code::E0504, value.span, "the cache must be named by a string here").help(help));
    };
    if &*name.text != "cache" {
        return Err(Diagnostic::new(
            Code::E0105,
            name.span,
            format!("`@op.autotune` has no parameter `{}`", name.text),
        )
        .help(help));
    }
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if text.is_empty() || text.starts_with('.') || text.len() > 100 || !text.chars().all(fine) {
        return Err(Diagnostic::new(Code::E0504, value.span, format!("`{text}` is no name for a cache"))
            .note("it becomes the file `.tessera/cache/NAME.json`: letters, digits, `_`, `-` and `.`"));
    }
    Ok(text.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_tile_fits_and_is_no_smaller_than_needed() {
        for (m, n, k) in [(4096, 4096, 64), (100_000, 16, 16), (512, 8192, 8192)] {
            let (a, b, c) = nearest_tile(m, n, k, 4);
            assert!(scratch(a, b, c, 4) <= u128::from(SCRATCH_BYTES), "{a} {b} {c}");
            assert!(scratch(a, b, c, 4) * 3 > u128::from(SCRATCH_BYTES), "{a} {b} {c}");
        }
    }
}
