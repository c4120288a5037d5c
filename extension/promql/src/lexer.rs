//! The text of a query to tokens.
//!
//! Tokens depend on where they stand: inside of braces there are no keywords, behind an opening
//! bracket stands a duration expression, and only behind its first number the ordinary tokens
//! follow. So the lexer keeps the braces, brackets and parentheses that are open.

mod literal;

use crate::quote::quote_char;
use crate::token::{Token, TokenKind, keyword};

/// Characters that end nothing: shown where the text ends in an error that names a character.
const NO_CHARACTER: char = '\u{fffd}';

/// A text that is no token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LexError {
    /// Prometheus's words for the fault.
    pub message: String,
    /// The first byte of what is no token.
    pub start: usize,
}

/// Reads tokens one by one.
#[derive(Debug)]
pub struct Lexer<'q> {
    text: &'q str,
    at: usize,
    start: usize,
    paren_depth: usize,
    brace_open: bool,
    bracket_open: bool,
    in_duration: bool,
    got_colon: bool,
    got_duration: bool,
    unicode_names: bool,
}

type Lexed<'q> = Result<Option<Token<'q>>, LexError>;

impl<'q> Lexer<'q> {
    /// A lexer at the start of a text. Letters beyond ASCII and dots may stand in names without
    /// quotes if `unicode_names` is set.
    pub fn new(text: &'q str, unicode_names: bool) -> Lexer<'q> {
        Lexer {
            text,
            at: 0,
            start: 0,
            paren_depth: 0,
            brace_open: false,
            bracket_open: false,
            in_duration: false,
            got_colon: false,
            got_duration: false,
            unicode_names,
        }
    }

    /// Returns the next token; at the end of the text always the end of input.
    ///
    /// # Errors
    /// If the text goes on with what is no token.
    pub fn next_token(&mut self) -> Result<Token<'q>, LexError> {
        loop {
            self.start = self.at;
            let lexed = if self.brace_open {
                self.inside_braces()?
            } else if self.in_duration {
                self.duration_expression()?
            } else {
                self.statement()?
            };
            if let Some(token) = lexed {
                return Ok(token);
            }
        }
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn take(&mut self, expected: impl Fn(char) -> bool) -> bool {
        let is_there = self.peek().is_some_and(expected);
        if is_there {
            self.bump();
        }
        is_there
    }

    fn take_while(&mut self, expected: impl Fn(char) -> bool) {
        while self.take(&expected) {}
    }

    fn emit(&self, kind: TokenKind) -> Lexed<'q> {
        Ok(Some(Token {
            kind,
            text: &self.text[self.start..self.at],
            start: self.start,
        }))
    }

    fn fault(&self, message: impl Into<String>) -> LexError {
        LexError {
            message: message.into(),
            start: self.start,
        }
    }

    fn is_name_start(&self, c: char) -> bool {
        is_alpha(c) || self.unicode_names && !c.is_ascii() && c.is_alphabetic()
    }

    fn is_name_part(&self, c: char) -> bool {
        self.is_name_start(c) || c.is_ascii_digit() || self.unicode_names && c == '.'
    }

    fn comment(&mut self) {
        self.take_while(|c| c != '\r' && c != '\n');
    }

