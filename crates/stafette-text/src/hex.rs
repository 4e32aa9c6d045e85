//! Bytes as hexadecimal digits, two for each.

/// Returns the digits of the bytes, in lower case.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the bytes of exactly `N` pairs of digits, in either case; `None` for any other text.
#[must_use]
pub fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    // `from_str_radix` would accept a sign.
    let digit = |byte: u8| u8::try_from(char::from(byte).to_digit(16)?).ok();
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_digits_are_read_and_as_many_as_are_wanted() {
        assert_eq!(encode(&[0, 0x1f, 0xff]), "001fff");
        assert_eq!(decode("001fFF"), Some([0, 0x1f, 0xff]));
        for wrong in ["", "001f", "001fff00", "001ff", "+0+f+f", "001fé", "0g0000"] {
            assert_eq!(decode::<3>(wrong), None, "{wrong}");
        }
    }
}
