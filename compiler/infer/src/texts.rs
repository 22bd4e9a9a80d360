//! Texts on their way into the database: files cut into items, imports found and loaded.

use crate::db::{
    Before, Database, File, Item, ItemHead, ItemKind, ItemText, MODEL, Prompt, Target, Texts, facts, file_of, item_of,
    model_name, path_of,
};
use crate::session::warm;
use salsa::Setter;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::{ItemId, bug};
use tessera_grammar::{RawKind, split};
use tessera_resolve::source::{FileId, Loaded, Loader, SourceMap, SourceText};

/// On the way through the files that import each other.
struct Walk {
    /// From the first to where it is.
    path: Vec<FileId>,
    done: BTreeSet<FileId>,
    /// Files that got another text.
    changed: BTreeSet<FileId>,
}

impl Database {
    /// A new file without text.
    pub fn add_file(&mut self, path: &str) -> FileId {
        self.add(path, None, None)
    }

    /// A new input of a prompt, without text.
    pub fn add_input(&mut self, path: &str, prompt: &mut Option<Prompt>, before: Option<Arc<Before>>) -> FileId {
        Arc::make_mut(&mut self.texts).prompt = true;
        let module = before.as_ref().map(|b| b.module);
        let id = self.add(path, module, before);
        let Some(file) = file_of(self, id) else { return id };
        let prompt = match *prompt {
            Some(p) => {
                p.set_latest(self).to(file);
                p
            }
            None => *prompt.insert(Prompt::new(self, file)),
        };
        file.set_prompt(self).to(Some(prompt));
        id
    }

    fn add(&mut self, path: &str, module: Option<FileId>, before: Option<Arc<Before>>) -> FileId {
        let id = FileId(self.files.len() as u32);
        let (module, none) = (module.unwrap_or(id), Arc::from([]));
        let file = File::new(self, id, path.into(), module, false, none, Arc::from([]), before, None, Arc::default());
        Arc::make_mut(&mut self.files).push(file);
        Arc::make_mut(&mut self.texts).files.push("".into());
        id
    }

    /// Lets diagnostics show another text than the one that is checked. Both have the same
    /// length.
    pub fn show_text(&mut self, id: FileId, text: &str) {
        if let Some(shown) = Arc::make_mut(&mut self.texts).files.get_mut(id.0 as usize) {
            *shown = text.into();
        }
    }

    /// The file of a path.
    pub fn file_at(&self, path: &str) -> Option<FileId> {
        self.files.iter().find(|f| **f.path(self) == *path).map(|f| f.id(self))
    }

    /// Gives a file a text. Items that did not change are left alone.
    pub fn set_text(&mut self, id: FileId, text: &str) {
        let Some(file) = file_of(self, id) else { return };
        let old = file.heads(self).clone();
        let pieces = split(text);
        let raw: Vec<(ItemKind, Option<Arc<str>>, &str)> = pieces
            .items
            .iter()
            .map(|i| {
                let kind = match i.kind {
                    RawKind::Def => ItemKind::Def,
                    RawKind::Struct => ItemKind::Struct,
                    RawKind::Stmt => ItemKind::Stmt,
                };
                (kind, i.name.clone(), &text[i.range.start as usize..i.range.end as usize])
            })
            .collect();
        let reused = self.reuse(&old, &raw);
        let kept: BTreeSet<ItemId> = reused.iter().flatten().copied().collect();
        let texts = Arc::make_mut(&mut self.texts);
        if !texts.prompt {
            for id in old.iter().map(|h| h.id).filter(|id| !kept.contains(id)) {
                texts.items[id.0 as usize].start = u32::MAX;
                texts.free.push(id);
            }
        }
        let mut heads = vec![];
        for ((kind, name, piece), (reuse, range)) in
            raw.into_iter().zip(reused.into_iter().zip(pieces.items.iter().map(|i| &i.range)))
        {
            let item_id = self.item_with(reuse, id, piece);
            Arc::make_mut(&mut self.texts).items[item_id.0 as usize].start = range.start;
            heads.push(ItemHead { id: item_id, kind, name });
        }
        if *old != *heads {
            file.set_heads(self).to(heads.into());
        }
        if **file.diagnostics(self) != *pieces.diagnostics {
            file.set_diagnostics(self).to(pieces.diagnostics.into());
        }
        self.show_text(id, text);
    }

