//! How a tensor lies over the axes of a mesh.

use crate::Own;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Named axes of devices, the first the major one: device `i` has the coordinates of `i` written
/// in these sizes.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Mesh {
    pub axes: Vec<(String, u64)>,
}

impl Mesh {
    /// How many devices it has.
    pub fn devices(&self) -> u64 {
        self.axes.iter().map(|a| a.1).product()
    }

    /// What is known of a mesh in a signature: the names of its axes. The sizes are those of the
    /// call's mesh.
    pub fn unknown(axes: impl IntoIterator<Item = String>) -> Mesh {
        Mesh { axes: axes.into_iter().map(|a| (a, 0)).collect() }
    }

    /// Whether only names of axes are known of it.
    pub fn is_unknown(&self) -> bool {
        self.axes.iter().any(|a| a.1 == 0)
    }

    /// How many devices lie along an axis.
    pub fn size(&self, axis: &str) -> Option<u64> {
        self.axes.iter().find(|a| a.0 == axis).map(|a| a.1)
    }

    pub fn names(&self) -> Vec<&str> {
        self.axes.iter().map(|a| a.0.as_str()).collect()
    }

    /// Where a device is along an axis.
    pub fn coordinate(&self, device: u64, axis: &str) -> u64 {
        let mut rest = device;
        for (name, size) in self.axes.iter().rev() {
            if name == axis {
                return rest % size.max(&1);
            }
            rest /= size.max(&1);
        }
        0
    }

    /// The factorisation of `devices` over `axes` axes with the smallest sum, larger factors first.
    pub fn factors(devices: u64, axes: usize) -> Vec<u64> {
        fn search(rest: u64, axes: usize, most: u64, so_far: &mut Vec<u64>, best: &mut Vec<u64>) {
            if axes == 1 {
                if rest > most {
                    return;
                }
                so_far.push(rest);
                if best.is_empty() || so_far.iter().sum::<u64>() < best.iter().sum::<u64>() {
                    best.clone_from(so_far);
                }
                so_far.pop();
                return;
            }
            for f in (1..=rest.min(most)).filter(|f| rest.is_multiple_of(*f)) {
                so_far.push(f);
                search(rest / f, axes - 1, f, so_far, best);
                so_far.pop();
            }
        }
        let mut best = vec![];
        if axes > 0 {
            search(devices, axes, devices, &mut vec![], &mut best);
        }
        best
    }
}

impl fmt::Display for Mesh {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let axes: Vec<String> = self.axes.iter().map(|(n, s)| format!("{n}={s}")).collect();
        write!(f, "Mesh[{}]", axes.join(", "))
    }
}

/// A number of bytes for people.
pub fn bytes(n: u64) -> String {
    const UNITS: &[(u64, &str)] = &[(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.iter().find(|(size, _)| n >= *size) {
        Some((size, unit)) => format!("{:.1} {unit}", n as f64 / *size as f64),
        None => format!("{n} bytes"),
    }
}

/// Which of `n` elements the `i`-th of `parts` holds: blocks of the ceiling, the last ones
/// smaller or empty.
pub fn block(n: u64, parts: u64, i: u64) -> Range<u64> {
    let size = n.div_ceil(parts.max(1));
    (i * size).min(n)..((i + 1) * size).min(n)
}

/// How the summands of a partial value combine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Monoid {
    Sum,
    Max,
    Min,
    /// Log-sum-exp.
    Lse,
    /// In per-device code: what each device has.
    Each(Own),
    /// There is one, and it is the value: the devices at this position of the axis have it, the others nothing.
    At(u64),
}

impl Monoid {
    pub fn name(self) -> &'static str {
        match self {
            Monoid::Sum => "sum",
            Monoid::Max => "max",
            Monoid::Min => "min",
            Monoid::Lse => "lse",
            Monoid::Each(own) => own.name(),
            Monoid::At(_) => "at",
        }
    }

    /// The position of the devices that have the value, where others have nothing.
    pub fn position(self) -> Option<u64> {
        match self {
            Monoid::At(index) => Some(index),
            _ => None,
        }
    }

    pub fn parse(text: &str) -> Option<Monoid> {
        [Monoid::Sum, Monoid::Max, Monoid::Min, Monoid::Lse].into_iter().find(|m| m.name() == text)
    }
}

impl fmt::Display for Monoid {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Monoid::At(index) => write!(f, "at({index})"),
            Monoid::Each(own) => own.fmt(f),
            other => f.write_str(other.name()),
        }
    }
}

