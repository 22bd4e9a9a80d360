//! What a kernel's directives ask of the scheduler. Hints change speed, never results.

use std::fmt;
use std::sync::Arc;
use tessera_base::Span;

/// What a search for a schedule is to make small.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Objective {
    /// The time of a call on all threads.
    #[default]
    Latency,
    /// The time of a call where each thread has calls of its own.
    Throughput,
    /// Bytes of scratch.
    Memory,
    /// The time that compiling takes.
    Compile,
    /// The energy of a call.
    Energy,
}

impl Objective {
    pub const ALL: [Objective; 5] =
        [Objective::Latency, Objective::Throughput, Objective::Memory, Objective::Compile, Objective::Energy];

    /// As programs write it.
    pub fn name(self) -> &'static str {
        match self {
            Objective::Latency => "latency",
            Objective::Throughput => "throughput",
            Objective::Memory => "memory",
            Objective::Compile => "compile",
            Objective::Energy => "energy",
        }
    }

    /// The one with a name.
    pub fn named(name: &str) -> Option<Objective> {
        Objective::ALL.into_iter().find(|o| o.name() == name)
    }
}

/// How schedules are searched.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Autotune {
    /// The name of the file that keeps what is found.
    pub cache: Arc<str>,
    pub objective: Objective,
    /// Schedules that are measured, at most.
    pub samples: u32,
}

impl Autotune {
    /// Schedules that a search measures where nothing else is said.
    pub const SAMPLES: u32 = 50;

    /// The usual search, kept under a name.
    pub fn kept_as(cache: impl Into<Arc<str>>) -> Autotune {
        Autotune { cache: cache.into(), objective: Objective::default(), samples: Autotune::SAMPLES }
    }
}

/// The directives of one kernel. What is absent is left to the cost model.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct KernelHints {
    /// The function that carries them.
    pub kernel: Arc<str>,
    /// `schedule.tile`: elements of a tile, in the order in which they were written. Empty
    /// without a directive; for a product rows, columns and depth.
    pub tile: Vec<u64>,
    /// `schedule.vectorize`: lanes.
    pub vectorize: Option<u32>,
    /// `schedule.use_shared_memory`: copy operands of products into panels, or do not.
    pub shared: Option<bool>,
    /// Elements between the rows of a staged panel, beyond its width.
    pub padding: u32,
    /// `schedule.async_copy`.
    pub async_copy: bool,
    /// `schedule.pipeline_stages`.
    pub stages: Option<u32>,
    /// `schedule.unroll`: copies of the body of an inner loop.
    pub unroll: Option<u32>,
    /// `schedule.parallel`: dims of the result that threads divide, outermost first.
    pub parallel: Vec<u32>,
    /// `schedule.warps`.
    pub warps: Option<u32>,
    /// `schedule.swizzle`: the width in bytes.
    pub swizzle: Option<u32>,
    /// `@op.autotune`.
    pub autotune: Option<Autotune>,
    /// Where the kernel is defined, for messages.
    pub span: Span,
}

