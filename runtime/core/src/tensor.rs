//! Tensors in memory: a shape, an element type, and shared bytes.

pub use crate::buffer::{ALIGN, Buffer, Mapping, poison};
use crate::device::{Address, Device};
use crate::exit;
use crate::fault::Fault;
pub use crate::memory::{OutOfMemory, bound_memory, memory_bound, memory_limit};
use crate::storage::Storage;
use std::sync::Arc;
use tessera_base::{DType, Sharding};

/// A tensor: row-major, contiguous, starting at an element offset of shared bytes.
#[derive(Clone)]
pub struct Tensor {
    pub dtype: DType,
    pub shape: Vec<u64>,
    pub storage: Arc<Storage>,
    /// In bytes.
    pub offset: usize,
    /// Of a tensor on several devices, which has no bytes here.
    pub parts: Option<Arc<Parts>>,
}

impl Tensor {
    /// Uninitialised (or zeroed) memory of the host for a shape.
    pub fn new(dtype: DType, shape: &[u64], zeroed: bool) -> Result<Tensor, OutOfMemory> {
        let bytes = bytes_of(dtype, shape).ok_or(OutOfMemory { bytes: u64::MAX })?;
        Ok(Tensor::of(dtype, shape, Buffer::new(bytes, zeroed)?.into()))
    }

    /// Uninitialised memory of a device for a shape.
    ///
    /// # Errors
    /// E0710.
    pub fn new_on(device: &dyn Device, dtype: DType, shape: &[u64]) -> Result<Tensor, Fault> {
        let bytes = bytes_of(dtype, shape).ok_or(OutOfMemory { bytes: u64::MAX })?;
        Ok(Tensor::of(dtype, shape, Storage::new(device, bytes)?))
    }

    /// Of all the bytes, which are as many as the shape takes.
    pub fn of(dtype: DType, shape: &[u64], storage: Storage) -> Tensor {
        Tensor { dtype, shape: shape.to_vec(), storage: Arc::new(storage), offset: 0, parts: None }
    }

    pub fn from_bytes(dtype: DType, shape: &[u64], data: &[u8]) -> Result<Tensor, OutOfMemory> {
        let bytes = bytes_of(dtype, shape).ok_or(OutOfMemory { bytes: u64::MAX })?;
        let mut buffer = Buffer::new(bytes, false)?;
        let n = buffer.len().min(data.len());
        buffer.bytes_mut()[..n].copy_from_slice(&data[..n]);
        Ok(Tensor::of(dtype, shape, buffer.into()))
    }

    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    pub fn elems(&self) -> usize {
        self.shape.iter().product::<u64>() as usize
    }

    pub fn byte_len(&self) -> usize {
        self.elems() * self.dtype.bytes()
    }

    /// The elements' bytes on the host, row-major, little-endian; none of a tensor in parts.
    ///
    /// # Errors
    /// As of [`Storage::host`].
    pub fn host(&self) -> Result<&[u8], Fault> {
        match self.parts {
            Some(_) => Ok(&[]),
            None => Ok(&self.storage.host()?.bytes()[self.offset..self.offset + self.byte_len()]),
        }
    }

    /// The same for code that has no way to fail, which prints or compares elements: where the bytes cannot be had, the
    /// process ends.
    pub fn bytes(&self) -> &[u8] {
        self.host().unwrap_or_else(|fault| exit::lost(&fault))
    }

    /// Where the elements are on a device; brings them there.
    ///
    /// # Errors
    /// As of [`Storage::on`].
    pub fn on(&self, device: &dyn Device) -> Result<Address, Fault> {
        Ok(self.storage.on(device)?.wrapping_add(self.offset))
    }

    /// The bytes on the host for writing: a copy is made first if they are shared.
    ///
    /// # Errors
    /// As of [`Storage::host`].
    pub fn host_mut(&mut self) -> Result<&mut [u8], Fault> {
        let len = self.byte_len();
        if Arc::get_mut(&mut self.storage).is_none() {
            *self = Tensor::from_bytes(self.dtype, &self.shape, self.host()?)?;
        }
        let offset = self.offset;
        match Arc::get_mut(&mut self.storage) {
            Some(storage) => Ok(&mut storage.host_mut()?.bytes_mut()[offset..offset + len]),
            None => Err(OutOfMemory { bytes: len as u64 }.into()),
        }
    }
}

/// The parts of a tensor on the devices of a mesh.
#[derive(Clone)]
pub struct Parts {
    /// How they lie; it names the mesh.
    pub layout: Sharding,
    /// By device, of those that are in this process.
    pub parts: Vec<Tensor>,
}

/// Bytes of a shape; `None` beyond 64 bits.
pub fn bytes_of(dtype: DType, shape: &[u64]) -> Option<u64> {
    shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d))?.checked_mul(dtype.bytes() as u64)
}
