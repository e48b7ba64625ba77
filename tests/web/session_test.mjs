// A person's session with the page of the real server and the demo model.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { openBrowser, startStrata, waitFor } from './support.mjs';

const PIANO =
  'A piano is a keyboard instrument that is played by depressing keys that cause hammers to ' +
  'strike tuned strings and produce sounds.';
let browser, strata, page, context, faults, endless;

before(async () => {
  strata = await startStrata('--batch', '2');
  browser = await openBrowser();
  ({ page, context, faults } = await browser.visit(strata.url));
  const reply = await fetch(strata.url + 'tokenize', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ content: '<|im_end|><|endoftext|>', parse_special: true }),
  });
  const { tokens } = await reply.json();
  endless = Object.fromEntries(tokens.map((token) => [token, -100]));
  // Questions that begin so have no end: what would end the answer cannot be drawn.
  await page.route('**/v1/chat/completions', async (route) => {
    const body = route.request().postDataJSON();
    if (body.messages.at(-1).content.startsWith('Go on')) body.logit_bias = endless;
    await route.continue({ postData: JSON.stringify(body) });
  });
});

after(async () => {
  await browser?.close();
  await strata?.stop();
});

const field = () => page.getByRole('textbox', { name: 'Message', exact: true });
const messages = () => page.locator('.message');
const last = () => messages().last();

async function ask(words) {
  await field().fill(words);
  await field().press('Enter');
}

/** The last answer, once it is whole. */
async function answer() {
  await last().locator('.figures').waitFor();
  return (await last().locator('.prose').innerText()).trim();
}

const running = async () =>
  (await (await fetch(strata.url + 'health')).json()).engine.running;

test('settings reach the server: a greedy answer is the known one', async () => {
  await page.keyboard.press('Alt+s');
  await page.getByLabel('Temperature').fill('0');
  await page.keyboard.press('Escape');
  await ask('What is a piano?');
  assert.equal(await answer(), PIANO);
  assert.match(
    await last().locator('.figures').innerText(),
    /^\d+ tokens · [\d.\s]+ tokens\/s · first after [\d.]+ m?s$/,
  );
  assert.equal(await page.title(), 'What is a piano? · strata-demo · strata');
});

test('the server knows the conversation, and thoughts are folded', async () => {
  await page.getByRole('button', { name: 'Thinking: default' }).click();
  await ask('Count from 3 to 9.');
  await answer();
  assert.equal(await messages().count(), 4);
  const fold = last().getByRole('button', { name: /^Thought/ });
  assert.equal(await fold.getAttribute('aria-expanded'), 'false');
  await fold.press('Enter');
  assert.ok((await last().locator('.thoughts').innerText()).length > 20);
  await page.getByRole('button', { name: 'Thinking: on' }).click();
  await page.getByRole('button', { name: 'Thinking: off' }).waitFor();
});

test('an edited question gets another answer, and the first one stays', async () => {
  await field().press('ArrowUp');
  const editor = page.getByRole('textbox', { name: 'Edit the message' });
  assert.equal(await editor.inputValue(), 'Count from 3 to 9.');
  await editor.fill('What is 27 + 45?');
  await editor.press('Enter');
  assert.equal(await answer(), '27 + 45 = 72.');
  const versions = messages().nth(2).locator('.versions');
  assert.match(await versions.innerText(), /2 \/ 2/);
  await versions.getByRole('button', { name: 'Version before' }).click();
  assert.equal(await messages().nth(2).locator('.said').innerText(), 'Count from 3 to 9.');
  await versions.getByRole('button', { name: 'Version after' }).click();
  assert.equal(await last().locator('.prose').innerText(), '27 + 45 = 72.');
});

test('another answer to the same question', async () => {
  await last().getByRole('button', { name: 'Try again' }).click();
  await last().getByText('2 / 2').waitFor();
  assert.equal(await answer(), '27 + 45 = 72.');
});

test('while one conversation is answered another one is, and the monitor tells of both', async () => {
  await page.keyboard.press('Alt+n');
  await ask('Go on for long.');
  await page.waitForFunction(() => document.querySelector('.prose')?.textContent.length > 40);
  await page.keyboard.press('Alt+m');
  await page.getByText('of 2 slots').waitFor();
  await page.waitForFunction(
    () => parseFloat(document.querySelectorAll('.figure')[0].textContent) > 0,
  );
  assert.match(await page.locator('.figure', { hasText: 'slots' }).innerText(), /^1\s+of 2 slots/);
  assert.equal(await page.locator('.slots .busy').count(), 1);
  await page.keyboard.press('Alt+n');
  await ask('What is a piano?');
  assert.equal(await answer(), PIANO);
  // The figures of the engine come twice a second.
  await waitFor('one answer left', async () => (await running()) === 1);
});

