import { dialog, drawer, editing, focusComposer, view } from '../base/page';
import { library, showConversation } from '../chat/library';
import { runs, stop } from '../chat/runs';

export const KEYS: readonly { keys: string[]; does: string }[] = [
  { keys: ['Enter'], does: 'send' },
  { keys: ['Shift', 'Enter'], does: 'a new line' },
  { keys: ['Esc'], does: 'stop the answer, leave an edit, close' },
  { keys: ['↑'], does: 'in an empty field: edit the last question' },
  { keys: ['/'], does: 'to the message field' },
  { keys: ['Alt', 'N'], does: 'new chat' },
  { keys: ['Alt', '↑'], does: 'the conversation above' },
  { keys: ['Alt', '↓'], does: 'the conversation below' },
  { keys: ['Alt', 'M'], does: 'monitor, and back' },
  { keys: ['Alt', 'S'], does: 'settings' },
  { keys: ['Ctrl', '/'], does: 'this help' },
];

export function newChat(): void {
  view.set('chat');
  drawer.set(false);
  editing.set(null);
  showConversation(null);
  focusComposer();
}

export function openConversation(id: string): void {
  view.set('chat');
  drawer.set(false);
  editing.set(null);
  showConversation(id);
  focusComposer();
}

function step(by: number): void {
  const { conversations, shown } = library.value;
  const at = conversations.findIndex((each) => each.id === shown);
  const next = conversations[at < 0 ? (by > 0 ? 0 : -1) : at + by];
  if (next) openConversation(next.id);
}

/** The innermost thing that Esc can end. An open dialog closes by itself. */
function escape(): boolean {
  const { shown } = library.value;
  if (drawer.value) drawer.set(false);
  else if (editing.value) {
    editing.set(null);
    focusComposer();
  } else if (shown && runs.value.has(shown)) stop(shown);
  else return false;
  return true;
}

const WITH_ALT: Record<string, () => void> = {
  KeyN: newChat,
  KeyM: () => view.update((shown) => (shown === 'chat' ? 'monitor' : 'chat')),
  KeyS: () => dialog.set('settings'),
  ArrowUp: () => step(-1),
  ArrowDown: () => step(1),
};

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && /^(TEXTAREA|INPUT|SELECT)$/.test(target.tagName);
}

export function onKey(event: KeyboardEvent): void {
  if (event.isComposing) return;
  const isOpen = document.querySelector('dialog[open]') !== null;
  const { ctrlKey, metaKey, altKey, shiftKey, code, key } = event;
  let done = true;
  if ((ctrlKey || metaKey) && key === '/') {
    dialog.update((open) => (open === 'help' ? null : 'help'));
  } else if (isOpen) {
    return;
  } else if (key === 'Escape') {
    done = escape();
  } else if (altKey && !ctrlKey && !metaKey && !shiftKey && WITH_ALT[code]) {
    WITH_ALT[code]!();
  } else if (key === '/' && !altKey && !isTyping(event.target)) {
    view.set('chat');
    focusComposer();
  } else {
    done = false;
  }
  if (done) event.preventDefault();
}