    /// The item with a text: the one that it continues, one that was removed, or a new one.
    fn item_with(&mut self, continues: Option<ItemId>, file: FileId, text: &str) -> ItemId {
        let texts = Arc::make_mut(&mut self.texts);
        let Some(id) = continues.or_else(|| texts.free.pop()) else {
            let id = ItemId(texts.items.len() as u32);
            texts.items.push(ItemText { start: 0, imports: None });
            let item = Item::new(self, id, file, text.into());
            Arc::make_mut(&mut self.items).push(item);
            return id;
        };
        let Some(item) = item_of(self, id) else { bug!("an item has the number {}, which none has", id.0) };
        if **item.text(self) != *text {
            item.set_text(self).to(text.into());
            Arc::make_mut(&mut self.texts).items[id.0 as usize].imports = None;
        }
        if item.file(self) != file {
            item.set_file(self).to(file);
        }
        id
    }

    /// For each new piece the old item that it continues: definitions by name, statements by
    /// their text from both ends, and those between in order.
    fn reuse(&self, old: &[ItemHead], raw: &[(ItemKind, Option<Arc<str>>, &str)]) -> Vec<Option<ItemId>> {
        let mut out = vec![None; raw.len()];
        let mut named: BTreeMap<(bool, Arc<str>), Vec<ItemId>> = BTreeMap::new();
        for head in old.iter().rev() {
            if let (Some(name), true) = (&head.name, head.kind != ItemKind::Stmt) {
                named.entry((head.kind == ItemKind::Def, name.clone())).or_default().push(head.id);
            }
        }
        for (slot, (kind, name, _)) in out.iter_mut().zip(raw) {
            if let (Some(name), true) = (name, *kind != ItemKind::Stmt) {
                *slot = named.get_mut(&(*kind == ItemKind::Def, name.clone())).and_then(Vec::pop);
            }
        }
        let text = |id: ItemId| item_of(self, id).map_or_else(|| "".into(), |i| i.text(self).clone());
        let plain = |kind: ItemKind, name: &Option<Arc<str>>| kind == ItemKind::Stmt || name.is_none();
        let before: Vec<(ItemId, Arc<str>)> =
            old.iter().filter(|h| plain(h.kind, &h.name)).map(|h| (h.id, text(h.id))).collect();
        let after: Vec<usize> = (0..raw.len()).filter(|&i| plain(raw[i].0, &raw[i].1)).collect();
        let same = |a: usize, b: usize| *before[a].1 == *raw[after[b]].2;
        let most = before.len().min(after.len());
        let head = (0..most).take_while(|&i| same(i, i)).count();
        let tail = (0..most - head).take_while(|&i| same(before.len() - 1 - i, after.len() - 1 - i)).count();
        for i in 0..head {
            out[after[i]] = Some(before[i].0);
        }
        for i in 0..tail {
            out[after[after.len() - 1 - i]] = Some(before[before.len() - 1 - i].0);
        }
        for i in head..(most - tail).max(head) {
            out[after[i]] = Some(before[i].0);
        }
        out
    }

    /// Loads the files that a file imports, and those that they import. Cycles are cut and
    /// kept as [`Target::Cycle`]. Gives the modules whose text is another one than before, and those that
    /// import them: what they computed is of the past.
    pub fn load_imports(&mut self, id: FileId, loader: &dyn Loader) -> BTreeSet<FileId> {
        let mut walk = Walk { path: vec![], done: BTreeSet::new(), changed: BTreeSet::new() };
        self.load(id, loader, &mut walk);
        let modules: Vec<File> = self.files.iter().copied().filter(|f| f.prompt(self).is_none()).collect();
        loop {
            let reaches = |f: &&File| {
                let found = |t: &Target| matches!(t, Target::File(id) if walk.changed.contains(id));
                !walk.changed.contains(&f.id(self)) && f.imports(self).values().any(found)
            };
            let more: Vec<FileId> = modules.iter().filter(reaches).map(|f| f.id(self)).collect();
            if more.is_empty() {
                return walk.changed;
            }
            walk.changed.extend(more);
        }
    }

