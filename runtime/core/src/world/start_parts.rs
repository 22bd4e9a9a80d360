//! What has to be the same in all processes at the start.

/// One of the things that have to be the same in all processes at the start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// What it is, after "another": "`model.tsr`", "version of Tessera".
    pub name: String,
    pub hash: u64,
}

/// Parts as they are sent.
pub fn to_text(parts: &[Part]) -> String {
    parts.iter().map(|p| format!("{:016x} {}\n", p.hash, p.name.replace('\n', " "))).collect()
}

/// Parts that were sent.
pub fn of_text(text: &[u8]) -> Vec<Part> {
    let part = |line: &str| {
        let (hash, name) = line.split_once(' ')?;
        Some(Part { name: name.to_owned(), hash: u64::from_str_radix(hash, 16).ok()? })
    };
    String::from_utf8_lossy(text).lines().filter_map(part).collect()
}

/// The first thing that another process has otherwise, in words.
pub fn first_difference(own: &[Part], other: &[Part]) -> Option<String> {
    let at = (0..own.len().max(other.len())).find(|&i| own.get(i).map(|p| p.hash) != other.get(i).map(|p| p.hash))?;
    Some(match (own.get(at), other.get(at)) {
        (Some(own), Some(other)) if own.name != other.name => format!("has {} in place of {}", other.name, own.name),
        (Some(own), Some(_)) => format!("has another {}", own.name),
        (Some(own), None) => format!("lacks {}", own.name),
        (None, other) => format!("has {}, which process 0 lacks", other.map_or("more", |p| &p.name)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        let part = |name: &str, hash| Part { name: name.into(), hash };
        let own = [part("version of Tessera", 1), part("`a b.tsr`", u64::MAX), part("`c.tsr`", 3)];
        assert_eq!(of_text(to_text(&own).as_bytes()), own);
        let told = |other: &[Part]| first_difference(&own, other);
        assert_eq!(told(&own), None);
        assert_eq!(
            told(&[own[0].clone(), part("`a b.tsr`", 9), own[2].clone()]).as_deref(),
            Some("has another `a b.tsr`")
        );
        assert_eq!(told(&[own[0].clone(), part("`d`", 9)]).as_deref(), Some("has `d` in place of `a b.tsr`"));
        assert_eq!(told(&own[..2]).as_deref(), Some("lacks `c.tsr`"));
    }
}
