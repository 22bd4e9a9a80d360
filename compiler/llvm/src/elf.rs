//! Loads the object code of one kernel into the process, without LLVM.
//!
//! Objects are position-independent and refer to nothing outside themselves, so loading is:
//! copy the allocated sections next to one another, apply the relative relocations, make the
//! pages executable. That takes microseconds, which is what a warm start pays per kernel.
//! Format: System V ABI, ELF-64 relocatable files; what differs by processor is a file each.

mod aarch64;
mod x86_64;

use crate::LlvmError;
use crate::code_memory::CodeMemory;
use std::sync::Arc;
use tessera_abi::plan::{Code, Kernel, KernelFn};

const STT_FUNC: u8 = 2;
const SHT_PROGBITS: u32 = 1;
const SHT_SYMTAB: u32 = 2;
const SHT_RELA: u32 = 4;
const SHT_NOBITS: u32 = 8;
const SHF_ALLOC: u64 = 2;

/// Puts a place of the image into a word of it: kind of relocation, word, place of the word, place that is meant.
type Relocate = fn(u32, &mut [u8; 4], i64, i64) -> Result<(), LlvmError>;

/// The number of this process's machine, and its relocations.
const HOST: (u16, Relocate) = match cfg!(target_arch = "aarch64") {
    true => (aarch64::MACHINE, aarch64::relocate),
    false => (x86_64::MACHINE, x86_64::relocate),
};

struct Section {
    kind: u32,
    flags: u64,
    offset: usize,
    size: usize,
    link: usize,
    info: usize,
    align: usize,
    /// Where it lies in the image, if it is loaded.
    base: Option<usize>,
}

/// Bytes of an object with checked access: a damaged cache file is an error, never a fault.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&self, at: usize, len: usize) -> Result<&'a [u8], LlvmError> {
        at.checked_add(len).and_then(|end| self.0.get(at..end)).ok_or_else(|| damaged("it ends early"))
    }
    fn u16(&self, at: usize) -> Result<u16, LlvmError> {
        Ok(u16::from_le_bytes([self.bytes(at, 2)?[0], self.bytes(at, 2)?[1]]))
    }
    fn u32(&self, at: usize) -> Result<u32, LlvmError> {
        self.bytes(at, 4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    }
    fn u64(&self, at: usize) -> Result<u64, LlvmError> {
        Ok(self.u32(at)? as u64 | (self.u32(at.saturating_add(4))? as u64) << 32)
    }
    fn size(&self, at: usize) -> Result<usize, LlvmError> {
        usize::try_from(self.u64(at)?).map_err(|_| damaged("a size is out of range"))
    }
    fn name(&self, at: usize) -> Result<&'a [u8], LlvmError> {
        let rest = self.0.get(at..).ok_or_else(|| damaged("a name is out of range"))?;
        let end = rest.iter().position(|b| *b == 0).ok_or_else(|| damaged("a name does not end"))?;
        Ok(&rest[..end])
    }
}

fn damaged(why: &str) -> LlvmError {
    LlvmError::internal(format!("the object code of a kernel cannot be loaded: {why}"))
}

/// Maps `object` and returns the kernel whose entry point is `symbol`.
///
/// Cost: microseconds; LLVM is not needed. Errors: `E0603` for an object that is damaged, for
/// another machine, or that calls functions outside itself.
pub fn load(object: &[u8], symbol: &str) -> Result<Kernel, LlvmError> {
    let r = Reader(object);
    if r.bytes(0, 6)? != b"\x7fELF\x02\x01" || r.u16(16)? != 1 {
        return Err(damaged("it is not an ELF-64 relocatable file"));
    }
    let known = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
    if r.u16(18)? != HOST.0 || !known {
        return Err(damaged("it is for another machine"));
    }
    let mut sections = sections(&r)?;
    let mut total = 0usize;
    for s in &mut sections {
        if s.flags & SHF_ALLOC != 0 && s.size > 0 && matches!(s.kind, SHT_PROGBITS | SHT_NOBITS) {
            total = total
                .checked_next_multiple_of(s.align.clamp(1, 4096))
                .ok_or_else(|| damaged("a section is too large"))?;
            s.base = Some(total);
            total =
                total.checked_add(s.size).filter(|t| *t < 1 << 30).ok_or_else(|| damaged("a section is too large"))?;
        }
    }
    let mut image = vec![0u8; total];
    for s in &sections {
        if let (Some(base), SHT_PROGBITS) = (s.base, s.kind) {
            image[base..base + s.size].copy_from_slice(r.bytes(s.offset, s.size)?);
        }
    }
    for s in &sections {
        if s.kind == SHT_RELA
            && let Some(target) = sections.get(s.info)
            && let Some(base) = target.base
        {
            relocate(&r, s, &sections, &mut image, base, target.size)?;
        }
    }
    let entry = find(&r, &sections, symbol)?;
    let code = CodeMemory::new(&image)?;
    let address = code.address(entry).ok_or_else(|| damaged("the entry point is out of range"))?;
    // SAFETY: the object was made by this crate, whose kernels have this signature; a damaged
    // cache is caught by its checksum before it gets here.
    let entry = unsafe { std::mem::transmute::<*const u8, KernelFn>(address) };
    Ok(Kernel { name: symbol.into(), code: Code::Host { entry, owner: Arc::new(code) } })
}