    fn load(&mut self, id: FileId, loader: &dyn Loader, walk: &mut Walk) {
        let Some(file) = file_of(self, id) else { return };
        if !walk.done.insert(id) {
            return;
        }
        let wanted = self.wanted(file);
        let importer = path_of(self, id);
        walk.path.push(id);
        let mut imports = file.before(self).as_ref().map_or_else(BTreeMap::new, |b| BTreeMap::clone(&b.imports));
        for module in wanted {
            let (model, library) = (module.strip_prefix(MODEL), module.strip_prefix("std."));
            let loaded = match (model, library) {
                (Some(model), _) => loader.model(&path_of(self, walk.path[0]), model).map(Some),
                (_, Some(name)) => Ok(loader.std(name)),
                _ => Ok(loader.sibling(&importer, &module)),
            };
            let target = match loaded {
                Err(refused) => Target::Refused(refused),
                Ok(None) => Target::Missing,
                Ok(Some(loaded)) => self.target(loaded, loader, walk),
            };
            let library = library.or(model);
            if let (Some(_), Target::File(id)) = (library, &target)
                && let Some(of_library) = file_of(self, *id).filter(|f| !f.library(self))
            {
                of_library.set_library(self).to(true);
            }
            imports.insert(module, target);
        }
        walk.path.pop();
        if **file.imports(self) != imports {
            file.set_imports(self).to(Arc::new(imports));
        }
    }

    /// The dotted names of the files that a file imports. Only items that changed are read.
    fn wanted(&mut self, file: File) -> BTreeSet<Arc<str>> {
        let heads = file.heads(self).clone();
        let imports = |texts: &Texts, id: ItemId| texts.items.get(id.0 as usize).and_then(|i| i.imports.clone());
        let stale = heads.iter().filter(|h| imports(&self.texts, h.id).is_none());
        let stale: Vec<Item> = stale.filter_map(|h| item_of(self, h.id)).collect();
        warm(self, &stale, |db, item| {
            facts(db, *item);
        });
        for item in stale {
            let facts = facts(self, item);
            let files = facts.imports.iter().flat_map(|i| i.files()).chain(facts.std_modules.iter().cloned());
            let files: Arc<[Arc<str>]> = files.chain(facts.models.iter().map(|path| model_name(path))).collect();
            let id = item.id(self);
            Arc::make_mut(&mut self.texts).items[id.0 as usize].imports = Some(files);
        }
        heads.iter().filter_map(|h| imports(&self.texts, h.id)).flat_map(|i| i.to_vec()).collect()
    }

    fn target(&mut self, loaded: Loaded, loader: &dyn Loader, walk: &mut Walk) -> Target {
        let path = &walk.path;
        let known = self.file_at(&loaded.path);
        if let Some(start) = known.and_then(|id| path.iter().position(|p| *p == id)) {
            return Target::Cycle(path[start..].iter().map(|f| path_of(self, *f)).collect());
        }
        if path.len() > 64 {
            return Target::Cycle(path.iter().map(|f| path_of(self, *f)).collect());
        }
        let id = known.unwrap_or_else(|| self.add_file(&loaded.path));
        let changed = self.texts.files.get(id.0 as usize).is_some_and(|text| *text != loaded.text);
        if changed {
            self.set_text(id, &loaded.text);
            walk.changed.insert(id);
        }
        self.load(id, loader, walk);
        Target::File(id)
    }

    /// A picture of all texts for rendering.
    pub fn source_map(&self) -> SourceMap {
        let text = |(f, text): (&File, &Arc<str>)| SourceText {
            path: f.path(self).clone(),
            text: text.clone(),
            library: f.library(self),
        };
        let items = self.items.iter().zip(&self.texts.items).map(|(item, place)| (item.file(self), place.start));
        SourceMap::new(self.files.iter().zip(&self.texts.files).map(text).collect(), items.collect())
    }
}