test('Esc stops an answer, here and in the engine', async () => {
  await page.locator('.entry', { hasText: 'Go on for long.' }).locator('.title').click();
  await page.getByRole('button', { name: 'Stop' }).waitFor();
  await field().press('Escape');
  await last().getByText('Stopped.').waitFor();
  await waitFor('a free engine', async () => (await running()) === 0);
  assert.ok((await last().locator('.prose').innerText()).length > 40);
  assert.match(await last().locator('.figures').innerText(), /^about [\d\s]+ tokens · [\d.]+ tokens\/s$/);
});

test('a conversation gets a name', async () => {
  const entry = page.locator('.entry', { hasText: 'Go on for long.' });
  await entry.hover();
  await entry.getByRole('button', { name: /^More about/ }).click();
  await page.keyboard.press('Enter');
  const name = page.getByRole('textbox', { name: 'Name of the conversation' });
  await name.fill('The long one');
  await name.press('Enter');
  await page.getByRole('heading', { name: 'The long one' }).waitFor();
});

test('after a reload all is there', async () => {
  const before = await page.locator('.messages').innerText();
  await page.reload();
  await page.getByRole('heading', { name: 'The long one' }).waitFor();
  await last().getByText('Stopped.').waitFor();
  assert.equal(await page.locator('.messages').innerText(), before);
  assert.equal(await page.locator('.entry').count(), 3);
  await page.getByRole('button', { name: 'Thinking: off' }).waitFor();
});

test('conversations are exported', async () => {
  const exported = async (item) => {
    const entry = page.locator('.entry').last();
    await entry.hover();
    await entry.getByRole('button', { name: /^More about/ }).click();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('menuitem', { name: item }).click(),
    ]);
    return [download.suggestedFilename(), readFileSync(await download.path(), 'utf8')];
  };
  const [name, text] = await exported('Export as Markdown');
  assert.equal(name, 'what-is-a-piano.md');
  assert.ok(text.includes(`## strata-demo\n\n${PIANO}\n`), text);
  const [, json] = await exported('Export as JSON');
  const [conversation] = JSON.parse(json).conversations;
  // Two questions with an answer, one more version of the second, and a repeated answer.
  assert.equal(conversation.messages.length, 7);
});

test('when the engine dies its answer goes on in the next one', async () => {
  await page.keyboard.press('Alt+n');
  await ask('Go on until you fall.');
  await page.waitForFunction(() => document.querySelector('.prose')?.textContent.length > 20);
  process.kill(await strata.enginePid(), 'SIGKILL');
  await waitFor('ready', async () => (await fetch(strata.url + 'health')).ok);
  const length = () => page.evaluate(() => document.querySelector('.prose').textContent.length);
  const before = await length();
  await waitFor('more of the answer', async () => (await length()) > before);
  assert.equal(await last().locator('.problem').count(), 0);
  await page.keyboard.press('Escape');
  await waitFor('rest', async () => (await running()) === 0);
  await page.getByRole('button', { name: 'Edit' }).first().click();
  const editor = page.getByRole('textbox', { name: 'Edit the message' });
  await editor.fill('What is a piano?');
  await editor.press('Enter');
  assert.equal(await answer(), PIANO);
});

test('a conversation is deleted after a question', async () => {
  const entry = page.locator('.entry.shown');
  const doIt = async () => {
    await entry.hover();
    await entry.getByRole('button', { name: /^More about/ }).click();
    await page.getByRole('menuitem', { name: 'Delete' }).click();
  };
  page.once('dialog', (dialog) => dialog.dismiss());
  await doIt();
  assert.equal(await page.locator('.entry').count(), 4);
  page.once('dialog', (dialog) => dialog.accept());
  await doIt();
  await page.getByRole('heading', { name: 'Ask strata-demo' }).waitFor();
  await page.reload();
  await page.locator('.entry').nth(2).waitFor();
  assert.equal(await page.locator('.entry').count(), 3);
});

test('on a phone', async () => {
  const { page: phone, faults: phoneFaults } = await browser.visit(strata.url, {
    viewport: { width: 360, height: 680 },
    isMobile: true,
    hasTouch: true,
  });
  await phone.getByRole('button', { name: 'What is a piano?' }).tap();
  await phone.locator('.figures').waitFor();
  const fits = () => phone.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
  assert.ok(await fits());
  assert.equal(await phone.locator('nav').isVisible(), false);
  await phone.getByRole('button', { name: 'Conversations' }).tap();
  await phone.getByRole('button', { name: 'Monitor' }).tap();
  await phone.getByText('of 2 slots').waitFor();
  assert.ok(await fits());
  assert.equal(await phone.locator('nav').isVisible(), false);
  assert.deepEqual(phoneFaults, []);
});

test('nothing went wrong unseen, and nothing was asked of anybody else', () => {
  assert.deepEqual(faults, []);
});