fn sections(r: &Reader) -> Result<Vec<Section>, LlvmError> {
    let (table, size, count) = (r.size(40)?, r.u16(58)? as usize, r.u16(60)? as usize);
    (0..count)
        .map(|i| {
            let at = table
                .checked_add(i * size)
                .filter(|at| *at < usize::MAX - 64)
                .ok_or_else(|| damaged("a section is out of range"))?;
            Ok(Section {
                kind: r.u32(at + 4)?,
                flags: r.u64(at + 8)?,
                offset: r.size(at + 24)?,
                size: r.size(at + 32)?,
                link: r.u32(at + 40)? as usize,
                info: r.u32(at + 44)? as usize,
                align: r.size(at + 48)?,
                base: None,
            })
        })
        .collect()
}

/// The place in the image that symbol `index` of table `table` stands for.
fn symbol_place(r: &Reader, table: &Section, sections: &[Section], index: usize) -> Result<usize, LlvmError> {
    let at = index.saturating_mul(24).saturating_add(table.offset).min(usize::MAX - 24);
    let section = r.u16(at + 6)? as usize;
    if section == 0 {
        let strings = sections.get(table.link).ok_or_else(|| damaged("no names"))?;
        let name = r.name(strings.offset.saturating_add(r.u32(at)? as usize))?;
        return Err(damaged(&format!("it calls `{}`, which is not part of it", String::from_utf8_lossy(name))));
    }
    let base = sections.get(section).and_then(|s| s.base).ok_or_else(|| damaged("a symbol lies in no section"))?;
    base.checked_add(r.size(at + 8)?).ok_or_else(|| damaged("a symbol is out of range"))
}

fn relocate(
    r: &Reader,
    s: &Section,
    sections: &[Section],
    image: &mut [u8],
    base: usize,
    size: usize,
) -> Result<(), LlvmError> {
    let table = sections.get(s.link).ok_or_else(|| damaged("no symbols"))?;
    for i in 0..s.size / 24 {
        let at = i.saturating_mul(24).saturating_add(s.offset).min(usize::MAX - 24);
        let (offset, info, addend) = (r.size(at)?, r.u64(at + 8)?, r.u64(at + 16)? as i64);
        if offset.checked_add(4).is_none_or(|end| end > size) {
            return Err(damaged("a relocation is out of range"));
        }
        let target = symbol_place(r, table, sections, (info >> 32) as usize)? as i64;
        let word = image.get_mut(base + offset..).and_then(<[u8]>::first_chunk_mut);
        let word = word.ok_or_else(|| damaged("a relocation is out of range"))?;
        (HOST.1)(info as u32, word, (base + offset) as i64, target.wrapping_add(addend))?;
    }
    Ok(())
}

fn find(r: &Reader, sections: &[Section], symbol: &str) -> Result<usize, LlvmError> {
    for table in sections.iter().filter(|s| s.kind == SHT_SYMTAB) {
        let strings = sections.get(table.link).ok_or_else(|| damaged("no names"))?;
        for i in 1..table.size / 24 {
            let at = i.saturating_mul(24).saturating_add(table.offset).min(usize::MAX - 24);
            // The source file's name is a symbol too; only functions count.
            let function = r.bytes(at + 4, 1)?[0] & 15 == STT_FUNC;
            if function && r.name(strings.offset.saturating_add(r.u32(at)? as usize))? == symbol.as_bytes() {
                return symbol_place(r, table, sections, i);
            }
        }
    }
    Err(damaged(&format!("it has no symbol `{symbol}`")))
}
