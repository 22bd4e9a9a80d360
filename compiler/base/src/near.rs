//! "Did you mean": the name nearest to a misspelt one.

/// The candidate closest to `name`, if one is close enough to be meant.
///
/// Distance is Damerau-Levenshtein (a transposition counts once); at most a third of the
/// letters may differ. Ties go to the first candidate in the order given.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        if candidate == name {
            continue;
        }
        let distance =
            if candidate.eq_ignore_ascii_case(name) { 0 } else { strsim::damerau_levenshtein(name, candidate) };
        if distance <= limit && best.is_none_or(|(d, _)| distance < d) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, c)| c)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn transposed_letters_are_near_and_other_words_are_not() {
        assert_eq!(nearest("learnign_rate", ["rate", "learning_rate"]), Some("learning_rate"));
        assert_eq!(nearest("xyz", ["abc"]), None);
        assert_eq!(nearest("x", ["y"]), Some("y"));
    }
}
