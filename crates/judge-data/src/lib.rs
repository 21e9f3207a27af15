//! judge-data
