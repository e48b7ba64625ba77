import assert from 'node:assert/strict';
import test from 'node:test';
import {
  append,
  newConversation,
  patch,
  path,
  remove,
  restored,
  show,
  titleFrom,
  versions,
  wireMessages,
  type Conversation,
  type Message,
  type Role,
} from '../src/chat/conversation';
import { asJson, asMarkdown, fileName, fromJson } from '../src/chat/export';

function message(id: string, parent: string | null, role: Role, content = id): Message {
  return { id, parent, role, content, reasoning: '', state: 'done', at: 1 };
}

/** q1 - a1 - q2 - a2, and a second version of q2 with an answer. */
function edited(): Conversation {
  let c = newConversation('c', 0);
  c = append(c, message('q1', null, 'user'));
  c = append(c, message('a1', 'q1', 'assistant'));
  c = append(c, message('q2', 'a1', 'user'));
  c = append(c, message('a2', 'q2', 'assistant'));
  c = append(c, message('q2b', 'a1', 'user'));
  return append(c, message('a2b', 'q2b', 'assistant'));
}

const ids = (messages: Message[]) => messages.map(({ id }) => id);

test('calls are sent with their results, and left out without', () => {
  let c = append(newConversation('c', 0), message('q', null, 'user'));
  const calls = [
    { id: '1', name: 'f', arguments: '{}', result: 'r' },
    { id: '2', name: 'g', arguments: '{}' },
  ];
  c = append(c, { ...message('a', 'q', 'assistant', ''), calls });
  assert.deepEqual(wireMessages(c, 'a', ''), [
    { role: 'user', content: 'q' },
    {
      role: 'assistant',
      content: '',
      tool_calls: [{ id: '1', type: 'function', function: { name: 'f', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: '1', content: 'r' },
  ]);
  assert.match(asMarkdown(c), /Called `f`:\n\n    \{\}\n\nResult:\n\n    r\n/);
  const damaged = { ...c, messages: [c.messages[0], { ...c.messages[1], calls: [calls[0], { id: 3 }, null] }] };
  assert.deepEqual(restored(damaged)!.messages[1]!.calls, [calls[0]]);
});

test('an edited message stands beside the first one', () => {
  const c = edited();
  assert.deepEqual(ids(path(c)), ['q1', 'a1', 'q2b', 'a2b']);
  assert.deepEqual(ids(versions(c, c.messages[2]!)), ['q2', 'q2b']);
  assert.deepEqual(ids(path(show(c, 'q2'))), ['q1', 'a1', 'q2', 'a2']);
  assert.deepEqual(ids(path(show(show(c, 'q2'), 'q2b'))), ['q1', 'a1', 'q2b', 'a2b']);
});

test('a removed message takes what followed it along, and the version before it is shown', () => {
  const c = remove(edited(), 'q2b');
  assert.deepEqual(ids(path(c)), ['q1', 'a1', 'q2', 'a2']);
  assert.deepEqual(ids(c.messages), ['q1', 'a1', 'q2', 'a2']);
  assert.equal(remove(c, 'a2').leaf, 'q2');
  assert.equal(remove(edited(), 'a2').leaf, 'a2b');
  assert.equal(remove(edited(), 'q1').leaf, null);
});

test('the first question gives the title, unless one was given by hand', () => {
  const c = newConversation('c', 0);
  assert.equal(append(c, message('q', null, 'user', '# What is\nthis?')).title, 'What is');
  const named = { ...c, named: true, title: 'Mine' };
  assert.equal(append(named, message('q', null, 'user')).title, 'Mine');
  assert.equal(titleFrom('  '), 'New chat');
  const long = titleFrom('word '.repeat(40));
  assert.ok(long.length <= 61 && long.endsWith('word…'), long);
  assert.ok(titleFrom('x'.repeat(400)).length <= 61);
});

test('the server is sent the shown path, without empty answers and thoughts', () => {
  let c = edited();
  c = patch(c, 'a1', (each) => ({ ...each, reasoning: 'hm' }));
  assert.deepEqual(wireMessages(c, 'q2b', ''), [
    { role: 'user', content: 'q1' },
    { role: 'assistant', content: 'a1' },
    { role: 'user', content: 'q2b' },
  ]);
  c = patch(c, 'a1', (each) => ({ ...each, content: '' }));
  assert.deepEqual(wireMessages(c, 'q2b', 'Be brief.'), [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'q1' },
    { role: 'user', content: 'q2b' },
  ]);
  assert.equal(wireMessages(c, 'q2b', ' \n').length, 2);
});

test('what comes out of storage is not believed', () => {
  for (const bad of [null, 7, 'x', {}, { id: 'c' }, { id: 3, messages: [] }])
    assert.equal(restored(bad), null);
  const c = restored({
    id: 'c',
    messages: [message('q', null, 'user'), { id: 'x', role: 'robot', content: '' }, null],
    leaf: 'gone',
  })!;
  assert.deepEqual([c.leaf, c.messages.length, c.title], ['q', 1, 'New chat']);
  const writing = { ...message('a', 'q', 'assistant'), state: 'writing' };
  assert.equal(restored({ id: 'c', messages: [writing] })!.messages[0]!.state, 'stopped');
  // Parents in a circle must not hang the page.
  const circle = restored({
    id: 'c',
    messages: [message('a', 'b', 'user'), message('b', 'a', 'user')],
    leaf: 'b',
  })!;
  assert.equal(path(circle).length, 2);
  assert.ok(show(circle, 'a').leaf);
});

test('everything that is exported comes back', () => {
  const c = patch(edited(), 'a2b', (each) => ({ ...each, reasoning: 'one\n\ntwo', model: 'm' }));
  assert.deepEqual(fromJson(asJson([c])), [c]);
  assert.throws(() => fromJson('{}'));
  const text = asMarkdown(c);
  assert.match(text, /^# q1\n\n## You\n\nq1\n\n## Assistant\n\na1\n/);
  assert.match(text, /## m\n\n> one\n>\n> two\n\na2b\n$/);
  assert.doesNotMatch(text, /^a2$/m);
  assert.equal(fileName('What is "this"/..?', 'md'), 'what-is-this.md');
  assert.equal(fileName('../..', 'md'), 'chat.md');
});