/// The sharding of one tensor type: for each dim the mesh axes it is split over (major
/// first), and the axes over which the value is still partial.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Sharding {
    /// One entry per dim, or empty when no dim is split.
    pub dims: Vec<Vec<String>>,
    pub partial: Vec<(Monoid, String)>,
    /// The mesh whose axes these are. None in annotations, and of a tensor that lies on one
    /// device.
    pub mesh: Option<Arc<Mesh>>,
}

impl Sharding {
    pub fn is_replicated(&self) -> bool {
        self.partial.is_empty() && self.dims.iter().all(Vec::is_empty)
    }

    /// On every device of a mesh in full.
    pub fn replicated(mesh: &Arc<Mesh>) -> Sharding {
        Sharding { mesh: Some(mesh.clone()), ..Sharding::default() }
    }

    /// What says which devices have the value at all, of what is said of its parts.
    pub fn positions(&self) -> Vec<(Monoid, String)> {
        self.partial.iter().filter(|p| p.0.position().is_some()).cloned().collect()
    }

    /// The position of an axis whose devices alone have the value.
    pub fn position(&self, axis: &str) -> Option<u64> {
        self.partial_over(axis).and_then(Monoid::position)
    }

    /// The first axis along which there are parts that are still to be put together, and how.
    pub fn unfinished(&self) -> Option<&(Monoid, String)> {
        self.partial.iter().find(|p| p.0.position().is_none())
    }

    /// Whether a device has no part of a value, because it lies at other positions.
    pub fn is_absent(&self, device: u64) -> bool {
        let at = |mesh: &Mesh, axis: &str| mesh.coordinate(device, axis);
        let elsewhere = |mesh: &Mesh, (m, axis): &(Monoid, String)| m.position().is_some_and(|i| i != at(mesh, axis));
        self.mesh.as_ref().is_some_and(|mesh| self.partial.iter().any(|p| elsewhere(mesh, p)))
    }

    /// What each device has along an axis, in per-device code; `None` where it is the same on all.
    pub fn own(&self, axis: &str) -> Option<Own> {
        self.owns().find(|(_, a)| *a == axis).map(|(own, _)| own)
    }

    /// What each device has, by axis, in per-device code.
    pub fn owns(&self) -> impl Iterator<Item = (Own, &String)> {
        self.partial.iter().filter_map(|(m, axis)| match m {
            Monoid::Each(own) => Some((*own, axis)),
            _ => None,
        })
    }

    /// The same with something else along an axis, in per-device code.
    pub fn with_own(&self, axis: &str, own: Option<Own>, mesh: &Arc<Mesh>) -> Sharding {
        let mut partial = self.partial.clone();
        partial.retain(|(_, a)| a != axis);
        partial.extend(own.map(|own| (Monoid::Each(own), axis.to_owned())));
        let mesh = (!partial.is_empty()).then(|| mesh.clone());
        Sharding { dims: vec![], partial, mesh }.normal(0)
    }

    /// Dims of per-device code that are others now.
    fn moved(&self, to: &dyn Fn(usize) -> Option<usize>, without: Own) -> Vec<(Monoid, String)> {
        let one = |(m, axis): &(Monoid, String)| match m {
            Monoid::Each(own) => (Monoid::Each(own.moved(to, without)), axis.clone()),
            m => (*m, axis.clone()),
        };
        self.partial.iter().map(one).collect()
    }

    /// The same of a tensor whose dims are these dims of this one, where they are dims of it as they were.
    pub fn own_of_dims(&self, dims: &[Option<usize>]) -> Sharding {
        let partial = self.moved(&|d| dims.iter().position(|from| *from == Some(d)), Own::Mixed);
        Sharding { partial, ..self.clone() }
    }

    /// The axes along which devices have different values, in per-device code.
    pub fn each(&self) -> impl Iterator<Item = &String> {
        self.owns().filter(|(own, _)| own.differs()).map(|(_, axis)| axis)
    }

    /// Whether all that is known is what each device of per-device code has.
    fn is_own(&self) -> bool {
        self.dims.is_empty() && self.partial.iter().all(|p| matches!(p.0, Monoid::Each(_)))
    }

