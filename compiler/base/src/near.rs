//! "Did you mean": the name nearest to a misspelt one.

/// The candidate closest to `name`, if one is close enough to be meant.
///
/// Distance is Damerau-Levenshtein (a transposition counts once); at most a third of the
/// letters may differ. Ties go to the first candidate in the order given.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(1);
    let (length, own) = (name.chars().count(), letters(name));
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        if candidate == name {
            continue;
        }
        // Only a lesser distance would change anything.
        let most = best.map_or(limit, |(d, _)| d.saturating_sub(1));
        let distance = if candidate.eq_ignore_ascii_case(name) {
            0
        } else if most == 0 || least(length, own, candidate) > most {
            continue;
        } else {
            strsim::damerau_levenshtein(name, candidate)
        };
        if distance <= limit && best.is_none_or(|(d, _)| distance < d) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, c)| c)
}

/// The candidates closest to `name`, as [`nearest`] has them: those of the least distance, three at most, in the order given.
pub fn nearest_few<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let mut few = vec![];
    let Some(first) = nearest(name, candidates.iter().copied()) else { return few };
    let distance = |to: &str| match to.eq_ignore_ascii_case(name) {
        true => 0,
        false => strsim::damerau_levenshtein(name, to),
    };
    let (most, length, own) = (distance(first), name.chars().count(), letters(name));
    for candidate in candidates {
        if few.len() < 3
            && candidate != name
            && !few.contains(&candidate)
            && (most == 0 || least(length, own, candidate) <= most)
            && distance(candidate) == most
        {
            few.push(candidate);
        }
    }
    few
}

/// The letters of a word as a set; letters may share a bit.
fn letters(word: &str) -> u64 {
    word.chars().fold(0, |set, c| set | 1 << (u32::from(c) % 64))
}

/// What the distance is at least: found in a moment, where the distance itself takes a table.
fn least(length: usize, own: u64, candidate: &str) -> usize {
    let other = letters(candidate);
    let lacking = (own & !other).count_ones().max((other & !own).count_ones());
    length.abs_diff(candidate.chars().count()).max(lacking as usize)
}

#[cfg(test)]
mod tests {
    use super::{nearest, nearest_few};

    #[test]
    fn transposed_letters_are_near_and_other_words_are_not() {
        assert_eq!(nearest("learnign_rate", ["rate", "learning_rate"]), Some("learning_rate"));
        assert_eq!(nearest("xyz", ["abc"]), None);
        assert_eq!(nearest("x", ["y"]), Some("y"));
    }

    #[test]
    fn names_that_are_as_near_are_all_told() {
        let names = ["sort", "exp", "sqrt", "sort", "srt", "sart", "st"];
        assert_eq!(nearest_few("srt", names), ["sort", "sqrt", "sart"]);
        assert_eq!(nearest_few("SORT", names), ["sort"]);
        assert_eq!(nearest_few("abcdef", names), Vec::<&str>::new());
    }

    #[test]
    fn what_is_ruled_out_at_a_glance_is_not_near() {
        let words = ["rate", "tare", "Rate", "grate", "rated", "ratio", "ärate", "tra", "", "r", "learning_rate"];
        for name in words {
            let limit = (name.chars().count() / 3).max(1);
            for candidate in words.iter().filter(|c| **c != name) {
                let distance = strsim::damerau_levenshtein(name, candidate);
                let near = distance <= limit || candidate.eq_ignore_ascii_case(name);
                assert_eq!(nearest(name, [*candidate]).is_some(), near, "{name} and {candidate}");
            }
        }
    }
}
