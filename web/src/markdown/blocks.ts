import { Lexer, type Token } from 'marked';

/**
 * The blocks of a text that grows. A block that another one follows is finished: Markdown never
 * opens it again, so only the last one is read anew with each piece.
 */
export class GrowingText {
  private text = '';
  private fixed: Token[] = [];
  private fixedLength = 0;

  /** The blocks of `text`; those that were there before are the same objects. */
  blocks(text: string): Token[] {
    const source = text.replace(/\r\n?/g, '\n');
    if (!source.startsWith(this.text)) {
      this.fixed = [];
      this.fixedLength = 0;
    }
    this.text = source;
    const tail = lex(source.slice(this.fixedLength));
    const result = [...this.fixed, ...tail];
    this.settle(tail);
    return result;
  }

  private settle(tail: Token[]): void {
    let last = tail.length - 1;
    while (last > 0 && tail[last]!.type === 'space') last--;
    const settled = tail.slice(0, Math.max(last, 0));
    this.fixed.push(...settled);
    this.fixedLength += settled.reduce((sum, token) => sum + token.raw.length, 0);
  }
}

/** Nested so deeply that the reader gives up: then it is shown as it is. */
function lex(text: string): Token[] {
  try {
    return Lexer.lex(text);
  } catch {
    return [{ type: 'text', raw: text, text, escaped: false }];
  }
}

const NAMED: Record<string, string> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: '\u00a0',
  copy: '©',
  reg: '®',
  hellip: '…',
  mdash: '—',
  ndash: '–',
  rarr: '→',
  larr: '←',
  times: '×',
  middot: '·',
  bull: '•',
  deg: '°',
};

/** Character references outside code. One that is not known stays as it is written. */
export function decodeEntities(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-zA-Z]\w{1,30}));/g, (all, dec, hex, name) => {
    if (name) return NAMED[name] ?? all;
    const code = dec ? Number(dec) : parseInt(hex, 16);
    const valid = code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    return valid ? String.fromCodePoint(code) : '\ufffd';
  });
}

/** Where a link of an answer may lead: the web and mail, never a script, a file or this server. */
export function safeLink(href: string): string | null {
  try {
    const url = new URL(decodeEntities(href));
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}
