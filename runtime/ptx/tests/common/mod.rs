//! What the tests share: buffers, launches, random numbers.
#![allow(dead_code)]

use tessera_ptx::{Counts, Error, Launch, Memory, Module, Options, launch, parse};

/// Words of global memory.
pub struct Buffer(Vec<u64>);

impl Buffer {
    pub fn of_bytes(bytes: &[u8]) -> Buffer {
        let mut words = vec![u64::MAX; bytes.len().div_ceil(8)];
        for (at, byte) in bytes.iter().enumerate() {
            words[at / 8] = words[at / 8] & !(0xFF << (8 * (at % 8))) | u64::from(*byte) << (8 * (at % 8));
        }
        Buffer(words)
    }

    pub fn u64s(values: &[u64]) -> Buffer {
        Buffer(values.to_vec())
    }

    pub fn u32s(values: &[u32]) -> Buffer {
        Buffer::of_bytes(&values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>())
    }

    pub fn f32s(values: &[f32]) -> Buffer {
        Buffer::u32s(&values.iter().map(|v| v.to_bits()).collect::<Vec<_>>())
    }

    pub fn u16s(values: &[u16]) -> Buffer {
        Buffer::of_bytes(&values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>())
    }

    pub fn poisoned(bytes: usize) -> Buffer {
        Buffer(vec![u64::MAX; bytes.div_ceil(8)])
    }

    pub fn to_u64s(&self) -> &[u64] {
        &self.0
    }

    pub fn to_u32s(&self) -> Vec<u32> {
        self.0.iter().flat_map(|w| [*w as u32, (w >> 32) as u32]).collect()
    }

    pub fn to_f32s(&self) -> Vec<f32> {
        self.to_u32s().into_iter().map(f32::from_bits).collect()
    }

    pub fn to_u16s(&self) -> Vec<u16> {
        self.0.iter().flat_map(|w| (0..4).map(move |n| (w >> (16 * n)) as u16)).collect()
    }

    pub fn address(&mut self) -> u64 {
        self.0.as_mut_ptr() as u64
    }
}

/// A kernel whose parameters are `p0`, `p1`, … : pointers of 64 bits.
pub fn kernel(params: usize, body: &str) -> String {
    let params: Vec<String> = (0..params).map(|n| format!(".param .u64 p{n}")).collect();
    format!(
        ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k({})\n{{\n.reg .pred %p<16>;\n.reg .b16 %h<32>;\n\
         .reg .b32 %r<64>;\n.reg .b64 %d<64>;\n.reg .f32 %f<64>;\n.reg .f64 %g<64>;\n{body}\nret;\n}}\n",
        params.join(", ")
    )
}

/// Loads the address of this thread's element of each buffer into `%d0`, `%d1`, …; `%r0` is the thread's number.
pub fn addresses(element_bytes: &[u32]) -> String {
    let mut text = String::from(
        "mov.u32 %r0, %tid.x;\nmov.u32 %r60, %ctaid.x;\nmov.u32 %r61, %ntid.x;\nmad.lo.s32 %r62, %r60, %r61, %r0;\n",
    );
    for (n, bytes) in element_bytes.iter().enumerate() {
        text +=
            &format!("ld.param.u64 %d{n}, [p{n}];\nmul.wide.u32 %d63, %r62, {bytes};\nadd.s64 %d{n}, %d{n}, %d63;\n");
    }
    text
}

pub struct Run {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub options: Options,
}

impl Run {
    pub fn threads(n: u32) -> Run {
        Run { grid: [1; 3], block: [n, 1, 1], shared: 0, options: Options { races: true, ..Options::default() } }
    }

    pub fn go(&self, text: &str, buffers: &mut [&mut Buffer]) -> Result<Counts, Error> {
        let module = parse(text)?;
        self.module(&module, buffers)
    }

    pub fn module(&self, module: &Module, buffers: &mut [&mut Buffer]) -> Result<Counts, Error> {
        let mut memory = Memory::new();
        let mut params = Vec::new();
        for buffer in buffers {
            // SAFETY: the buffers outlive the launch, and nothing else uses them.
            unsafe { memory.register(buffer.address(), 8 * buffer.0.len() as u64) };
            params.push(buffer.address().to_le_bytes());
        }
        let params: Vec<&[u8]> = params.iter().map(|p| p.as_slice()).collect();
        let kernel = module.kernels().next().unwrap_or_default();
        let what = Launch { kernel, grid: self.grid, block: self.block, shared_bytes: self.shared, params: &params };
        launch(module, &memory, &what, &self.options)
    }
}

/// Runs it and returns the error's text; the launch must fail.
pub fn failure(run: &Run, text: &str, buffers: &mut [&mut Buffer]) -> String {
    match run.go(text, buffers) {
        Ok(_) => panic!("no failure"),
        Err(error) => error.message,
    }
}

/// Random numbers.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Numbers of all sizes, and the ends of ranges often.
    pub fn integer(&mut self) -> u64 {
        let value = self.next();
        match value % 8 {
            0 => [0, 1, u64::MAX, 1 << 31, 1 << 63, 0x7FFF_FFFF, 1 << 15, i64::MAX as u64][(value >> 8) as usize % 8],
            1 => self.next() >> (value >> 8 & 63),
            2 => (self.next() as i64 >> (value >> 8 & 63)) as u64,
            _ => value,
        }
    }

    pub fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }
}
