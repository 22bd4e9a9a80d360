//! Lines and columns of a text, as editors count them.

use memchr::memchr2_iter;

/// In which units a column is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Units {
    Utf8,
    /// What the language server protocol falls back to.
    #[default]
    Utf16,
    Utf32,
}

impl Units {
    fn of(self, c: char) -> u32 {
        match self {
            Units::Utf8 => c.len_utf8() as u32,
            Units::Utf16 => c.len_utf16() as u32,
            Units::Utf32 => 1,
        }
    }
}

/// From 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

/// Where the lines of a text begin. A line ends with `\n`, `\r\n` or `\r`.
#[derive(Clone, Debug)]
pub struct Lines {
    starts: Vec<usize>,
    /// Whether every character of the line is a byte: its columns are bytes in all units.
    plain: Vec<bool>,
}

impl Lines {
    pub fn of(text: &str) -> Lines {
        let bytes = text.as_bytes();
        let ends = |i: &usize| bytes[*i] == b'\n' || bytes.get(i + 1) != Some(&b'\n');
        let found = memchr2_iter(b'\n', b'\r', bytes).filter(ends).map(|i| i + 1);
        let starts: Vec<usize> = std::iter::once(0).chain(found).collect();
        let end = |i: usize| starts.get(i + 1).copied().unwrap_or(bytes.len());
        let plain = match text.is_ascii() {
            true => vec![true; starts.len()],
            false => starts.iter().enumerate().map(|(i, start)| bytes[*start..end(i)].is_ascii()).collect(),
        };
        Lines { starts, plain }
    }

    pub fn count(&self) -> usize {
        self.starts.len()
    }

    /// The bytes of a line with its end; of a line behind the last, none at the end of the text.
    pub fn range(&self, line: u32, text: &str) -> std::ops::Range<usize> {
        let at = |line: usize| self.starts.get(line).copied().unwrap_or(text.len());
        at(line as usize)..at(line as usize + 1)
    }

    /// The byte at a position: columns behind the end of a line are its end, a half of a character is its start.
    pub fn byte(&self, text: &str, at: Position, units: Units) -> usize {
        let range = self.range(at.line, text);
        let line = text[range.clone()].trim_end_matches(['\n', '\r']);
        if self.plain.get(at.line as usize).is_none_or(|plain| *plain) {
            return range.start + line.len().min(at.column as usize);
        }
        let mut column = 0;
        for (i, c) in line.char_indices() {
            column += units.of(c);
            if column > at.column {
                return range.start + i;
            }
        }
        range.start + line.len()
    }

    /// The position of a byte, or of the start of the character that it is a part of.
    pub fn position(&self, text: &str, byte: usize, units: Units) -> Position {
        let byte = byte.min(text.len());
        let line = self.starts.partition_point(|start| *start <= byte) - 1;
        let start = self.starts[line];
        if self.plain[line] {
            return Position { line: line as u32, column: (byte - start) as u32 };
        }
        let before = text[start..].char_indices().take_while(|(i, c)| start + i + c.len_utf8() <= byte);
        Position { line: line as u32, column: before.map(|(_, c)| units.of(c)).sum() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every character of texts with all kinds of lines and widths is found again at its position.
    #[test]
    fn there_and_back() {
        let pieces = ["a", "\n", "\r\n", "\r", "é", "𝔘", "日", "", " x\t"];
        let mut seed = 7u64;
        for _ in 0..2000 {
            let mut text = String::new();
            for _ in 0..12 {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                text.push_str(pieces[(seed >> 33) as usize % pieces.len()]);
            }
            let lines = Lines::of(&text);
            for units in [Units::Utf8, Units::Utf16, Units::Utf32] {
                for (i, c) in text.char_indices().filter(|(_, c)| !matches!(c, '\n' | '\r')) {
                    let at = lines.position(&text, i, units);
                    assert_eq!(lines.byte(&text, at, units), i, "{text:?} {c:?} {units:?}");
                }
                let end = lines.position(&text, text.len(), units);
                assert_eq!(lines.byte(&text, end, units), text.len());
                let far = Position { line: end.line, column: u32::MAX };
                assert_eq!(lines.byte(&text, far, units), text.len());
                assert_eq!(lines.byte(&text, Position { line: u32::MAX, column: 3 }, units), text.len());
            }
        }
    }

    #[test]
    fn astral_characters_are_two_units() {
        let (text, lines) = ("x = '𝔘' # é\n", Lines::of("x = '𝔘' # é\n"));
        let at = |column, units| lines.byte(text, Position { line: 0, column }, units);
        assert_eq!((at(7, Units::Utf16), at(6, Units::Utf16), at(9, Units::Utf8)), (9, 5, 9));
    }
}
