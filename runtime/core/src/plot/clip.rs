//! What of a line is seen, and how many of its points are needed to show it.

/// A point as shares of the field, (0, 0) at its low ends.
pub type Place = (f64, f64);

/// The part of a stroke inside the field with `around` on all sides.
pub fn stroke(a: Place, b: Place, around: f64) -> Option<(Place, Place)> {
    let (mut from, mut to) = (0.0f64, 1.0f64);
    for (p, q) in [(a.0, b.0), (a.1, b.1)] {
        let (low, high) = (-around, 1.0 + around);
        let way = q - p;
        if way == 0.0 {
            if p < low || p > high {
                return None;
            }
            continue;
        }
        let (enter, leave) = ((low - p) / way, (high - p) / way);
        from = from.max(enter.min(leave));
        to = to.min(enter.max(leave));
    }
    let at = |t: f64, end: Place| {
        // Of an end that is very far away rounding is larger than the field.
        let mix = |p: f64, q: f64| (p + (q - p) * t).clamp(-around, 1.0 + around);
        if t == 0.0 || t == 1.0 { end } else { (mix(a.0, b.0), mix(a.1, b.1)) }
    };
    // Places farther away than a number holds give none.
    let ends = (at(from, a), at(to, b));
    let sound = [ends.0.0, ends.0.1, ends.1.0, ends.1.1].iter().all(|v| v.is_finite());
    (from <= to && sound).then_some(ends)
}

/// The visible runs of a line with interruptions.
pub fn runs(places: &[Option<Place>], around: f64) -> Vec<Vec<Place>> {
    let mut out: Vec<Vec<Place>> = vec![];
    for run in places.split(|p| p.is_none()) {
        let run: Vec<Place> = run.iter().flatten().copied().collect();
        if let [one] = run[..] {
            out.extend(stroke(one, one, around).map(|(p, _)| vec![p]));
        }
        let mut joined = false;
        for pair in run.windows(2) {
            let Some((a, b)) = stroke(pair[0], pair[1], around) else {
                joined = false;
                continue;
            };
            match out.last_mut() {
                Some(last) if joined && last.last() == Some(&a) => last.push(b),
                _ => out.push(vec![a, b]),
            }
            joined = b == pair[1];
        }
    }
    out
}

/// A run with at most four points in each of `columns` columns of dots: where it enters, its lowest, its highest, where it
/// leaves. The drawing stays the same.
pub fn thinned(run: Vec<Place>, columns: f64) -> Vec<Place> {
    if run.len() as f64 <= columns * 4.0 {
        return run;
    }
    let column = |p: &Place| (p.0 * columns).floor();
    let mut out: Vec<Place> = vec![];
    for group in run.chunk_by(|a, b| column(a) == column(b)) {
        let order = |a: &&(usize, &Place), b: &&(usize, &Place)| a.1.1.total_cmp(&b.1.1);
        let indexed: Vec<(usize, &Place)> = group.iter().enumerate().collect();
        let (low, high) = (indexed.iter().min_by(order), indexed.iter().max_by(order));
        let mut kept = vec![0, group.len() - 1];
        kept.extend([low, high].into_iter().flatten().map(|(i, _)| *i));
        kept.sort_unstable();
        kept.dedup();
        out.extend(kept.into_iter().map(|i| group[i]));
    }
    out
}

/// Places without those that lie on another one, on a grid of so many dots, where there are many.
pub fn apart(places: Vec<Place>, across: f64, down: f64) -> Vec<Place> {
    const MANY: usize = 5000;
    if places.len() <= MANY {
        return places;
    }
    let mut seen = std::collections::BTreeSet::new();
    let dot = |p: &Place| ((p.0 * across).round() as i64, (p.1 * down).round() as i64);
    places.into_iter().filter(|p| seen.insert(dot(p))).collect()
}
