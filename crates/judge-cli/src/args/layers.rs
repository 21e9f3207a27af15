//! Layers and lenses on the command line.

use std::str::FromStr;

use anyhow::{Result, ensure};
use judge_core::{Layer, Lens};

/// The values of `--lens`.
pub const LENSES: &[(&str, Lens)] = &[("raw", Lens::Raw), ("normed", Lens::Normed)];

/// `all`, `last`, or a list of layers and ranges such as `0,5,12-16`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayerList {
    /// Every layer of the model.
    All,
    /// The last one.
    Last,
    /// First and last of each range.
    Ranges(Vec<(usize, usize)>),
}

impl FromStr for LayerList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => return Ok(Self::All),
            "last" => return Ok(Self::Last),
            _ => {}
        }
        let range = |part: &str| {
            let number = |text: &str| {
                let number = text.trim().parse::<usize>();
                number.map_err(|_| format!("{part:?} is neither a layer nor a range such as 12-16"))
            };
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if first > last { Err(format!("the range {part:?} is empty")) } else { Ok((first, last)) }
        };
        text.split(',').map(range).collect::<Result<_, _>>().map(Self::Ranges)
    }
}

impl std::fmt::Display for LayerList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Last => f.write_str("last"),
            Self::Ranges(ranges) => {
                let ranges: Vec<String> = ranges.iter().map(|(first, last)| format!("{first}-{last}")).collect();
                f.write_str(&ranges.join(","))
            }
        }
    }
}

impl LayerList {
    /// The layers, ascending, each once, whatever the order given.
    ///
    /// # Errors
    /// If one is above the model's last, `n_layers`.
    pub fn of_model(&self, n_layers: usize) -> Result<Vec<Layer>> {
        let ranges = match self {
            Self::All => return Ok((0..=n_layers).map(Layer).collect()),
            Self::Last => return Ok(vec![Layer(n_layers)]),
            Self::Ranges(ranges) => ranges,
        };
        let mut layers = Vec::new();
        for &(first, last) in ranges {
            ensure!(last <= n_layers, "--layers: layer {last} does not exist, the model has layers 0 to {n_layers}");
            layers.extend((first..=last).map(Layer));
        }
        layers.sort_unstable();
        layers.dedup();
        Ok(layers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str) -> Vec<usize> {
        let list: LayerList = text.parse().unwrap();
        list.of_model(16).unwrap().into_iter().map(|layer| layer.0).collect()
    }

    #[test]
    fn lists_ranges_and_all() {
        assert_eq!(numbers("all"), (0..=16).collect::<Vec<_>>());
        assert_eq!(numbers("last"), [16]);
        assert_eq!(numbers("12-14,0, 5,13"), [0, 5, 12, 13, 14]);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for (text, says) in [("", "neither"), ("1,x", "neither"), ("3-1", "empty"), ("-1", "neither")] {
            let error = text.parse::<LayerList>().unwrap_err();
            assert!(error.contains(says), "{text:?}: {error}");
        }
        for text in ["17", "0-17"] {
            assert!(
                text.parse::<LayerList>().unwrap().of_model(16).unwrap_err().to_string().contains("does not exist")
            );
        }
    }
}
