import { path, restored, type Conversation } from './conversation';

/** The shown path as a text to read. */
export function asMarkdown(conversation: Conversation): string {
  const parts = [`# ${conversation.title}\n`];
  for (const { role, content, reasoning, calls, model } of path(conversation)) {
    parts.push(role === 'user' ? '## You\n' : `## ${model || 'Assistant'}\n`);
    if (reasoning.trim()) {
      const quoted = reasoning.trim().split('\n').map((line) => `> ${line}`.trimEnd());
      parts.push(quoted.join('\n') + '\n');
    }
    if (content || !calls) parts.push(content.trimEnd() + '\n');
    for (const { name, arguments: given, result } of calls ?? []) {
      parts.push(`Called \`${name}\`:\n\n    ${given.replaceAll('\n', '\n    ')}\n`);
      if (result !== undefined) parts.push(`Result:\n\n    ${result.replaceAll('\n', '\n    ')}\n`);
    }
  }
  return parts.join('\n');
}

/** Everything, all versions included. */
export function asJson(conversations: Conversation[]): string {
  return JSON.stringify({ format: 'strata-conversations', version: 1, conversations }, null, 1);
}

/** The conversations of an exported file. Throws if it is none. */
export function fromJson(text: string): Conversation[] {
  const { conversations } = JSON.parse(text);
  return conversations.map(restored).filter((each: Conversation | null) => each !== null);
}

export function fileName(title: string, ending: string): string {
  const name = title.normalize('NFKD').replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-+|-+$/g, '');
  return `${name.slice(0, 60).toLowerCase() || 'chat'}.${ending}`;
}

export function download(name: string, type: string, text: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: type + ';charset=utf-8' }));
  link.download = name;
  link.click();
  // The browser reads it after the click.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