    /// What one of two values of per-device code is.
    fn both(&self, other: &Sharding) -> Option<Sharding> {
        if !self.is_own() || !other.is_own() || self.owns().chain(other.owns()).next().is_none() {
            return None;
        }
        let mut axes: Vec<&String> = self.owns().chain(other.owns()).map(|(_, axis)| axis).collect();
        axes.sort();
        axes.dedup();
        let join = |axis: &String| Some((Monoid::Each(Own::join(self.own(axis), other.own(axis))?), axis.clone()));
        let partial: Vec<(Monoid, String)> = axes.into_iter().filter_map(join).collect();
        let mesh = self.mesh.clone().or_else(|| other.mesh.clone()).filter(|_| !partial.is_empty());
        Some(Sharding { dims: vec![], partial, mesh })
    }

    /// Whether a place of per-device code that lies so takes a value that lies otherwise.
    pub fn takes_own(&self, other: &Sharding) -> bool {
        let axes = self.owns().chain(other.owns()).map(|(_, axis)| axis);
        self.is_own() && other.is_own() && axes.into_iter().all(|axis| Own::takes(self.own(axis), other.own(axis)))
    }

    /// What is one or the other: a tensor on one device counts as one that is everywhere in full.
    pub fn join(&self, other: &Sharding) -> Option<Sharding> {
        match (self == other, &self.mesh, &other.mesh) {
            (true, ..) => Some(self.clone()),
            _ if self.both(other).is_some() => self.both(other),
            (_, None, Some(_)) if other.is_replicated() => Some(other.clone()),
            (_, Some(_), None) if self.is_replicated() => Some(self.clone()),
            _ => None,
        }
    }

    /// How a value lies that comes in one of two ways, where nothing but cutting makes one of the
    /// other: what is everywhere in full is cut for free. `None` where more would have to move.
    pub fn settled(&self, other: &Sharding) -> Option<Sharding> {
        if let Some(both) = self.both(other) {
            return Some(both);
        }
        let mesh = match (&self.mesh, &other.mesh) {
            (mesh, None) | (None, mesh) => mesh.clone(),
            (Some(a), Some(b)) if a == b || b.is_unknown() && !a.is_unknown() => Some(a.clone()),
            (Some(a), Some(b)) if a.is_unknown() && !b.is_unknown() => Some(b.clone()),
            (Some(a), Some(b)) if a.is_unknown() => {
                let more = b.axes.iter().filter(|axis| a.size(&axis.0).is_none());
                Some(Arc::new(Mesh { axes: a.axes.iter().chain(more).cloned().collect() }))
            }
            _ => return None,
        };
        let rank = self.dims.len().max(other.dims.len());
        let mut dims: Vec<Vec<String>> = vec![];
        for i in 0..rank {
            let (a, b) = (self.axes(i), other.axes(i));
            let (longer, shorter) = if a.len() < b.len() { (b, a) } else { (a, b) };
            if !longer.starts_with(shorter) || longer.iter().any(|axis| dims.iter().flatten().any(|d| d == axis)) {
                return None;
            }
            dims.push(longer.to_vec());
        }
        let out = Sharding { dims, partial: self.settled_parts(other)?, mesh }.normal(rank);
        (!out.partial.iter().any(|(_, a)| out.dim_of(a).is_some())).then_some(out)
    }

    /// What is at positions in one of two ways is so in both.
    fn settled_parts(&self, other: &Sharding) -> Option<Vec<(Monoid, String)>> {
        let lacks = |s: &Sharding, p: &&(Monoid, String)| !s.partial.contains(p);
        let fits = |s: &Sharding, p: &(Monoid, String)| p.0.position().is_some() && s.partial_over(&p.1).is_none();
        let more: Vec<&(Monoid, String)> = other.partial.iter().filter(|p| lacks(self, p)).collect();
        let fit = self.partial.iter().filter(|p| lacks(other, p)).all(|p| fits(other, p))
            && more.iter().all(|p| fits(self, p));
        fit.then(|| self.partial.iter().chain(more).cloned().collect())
    }

    /// The same for a tensor without dim `at`.
    pub fn without(&self, at: usize) -> Sharding {
        let mut out = self.clone();
        if at < out.dims.len() {
            out.dims.remove(at);
        }
        out.partial = self.moved(&|d| if d == at { None } else { Some(d - usize::from(d > at)) }, Own::Any);
        let rank = out.dims.len();
        out.normal(rank)
    }

