//! judge-probe
