//! Kernels: parameters, declarations and statements.

use super::parser::{Declaration, Parser};
use crate::Error;
use crate::decode::args::Register;
use crate::decode::{Builder, Stmt};
use crate::inst::*;
use crate::lex::integer;
use crate::types::Ty;
use std::collections::BTreeMap;

/// What a name inside a kernel stands for.
#[derive(Clone, Copy, Debug)]
pub enum Name {
    Register(Register),
    /// `%r<8>`: the first of so many registers in a row.
    Family(Register, u32),
    /// A register that holds an address.
    Fixed(Reg),
}

/// The names of a kernel, the innermost block last.
pub struct Scope<'a> {
    blocks: Vec<BTreeMap<&'a str, Name>>,
    /// The registers of dynamic shared arrays, whose place the end decides.
    pub dynamic: Vec<Reg>,
    /// Shared arrays of the module that the kernel uses.
    pub shared: BTreeMap<&'a str, Reg>,
}

impl<'a> Scope<'a> {
    fn declare(&mut self, name: &'a str, what: Name) -> Result<(), String> {
        let block = self.blocks.last_mut().ok_or("no block")?;
        match block.insert(name, what) {
            None => Ok(()),
            Some(_) => Err(format!("{name} is declared twice")),
        }
    }

    pub fn find(&self, name: &str) -> Option<Name> {
        if let Some(found) = self.blocks.iter().rev().find_map(|b| b.get(name)) {
            return Some(*found);
        }
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
        let (family, index) = name.split_at(name.len() - digits);
        if index.len() > 1 && index.starts_with('0') {
            return None;
        }
        let index: u32 = index.parse().ok()?;
        self.blocks.iter().rev().find_map(|b| match b.get(family) {
            Some(Name::Family(first, count)) if index < *count => {
                Some(Name::Register(Register { reg: first.reg + index, bits: first.bits }))
            }
            _ => None,
        })
    }
}

/// Most bytes of parameters, shared and local memory.
const MOST_BYTES: u32 = 1 << 20;

/// Puts an array behind what is there; returns its offset.
pub fn place(total: &mut u32, bytes: u64, align: u32) -> Result<u32, String> {
    let at = u64::from(*total).next_multiple_of(align.into());
    let end = at.saturating_add(bytes);
    if end > MOST_BYTES.into() {
        return Err("the array is too large".into());
    }
    *total = end as u32;
    Ok(at as u32)
}