    fn statement(&mut self) -> Lexed<'q> {
        use TokenKind as K;
        let Some(c) = self.bump() else {
            return match (self.paren_depth, self.bracket_open) {
                (0, false) => self.emit(K::EndOfInput),
                (0, true) => Err(self.fault("unclosed left bracket")),
                _ => Err(self.fault("unclosed left parenthesis")),
            };
        };
        match c {
            '#' => {
                self.comment();
                Ok(None)
            }
            c if is_space(c) => Ok(None),
            ',' => self.emit(K::Comma),
            '*' => self.emit(K::Mul),
            '/' => self.emit(K::Div),
            '%' => self.emit(K::Mod),
            '+' => self.emit(K::Add),
            '-' => self.emit(K::Sub),
            '^' => self.emit(K::Pow),
            '@' => self.emit(K::At),
            '=' | '!' | '<' | '>' => self.comparison(c),
            '"' | '\'' | '`' => self.string(c),
            '(' => {
                self.paren_depth += 1;
                self.emit(K::LeftParen)
            }
            ')' => self.right_paren(c),
            '{' => {
                self.brace_open = true;
                self.emit(K::LeftBrace)
            }
            '[' => self.left_bracket(c),
            ']' if !self.bracket_open => {
                Err(self.fault(format!("unexpected right bracket {}", quote_char(c))))
            }
            ']' => {
                self.bracket_open = false;
                self.emit(K::RightBracket)
            }
            c if c.is_ascii_digit() || c == '.' && self.peek().is_some_and(is_digit) => {
                self.at = self.start;
                self.number_or_duration()
            }
            c if self.is_name_start(c) || c == ':' => match self.bracket_open {
                false => self.word(),
                true => self.word_in_brackets(c),
            },
            c => Err(self.fault(format!("unexpected character: {}", quote_char(c)))),
        }
    }

    fn comparison(&mut self, c: char) -> Lexed<'q> {
        use TokenKind as K;
        let next = self.peek();
        let kind = match (c, next) {
            ('=', Some('~')) => {
                let message = format!("unexpected character after '=': {}", quote_char('~'));
                return Err(self.fault(message));
            }
            ('=', Some('=')) => K::EqualCompare,
            ('=', _) => return self.emit(K::Equal),
            ('!', Some('=')) => K::NotEqual,
            ('!', next) => {
                let shown = quote_char(next.unwrap_or(NO_CHARACTER));
                return Err(self.fault(format!("unexpected character after '!': {shown}")));
            }
            ('<', Some('=')) => K::LessEqual,
            ('<', Some('/')) => K::TrimUpper,
            ('<', _) => return self.emit(K::Less),
            (_, Some('=')) => K::GreaterEqual,
            (_, Some('/')) => K::TrimLower,
            _ => return self.emit(K::Greater),
        };
        self.bump();
        self.emit(kind)
    }

    fn right_paren(&mut self, c: char) -> Lexed<'q> {
        let Some(depth) = self.paren_depth.checked_sub(1) else {
            self.start = self.at;
            return Err(self.fault(format!("unexpected right parenthesis {}", quote_char(c))));
        };
        self.paren_depth = depth;
        self.emit(TokenKind::RightParen)
    }

    fn left_bracket(&mut self, c: char) -> Lexed<'q> {
        if self.bracket_open {
            return Err(self.fault(format!("unexpected left bracket {}", quote_char(c))));
        }
        self.got_colon = false;
        self.got_duration = false;
        self.bracket_open = true;
        self.in_duration = true;
        self.emit(TokenKind::LeftBracket)
    }

    /// A word: a keyword, or the name of a metric, a label or a function.
    fn word(&mut self) -> Lexed<'q> {
        while self
            .peek()
            .is_some_and(|c| self.is_name_part(c) || c == ':')
        {
            self.bump();
        }
        let word = &self.text[self.start..self.at];
        let kind = match keyword(word) {
            Some(TokenKind::Fill | TokenKind::FillLeft | TokenKind::FillRight)
                if !self.text[self.at..]
                    .trim_start_matches(is_space)
                    .starts_with('(') =>
            {
                TokenKind::Identifier
            }
            Some(kind) => kind,
            None if word.contains(':') => TokenKind::MetricIdentifier,
            None => TokenKind::Identifier,
        };
        self.emit(kind)
    }

    fn word_in_brackets(&mut self, c: char) -> Lexed<'q> {
        if c == ':' {
            if self.got_colon {
                return Err(self.fault(format!("unexpected colon {}", quote_char(c))));
            }
            self.got_colon = true;
            return self.emit(TokenKind::Colon);
        }
        if let Some(kind) = self.duration_keyword(c) {
            return self.emit(kind);
        }
        let (shown, colon) = (quote_char(c), quote_char(':'));
        Err(self.fault(format!("unexpected character: {shown}, expected {colon}")))
    }

    /// The keyword of a duration expression whose first character has been read.
    fn duration_keyword(&mut self, first: char) -> Option<TokenKind> {
        if !matches!(first.to_ascii_lowercase(), 's' | 'r' | 'm') {
            return None;
        }
        self.take_while(is_alpha);
        let kind = keyword(&self.text[self.start..self.at])?;
        let kinds = [
            TokenKind::Step,
            TokenKind::Range,
            TokenKind::MaxOf,
            TokenKind::MinOf,
        ];
        kinds.contains(&kind).then_some(kind)
    }

    fn duration_expression(&mut self) -> Lexed<'q> {
        use TokenKind as K;
        let Some(c) = self.bump() else {
            return Err(self.fault("unexpected end of input in duration expression"));
        };
        match c {
            ']' => {
                self.bracket_open = false;
                self.in_duration = false;
                self.got_colon = false;
                self.emit(K::RightBracket)
            }
            ':' if !self.got_duration => {
                self.start = self.at;
                Err(self.fault("unexpected colon before duration in duration expression"))
            }
            ':' if self.got_colon => {
                self.start = self.at;
                Err(self.fault("unexpected repeated colon in duration expression"))
            }
            ':' => {
                self.got_colon = true;
                self.emit(K::Colon)
            }
            '(' => {
                self.paren_depth += 1;
                self.emit(K::LeftParen)
            }
            ')' => self.right_paren(c),
            c if is_space(c) => Ok(None),
            '+' => self.emit(K::Add),
            '-' => self.emit(K::Sub),
            '*' => self.emit(K::Mul),
            '/' => self.emit(K::Div),
            '%' => self.emit(K::Mod),
            '^' => self.emit(K::Pow),
            ',' => self.emit(K::Comma),
            c if c.is_ascii_digit() || c == '.' && self.peek().is_some_and(is_digit) => {
                self.at = self.start;
                self.got_duration = true;
                // Behind its first number a duration expression has ordinary tokens.
                self.in_duration = false;
                self.number_or_duration()
            }
            c => match self.duration_keyword(c) {
                Some(kind) => {
                    self.got_duration = true;
                    self.emit(kind)
                }
                None => {
                    let shown = quote_char(c);
                    let message = format!("unexpected character in duration expression: {shown}");
                    Err(self.fault(message))
                }
            },
        }
    }

    fn inside_braces(&mut self) -> Lexed<'q> {
        use TokenKind as K;
        let Some(c) = self.bump() else {
            return Err(self.fault("unexpected end of input inside braces"));
        };
        match c {
            '#' => {
                self.comment();
                Ok(None)
            }
            c if is_space(c) => Ok(None),
            c if self.is_name_start(c) => {
                while self.peek().is_some_and(|c| self.is_name_part(c)) {
                    self.bump();
                }
                self.emit(K::Identifier)
            }
            ',' => self.emit(K::Comma),
            '"' | '\'' | '`' => self.string(c),
            '=' if self.take(|c| c == '~') => self.emit(K::EqualRegex),
            '=' => self.emit(K::Equal),
            '!' if self.take(|c| c == '~') => self.emit(K::NotEqualRegex),
            '!' if self.take(|c| c == '=') => self.emit(K::NotEqual),
            '!' => {
                let shown = quote_char(self.peek().unwrap_or(NO_CHARACTER));
                let message = format!("unexpected character after '!' inside braces: {shown}");
                Err(self.fault(message))
            }
            '{' => Err(self.fault(format!("unexpected left brace {}", quote_char(c)))),
            '}' => {
                self.brace_open = false;
                self.emit(K::RightBrace)
            }
            c => Err(self.fault(format!(
                "unexpected character inside braces: {}",
                quote_char(c)
            ))),
        }
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

