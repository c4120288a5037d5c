//! Literals: strings, numbers and durations.

use super::{LexError, Lexed, Lexer, NO_CHARACTER, is_alpha, is_digit};
use crate::token::TokenKind;

impl<'q> Lexer<'q> {
    /// A string literal whose opening quote has been read.
    pub(super) fn string(&mut self, quote: char) -> Lexed<'q> {
        loop {
            match self.bump() {
                None if quote == '`' => return Err(self.fault("unterminated raw string")),
                None => return Err(self.fault("unterminated quoted string")),
                Some('\n') if quote != '`' => {
                    return Err(self.fault("unterminated quoted string"));
                }
                Some(NO_CHARACTER) => return Err(self.fault("invalid UTF-8 rune")),
                Some('\\') if quote != '`' => self.escape(quote)?,
                Some(c) if c == quote => return self.emit(TokenKind::String),
                Some(_) => {}
            }
        }
    }

    /// An escape sequence whose backslash has been read.
    fn escape(&mut self, quote: char) -> Result<(), LexError> {
        let not_terminated = "escape sequence not terminated";
        let c = self.bump().ok_or_else(|| self.fault(not_terminated))?;
        let (digits, radix, max) = match c {
            'a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '\\' => return Ok(()),
            c if c == quote => return Ok(()),
            '0'..='7' => {
                self.at -= 1;
                (3, 8, 255)
            }
            'x' => (2, 16, 255),
            'u' => (4, 16, 0x0010_ffff),
            'U' => (8, 16, 0x0010_ffff),
            c => {
                let shown = format!("unknown escape sequence U+{:04X} '{c}'", c as u32);
                return Err(self.fault(shown));
            }
        };
        let mut value: u32 = 0;
        for _ in 0..digits {
            let c = self.bump().ok_or_else(|| self.fault(not_terminated))?;
            let Some(digit) = c.to_digit(radix) else {
                let shown = format!("U+{:04X} '{c}'", c as u32);
                let message = format!("illegal character {shown} in escape sequence");
                return Err(self.fault(message));
            };
            value = value.wrapping_mul(radix).wrapping_add(digit);
        }
        if value > max || (0xd800..0xe000).contains(&value) {
            let message = "escape sequence is an invalid Unicode code point";
            return Err(self.fault(message));
        }
        Ok(())
    }

    pub(super) fn number_or_duration(&mut self) -> Lexed<'q> {
        if self.scan_number() {
            return self.emit(TokenKind::Number);
        }
        if self.scan_duration() {
            return self.emit(TokenKind::Duration);
        }
        let text = crate::quote::quote(&self.text[self.start..self.at]);
        Err(self.fault(format!("bad number or duration syntax: {text}")))
    }

    /// Reads a number; if the text is none, what could have been one of a duration stays read.
    fn scan_number(&mut self) -> bool {
        let mut is_hex = false;
        if self.take(|c| c == '0') && self.take(|c| matches!(c, 'x' | 'X')) {
            self.take(|c| c == '_');
            is_hex = true;
        }
        let is_digit = |c: char| {
            if is_hex {
                c.is_ascii_hexdigit()
            } else {
                c.is_ascii_digit()
            }
        };
        self.take(|c| c == '.');
        self.take(is_digit);
        let (mut dot, mut exponent) = (false, false);
        while self
            .peek()
            .is_some_and(|c| is_digit(c) || matches!(c, '.' | '_' | 'e' | 'E'))
        {
            let is_exponent = |c: char| matches!(c, 'e' | 'E');
            if dot && self.take(|c| c == '.') || exponent && self.take(is_exponent) {
                return false;
            }
            if self.take(|c| c == '.') {
                dot = true;
                if self.take(|c| matches!(c, '_' | '.')) || is_hex {
                    return false;
                }
            } else if self.take(is_exponent) {
                exponent = true;
                self.take(|c| matches!(c, '+' | '-'));
                if self.take(|c| matches!(c, '.' | '_' | 'e' | 'E')) || self.peek().is_none() {
                    return false;
                }
            } else if self.take(|c| c == '_') {
                if self.take(|c| matches!(c, '.' | '_' | 'e' | 'E')) || self.peek().is_none() {
                    return false;
                }
            } else {
                self.take_while(is_digit);
            }
        }
        self.at > self.start
            && !self
                .peek()
                .is_some_and(|c| is_alpha(c) || c.is_ascii_digit())
    }

    /// Reads the units of a duration behind the digits that have been read.
    fn scan_duration(&mut self) -> bool {
        if !self.take(|c| "smhdwy".contains(c)) {
            return false;
        }
        self.take(|c| c == 's');
        while self.take(is_digit) {
            self.take_while(is_digit);
            if !self.take(|c| "smhdw".contains(c)) {
                return false;
            }
            self.take(|c| c == 's');
        }
        // A letter or digit behind the units belongs to what is no duration.
        !self.take(|c| is_alpha(c) || c.is_ascii_digit())
    }
}