impl<'a> Parser<'_, 'a> {
    /// A kernel, from its name on.
    pub fn kernel(&mut self) -> Result<Kernel, Error> {
        let name = self.word()?;
        let mut builder = Builder::new(name);
        let mut scope = Scope { blocks: vec![BTreeMap::new()], dynamic: Vec::new(), shared: BTreeMap::new() };
        if self.take("(") {
            self.parameters(&mut builder, &mut scope)?;
        }
        self.bounds(&mut builder)?;
        self.expect("{")?;
        scope.blocks.push(BTreeMap::new());
        while scope.blocks.len() > 1 {
            self.item(&mut builder, &mut scope)?;
        }
        let kernel = &mut builder.kernel;
        kernel.dynamic_shared = kernel.static_shared.next_multiple_of(if scope.dynamic.is_empty() { 16 } else { 1024 });
        for reg in &scope.dynamic {
            kernel.template[*reg as usize] = kernel.dynamic_shared.into();
        }
        let sites = kernel.sites.clone();
        let places = kernel.site.clone();
        builder.finish().map_err(|(at, what)| {
            let site = places.get(at).and_then(|s| sites.get(*s as usize));
            Error::text(site.map_or(0, |s| s.line), site.map_or("", |s| &s.text), &what)
        })
    }

    fn parameters(&mut self, b: &mut Builder<'a>, scope: &mut Scope<'a>) -> Result<(), Error> {
        if self.take(")") {
            return Ok(());
        }
        loop {
            self.expect(".param")?;
            let found = self.declaration()?;
            let mut total = b.kernel.param_bytes;
            let offset = place(&mut total, found.bytes, found.align).map_err(|e| self.wrong(&e))?;
            b.kernel.param_bytes = total;
            b.kernel.params.push(Param { name: found.name.to_string(), offset, size: found.bytes as u32 });
            let reg = b.register(offset.into()).map_err(|e| self.wrong(&e))?;
            scope.declare(found.name, Name::Fixed(reg)).map_err(|e| self.wrong(&e))?;
            if self.take(")") {
                return Ok(());
            }
            self.expect(",")?;
        }
    }

    /// What stands between the parameters and the body.
    fn bounds(&mut self, b: &mut Builder<'a>) -> Result<(), Error> {
        while self.peek_text().starts_with('.') {
            let word = self.word()?;
            if word == ".pragma" {
                self.skip_statement()?;
                continue;
            }
            let mut numbers = [1; 3];
            let mut count = 0;
            while integer(self.peek_text()).is_some() {
                let value = self.small()?;
                if let Some(place) = numbers.get_mut(count) {
                    *place = value;
                }
                count += 1;
                if !self.take(",") {
                    break;
                }
            }
            match word {
                ".maxntid" => b.kernel.max_threads = Some(numbers),
                ".reqntid" => b.kernel.required_threads = Some(numbers),
                ".minnctapersm" | ".maxnctapersm" | ".maxnreg" | ".noreturn" | ".blocksareclusters" => {}
                ".reqnctapercluster" | ".explicitcluster" | ".maxclusterrank" if numbers == [1; 3] => {}
                _ => return Err(self.wrong(&format!("{word} is not supported"))),
            }
        }
        Ok(())
    }

    /// One item of a body: a block, a label, a declaration or a statement.
    fn item(&mut self, b: &mut Builder<'a>, scope: &mut Scope<'a>) -> Result<(), Error> {
        let start = self.position();
        let line = self.line();
        let Some(token) = self.peek() else { return Err(self.wrong("the kernel has no end")) };
        let result = match token.text {
            "{" if scope.blocks.len() > 64 => Err("blocks too deep".to_string()),
            "{" => {
                self.next();
                scope.blocks.push(BTreeMap::new());
                Ok(())
            }
            "}" => {
                self.next();
                scope.blocks.pop();
                Ok(())
            }
            ";" => {
                self.next();
                Ok(())
            }
            ".loc" | ".file" => {
                self.skip_line();
                Ok(())
            }
            ".pragma" => return self.skip_statement(),
            ".reg" => self.registers(b, scope)?,
            ".shared" | ".local" | ".global" | ".const" | ".param" => self.array(b, scope)?,
            _ => return self.labelled(b, scope, start, line),
        };
        result.map_err(|what| Error::text(line, &self.text_since(start), &what))
    }

    /// `.reg .b32 %r<8>, x;`
    fn registers(&mut self, b: &mut Builder<'a>, scope: &mut Scope<'a>) -> Result<Result<(), String>, Error> {
        self.next();
        let word = self.word()?;
        let Some(ty) = word.strip_prefix('.').and_then(Ty::of).filter(|ty| ty.width() <= 64) else {
            return Ok(Err("unknown type of a register".into()));
        };
        // What nobody wrote is no sensible number.
        let poison = crate::types::mask(ty.width());
        loop {
            let name = self.word()?;
            let bits = ty.width() as u8;
            let count = if self.take("<") {
                let count = self.small()?;
                self.expect(">")?;
                Some(count)
            } else {
                None
            };
            let mut first = None;
            for _ in 0..count.unwrap_or(1) {
                let reg = match b.register(if bits == 1 { 0 } else { poison }) {
                    Ok(reg) => reg,
                    Err(what) => return Ok(Err(what)),
                };
                first.get_or_insert(reg);
            }
            if let Some(reg) = first {
                let register = Register { reg, bits };
                let what = count.map_or(Name::Register(register), |count| Name::Family(register, count));
                if let Err(what) = scope.declare(name, what) {
                    return Ok(Err(what));
                }
            }
            if !self.take(",") {
                break;
            }
        }
        self.expect(";")?;
        Ok(Ok(()))
    }

    /// An array of a kernel.
    fn array(&mut self, b: &mut Builder<'a>, scope: &mut Scope<'a>) -> Result<Result<(), String>, Error> {
        let space = self.word()?;
        let found = self.declaration()?;
        self.expect(";")?;
        Ok(self.placed(b, scope, space, &found))
    }

    fn placed(
        &mut self,
        b: &mut Builder<'a>,
        scope: &mut Scope<'a>,
        space: &str,
        found: &Declaration<'a>,
    ) -> Result<(), String> {
        let offset = match space {
            ".shared" => place(&mut b.kernel.static_shared, found.bytes, found.align)?,
            ".local" => place(&mut b.kernel.local_bytes, found.bytes, found.align)?,
            _ => return Err("such a variable inside of a kernel is not supported".into()),
        };
        let reg = b.register(offset.into())?;
        scope.declare(found.name, Name::Fixed(reg))
    }

    /// A statement, perhaps behind a label.
    fn labelled(&mut self, b: &mut Builder<'a>, scope: &mut Scope<'a>, start: usize, line: u32) -> Result<(), Error> {
        let at = |p: &Self, what: String| Error::text(line, &p.text_since(start), &what);
        let guard = self.guard(b, scope).map_err(|what| at(self, what))?;
        let word = self.word()?;
        if guard.is_none() && self.take(":") {
            if self.peek_text() == ".branchtargets" {
                return self.branch_targets(b, word);
            }
            let here = b.kernel.code.len() as u32;
            return match b.labels.insert(word, here) {
                None => Ok(()),
                Some(_) => Err(at(self, format!("the label {word} is there twice"))),
            };
        }
        if word.split('.').next() == Some("call") {
            return Err(at(self, "device functions are not supported".into()));
        }
        let mut args = Vec::new();
        if !self.take(";") {
            loop {
                let arg = self.argument(b, scope, 0).map_err(|what| at(self, what))?;
                args.push(arg);
                if self.take(";") {
                    break;
                }
                if !self.take(",") {
                    self.next();
                    return Err(at(self, "`,` or `;` is expected".into()));
                }
            }
        }
        let mut parts = word.split('.');
        let name = parts.next().unwrap_or_default();
        let stmt = Stmt { guard, name, mods: parts.collect(), args };
        let text = self.text_since(start);
        b.statement(&stmt, line, &text).map_err(|what| Error::text(line, &text, &what))
    }

    fn branch_targets(&mut self, b: &mut Builder<'a>, name: &'a str) -> Result<(), Error> {
        self.next();
        let mut targets = Vec::new();
        loop {
            targets.push(self.word()?);
            if !self.take(",") {
                break;
            }
        }
        b.tables.insert(name, targets);
        self.expect(";")
    }

    /// `@p` or `@!p`.
    fn guard(&mut self, b: &mut Builder<'a>, scope: &mut Scope<'a>) -> Result<Option<(Reg, bool)>, String> {
        if !self.take("@") {
            return Ok(None);
        }
        let negate = self.take("!");
        let arg = self.argument(b, scope, 4)?;
        Ok(Some((arg.source(b, Ty::PRED)?, negate)))
    }
}
