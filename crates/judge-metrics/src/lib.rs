//! judge-metrics
