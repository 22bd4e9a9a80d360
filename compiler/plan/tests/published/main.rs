//! Published training runs beside what is predicted for them. Every row is printed; what holds is asserted.

mod row;
mod foundry;
mod selene;
mod h100;
mod flash;
