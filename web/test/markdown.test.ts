import assert from 'node:assert/strict';
import test from 'node:test';
import { Lexer } from 'marked';
import { decodeEntities, GrowingText, safeLink } from '../src/markdown/blocks';
import { highlight } from '../src/markdown/highlight';

const TEXT = `# Title

A paragraph with *words*
over two lines.
Setext?
===

- one

- two
  with more

      code inside

1. a
2. b

| a | b |
|---|---|
| 1 | 2 |

> quote
lazy

\`\`\`js
const x = 1;

# not a heading
\`\`\`

<div>
raw
</div>

last
`;

test('a text that grows by any steps has the blocks of the whole', () => {
  const whole = Lexer.lex(TEXT);
  for (let step = 1; step < 40; step++) {
    const growing = new GrowingText();
    let blocks = growing.blocks('');
    for (let n = step; n < TEXT.length + step; n += step) blocks = growing.blocks(TEXT.slice(0, n));
    assert.deepEqual(
      blocks.map(({ type, raw }) => ({ type, raw })),
      whole.map(({ type, raw }) => ({ type, raw })),
      `steps of ${step}`,
    );
  }
});

test('finished blocks are not read again, and a text that changed is', () => {
  const growing = new GrowingText();
  const before = growing.blocks('one\n\ntwo\n\nthree');
  const after = growing.blocks('one\n\ntwo\n\nthree and more');
  assert.equal(after[0], before[0]);
  assert.equal(growing.blocks('two')[0]!.raw, 'two');
});

test('a text nested without end is shown all the same', () => {
  const deep = '>'.repeat(20_000) + ' x';
  const blocks = new GrowingText().blocks(deep);
  assert.equal(blocks.map(({ raw }) => raw).join(''), deep);
});

test('character references', () => {
  assert.equal(decodeEntities('&lt;b&gt; &amp;amp; &#65;&#x1F30D; &nope; &'), '<b> &amp; A🌍 &nope; &');
  assert.equal(decodeEntities('&#0;&#xD800;&#x110000;'), '\ufffd\ufffd\ufffd');
});

test('links lead to the web and to mail only', () => {
  for (const good of ['https://a.example/x', 'http://a.example', 'mailto:a@b.example'])
    assert.ok(safeLink(good), good);
  for (const bad of [
    'javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    'java\nscript:alert(1)',
    '&#106;avascript:alert(1)',
    'data:text/html,x',
    'vbscript:x',
    'file:///etc/passwd',
    'blob:https://a.example/1',
    '/v1/models',
    '//a.example',
    '#x',
    '',
  ])
    assert.equal(safeLink(bad), null, bad);
});

test('colours never change a character', () => {
  const code = '# a\n"open \'x\' `y\n/* c // d\n<a href="b">\n--e 0x1F 1.5e-3 日本 if(x) $y \\" """z';
  for (const language of ['python', 'cpp', 'sql', 'html', 'json', 'text', '', 'no-such'])
    assert.equal(highlight(code, language).map(({ text }) => text).join(''), code, language);
});

test('colours of the usual parts', () => {
  const kinds = (code: string, language: string) =>
    highlight(code, language)
      .filter(({ kind }) => kind)
      .map(({ kind, text }) => `${kind}:${text}`);
  assert.deepEqual(kinds('def f(x):  # why\n  return "a#b" + 1', 'python'), [
    'word:def',
    'name:f',
    'comment:# why',
    'word:return',
    'string:"a#b"',
    'number:1',
  ]);
  assert.deepEqual(kinds('{"a": "b"}', 'json'), ['name:"a"', 'string:"b"']);
  assert.deepEqual(kinds('SELECT x -- y', 'sql'), ['word:SELECT', 'comment:-- y']);
  assert.deepEqual(kinds('values = 1', 'python'), ['number:1']);
});
