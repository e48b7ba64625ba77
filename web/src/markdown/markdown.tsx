import type { MarkedToken, Token, Tokens } from 'marked';
import { Component, type ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { CopyButton } from '../ui/copy_button';
import { decodeEntities, GrowingText, safeLink } from './blocks';
import { highlight } from './highlight';

/**
 * A text as Markdown. Tokens become elements directly: no HTML is ever written or parsed, so what
 * an answer holds of it is shown as text.
 */
export function Markdown({ text }: { text: string }) {
  const growing = useRef<GrowingText | null>(null);
  growing.current ??= new GrowingText();
  const blocks = growing.current.blocks(text);
  return (
    <div class="prose">
      {blocks.map((token, i) => (
        <BlockOnce key={i} token={token} />
      ))}
    </div>
  );
}

/** Draws again only when its text has changed. */
class BlockOnce extends Component<{ token: Token }> {
  override shouldComponentUpdate(next: { token: Token }) {
    return next.token !== this.props.token && next.token.raw !== this.props.token.raw;
  }
  render() {
    return block(this.props.token, 0);
  }
}

/** Deeper than any text for people; what is below is shown as it is written. */
const MAX_DEPTH = 24;

function blocksOf(tokens: Token[] | undefined, depth: number): ComponentChildren {
  return tokens?.map((token) => block(token, depth));
}

function block(generic: Token, depth: number): ComponentChildren {
  const token = generic as MarkedToken;
  if (depth > MAX_DEPTH) return token.raw;
  switch (token.type) {
    case 'space':
    case 'def':
      return null;
    case 'code':
      return <CodeBlock code={token.text} language={token.lang ?? ''} />;
    case 'heading': {
      // The page has an h1 and an h2 of its own.
      const Tag = `h${Math.min(token.depth + 2, 6)}` as 'h3';
      return <Tag class={`level-${token.depth}`}>{inline(token.tokens, depth)}</Tag>;
    }
    case 'hr':
      return <hr />;
    case 'blockquote':
      return <blockquote>{blocksOf(token.tokens, depth + 1)}</blockquote>;
    case 'list':
      return list(token, depth);
    case 'table':
      return table(token, depth);
    case 'paragraph':
      return <p>{inline(token.tokens, depth)}</p>;
    case 'html':
      return <p class="raw">{token.text.trimEnd()}</p>;
    case 'text':
      return token.tokens ? inline(token.tokens, depth) : decodeEntities(token.text);
    default:
      return token.raw;
  }
}

function list(token: Tokens.List, depth: number) {
  const items = token.items.map((item) => (
    <li class={item.task ? 'task' : undefined}>
      {item.task && <input type="checkbox" checked={item.checked} disabled aria-label="done" />}
      {blocksOf(item.tokens, depth + 1)}
    </li>
  ));
  if (!token.ordered) return <ul>{items}</ul>;
  return <ol start={token.start === '' ? undefined : token.start}>{items}</ol>;
}

function table(token: Tokens.Table, depth: number) {
  const side = (cell: Tokens.TableCell) => (cell.align ? `to-${cell.align}` : undefined);
  return (
    <div class="table" tabIndex={0} role="group" aria-label="Table">
      <table>
        <thead>
          <tr>
            {token.header.map((cell) => (
              <th class={side(cell)}>{inline(cell.tokens, depth)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {token.rows.map((row) => (
            <tr>
              {row.map((cell) => (
                <td class={side(cell)}>{inline(cell.tokens, depth)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function inline(tokens: Token[] | undefined, depth: number): ComponentChildren {
  return tokens?.map((generic) => {
    const token = generic as MarkedToken;
    if (depth > MAX_DEPTH) return token.raw;
    switch (token.type) {
      case 'strong':
        return <strong>{inline(token.tokens, depth + 1)}</strong>;
      case 'em':
        return <em>{inline(token.tokens, depth + 1)}</em>;
      case 'del':
        return <del>{inline(token.tokens, depth + 1)}</del>;
      case 'codespan':
        return <code>{token.text}</code>;
      case 'br':
        return <br />;
      case 'link':
        return link(token.href, inline(token.tokens, depth + 1) ?? token.text, token.raw);
      case 'image':
        // Fetching it would tell somebody that the answer was read.
        return link(token.href, token.text || 'picture', token.raw);
      case 'escape':
        return token.text;
      case 'text':
        return token.tokens ? inline(token.tokens, depth + 1) : decodeEntities(token.text);
      case 'html':
        return /^<br\s*\/?>$/i.test(token.text) ? <br /> : token.text;
      default:
        return token.raw;
    }
  });
}

function link(href: string, words: ComponentChildren, raw: string): ComponentChildren {
  const safe = safeLink(href);
  if (!safe) return raw;
  return (
    <a href={safe} title={safe} target="_blank" rel="noopener noreferrer nofollow">
      {words}
    </a>
  );
}

function CodeBlock({ code, language }: { code: string; language: string }) {
  const name = language.trim().split(/\s+/, 1)[0] ?? '';
  return (
    <figure class="code">
      <figcaption>
        <span>{name || 'text'}</span>
        <CopyButton text={code} label="Copy code" />
      </figcaption>
      <pre tabIndex={0} aria-label={name ? `${name} code` : 'code'}>
        <code>
          {highlight(code, name).map(({ kind, text }) =>
            kind ? <span class={`c-${kind}`}>{text}</span> : text,
          )}
        </code>
      </pre>
    </figure>
  );
}
