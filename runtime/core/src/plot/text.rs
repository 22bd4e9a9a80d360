//! How wide texts are.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns of a terminal that a text takes.
pub fn columns(text: &str) -> usize {
    text.width()
}

/// About how many times its size a text is long; viewers choose the font.
pub fn ems(text: &str) -> f64 {
    let one = |c: char| match (c, c.width().unwrap_or(0)) {
        ('i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' | '(' | ')', _) => 0.36,
        ('m' | 'w' | 'M' | 'W', _) => 0.95,
        (_, 0) => 0.0,
        (_, 1) => 0.63,
        _ => 1.03,
    };
    text.chars().map(one).sum()
}

/// The text, or as much of its beginning as is not longer, with `…`.
pub fn fitting(text: &str, most: f64, measure: impl Fn(&str) -> f64) -> String {
    if measure(text) <= most {
        return text.to_owned();
    }
    let cuts = text.char_indices().map(|(at, _)| &text[..at]);
    let fits = cuts.take_while(|cut| measure(cut) + measure("…") <= most).last().unwrap_or("");
    format!("{}…", fits.trim_end())
}

/// Without what ends a line or has no place in a text of XML.
pub fn plain(text: &str) -> String {
    text.replace(|c: char| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}'), " ")
}

/// Filled up with spaces to so many columns.
pub fn padded(text: &str, width: usize) -> String {
    format!("{text}{:1$}", "", width.saturating_sub(columns(text)))
}

/// In the middle of so many columns.
pub fn centred(text: &str, width: usize) -> String {
    format!("{:1$}{text}", "", width.saturating_sub(columns(text)) / 2)
}
