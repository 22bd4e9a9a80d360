//! Where the bytes of a tensor are: on the host, on devices, or on both.
//!
//! A plan reads and writes where its device is; the host has one door, [`Storage::host`], which brings the bytes there the
//! first time. What is on several sides is equal there: who writes is the only owner and forgets the others.

use crate::buffer::{Buffer, poison};
use crate::device::{Address, Device, Memory};
use crate::fault::Fault;
use crate::memory::OutOfMemory;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tessera_base::bug;

/// Bytes of one size in one or more places.
pub struct Storage {
    len: usize,
    /// Whether all bytes are zero as long as they are nowhere.
    zeros: bool,
    host: OnceLock<Buffer>,
    /// One for each device that has memory of its own and the bytes.
    devices: Mutex<Vec<Arc<dyn Memory>>>,
}

impl From<Buffer> for Storage {
    fn from(buffer: Buffer) -> Storage {
        Storage { len: buffer.len(), zeros: false, host: buffer.into(), devices: Mutex::default() }
    }
}

impl Storage {
    /// New memory of a device, whose content nobody may read before it is written.
    ///
    /// # Errors
    /// E0710.
    pub fn new(device: &dyn Device, bytes: u64) -> Result<Storage, Fault> {
        if device.shares_host_memory() {
            return Ok(Buffer::new(bytes, false)?.into());
        }
        let len = usize::try_from(bytes).map_err(|_| OutOfMemory { bytes })?;
        let memory = device.alloc(bytes)?;
        Ok(Storage { len, zeros: false, host: OnceLock::new(), devices: Mutex::new(vec![memory]) })
    }

    /// Bytes that are all zero, and take memory when somebody first looks at them.
    ///
    /// # Errors
    /// More bytes than there are addresses.
    pub fn zeros(bytes: u64) -> Result<Storage, OutOfMemory> {
        let len = usize::try_from(bytes).map_err(|_| OutOfMemory { bytes })?;
        Ok(Storage { len, zeros: true, host: OnceLock::new(), devices: Mutex::default() })
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes on the host: the one door to them.
    ///
    /// # Errors
    /// E0710 where there is no room for them here; what the device says that has them.
    pub fn host(&self) -> Result<&Buffer, Fault> {
        if let Some(buffer) = self.host.get() {
            return Ok(buffer);
        }
        let devices = self.devices.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have been here meanwhile.
        if let Some(buffer) = self.host.get() {
            return Ok(buffer);
        }
        let memory = match devices.first() {
            Some(memory) => memory,
            None if self.zeros => {
                let buffer = Buffer::new(self.len as u64, true)?;
                return Ok(self.host.get_or_init(|| buffer));
            }
            None => bug!("the bytes of a tensor are nowhere"),
        };
        let mut buffer = Buffer::new(self.len as u64, false)?;
        memory.download(buffer.bytes_mut())?;
        Ok(self.host.get_or_init(|| buffer))
    }

    /// The bytes on the host, for writing: elsewhere they are forgotten.
    ///
    /// # Errors
    /// As of [`Storage::host`].
    pub fn host_mut(&mut self) -> Result<&mut Buffer, Fault> {
        self.host()?;
        self.devices.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        match self.host.get_mut() {
            Some(buffer) => Ok(buffer),
            None => bug!("bytes that were just brought to the host are not there"),
        }
    }

    /// Where the bytes are on a device; brings them there.
    ///
    /// # Errors
    /// E0710 where there is no room for them; what the device says.
    pub fn on(&self, device: &dyn Device) -> Result<Address, Fault> {
        if device.shares_host_memory() {
            return Ok(self.host()?.as_ptr());
        }
        let id = device.id();
        let here = |all: &[Arc<dyn Memory>]| all.iter().find(|m| m.device() == id).map(|m| m.address());
        if let Some(at) = here(&self.devices.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(at);
        }
        let host = self.host()?;
        let mut devices = self.devices.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = here(&devices) {
            return Ok(at);
        }
        let memory = device.alloc(self.len as u64)?;
        let at = memory.address();
        // SAFETY: memory that was just made and has as many bytes.
        unsafe { device.upload(host.bytes(), at) }?;
        devices.push(memory);
        Ok(at)
    }

    /// To be written on a device, and by it alone: elsewhere the bytes are forgotten.
    ///
    /// # Errors
    /// As of [`Storage::on`].
    pub fn written_on(&mut self, device: &dyn Device) -> Result<Address, Fault> {
        let at = self.on(device)?;
        let devices = self.devices.get_mut().unwrap_or_else(PoisonError::into_inner);
        if device.shares_host_memory() {
            devices.clear();
        } else {
            devices.retain(|m| m.device() == device.id());
            self.host.take();
        }
        Ok(at)
    }

    /// What lies there is nothing to who comes next: see [`poison`].
    ///
    /// # Errors
    /// As of [`Storage::on`].
    pub fn spoil(&mut self, device: &dyn Device) -> Result<(), Fault> {
        if poison::shows() {
            let at = self.written_on(device)?;
            // SAFETY: the only reference to memory of the device.
            unsafe { device.spoil(at, self.len as u64) };
        }
        Ok(())
    }
}