impl KernelHints {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.asks_as(&KernelHints::default())
    }

    /// Whether both ask for the same, wherever they stand.
    pub fn asks_as(&self, other: &KernelHints) -> bool {
        *self == KernelHints { kernel: self.kernel.clone(), span: self.span, ..other.clone() }
    }

    /// These hints where they say something, and those of `outer` where they do not.
    pub fn within(&self, outer: &KernelHints) -> KernelHints {
        KernelHints {
            kernel: if self.kernel.is_empty() { outer.kernel.clone() } else { self.kernel.clone() },
            tile: if self.tile.is_empty() { outer.tile.clone() } else { self.tile.clone() },
            vectorize: self.vectorize.or(outer.vectorize),
            shared: self.shared.or(outer.shared),
            padding: if self.shared.is_some() { self.padding } else { outer.padding },
            async_copy: self.async_copy || outer.async_copy,
            stages: self.stages.or(outer.stages),
            unroll: self.unroll.or(outer.unroll),
            parallel: if self.parallel.is_empty() { outer.parallel.clone() } else { self.parallel.clone() },
            warps: self.warps.or(outer.warps),
            swizzle: self.swizzle.or(outer.swizzle),
            autotune: self.autotune.clone().or_else(|| outer.autotune.clone()),
            span: if self.span.is_none() { outer.span } else { self.span },
        }
    }

    /// Reads what [`fmt::Display`] writes; `None` for anything else.
    pub fn parse(text: &str) -> Option<KernelHints> {
        let mut words = text.split(' ');
        let mut out = KernelHints { kernel: words.next()?.into(), ..KernelHints::default() };
        for word in words {
            let (key, value) = word.split_once('=')?;
            match key {
                "tile" => out.tile = numbers(value)?,
                "vectorize" => out.vectorize = Some(value.parse().ok()?),
                "shared" => out.shared = Some(value.parse().ok()?),
                "padding" => out.padding = value.parse().ok()?,
                "async_copy" => out.async_copy = value.parse().ok()?,
                "stages" => out.stages = Some(value.parse().ok()?),
                "unroll" => out.unroll = Some(value.parse().ok()?),
                "parallel" => out.parallel = numbers(value)?,
                "warps" => out.warps = Some(value.parse().ok()?),
                "swizzle" => out.swizzle = Some(value.parse().ok()?),
                "autotune" => out.autotune = Some(Autotune::kept_as(value)),
                "objective" => out.autotune.as_mut()?.objective = Objective::named(value)?,
                "samples" => out.autotune.as_mut()?.samples = value.parse().ok()?,
                _ => return None,
            }
        }
        Some(out)
    }
}

fn numbers<T: std::str::FromStr>(text: &str) -> Option<Vec<T>> {
    text.split('x').map(|n| n.parse().ok()).collect()
}

fn joined<T: fmt::Display>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join("x")
}

/// `softmax tile=16x16x16 vectorize=8`.
impl fmt::Display for KernelHints {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(if self.kernel.is_empty() { "_" } else { &self.kernel })?;
        let mut put = |key: &str, value: Option<String>| match value {
            Some(value) => write!(f, " {key}={value}"),
            None => Ok(()),
        };
        put("tile", (!self.tile.is_empty()).then(|| joined(&self.tile)))?;
        put("vectorize", self.vectorize.map(|n| n.to_string()))?;
        put("shared", self.shared.map(|n| n.to_string()))?;
        put("padding", (self.padding > 0).then(|| self.padding.to_string()))?;
        put("async_copy", self.async_copy.then(|| "true".into()))?;
        put("stages", self.stages.map(|n| n.to_string()))?;
        put("unroll", self.unroll.map(|n| n.to_string()))?;
        put("parallel", (!self.parallel.is_empty()).then(|| joined(&self.parallel)))?;
        put("warps", self.warps.map(|n| n.to_string()))?;
        put("swizzle", self.swizzle.map(|n| n.to_string()))?;
        let tuned = self.autotune.as_ref();
        put("autotune", tuned.map(|a| a.cache.to_string()))?;
        put("objective", tuned.filter(|a| a.objective != Objective::default()).map(|a| a.objective.name().into()))?;
        put("samples", tuned.filter(|a| a.samples != Autotune::SAMPLES).map(|a| a.samples.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let hints = KernelHints {
            kernel: "k".into(),
            tile: vec![128, 64, 32],
            vectorize: Some(8),
            shared: Some(true),
            padding: 1,
            parallel: vec![0, 1],
            autotune: Some(Autotune { objective: Objective::Memory, samples: 7, ..Autotune::kept_as("h100") }),
            ..KernelHints::default()
        };
        assert_eq!(KernelHints::parse(&hints.to_string()), Some(hints));
        assert_eq!(KernelHints::parse("k tile"), None);
        assert_eq!(KernelHints::parse("k tile=a"), None);
    }
}
