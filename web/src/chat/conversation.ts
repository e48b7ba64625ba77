/**
 * A conversation is a tree: an edited or repeated message stands beside the first one, and nothing
 * that was written is lost. What is shown is the path from the root to `leaf`.
 */
export type Role = 'user' | 'assistant';

/** `writing` in the store of the browser means that the page was closed meanwhile. */
export type MessageState = 'done' | 'writing' | 'stopped' | 'length' | 'failed';

export interface Measured {
  tokens: number;
  /** Of the prompt, and how many of these were not computed again. */
  promptTokens?: number;
  cachedTokens?: number;
  /** Tokens a second, as the server measured it. */
  rate?: number;
  firstSeconds?: number;
  /** Tokens that were guessed, and those of them that the model chose as well. */
  drafted?: number;
  accepted?: number;
  /** Counted here, piece by piece, because the server has not said it. */
  counted?: boolean;
}

/** A tool that the model asked for. Nothing here runs it: its result is what a person gives. */
export interface Call {
  id: string;
  name: string;
  arguments: string;
  result?: string;
}

export interface Message {
  id: string;
  parent: string | null;
  role: Role;
  content: string;
  reasoning: string;
  calls?: Call[];
  state: MessageState;
  /** Milliseconds since 1970. */
  at: number;
  model?: string;
  /** Why it failed, in words. */
  problem?: string;
  reasoningSeconds?: number;
  measured?: Measured;
}

export interface Conversation {
  id: string;
  title: string;
  /** The title was given by hand. */
  named: boolean;
  created: number;
  updated: number;
  messages: Message[];
  leaf: string | null;
}

export const UNTITLED = 'New chat';

export function newConversation(id: string, now: number): Conversation {
  const empty = { title: UNTITLED, named: false, messages: [], leaf: null };
  return { id, created: now, updated: now, ...empty };
}

export function find(conversation: Conversation, id: string | null): Message | undefined {
  return conversation.messages.find((message) => message.id === id);
}

/** From the first message to `from`, which is the shown end unless it is given. */
export function path(conversation: Conversation, from = conversation.leaf): Message[] {
  const byId = new Map(conversation.messages.map((message) => [message.id, message]));
  const result: Message[] = [];
  for (let id = from; id !== null; ) {
    const message = byId.get(id);
    // A parent that is missing or comes twice: damaged storage must not hang the page.
    if (!message) break;
    byId.delete(id);
    result.push(message);
    id = message.parent;
  }
  return result.reverse();
}

/** The versions of a message, itself among them, oldest first. */
export function versions(conversation: Conversation, message: Message): Message[] {
  return conversation.messages.filter((other) => other.parent === message.parent);
}

export function append(conversation: Conversation, message: Message): Conversation {
  const titled = !conversation.named && conversation.title === UNTITLED && message.role === 'user';
  return {
    ...conversation,
    title: titled ? titleFrom(message.content) : conversation.title,
    messages: [...conversation.messages, message],
    leaf: message.id,
    updated: message.at,
  };
}

export function patch(
  conversation: Conversation,
  id: string,
  change: (message: Message) => Message,
): Conversation {
  const messages = conversation.messages.map((each) => (each.id === id ? change(each) : each));
  return { ...conversation, messages };
}

/** Shows this version and the newest that followed it. */
export function show(conversation: Conversation, id: string): Conversation {
  let leaf = id;
  for (;;) {
    const next = conversation.messages.filter((message) => message.parent === leaf).at(-1);
    if (!next || next.id === id) return { ...conversation, leaf };
    leaf = next.id;
  }
}

/** Without this message and all that followed it; the version before it is shown, or its parent. */
export function remove(conversation: Conversation, id: string): Conversation {
  const message = find(conversation, id);
  if (!message) return conversation;
  const gone = new Set([id]);
  // Parents stand before their children.
  for (const each of conversation.messages) {
    if (each.parent !== null && gone.has(each.parent)) gone.add(each.id);
  }
  const rest: Conversation = {
    ...conversation,
    messages: conversation.messages.filter((each) => !gone.has(each.id)),
  };
  if (conversation.leaf === null || !gone.has(conversation.leaf)) return rest;
  const beside = versions(rest, message).at(-1);
  return beside ? show(rest, beside.id) : { ...rest, leaf: message.parent };
}

export function titleFrom(text: string): string {
  const line = text.trim().split('\n', 1)[0]!.replace(/\s+/g, ' ').replace(/^#+ /, '');
  if (line.length <= 60) return line || UNTITLED;
  const cut = line.slice(0, 60);
  return cut.slice(0, Math.max(cut.lastIndexOf(' '), 40)).trimEnd() + '…';
}

function isCall(value: unknown): value is Call {
  const call = value as Partial<Call> | null;
  return [call?.id, call?.name, call?.arguments].every((each) => typeof each === 'string');
}

/** What a conversation from storage must be to be believed; null: it is not one. */
export function restored(value: unknown): Conversation | null {
  const given = value as Partial<Conversation> | null;
  if (!given || typeof given.id !== 'string' || !Array.isArray(given.messages)) return null;
  const messages = given.messages.filter(
    (message): message is Message =>
      typeof message?.id === 'string' &&
      (message.role === 'user' || message.role === 'assistant') &&
      typeof message.content === 'string',
  );
  const leaf = messages.some((message) => message.id === given.leaf) ? given.leaf! : null;
  return {
    id: given.id,
    title: typeof given.title === 'string' ? given.title : UNTITLED,
    named: given.named === true,
    created: Number(given.created) || 0,
    updated: Number(given.updated) || 0,
    messages: messages.map(({ calls, ...message }) => ({
      ...message,
      ...(Array.isArray(calls) && { calls: calls.filter(isCall) }),
      parent: message.parent ?? null,
      reasoning: message.reasoning ?? '',
      state: message.state === 'writing' ? 'stopped' : message.state,
    })),
    leaf: leaf ?? messages.at(-1)?.id ?? null,
  };
}

export interface WireMessage {
  role: 'system' | 'tool' | Role;
  content: string;
  tool_call_id?: string;
  tool_calls?: { id: string; type: 'function'; function: { name: string; arguments: string } }[];
}

/**
 * What the server is sent to answer `last`. Thoughts of earlier answers are not part of it, nor are
 * calls that got no result.
 */
export function wireMessages(conversation: Conversation, last: string, system: string): WireMessage[] {
  const turns = path(conversation, last).flatMap(({ role, content, calls }): WireMessage[] => {
    const called = (calls ?? []).filter((call) => call.result !== undefined);
    if (called.length > 0) {
      const tool_calls = called.map(({ id, name, arguments: given }) => ({
        id,
        type: 'function' as const,
        function: { name, arguments: given },
      }));
      const results = called.map(
        ({ id, result }): WireMessage => ({ role: 'tool', tool_call_id: id, content: result! }),
      );
      return [{ role, content, tool_calls }, ...results];
    }
    return role === 'user' || content !== '' ? [{ role, content }] : [];
  });
  return system.trim() ? [{ role: 'system', content: system }, ...turns] : turns;
}
