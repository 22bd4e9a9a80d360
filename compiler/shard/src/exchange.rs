//! From one layout to another: which boxes of elements go from which device to which.
//!
//! Also called: resharding, collectives (all-gather, all-to-all, reduce-scatter, halo exchange are such exchanges).

use crate::placement::{Parts, Placement};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use tessera_base::{Mesh, Sharding};
use tessera_ops::prim::{Exchange, Transfer};

fn intersect(a: &[Range<u64>], b: &[Range<u64>]) -> Option<Vec<Range<u64>>> {
    if is_empty(a) || is_empty(b) {
        return None;
    }
    a.iter()
        .zip(b)
        .map(|(a, b)| {
            let both = a.start.max(b.start)..a.end.min(b.end);
            (both.start < both.end).then_some(both)
        })
        .collect()
}

fn is_empty(part: &[Range<u64>]) -> bool {
    part.iter().any(|r| r.start >= r.end)
}

/// Whether every device finds in its own part what it is to hold. The other dims of empty parts count
/// too: a slice of another part could not have their sizes. What of a number is empty is not there.
pub fn is_local(from: &Parts, to: &Parts) -> bool {
    let inside = |f: &Range<u64>, t: &Range<u64>| t.start >= t.end || f.start <= t.start && t.end <= f.end;
    let lacks = |f: &[Range<u64>], t: &[Range<u64>]| t.is_empty() && is_empty(f);
    from.iter().zip(to).all(|(f, t)| !lacks(f, t) && f.iter().zip(t).all(|(f, t)| inside(f, t)))
}

/// The different parts, each as one of its holders has it, with the devices that hold them, in order of the first.
pub type Holders = Vec<(usize, Vec<u64>)>;

pub fn holders(from: &Parts) -> Holders {
    let mut out: Holders = vec![];
    let mut known: HashMap<&[Range<u64>], usize> = HashMap::new();
    for (d, part) in from.iter().enumerate().filter(|(_, p)| !is_empty(p)) {
        let at = *known.entry(part).or_insert(out.len());
        match out.get_mut(at) {
            Some((_, who)) => who.push(d as u64),
            None => out.push((d, vec![d as u64])),
        }
    }
    out
}

/// Who gives a part to a device: itself, or its holders in turn.
fn giver(who: &[u64], to: u64) -> u64 {
    match who.binary_search(&to) {
        Ok(_) => to,
        Err(_) => who[to as usize % who.len()],
    }
}

/// A box relative to a part.
fn relative(part: &[Range<u64>], of: &[Range<u64>], peer: u64) -> Transfer {
    Transfer {
        peer,
        start: part.iter().zip(of).map(|(p, o)| p.start - o.start).collect(),
        size: part.iter().map(|p| p.end - p.start).collect(),
    }
}

/// What device `me` does so that `from` becomes `to`. Values of rank 0 have one element, which
/// every part holds. The holders are those of `from`.
pub fn exchange(from: &Parts, held: &Holders, to: &Parts, me: u64, name: &str) -> Exchange {
    let (mut sends, mut receives) = (vec![], vec![]);
    for (part, who) in held {
        let part = &from[*part];
        // Only a holder gives a part away.
        if who.binary_search(&me).is_ok() {
            for (receiver, wanted) in (0..).zip(to) {
                if giver(who, receiver) == me
                    && let Some(both) = intersect(part, wanted)
                {
                    sends.push(relative(&both, part, receiver));
                }
            }
        }
        let wanted = &to[me as usize];
        if let Some(both) = intersect(part, wanted) {
            receives.push(relative(&both, wanted, giver(who, me)));
        }
    }
    Exchange { name: name.into(), tag: 0, batch: 0, sends, receives }
}

/// Elements that go from one device to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    pub from: u64,
    pub to: u64,
    pub elems: u64,
}

/// What goes between all devices so that `from` becomes `to`.
pub fn flows(from: &Parts, to: &Parts) -> Vec<Flow> {
    let mut out = vec![];
    for (part, who) in holders(from) {
        let part = &from[part];
        for (receiver, wanted) in to.iter().enumerate() {
            let Some(both) = intersect(part, wanted) else { continue };
            let (sender, receiver) = (giver(&who, receiver as u64), receiver as u64);
            if sender != receiver {
                let elems = both.iter().map(|r| r.end - r.start).product();
                out.push(Flow { from: sender, to: receiver, elems });
            }
        }
    }
    out
}

/// What gives boxes of a value, for people: `permute` where devices get what others hold, else `pieces`, over the
/// axes that split the dims of which devices need other positions than they hold.
fn pieces(from: &Sharding, held: &Parts, wanted: &Parts) -> String {
    let rank = held.first().map_or(0, Vec::len);
    let differs = |d: &usize| held.iter().zip(wanted).any(|(h, w)| h[*d] != w[*d]);
    let axes: Vec<&str> = (0..rank).filter(differs).flat_map(|d| from.axes(d)).map(String::as_str).collect();
    let kind = if wanted.iter().all(|w| held.contains(w)) { "permute" } else { "pieces" };
    [&[kind], &axes[..]].concat().join(" ")
}

