//! A program as an editor sees it: a database, and the file that somebody looks at.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use tessera_base::{FileId, ItemId, Span};
use tessera_core::ty::Ty;
use tessera_infer::db::{Database, Db, Entity, File, Item, ItemHead, Scope};
use tessera_infer::of_item::{OfItem, at_annotations, of_item, of_items};
use tessera_resolve::source::SourceMap;

/// A part of a file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    pub file: FileId,
    pub start: usize,
    pub end: usize,
}

impl Place {
    pub fn range(&self) -> Range<usize> {
        self.start..self.end
    }
}

/// The program of a file.
pub struct Analysis<'db> {
    pub db: &'db Database,
    /// The file that is looked at: the program consists of it and of what it imports.
    pub root: FileId,
    pub sources: SourceMap,
    known: RefCell<BTreeMap<ItemId, Rc<OfItem>>>,
    /// Of functions that are annotated throughout.
    annotated: RefCell<BTreeMap<ItemId, Option<Rc<OfItem>>>>,
    bound: RefCell<BTreeMap<FileId, Rc<Bound>>>,
}

/// Where the statements of a file bind their names first.
pub type Bound = BTreeMap<Arc<str>, Span>;

impl<'db> Analysis<'db> {
    pub fn new(db: &'db Database, root: FileId) -> Analysis<'db> {
        let sources = db.source_map();
        let (known, annotated, bound) = (RefCell::default(), RefCell::default(), RefCell::default());
        Analysis { db, root, sources, known, annotated, bound }
    }

    pub fn text(&self, file: FileId) -> Arc<str> {
        self.sources.file(file).map_or_else(|| "".into(), |f| f.text.clone())
    }

    pub fn path(&self, file: FileId) -> Arc<str> {
        self.sources.file(file).map_or_else(|| "".into(), |f| f.path.clone())
    }

    pub fn file(&self, id: FileId) -> Option<File> {
        self.db.file(id)
    }

    pub fn item(&self, id: ItemId) -> Option<Item> {
        self.db.item(id)
    }

    /// The items of a file, in the order of its text.
    pub fn heads(&self, file: FileId) -> Arc<[ItemHead]> {
        self.file(file).map_or_else(|| Arc::from([]), |f| f.heads(self.db).clone())
    }

    pub fn scope(&self, file: FileId) -> Option<&'db Arc<Scope>> {
        self.file(file).map(|f| tessera_infer::db::scope(self.db, f))
    }

    /// The item at a byte of a file, and the byte counted from its start.
    pub fn item_at(&self, file: FileId, byte: usize) -> Option<(Item, u32)> {
        let (id, at) = self.sources.item_at(file, byte)?;
        Some((self.item(id)?, at))
    }

    /// Where a span lies in its file.
    pub fn place(&self, span: Span) -> Option<Place> {
        let (file, range) = self.sources.locate(span)?;
        Some(Place { file, start: range.start, end: range.end })
    }

    /// What the program makes of an item.
    pub fn of_item(&self, item: ItemId) -> Rc<OfItem> {
        let known = self.known.borrow().get(&item).cloned();
        known.unwrap_or_else(|| {
            let found = Rc::new(of_item(self.db, self.root, item));
            self.known.borrow_mut().insert(item, found.clone());
            found
        })
    }

    /// The types of what stands at a place of an item. The whole program is asked only where the item by itself does not say.
    pub fn types_at(&self, item: ItemId, span: Span) -> Vec<Ty> {
        if !self.known.borrow().contains_key(&item) {
            let of = self.annotated.borrow().get(&item).cloned();
            let of = of.unwrap_or_else(|| {
                let of = at_annotations(self.db, item).map(Rc::new);
                self.annotated.borrow_mut().insert(item, of.clone());
                of
            });
            if let Some(types) = of.as_ref().map(|of| of.at(span)).filter(|types| !types.is_empty()) {
                return types.to_vec();
            }
        }
        self.of_item(item).at(span).to_vec()
    }

    /// Asks for what the program makes of several items at once.
    pub fn ask_of(&self, items: &[ItemId]) {
        let found = of_items(self.db, self.root, items);
        self.known.borrow_mut().extend(found.into_iter().map(|(id, of)| (id, Rc::new(of))));
    }

    /// Where the statements of a file bind their names first, sizes of annotations included.
    pub fn bound_at_top(&self, file: FileId) -> Rc<Bound> {
        let found = self.bound.borrow().get(&file).cloned();
        found.unwrap_or_else(|| {
            let mut bound = Bound::new();
            for item in self.heads(file).iter().filter_map(|head| self.item(head.id)) {
                for binding in item.names(self.db).of_file() {
                    if let Some(place) = binding.places.first() {
                        bound.entry(binding.name.clone()).or_insert(*place);
                    }
                }
            }
            let bound = Rc::new(bound);
            self.bound.borrow_mut().insert(file, bound.clone());
            bound
        })
    }

    /// The file that an item is written in.
    pub fn file_of(&self, item: ItemId) -> Option<FileId> {
        Some(self.item(item)?.file(self.db))
    }

    /// What a name at the top of a file stands for, through all imports.
    pub fn entity(&self, file: FileId, name: &str) -> Option<Entity> {
        let (mut file, mut name): (FileId, Arc<str>) = (file, name.into());
        // Files that import a name from each other in a circle are refused; here the way is only cut.
        for _ in 0..32 {
            match self.scope(file)?.names.get(&name)? {
                Entity::Member(of, member) if self.scope(*of).is_some_and(|s| s.names.contains_key(member)) => {
                    (file, name) = (*of, member.clone());
                }
                other => return Some(other.clone()),
            }
        }
        None
    }
}