fn is_alpha(c: char) -> bool {
    c == '_' || c.is_ascii_alphabetic()
}

#[cfg(test)]
mod tests {
    use super::Lexer;
    use crate::token::TokenKind as K;

    fn kinds(text: &str) -> Result<Vec<K>, String> {
        let mut lexer = Lexer::new(text, false);
        let mut kinds = Vec::new();
        loop {
            let token = lexer.next_token().map_err(|fault| fault.message)?;
            if token.kind == K::EndOfInput {
                return Ok(kinds);
            }
            kinds.push(token.kind);
        }
    }

    #[test]
    fn tokens_depend_on_their_place() {
        let brackets = [
            K::Identifier,
            K::LeftBracket,
            K::Duration,
            K::Colon,
            K::RightBracket,
        ];
        assert_eq!(kinds("m[5m:]").unwrap(), brackets);
        let braces = [
            K::LeftBrace,
            K::Identifier,
            K::EqualRegex,
            K::String,
            K::RightBrace,
        ];
        assert_eq!(kinds("{sum=~'a'} # x").unwrap(), braces);
        assert_eq!(kinds("fill").unwrap(), [K::Identifier]);
        assert_eq!(
            kinds("0x1F 1e3 .5 5m").unwrap(),
            [K::Number, K::Number, K::Number, K::Duration]
        );
    }

    #[test]
    fn faults_are_worded_as_prometheus_words_them() {
        for (text, expected) in [
            ("(a", "unclosed left parenthesis"),
            ("a)", "unexpected right parenthesis ')'"),
            ("a[5m", "unclosed left bracket"),
            ("a{", "unexpected end of input inside braces"),
            ("'a", "unterminated quoted string"),
            ("1a", "bad number or duration syntax: \"1\""),
            ("a =~ b", "unexpected character after '=': '~'"),
            ("a[x]", "unexpected character in duration expression: 'x'"),
        ] {
            assert_eq!(kinds(text).unwrap_err(), expected, "{text}");
        }
    }
}
