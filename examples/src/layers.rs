//! Layer lists on the command line.

use anyhow::{Context, Result, ensure};
use judge_core::Layer;

/// Reads `all`, or a list of layers and ranges such as `0,5,12-16`; ascending, each once, whatever the order given.
///
/// # Errors
/// If a part is neither a number nor a range, or a layer is above the model's last, `n_layers`.
pub fn parse_layers(text: &str, n_layers: usize) -> Result<Vec<Layer>> {
    if text == "all" {
        return Ok((0..=n_layers).map(Layer).collect());
    }
    let mut layers = Vec::new();
    for part in text.split(',') {
        let number = |text: &str| {
            text.trim()
                .parse::<usize>()
                .with_context(|| format!("--layers: {part:?} is neither a layer nor a range such as 12-16"))
        };
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        ensure!(first <= last, "--layers: the range {part:?} is empty");
        ensure!(last <= n_layers, "--layers: layer {last} does not exist, the model has layers 0 to {n_layers}");
        layers.extend((first..=last).map(Layer));
    }
    layers.sort_unstable();
    layers.dedup();
    Ok(layers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str) -> Vec<usize> {
        parse_layers(text, 16).unwrap().into_iter().map(|layer| layer.0).collect()
    }

    #[test]
    fn lists_ranges_and_all() {
        assert_eq!(numbers("all"), (0..=16).collect::<Vec<_>>());
        assert_eq!(numbers("12-14,0, 5,13"), [0, 5, 12, 13, 14]);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for (text, says) in [
            ("", "neither"),
            ("1,x", "neither"),
            ("3-1", "empty"),
            ("17", "does not exist"),
            ("0-17", "does not exist"),
            ("-1", "neither"),
        ] {
            let error = parse_layers(text, 16).unwrap_err().to_string();
            assert!(error.contains(says), "{text:?}: {error}");
        }
    }
}
