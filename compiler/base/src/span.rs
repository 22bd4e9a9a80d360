//! Places in source text.

/// A file of the program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct FileId(pub u32);

/// One top-level piece of a source file: a `def`, a `struct`, or a statement.
///
/// Ids are handed out by whoever owns the files (the query database) and stay the same
/// across edits as long as the item keeps its file, kind and name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct ItemId(pub u32);

impl ItemId {
    /// Marks a span that belongs to no source text (made by the compiler).
    pub const NONE: ItemId = ItemId(u32::MAX);
}

/// A byte range inside an item, counted from the first byte of the item.
///
/// Relative positions are what lets an edit above a function leave the function's checked
/// form untouched. They become absolute only when a diagnostic is rendered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Span {
    pub item: ItemId,
    pub start: u32,
    pub end: u32,
}

impl Default for Span {
    fn default() -> Self {
        Span::NONE
    }
}

impl Span {
    pub const NONE: Span = Span { item: ItemId::NONE, start: 0, end: 0 };

    pub fn new(item: ItemId, start: usize, end: usize) -> Span {
        Span { item, start: start as u32, end: end as u32 }
    }

    /// The smallest span that holds both. Spans of different items give `self`.
    pub fn to(self, other: Span) -> Span {
        if self.item != other.item {
            return self;
        }
        Span { item: self.item, start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    pub fn is_none(self) -> bool {
        self.item == ItemId::NONE
    }
}
