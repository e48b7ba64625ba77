/**
 * Colours for code, good enough for any common language: comments, strings, numbers and words that
 * most languages reserve. It reads no grammar and never changes a character.
 */
export type Kind = 'comment' | 'string' | 'number' | 'word' | 'name' | '';

export interface Span {
  kind: Kind;
  text: string;
}

const WORDS = new Set(
  (
    'abstract and as assert async await begin bool boolean break case catch char class const ' +
    'constexpr continue def default defer del delete do double elif else elsif end enum except ' +
    'export extends extern false final finally float fn for from func function go goto if ' +
    'implements import in include inline instanceof int interface is lambda let local long loop ' +
    'match mod module mut namespace new nil none None not null operator or override package pass ' +
    'private protected pub public raise range readonly ref return self short signed sizeof static ' +
    'struct super switch template then this throw trait true True False try type typedef typename ' +
    'typeof union unless unsigned until use using var virtual void volatile when where while with ' +
    'xor yield echo fi done esac'
  ).split(' '),
);

const SQL_WORDS = new Set(
  (
    'add all alter and as asc between by case create delete desc distinct drop else end exists from ' +
    'full group having in index inner insert into is join key left like limit not null offset on or ' +
    'order outer primary right select set table then union unique update using values view when ' +
    'where with'
  ).split(' '),
);

const HASH = /^(py|python|sh|bash|shell|zsh|console|rb|ruby|perl|pl|yaml|yml|toml|ini|r|make|makefile|dockerfile|cmake|elixir|ex|nim|julia|jl|conf)$/;
const DASHES = /^(sql|lua|haskell|hs|ada|elm|vhdl)$/;
const PLAIN = /^(text|txt|plain|plaintext|markdown|md|diff|log|output|csv|)$/;
const MARKUP = /^(html|xml|svg|vue|xhtml)$/;

const TAIL =
  /"""[\s\S]*?(?:"""|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`?/.source +
  /|\b(?:0[xX][\da-fA-F_]+|0[bB][01_]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\w*/.source +
  /|[A-Za-z_$][\w$]*/.source;

function patternFor(language: string): RegExp | null {
  if (PLAIN.test(language)) return null;
  if (MARKUP.test(language))
    return new RegExp(/<!--[\s\S]*?(?:-->|$)|"[^"<>]*"|'[^'<>]*'|<\/?[A-Za-z][\w:-]*/.source, 'g');
  const comments = HASH.test(language)
    ? /#[^\n]*/.source
    : DASHES.test(language)
      ? /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/.source
      : /\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/.source;
  return new RegExp(comments + '|' + TAIL, 'g');
}

function kindOf(text: string, rest: string, language: string): Kind {
  const first = text[0]!;
  if (/^(#|\/\/|\/\*|--|<!--)/.test(text)) return 'comment';
  if (first === '"' || first === "'" || first === '`') {
    return /^(json|jsonc|json5)$/.test(language) && /^\s*:/.test(rest) ? 'name' : 'string';
  }
  if (first === '<') return 'word';
  if (/\d/.test(first)) return 'number';
  const isWord = language === 'sql' ? SQL_WORDS.has(text.toLowerCase()) : WORDS.has(text);
  if (isWord) return 'word';
  return /^\s*\(/.test(rest) ? 'name' : '';
}

export function highlight(code: string, language: string): Span[] {
  const name = language.toLowerCase();
  const pattern = patternFor(name);
  // Colours of a very long text would cost more than they help.
  if (!pattern || code.length > 50_000) return [{ kind: '', text: code }];
  const spans: Span[] = [];
  const add = (kind: Kind, text: string) => {
    const last = spans.at(-1);
    if (last?.kind === kind) last.text += text;
    else if (text) spans.push({ kind, text });
  };
  let at = 0;
  for (const match of code.matchAll(pattern)) {
    const end = match.index + match[0].length;
    add('', code.slice(at, match.index));
    add(kindOf(match[0], code.slice(end, end + 20), name), match[0]);
    at = end;
  }
  add('', code.slice(at));
  return spans;
}
