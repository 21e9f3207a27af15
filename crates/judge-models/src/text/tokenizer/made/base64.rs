//! Bytes as text, as a `tokenizer.json` has a table of characters.

/// Bytes in base64, with padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let bits = three.iter().enumerate().map(|(i, &byte)| u32::from(byte) << (16 - 8 * i)).sum::<u32>();
        let digit = |place: usize| char::from(DIGITS[(bits >> (18 - 6 * place)) as usize & 63]);
        text.extend((0..4).map(|place| if place <= three.len() { digit(place) } else { '=' }));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn bytes_are_written_in_base64() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("\u{ff}>?", "w78+Pw==")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
