import { newId } from '../base/id';
import { Store } from '../base/store';
import { newConversation, restored, type Conversation } from './conversation';
import { openDatabase, type Database } from './database';

/** The conversations, newest first, and the one that is shown. */
export interface Library {
  loaded: boolean;
  /** Why nothing is kept beyond this page; empty: it is. */
  problem: string;
  conversations: Conversation[];
  /** null: a new one, which begins to exist with its first message. */
  shown: string | null;
}

export const library = new Store<Library>({
  loaded: false,
  problem: '',
  conversations: [],
  shown: null,
});

/** Conversations that this page is writing to: what another tab says of them is older. */
export const writing = new Set<string>();

let database: Database | null = null;
// Other tabs of this page, which tell each other what they have written.
const tabs = typeof BroadcastChannel === 'undefined' ? null : new BroadcastChannel('strata');

export async function loadLibrary(): Promise<void> {
  let problem = '';
  let conversations: Conversation[] = [];
  try {
    database = await openDatabase();
    const known = (await database.all()).map(restored);
    conversations = known.filter((each): each is Conversation => each !== null);
  } catch {
    problem = 'This browser keeps nothing for this page: conversations end with it.';
  }
  conversations.sort((a, b) => b.updated - a.updated);
  const asked = location.hash.slice(1);
  const shown = conversations.some((each) => each.id === asked) ? asked : null;
  library.set({ loaded: true, problem, conversations, shown });
  tabs?.addEventListener('message', (event) => heard(event.data));
}

function heard(news: { put?: unknown; deleted?: string }): void {
  const put = restored(news.put);
  if (put && !writing.has(put.id)) take(put);
  if (news.deleted) drop(news.deleted);
}

function take(conversation: Conversation): void {
  library.update((state) => {
    const others = state.conversations.filter((each) => each.id !== conversation.id);
    const conversations = [conversation, ...others].sort((a, b) => b.updated - a.updated);
    return { ...state, conversations };
  });
}

function drop(id: string): void {
  library.update((state) => ({
    ...state,
    conversations: state.conversations.filter((each) => each.id !== id),
    shown: state.shown === id ? null : state.shown,
  }));
}

export function conversation(id: string | null): Conversation | undefined {
  return library.value.conversations.find((each) => each.id === id);
}

export function startConversation(): Conversation {
  const begun = newConversation(newId(), Date.now());
  take(begun);
  showConversation(begun.id);
  return begun;
}

export function showConversation(id: string | null): void {
  library.update((state) => ({ ...state, shown: id }));
  // A reload comes back to it.
  history.replaceState(null, '', id ? '#' + id : location.pathname + location.search);
}

/** Changes a conversation; `kept` false: in this page only, while an answer is being written. */
export function change(
  id: string,
  edit: (conversation: Conversation) => Conversation,
  kept = true,
): void {
  const before = conversation(id);
  if (!before) return;
  const after = edit(before);
  take(after);
  if (kept) keepConversation(after);
}

export function keepConversation(kept: Conversation): void {
  database?.put(kept).then(
    () => tabs?.postMessage({ put: kept }),
    () => {
      const problem = 'The browser could not keep the last change: its storage may be full.';
      library.update((state) => ({ ...state, problem }));
    },
  );
}

/** Of one that is here already the newer stays. */
export function importConversations(conversations: Conversation[]): void {
  for (const each of conversations) {
    if ((conversation(each.id)?.updated ?? -1) >= each.updated) continue;
    take(each);
    keepConversation(each);
  }
}

export function deleteConversation(id: string): void {
  drop(id);
  if (library.value.shown === null) showConversation(null);
  database?.delete(id).then(
    () => tabs?.postMessage({ deleted: id }),
    () => undefined,
  );
}
