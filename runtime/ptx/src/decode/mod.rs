//! From statements to instructions.

mod arith;
mod compare;
mod convert;
mod memory;
mod sync;
mod warp;
pub use warp::fragment_registers;
pub mod args;

use crate::inst::*;
use crate::ops::int;
use crate::types::{Ty, mask};
use args::{Arg, Register};
use std::collections::BTreeMap;

/// A statement: guard, opcode with its modifiers, operands.
pub struct Stmt<'a> {
    pub guard: Option<(Reg, bool)>,
    pub name: &'a str,
    pub mods: Vec<&'a str>,
    pub args: Vec<Arg<'a>>,
}

/// The result of decoding: what is wrong, where it is.
pub type Decoded<T = ()> = Result<T, String>;

/// More registers than any kernel has.
const MOST_REGISTERS: usize = 1 << 16;

/// A kernel that is being decoded.
pub struct Builder<'a> {
    pub kernel: Kernel,
    constants: BTreeMap<u64, Reg>,
    pub labels: BTreeMap<&'a str, u32>,
    /// Branches whose labels are not known yet.
    branches: Vec<(usize, &'a str)>,
    /// Tables of `brx.idx` that are not known yet.
    table_uses: Vec<(usize, &'a str)>,
    pub tables: BTreeMap<&'a str, Vec<&'a str>>,
}

impl<'a> Builder<'a> {
    pub fn new(name: &str) -> Builder<'a> {
        let kernel = Kernel {
            name: name.to_string(),
            params: Vec::new(),
            param_bytes: 0,
            code: Vec::new(),
            site: Vec::new(),
            sites: Vec::new(),
            template: vec![0],
            specials: Vec::new(),
            pool: Vec::new(),
            tables: Vec::new(),
            shapes: Vec::new(),
            carry: 0,
            static_shared: 0,
            dynamic_shared: 0,
            local_bytes: 0,
            max_threads: None,
            required_threads: None,
        };
        Builder {
            kernel,
            constants: BTreeMap::new(),
            labels: BTreeMap::new(),
            branches: Vec::new(),
            table_uses: Vec::new(),
            tables: BTreeMap::new(),
        }
    }

    /// A new register with its first value.
    pub fn register(&mut self, value: u64) -> Decoded<Reg> {
        if self.kernel.template.len() >= MOST_REGISTERS {
            return Err("more registers than the interpreter has".into());
        }
        self.kernel.template.push(value);
        Ok(self.kernel.template.len() as Reg - 1)
    }

    /// The register that holds a constant.
    pub fn constant(&mut self, value: u64) -> Decoded<Reg> {
        if let Some(reg) = self.constants.get(&value) {
            return Ok(*reg);
        }
        let reg = self.register(value)?;
        self.constants.insert(value, reg);
        Ok(reg)
    }

    /// The register of a special register.
    pub fn special(&mut self, special: Special) -> Decoded<Reg> {
        if let Some((_, reg)) = self.kernel.specials.iter().find(|(s, _)| *s == special) {
            return Ok(*reg);
        }
        let reg = self.register(0)?;
        self.kernel.specials.push((special, reg));
        Ok(reg)
    }

    pub fn emit(&mut self, op: Op) {
        self.kernel.code.push(Inst { guard: NONE, op });
    }

    /// A list of registers in the pool.
    pub fn list(&mut self, regs: impl IntoIterator<Item = Reg>) -> u32 {
        let start = self.kernel.pool.len() as u32;
        self.kernel.pool.extend(regs);
        start
    }

    /// Decodes a statement and notes its place.
    pub fn statement(&mut self, stmt: &Stmt<'a>, line: u32, text: &str) -> Decoded {
        let start = self.kernel.code.len();
        self.dispatch(stmt)?;
        if let Some((reg, negate)) = stmt.guard {
            let guard = reg << 1 | u32::from(negate);
            match self.kernel.code.len() - start {
                0 => {}
                1 => self.kernel.code[start].guard = guard,
                n => self.kernel.code.insert(start, Inst { guard, op: Op::Skip(n as u32) }),
            }
        }
        let site = self.kernel.sites.len() as u32;
        self.kernel.sites.push(Site { line, text: text.to_string() });
        self.kernel.site.resize(self.kernel.code.len(), site);
        Ok(())
    }

    fn dispatch(&mut self, stmt: &Stmt<'a>) -> Decoded {
        match stmt.name {
            "bra" => {
                let target = stmt.label(0)?;
                self.branches.push((self.kernel.code.len(), target));
                self.emit(Op::Branch(0));
                Ok(())
            }
            "brx" => {
                let index = stmt.src(self, 0, Ty::B32)?;
                self.table_uses.push((self.kernel.code.len(), stmt.label(1)?));
                self.emit(Op::BranchTable(index, 0));
                Ok(())
            }
            "mov" => self.mov(stmt),
            "setp" | "set" | "selp" | "slct" | "testp" => compare::decode(self, stmt),
            "cvt" => convert::decode(self, stmt),
            "ld" | "ldu" | "st" | "cvta" | "isspacep" | "prefetch" | "prefetchu" | "atom" | "red" | "applypriority"
            | "discard" => memory::decode(self, stmt),
            "shfl" | "vote" | "match" | "redux" | "elect" | "activemask" | "ldmatrix" | "stmatrix" | "mma"
            | "wgmma" => warp::decode(self, stmt),
            "ret" | "exit" | "trap" | "bar" | "barrier" | "membar" | "fence" | "cp" | "mbarrier" | "setmaxnreg"
            | "griddepcontrol" | "nanosleep" | "brkpt" | "pmevent" => sync::decode(self, stmt),
            "mapa" => self.mapped(stmt),
            "getctarank" => {
                let (to, zero) = (stmt.dst(0, Ty::B32)?, self.constant(0)?);
                self.emit(Op::Move(to, zero));
                Ok(())
            }
            _ => arith::decode(self, stmt),
        }
    }

    /// `mov`: copies, packs and unpacks.
    fn mov(&mut self, stmt: &Stmt<'a>) -> Decoded {
        let ty = stmt.ty(0)?;
        match (stmt.arg(0)?, stmt.arg(1)?) {
            (Arg::List(parts), _) => {
                let from = stmt.src(self, 1, ty)?;
                self.unpack(parts, from, ty)
            }
            (_, Arg::List(parts)) => {
                let to = stmt.dst(0, ty)?;
                let width = part_width(parts, ty)?;
                let parts =
                    parts.iter().map(|p| p.source(self, Ty { bits: width, ..Ty::B16 })).collect::<Decoded<Vec<_>>>()?;
                self.pack(to, &parts, width)
            }
            (_, Arg::Clock) => {
                let to = stmt.dst(0, ty)?;
                self.emit(Op::Clock(to));
                Ok(())
            }
            _ => {
                let to = stmt.dst(0, ty)?;
                let from = stmt.src(self, 1, ty)?;
                // A constant may be wider than the type, a special register as well.
                let wide = self.kernel.template[from as usize] & !mask(ty.width()) != 0;
                match ty.width() {
                    16 if wide => self.emit(Op::Un(int::low16, to, from)),
                    32 if wide => self.emit(Op::Un(int::low32, to, from)),
                    _ => self.emit(Op::Move(to, from)),
                }
                Ok(())
            }
        }
    }

    /// `mapa`: an address in another block of the cluster, which is this very block.
    fn mapped(&mut self, stmt: &Stmt<'a>) -> Decoded {
        let ty = stmt.last_ty()?;
        let (to, from) = (stmt.dst(0, ty)?, stmt.src(self, 1, ty)?);
        self.emit(Op::Move(to, from));
        Ok(())
    }

    fn unpack(&mut self, parts: &[Arg<'a>], from: Reg, ty: Ty) -> Decoded {
        let width = part_width(parts, ty)?;
        for (at, part) in parts.iter().enumerate() {
            let Some(Register { reg, .. }) = part.destination(width)? else { continue };
            let take: Unary = match (width, at) {
                (8, 0) => int::part8::<0>,
                (8, 1) => int::part8::<1>,
                (8, 2) => int::part8::<2>,
                (8, 3) => int::part8::<3>,
                (16, 0) => int::part16::<0>,
                (16, 1) => int::part16::<1>,
                (16, 2) => int::part16::<2>,
                (16, 3) => int::part16::<3>,
                (32, 0) => int::low32,
                (32, 1) => int::high32,
                _ => return Err("no such parts of a register".into()),
            };
            self.emit(Op::Un(take, reg, from));
        }
        Ok(())
    }

    fn pack(&mut self, to: Reg, parts: &[Reg], width: u8) -> Decoded {
        let join: Binary = match width {
            8 => int::pack8,
            16 => int::pack16,
            32 => int::pack32,
            _ => return Err("no such parts of a register".into()),
        };
        match parts {
            [a, b] => self.emit(Op::Bin(join, to, *a, *b)),
            [a, b, c, d] => {
                let (low, high) = (self.register(0)?, self.register(0)?);
                self.emit(Op::Bin(join, low, *a, *b));
                self.emit(Op::Bin(join, high, *c, *d));
                self.pack(to, &[low, high], width * 2)?;
            }
            _ => return Err("two or four parts make a register".into()),
        }
        Ok(())
    }

    /// Resolves labels; the kernel is done.
    pub fn finish(mut self) -> Result<Kernel, (usize, String)> {
        let end = self.kernel.code.len() as u32;
        for (at, label) in std::mem::take(&mut self.branches) {
            let target = self.labels.get(label).ok_or_else(|| (at, format!("no label {label}")))?;
            self.kernel.code[at].op = Op::Branch(*target);
        }
        for (at, name) in std::mem::take(&mut self.table_uses) {
            let table = self.tables.get(name).ok_or_else(|| (at, format!("no branch targets {name}")))?;
            let targets =
                table.iter().map(|l| self.labels.get(l).copied().ok_or_else(|| (at, format!("no label {l}"))));
            let targets = targets.collect::<Result<Vec<_>, _>>()?;
            let Op::BranchTable(index, _) = self.kernel.code[at].op else { continue };
            self.kernel.code[at].op = Op::BranchTable(index, self.kernel.tables.len() as u32);
            self.kernel.tables.push(targets);
        }
        // Whoever runs past the end has returned.
        self.kernel.sites.push(Site { line: 0, text: "}".into() });
        self.kernel.site.push(self.kernel.sites.len() as u32 - 1);
        self.kernel.code.push(Inst { guard: NONE, op: Op::Exit });
        debug_assert_eq!(self.kernel.code.len() as u32, end + 1);
        Ok(self.kernel)
    }
}

/// Bits of each part of a value.
fn part_width(parts: &[Arg<'_>], ty: Ty) -> Decoded<u8> {
    match parts.len() {
        2 | 4 => Ok((ty.width() / parts.len() as u32) as u8),
        n => Err(format!("{n} parts of a register")),
    }
}

impl<'a> Stmt<'a> {
    pub fn has(&self, modifier: &str) -> bool {
        self.mods.contains(&modifier)
    }

    /// The n-th type among the modifiers.
    pub fn ty(&self, n: usize) -> Decoded<Ty> {
        let found = self.mods.iter().filter_map(|m| Ty::of(m)).nth(n);
        found.ok_or_else(|| "the instruction lacks a type".to_string())
    }

    /// The last type among the modifiers.
    pub fn last_ty(&self) -> Decoded<Ty> {
        self.mods.iter().rev().find_map(|m| Ty::of(m)).ok_or_else(|| "the instruction lacks a type".to_string())
    }

    pub fn arg(&self, n: usize) -> Decoded<&Arg<'a>> {
        self.args.get(n).ok_or_else(|| format!("operand {} is missing", n + 1))
    }

    pub fn count(&self, counts: std::ops::RangeInclusive<usize>) -> Decoded {
        if counts.contains(&self.args.len()) { Ok(()) } else { Err(format!("{} operands", self.args.len())) }
    }

    /// The register that takes a result; `NONE` for `_`.
    pub fn dst(&self, n: usize, ty: Ty) -> Decoded<Reg> {
        Ok(self.arg(n)?.destination(ty.width() as u8)?.map_or(NONE, |r| r.reg)).and_then(|reg| match reg {
            NONE => Err("the result has no register".into()),
            reg => Ok(reg),
        })
    }

    pub fn src(&self, b: &mut Builder<'a>, n: usize, ty: Ty) -> Decoded<Reg> {
        self.arg(n)?.source(b, ty)
    }

    pub fn label(&self, n: usize) -> Decoded<&'a str> {
        match self.arg(n)? {
            Arg::Name(name) => Ok(name),
            _ => Err("a label is expected".into()),
        }
    }

    /// An operand that must be written as a number.
    pub fn number(&self, n: usize) -> Decoded<u64> {
        match self.arg(n)? {
            Arg::Number(value) => Ok(*value),
            _ => Err(format!("operand {} must be a number", n + 1)),
        }
    }
}