/// What brings a value from one place to another, for people.
pub fn name(from: &Placement, to: &Placement, (held, wanted): (&Parts, &Parts), mesh: &Arc<Mesh>) -> String {
    match (from, to) {
        (_, Placement::First) => "gather".into(),
        (Placement::Layout(from), Placement::Layout(to)) => collective(from, to, mesh),
        (Placement::Layout(from), Placement::Boxes(_)) => pieces(from, held, wanted),
        (Placement::Boxes(_), Placement::Layout(to)) => pieces(to, held, wanted),
        (Placement::Boxes(_), _) => "pieces".into(),
        _ => "permute".into(),
    }
}

/// The collective that turns one layout into another.
fn collective(from: &Sharding, to: &Sharding, mesh: &Arc<Mesh>) -> String {
    let mut kinds: Vec<(&str, &str)> = vec![];
    for (axis, _) in mesh.axes.iter().filter(|a| a.1 > 1) {
        let kind = match (from.position(axis), to.position(axis), from.dim_of(axis), to.dim_of(axis)) {
            (Some(a), Some(b), ..) if a == b => continue,
            (Some(_), Some(_), ..) => "pass",
            (Some(_), None, _, Some(_)) => "scatter",
            (Some(_), None, ..) => "broadcast",
            (None, Some(_), Some(_), _) => "gather",
            (.., Some(a), Some(b)) if a == b => continue,
            (.., Some(_), Some(_)) => "all_to_all",
            (.., Some(_), None) => "all_gather",
            (.., None, Some(_)) => "slice",
            (.., None, None) => continue,
        };
        kinds.push((kind, axis));
    }
    let moving = |k: &&(&str, &str)| k.0 != "slice";
    match kinds.iter().filter(moving).collect::<Vec<_>>()[..] {
        [] => "permute".into(),
        [(kind, axis)] => format!("{kind} {axis}"),
        _ => "reshard".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::parts;

    fn mesh() -> Arc<Mesh> {
        Arc::new(Mesh { axes: vec![("a".into(), 2), ("b".into(), 3)] })
    }

    fn layout(dims: &[&[&str]]) -> Sharding {
        let dims = dims.iter().map(|d| d.iter().map(|a| a.to_string()).collect()).collect();
        Sharding { dims, mesh: Some(mesh()), ..Sharding::default() }
    }

    /// Plays an exchange of a matrix whose elements are their positions.
    fn play(shape: [u64; 2], from: &Sharding, to: &Sharding) {
        let (f, t) = (parts(from, &shape, 6), parts(to, &shape, 6));
        let plans: Vec<Exchange> = (0..6).map(|d| exchange(&f, &holders(&f), &t, d, "")).collect();
        for me in 0..6u64 {
            let want = &t[me as usize];
            let count: u64 = want.iter().map(|r| r.end - r.start).product();
            let mut got = std::collections::BTreeSet::new();
            for r in &plans[me as usize].receives {
                let sent = plans[r.peer as usize].sends.iter().filter(|s| s.peer == me);
                let source = &f[r.peer as usize];
                let hit = sent.filter(|s| {
                    s.size == r.size && (0..2).all(|i| source[i].start + s.start[i] == want[i].start + r.start[i])
                });
                assert_eq!(hit.count(), 1, "{from} to {to}: every box received is sent once");
                for i in 0..r.size[0] {
                    for j in 0..r.size[1] {
                        assert!(got.insert((r.start[0] + i, r.start[1] + j)), "no element arrives twice");
                    }
                }
            }
            assert_eq!(got.len() as u64, count, "{from} to {to}: device {me} has all of its part");
        }
    }

    #[test]
    fn every_pair_of_layouts() {
        let all = [
            layout(&[&[], &[]]),
            layout(&[&["a"], &[]]),
            layout(&[&["b"], &[]]),
            layout(&[&[], &["a"]]),
            layout(&[&["a"], &["b"]]),
            layout(&[&["b"], &["a"]]),
            layout(&[&["a", "b"], &[]]),
            layout(&[&["b", "a"], &[]]),
            layout(&[&[], &["a", "b"]]),
        ];
        for from in &all {
            for to in &all {
                for shape in [[6, 6], [5, 7], [1, 4], [2, 13]] {
                    play(shape, from, to);
                }
            }
        }
    }

    #[test]
    fn names_say_the_collective() {
        let (rows, columns, same) = (layout(&[&["a"], &[]]), layout(&[&[], &["a"]]), layout(&[]));
        let name = |from: &Sharding, to: &Sharding| collective(from, to, &mesh());
        assert_eq!(name(&rows, &same), "all_gather a");
        assert_eq!(name(&rows, &columns), "all_to_all a");
        assert_eq!(name(&layout(&[&["a", "b"], &[]]), &same), "reshard");
    }
}
