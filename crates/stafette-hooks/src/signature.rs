//! Signatures of incoming webhooks and outgoing messages.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use stafette_core::hex;

/// Returns the signature of a body in GitHub's form: `sha256=` and hexadecimal digits.
pub fn sign_payload(secret: &str, body: &[u8]) -> String {
    let mut mac = keyed(secret.as_bytes());
    mac.update(body);
    format!("sha256={}", hex::encode(&mac.finalize().into_bytes()))
}

/// Returns true if a body was signed with this secret. Compares in constant time.
pub fn verify_payload(secret: &str, body: &[u8], signature: &str) -> bool {
    let given = signature.strip_prefix("sha256=").and_then(hex::decode::<32>);
    let Some(given) = given else { return false };
    let mut mac = keyed(secret.as_bytes());
    mac.update(body);
    mac.verify_slice(&given).is_ok()
}

/// Returns the signature of an outgoing message as defined by Standard Webhooks: over its id, its
/// time in seconds and its body.
pub fn sign_message(secret: &str, id: &str, seconds: i64, body: &str) -> String {
    // A secret may be written as `whsec_` and base64; any other text is used as it is.
    let decoded = secret.strip_prefix("whsec_").and_then(|text| STANDARD.decode(text).ok());
    let mut mac = keyed(&decoded.unwrap_or_else(|| secret.as_bytes().to_vec()));
    mac.update(format!("{id}.{seconds}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

/// Returns the hash that identifies a body.
pub(crate) fn hash(body: &[u8]) -> String {
    hex::encode(&Sha256::digest(body))
}

fn keyed(secret: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(secret).expect("a key of any length will do")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of GitHub's own documentation.
    #[test]
    fn b_16_signatures_are_those_of_github() {
        let (secret, body) = ("It's a Secret to Everybody", b"Hello, World!".as_slice());
        let signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        assert_eq!(sign_payload(secret, body), signature);
        assert!(verify_payload(secret, body, signature));
        assert!(verify_payload(secret, body, &signature.replace("757107ea", "757107EA")));
        for wrong in ["", "sha256=", "sha256=zz", &signature[..70], &signature[7..], "sha1=00"] {
            assert!(!verify_payload(secret, body, wrong), "{wrong}");
        }
        assert!(!verify_payload("another", body, signature));
        assert!(!verify_payload(secret, b"Hello, World?", signature));
    }

    /// The example of the Standard Webhooks.
    #[test]
    fn b_13_messages_are_signed_as_the_standard_has_it() {
        let signature = sign_message(
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            "{\"test\": 2432232314}",
        );
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
