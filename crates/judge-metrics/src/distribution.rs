//! Null distributions and their quantiles, accurate in relative terms into the tails.
//!
//! `statrs` has these functions too, but its erfc is good to ten digits, and its incomplete beta function stops after 140 terms
//! and takes a factor from differences of log-gammas, which at a million items leaves six.
//!
//! The callers answer for the arguments: degrees of freedom and shapes are positive, probabilities lie in the ranges named.

mod beta;
mod normal;
mod solve;
mod stirling;

pub(crate) use self::{
    beta::{beta_quantile, binomial_two_sided, correlation_tail, f_quantile, f_sf, student_t_quantile, student_t_tail},
    normal::{normal_cdf, normal_quantile, normal_tail, normal_two_sided_quantile},
};

/// Far above what any sample that fits in memory needs: a guard against rounding that never settles.
const MAX_TERMS: f64 = 1e6;

#[cfg(test)]
mod tests;
