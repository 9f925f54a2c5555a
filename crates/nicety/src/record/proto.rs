//! An encoder of Protocol Buffers for timelines. It supports only the three kinds of fields that timelines need.

/// A message while it is being encoded.
#[derive(Default)]
pub(super) struct Proto(Vec<u8>);

impl Proto {
    pub(super) fn new() -> Proto {
        Proto::default()
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn tag(&mut self, field: u32, wire_type: u32) {
        self.varint(u64::from(field << 3 | wire_type));
    }

    /// Appends an unsigned integer, a signed integer that is not negative, a boolean or an enumeration.
    pub(super) fn uint(mut self, field: u32, value: u64) -> Proto {
        self.tag(field, 0);
        self.varint(value);
        self
    }

    /// Appends a field of eight bytes.
    pub(super) fn fixed64(mut self, field: u32, value: u64) -> Proto {
        self.tag(field, 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Appends a text.
    pub(super) fn text(self, field: u32, text: &str) -> Proto {
        self.bytes(field, text.as_bytes())
    }

    /// Appends a nested message.
    pub(super) fn message(self, field: u32, message: &Proto) -> Proto {
        self.bytes(field, &message.0)
    }

    fn bytes(mut self, field: u32, bytes: &[u8]) -> Proto {
        self.tag(field, 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    /// Returns the encoded message.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_encoded_as_in_the_documentation() {
        // Examples of the page 'Encoding' on protobuf.dev.
        assert_eq!(Proto::new().uint(1, 150).into_bytes(), [0x08, 0x96, 0x01]);
        let testing = Proto::new().text(2, "testing");
        assert_eq!(testing.into_bytes(), [0x12, 7, b't', b'e', b's', b't', b'i', b'n', b'g']);
        let inner = Proto::new().uint(1, 150);
        assert_eq!(Proto::new().message(3, &inner).into_bytes(), [0x1a, 3, 0x08, 0x96, 0x01]);
        assert_eq!(Proto::new().fixed64(1, 1).into_bytes(), [0x09, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Proto::new().uint(47, u64::MAX).into_bytes().len(), 12);
    }
}
