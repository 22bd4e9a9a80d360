//! What a program can write where a dim is needed in full that is split over devices.

use tessera_base::shard::{block, bytes};
use tessera_base::{Diagnostic, Sharding, Span, TensorType};

/// One way to have a dim in full: text around the tensor, and how that lies then.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Way {
    pub title: String,
    pub before: String,
    pub after: String,
    pub to: Sharding,
}

impl Way {
    fn new(what: &str, call: &str, more: &str, to: Sharding, cost: Option<u64>) -> Way {
        let cost = cost.map_or(String::new(), |b| format!(" ({} to each device)", bytes(b)));
        let (before, after) = (format!("{call}("), format!("{more})"));
        Way { title: format!("{what}{cost}: `{before}x{after}`"), before, after, to }
    }
}

/// The ways to have `dim` of a tensor in full: its axes split another dim, or none. Those that
/// move fewest bytes come first.
pub fn ways(t: &TensorType, dim: usize) -> Vec<Way> {
    let axes = t.sharding.axes(dim);
    let rest: Vec<Vec<String>> =
        (0..t.rank()).map(|d| if d == dim { vec![] } else { t.sharding.axes(d).to_vec() }).collect();
    let joined = Sharding { dims: rest.clone(), ..t.sharding.clone() }.normal(t.rank());
    let mut out = vec![];
    for to in (0..t.rank()).filter(|to| *to != dim) {
        let mut dims = rest.clone();
        dims[to].extend(axes.iter().cloned());
        let lies = Sharding { dims, ..t.sharding.clone() }.normal(t.rank());
        if t.shape[to].as_const().is_some_and(|n| (n as u64) < lies.parts(to)) {
            continue;
        }
        let cost = received(t, axes, &lies);
        out.push(match axes {
            [axis] => {
                let more = format!(", axis=\"{axis}\", from_dim={dim}, to_dim={to}");
                Way::new(&format!("split dim {to} of {t} instead"), "dist.collective.all_to_all", &more, lies, cost)
            }
            _ => Way::new(&format!("split dim {to} of {t} instead"), "dist.shard", &spec(&lies), lies.clone(), cost),
        });
    }
    let cost = received(t, axes, &joined);
    out.push(match axes {
        [axis] => {
            let more = format!(", axis=\"{axis}\"");
            Way::new(
                &format!("have dim {dim} of {t} in full everywhere"),
                "dist.collective.all_gather",
                &more,
                joined,
                cost,
            )
        }
        _ => Way::new(
            &format!("have dim {dim} of {t} in full everywhere"),
            "dist.shard",
            &spec(&joined),
            joined.clone(),
            cost,
        ),
    });
    out
}

/// Bytes that each device gets from others: its part afterwards, but for what it has.
fn received(t: &TensorType, axes: &[String], to: &Sharding) -> Option<u64> {
    let shape: Vec<u64> =
        t.shape.iter().map(|n| n.as_const().and_then(|n| u64::try_from(n).ok())).collect::<Option<_>>()?;
    let mesh = to.mesh.as_ref().filter(|m| !m.is_unknown())?;
    let parts: u64 = axes.iter().filter_map(|a| mesh.size(a)).product();
    let elements: u64 = shape.iter().enumerate().map(|(i, n)| block(*n, to.parts(i), 0).end).product();
    Some(elements * t.dtype?.bytes() as u64 / parts.max(1) * parts.saturating_sub(1))
}

/// The layout as an argument.
fn spec(s: &Sharding) -> String {
    let tuple = |items: Vec<String>| {
        if items.len() == 1 { format!("({},)", items[0]) } else { format!("({})", items.join(", ")) }
    };
    let split: Vec<usize> = (0..s.dims.len()).filter(|d| !s.axes(*d).is_empty()).collect();
    let named = |d: &usize| match s.axes(*d) {
        [axis] => format!("\"{axis}\""),
        axes => tuple(axes.iter().map(|a| format!("\"{a}\"")).collect()),
    };
    let (dims, axes) = (split.iter().map(usize::to_string).collect(), split.iter().map(named).collect());
    format!(", dist.ShardSpec(partition={}, mesh_axes={})", tuple(dims), tuple(axes))
}

/// The diagnostic with the ways to have a dim of the tensor at `at` in full; the dims that may be
/// split instead.
pub fn with_ways(d: Diagnostic, t: &TensorType, dim: usize, at: Span, may: &dyn Fn(usize) -> bool) -> Diagnostic {
    let splits = |w: &Way| (0..t.rank()).all(|i| w.to.axes(i).len() <= t.sharding.axes(i).len() || may(i));
    let all = ways(t, dim).into_iter().filter(splits);
    all.fold(d, |d, w| d.around(w.title, &[at], &w.before, &w.after))
        .note("nothing is gathered without being asked for")
}