    /// The same for a tensor of so many dims with one more at `at`, which these axes split.
    pub fn with(&self, at: usize, axes: &[String], rank: usize) -> Sharding {
        let mut dims: Vec<Vec<String>> = (0..rank).map(|i| self.axes(i).to_vec()).collect();
        dims.insert(at.min(rank), axes.to_vec());
        let partial = self.moved(&|d| Some(d + usize::from(d >= at)), Own::Any);
        Sharding { dims, partial, ..self.clone() }.normal(rank + 1)
    }

    /// The axes that dim `i` is split over, major first.
    pub fn axes(&self, i: usize) -> &[String] {
        self.dims.get(i).map_or(&[], Vec::as_slice)
    }

    /// The dim that an axis splits.
    pub fn dim_of(&self, axis: &str) -> Option<usize> {
        self.dims.iter().position(|axes| axes.iter().any(|a| a == axis))
    }

    /// The monoid over which the value is partial along an axis.
    pub fn partial_over(&self, axis: &str) -> Option<Monoid> {
        self.partial.iter().find(|(_, a)| a == axis).map(|p| p.0)
    }

    /// The same with one entry per dim, or none where no dim is split: equal layouts are equal values.
    pub fn normal(mut self, rank: usize) -> Sharding {
        if self.dims.iter().all(Vec::is_empty) {
            self.dims.clear();
        } else {
            self.dims.resize(rank, vec![]);
        }
        self.partial.sort_by(|a, b| a.1.cmp(&b.1));
        self
    }

    /// Over how many devices dim `i` is split.
    pub fn parts(&self, i: usize) -> u64 {
        let size = |axis: &String| self.mesh.as_ref().and_then(|m| m.size(axis)).unwrap_or(1);
        self.axes(i).iter().map(size).product()
    }

    /// The part of a tensor of this shape that a device holds. Where it has none, that is an empty box, of rank 1 for a
    /// tensor of rank 0.
    pub fn block(&self, shape: &[u64], device: u64) -> Vec<Range<u64>> {
        let Some(mesh) = &self.mesh else { return shape.iter().map(|&n| 0..n).collect() };
        if self.is_absent(device) {
            return vec![0..0; shape.len().max(1)];
        }
        let position = |i: usize| {
            let step = |at, axis: &String| at * mesh.size(axis).unwrap_or(1) + mesh.coordinate(device, axis);
            self.axes(i).iter().fold(0, step)
        };
        shape.iter().enumerate().map(|(i, &n)| block(n, self.parts(i), position(i))).collect()
    }

    /// In words, for a tensor of this rank: `dim 0 over tp, on Mesh[tp=4]`.
    pub fn describe(&self, rank: usize) -> String {
        let Some(mesh) = &self.mesh else { return "one device".into() };
        let split = (0..rank).filter(|&i| !self.axes(i).is_empty());
        let mut parts: Vec<String> = split.map(|i| format!("dim {i} over {}", self.axes(i).join(", "))).collect();
        parts.extend(self.partial.iter().map(|(m, a)| match m {
            Monoid::At(index) => format!("at {index} of {a}"),
            _ => format!("{m} over {a}"),
        }));
        if parts.is_empty() {
            parts.push("replicated".into());
        }
        format!("{}, on {mesh}", parts.join(", "))
    }

    /// The `@dp` or `@(tp,pp)` after dim `i`, or nothing.
    pub fn dim_suffix(&self, i: usize) -> String {
        match self.dims.get(i).map(Vec::as_slice) {
            None | Some([]) => String::new(),
            Some([axis]) => format!("@{axis}"),
            Some(axes) => format!("@({})", axes.join(",")),
        }
    }

    /// The first mesh axis that is used more than once, if any.
    pub fn axis_used_twice(&self) -> Option<&str> {
        let mut seen: Vec<&str> = vec![];
        let dims = self.dims.iter().flatten().map(String::as_str);
        for axis in dims.chain(self.partial.iter().map(|(_, a)| a.as_str())) {
            if seen.contains(&axis) {
                return Some(axis);
            }
            seen.push(axis);
        }
        None
    }
}

impl fmt::Display for Sharding {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.is_replicated() {
            return f.write_str("replicated");
        }
        let mut parts: Vec<String> =
            (0..self.dims.len()).map(|i| format!("dim{i}{}", self.dim_suffix(i))).filter(|s| s.contains('@')).collect();
        parts.extend(self.partial.iter().map(|(m, a)| format!("{m}@{a}")));
        f.write_str(&parts.join(", "))
    }
}
