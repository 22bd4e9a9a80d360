//! Names of sizes in messages. Every size of a body has a name of its own (`n`, `n_2`, `n_3`); a message calls the one
//! that it speaks of `n`, and counts only those that it has to tell apart.

use super::cx::Cx;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::{Code, Diagnostic, Span};

impl Cx<'_> {
    /// The diagnostic with the sizes in it called by plain names, as far as nothing else in it has them.
    pub fn with_plain_size_names(&self, mut d: Diagnostic) -> Diagnostic {
        let mut words: BTreeSet<String> = BTreeSet::new();
        let mut numbered: Vec<String> = vec![];
        for text in texts(&mut d) {
            for word in parts(text).filter(|w| is_name(w)) {
                let own = self.env.get(word).is_some() || self.size_names.contains_key(word);
                if words.insert(word.to_owned()) && !own && self.sizes.plain_name(word).is_some() {
                    numbered.push(word.to_owned());
                }
            }
        }
        if numbered.is_empty() {
            return d;
        }
        words.retain(|word| !numbered.contains(word));
        let mut called: BTreeMap<String, String> = BTreeMap::new();
        for name in numbered {
            let Some(plain) = self.sizes.plain_name(&name) else { continue };
            let counted = (2..).map(|count: u32| format!("{plain}_{count}"));
            let free = std::iter::once(plain.to_string()).chain(counted).find(|n| !words.contains(n));
            if let Some(free) = free {
                words.insert(free.clone());
                called.insert(name, free);
            }
        }
        for text in texts(&mut d) {
            let new: String = parts(text).map(|word| called.get(word).map_or(word, String::as_str)).collect();
            *text = new;
        }
        d
    }
}

impl Cx<'_> {
    /// What the body compares when it runs, in words, with sizes called as messages call them.
    pub fn kept(&self) -> Vec<(Span, Arc<str>)> {
        let plain = |(span, what): (Span, Arc<str>)| {
            let said = self.with_plain_size_names(Diagnostic::new(Code::E0202, span, &*what));
            (span, said.message.into())
        };
        self.sizes.kept().into_iter().map(plain).collect()
    }
}

/// All that a diagnostic says, in the order in which it is shown; what it says to write is not changed.
fn texts(d: &mut Diagnostic) -> impl Iterator<Item = &mut String> {
    let labels = d.labels.iter_mut().map(|l| &mut l.text);
    let fixes = d.fixes.iter_mut().filter(|f| f.edits.is_empty()).map(|f| &mut f.title);
    [&mut d.message, &mut d.label].into_iter().chain(labels).chain(&mut d.witness).chain(&mut d.notes).chain(fixes)
}

/// A text cut into words and what is between them.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let of_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let end = rest.find(|c| of_word(c) != of_word(first)).unwrap_or(rest.len());
        let (part, more) = rest.split_at(end);
        rest = more;
        Some(part)
    })
}

fn is_name(part: &str) -> bool {
    part.starts_with(|c: char| c.is_alphabetic() || c == '_')
}
