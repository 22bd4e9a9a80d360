//! What the cost model knows of the machine it runs on.

use std::sync::OnceLock;
use tessera_ir::schedule::{Class, Machine};
use tessera_ops::prim::Order;

/// This machine: vector width by CPU features, cache sizes as the system reports them, with
/// usual values where it does not.
pub fn host() -> Machine {
    static HOST: OnceLock<Machine> = OnceLock::new();
    HOST.get_or_init(found).clone()
}

fn found() -> Machine {
    let (vector_bytes, vector_registers) = vectors();
    Machine {
        class: Class::Cpu,
        vector_bytes,
        vector_registers,
        lanes_max: 64,
        bf16: bf16(),
        block_products: vector_bytes == 64,
        l1_bytes: cache("index0").unwrap_or(32 << 10),
        l2_bytes: cache("index2").unwrap_or(1 << 20),
        l3_bytes: cache("index3").unwrap_or(16 << 20).min(share(tessera_abi::cores())),
    }
}

/// The most of a shared cache that so many cores can count on: a virtual machine with a few cores of
/// a large socket is told of the whole socket's cache, which its neighbours fill.
fn share(cores: usize) -> u64 {
    const PER_CORE: u64 = 16 << 20;
    (cores as u64).saturating_mul(PER_CORE)
}

/// A machine of the kind that most are today, the same everywhere: for texts that are compared.
pub fn reference() -> Machine {
    Machine {
        class: Class::Cpu,
        vector_bytes: 64,
        vector_registers: 32,
        lanes_max: 64,
        bf16: Order::Chain,
        block_products: false,
        l1_bytes: 48 << 10,
        l2_bytes: 1 << 20,
        l3_bytes: 32 << 20,
    }
}

/// A GPU with a second-level cache of so many bytes, whose groups of threads are its vectors: values of 32 bits in each of 16.
pub fn gpu(cache: u64) -> Machine {
    Machine {
        class: Class::Gpu,
        vector_bytes: 64,
        vector_registers: 32,
        lanes_max: 32,
        bf16: Order::Atoms,
        block_products: false,
        l1_bytes: 16 << 10,
        l2_bytes: 48 << 10,
        l3_bytes: cache.max(1 << 20),
    }
}

/// Which instruction for products of bf16 there is. That for matrices needs the system's permission, too.
fn bf16() -> Order {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx512bf16") && std::is_x86_feature_detected!("avx512vl") {
        return if tessera_abi::matrix_unit() { Order::Units } else { Order::Pairs };
    }
    Order::Chain
}

#[cfg(target_arch = "x86_64")]
fn vectors() -> (u32, u32) {
    if std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("avx512dq") {
        (64, 32)
    } else if std::is_x86_feature_detected!("avx2") {
        (32, 16)
    } else {
        (16, 16)
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn vectors() -> (u32, u32) {
    (16, 32)
}

fn cache(index: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/{index}/size")).ok()?;
    let text = text.trim();
    match text.strip_suffix('K') {
        Some(k) => Some(k.parse::<u64>().ok()? << 10),
        None => text.strip_suffix('M').map_or_else(|| text.parse().ok(), |m| m.parse::<u64>().ok().map(|m| m << 20)),
    }
}
