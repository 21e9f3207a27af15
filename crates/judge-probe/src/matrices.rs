//! Features in rows: dense, sparse or in single precision, and the products and decompositions that fits are made of.

pub(crate) mod matrix;
pub(crate) mod precision;
pub(crate) mod products;
pub(crate) mod row_groups;
pub(crate) mod row_space;
pub(crate) mod sparse_matrix;
